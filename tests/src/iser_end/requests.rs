//! What the initiator sends, and what is posted of it.

use iscsi::wire::bhs::{Bhs, Itt, Opcode, Ttt};
use iscsi::wire::data::{DataOut, R2t};
use iscsi::wire::framer::{Framer, PduPiece, padding};
use iscsi::wire::iser::{AdvertisedBuffers, Hello, ISER_VERSION, IserHeader};
use iscsi::wire::scsi_command::ScsiCommand;
use iscsi::wire::serial::DataSn;
use iscsi::wire::task_management::TaskRequest;
use rdma::iwarp::stream::Stream;
use rdma::verbs::{Access, QueuePair as _, SendHeader, Work};
use scsi::medium::{HeapLease, Lease as _};

use super::memory::{Advertised, Command, Commands, FILL, Function};
use super::{IserEnd, IserSettings, keys};

/// Whole PDUs of a stream of bytes without digests.
#[derive(Debug)]
pub(super) struct PduReader {
    framer: Framer,
    /// The PDU whose data is coming.
    current: Option<(Bhs, Vec<u8>)>,
}

impl PduReader {
    pub(super) const fn new() -> Self {
        Self {
            framer: Framer::new(0xff_ffff),
            current: None,
        }
    }

    /// The next one, with its data.
    ///
    /// # Panics
    /// When they are not PDUs.
    pub(super) fn next(&mut self, bytes: &mut &[u8]) -> Option<(Bhs, Vec<u8>)> {
        loop {
            match self.framer.next(bytes).expect("PDUs of an initiator")? {
                PduPiece::Header(bhs) if bhs.data_len() == 0 => return Some((bhs, Vec::new())),
                PduPiece::Header(bhs) => self.current = Some((bhs, Vec::new())),
                PduPiece::Data { bytes, end } => {
                    let (bhs, mut data) = self.current.take()?;
                    data.extend_from_slice(bytes);
                    if end {
                        return Some((bhs, data));
                    }
                    self.current = Some((bhs, data));
                }
                PduPiece::BadData => {}
            }
        }
    }
}

/// A message that is to be posted.
#[derive(Debug)]
pub(super) enum Request {
    Hello(Hello),
    Pdu(Bhs, Vec<u8>),
    /// A SCSI write whose data is to be read: immediate data, all data, and how much is missing.
    Write(Bhs, Vec<u8>, HeapLease, u32),
}

impl IserEnd {
    pub(super) fn request(&mut self, bhs: Bhs, data: Vec<u8>) {
        match bhs.opcode() {
            Opcode::LoginRequest => {
                // A discovery session is not one of iSER, and has no Hello.
                self.has_hello = self.settings.hello && !keys::is_of_discovery(&data);
                let text = keys::offered(&data, &self.settings);
                self.requests.push_back(Request::Pdu(bhs, text));
            }
            Opcode::ScsiCommand => self.command(bhs, data),
            Opcode::DataOut => self.data_out(bhs, data),
            _ => self.requests.push_back(Request::Pdu(bhs, data)),
        }
    }

    /// Asks the initiator for what it has not sent of a write.
    fn command(&mut self, bhs: Bhs, data: Vec<u8>) {
        let pdu = ScsiCommand::decode(&bhs);
        let offset = data.len() as u32;
        if !pdu.write || !pdu.last || pdu.expected <= offset {
            return self.requests.push_back(Request::Pdu(bhs, data));
        }
        let whole = HeapLease::from_bytes(vec![FILL; pdu.expected as usize]);
        if self.withholding.is_on() {
            return self.requests.push_back(Request::Write(bhs, data, whole, 0));
        }
        let desired = pdu.expected - offset;
        self.requests
            .push_back(Request::Write(bhs, data, whole, desired));
        let r2t = R2t {
            lun: pdu.lun,
            itt: pdu.itt,
            ttt: SOLICITED,
            stamps: self.stamps,
            r2t_sn: DataSn(0),
            offset,
            desired,
        };
        self.tell(r2t.encode(), &[]);
    }

    /// Data that the target did not ask for is a message; the rest goes where it is advertised.
    fn data_out(&mut self, bhs: Bhs, data: Vec<u8>) {
        let pdu = DataOut::decode(&bhs);
        if pdu.ttt == Ttt::NONE {
            return self.requests.push_back(Request::Pdu(bhs, data));
        }
        let is_it = |request: &&mut Request| request.is_write_of(pdu.itt);
        if let Some(Request::Write(_, _, whole, missing)) = self.requests.iter_mut().find(is_it) {
            whole.copy_in(pdu.offset as usize, &data);
            *missing -= data.len() as u32;
        }
    }

    /// Gives the initiator a PDU.
    pub(super) fn tell(&mut self, mut bhs: Bhs, data: &[u8]) {
        bhs.set_data_len(data.len() as u32);
        self.to_initiator.extend_from_slice(&bhs.0);
        self.to_initiator.extend_from_slice(data);
        let padding = usize::from(padding(data.len() as u32));
        self.to_initiator.extend_from_slice(&[0; 3][..padding]);
    }

    /// Begins with a Hello.
    pub(super) fn greet(&mut self) {
        self.requests.push_front(Request::Hello(Hello {
            max_version: ISER_VERSION,
            min_version: ISER_VERSION,
            ird: self.settings.reads,
        }));
    }
}

impl Request {
    /// Whether all of its data is there.
    pub(super) const fn is_whole(&self) -> bool {
        !matches!(self, Self::Write(.., missing) if *missing > 0)
    }

    pub(super) const fn is_hello(&self) -> bool {
        matches!(self, Self::Hello(_))
    }

    fn is_write_of(&self, itt: Itt) -> bool {
        matches!(self, Self::Write(bhs, ..) if bhs.itt() == itt) && !self.is_whole()
    }

    pub(super) fn post(
        self,
        stream: &mut Stream<HeapLease>,
        commands: &mut Commands,
        settings: &IserSettings,
    ) {
        match self {
            Self::Hello(hello) => post(stream, IserHeader::Hello(hello), &[], Vec::new()),
            Self::Write(bhs, immediate, whole, _) => {
                let skipped = immediate.len();
                let (memory, offset) = match settings.solicited_only {
                    None => (whole.slice(skipped, whole.len() - skipped), 0),
                    Some(true) => (whole, skipped),
                    Some(false) => (whole, 0),
                };
                let tag = stream.advertise(&memory, Access::Read);
                let write = Advertised::new(tag.stag, memory);
                commands.begin(stream, Command::new(&bhs, None, Some(write)));
                let buffers = AdvertisedBuffers {
                    write: Some(tag.plus(offset as u64)),
                    read: None,
                };
                post_pdu(stream, buffers, bhs, immediate);
            }
            Self::Pdu(bhs, data) => {
                let buffers = begin(stream, commands, &bhs);
                post_pdu(stream, buffers, bhs, data);
            }
        }
    }
}

/// Advertises memory for a read, and notes what a command or a function may do.
fn begin(stream: &mut Stream<HeapLease>, commands: &mut Commands, bhs: &Bhs) -> AdvertisedBuffers {
    let mut buffers = AdvertisedBuffers::default();
    match bhs.opcode() {
        Opcode::ScsiCommand => {
            let pdu = ScsiCommand::decode(bhs);
            let read = (pdu.read && pdu.expected > 0).then(|| {
                let memory = HeapLease::from_bytes(vec![FILL; pdu.expected as usize]);
                let tag = stream.advertise(&memory, Access::Write);
                buffers.read = Some(tag);
                Advertised::new(tag.stag, memory)
            });
            commands.begin(stream, Command::new(bhs, read, None));
        }
        Opcode::TaskRequest => commands.manage(Function::new(&TaskRequest::decode(bhs))),
        _ => {}
    }
    buffers
}

/// Immediate data goes as long as it is, texts are padded; ib_iser does so.
fn post_pdu(stream: &mut Stream<HeapLease>, buffers: AdvertisedBuffers, bhs: Bhs, data: Vec<u8>) {
    let (mut bhs, mut data) = (bhs, data);
    bhs.set_data_len(data.len() as u32);
    if bhs.opcode() != Opcode::ScsiCommand {
        data.resize(data.len().next_multiple_of(4), 0);
    }
    post(stream, IserHeader::Control(buffers), &bhs.0, data);
}

fn post(stream: &mut Stream<HeapLease>, header: IserHeader, bhs: &[u8], data: Vec<u8>) {
    stream.post(Work::Send {
        header: SendHeader::new(&[&header.encode(), bhs]).expect("room for two headers"),
        data: (!data.is_empty()).then(|| HeapLease::from_bytes(data)),
        invalidate: None,
    });
}

/// The Target Transfer Tag of every R2T.
const SOLICITED: Ttt = Ttt(1);
