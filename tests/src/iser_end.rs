//! An initiator's end of iSER over software iWARP, for an initiator that speaks iSCSI over TCP:
//! what that sends goes in, and what the target would have sent it over TCP comes out.
//!
//! | the initiator's side | the wire |
//! |---|---|
//! | Login PDUs | the same in Sends, with the keys of iSER |
//! | a SCSI read | advertises memory; with the response come Data-In PDUs of what is in it |
//! | a SCSI write | what was not sent with it is asked for by R2T, and advertised |
//! | other PDUs | the same in Sends |
//!
//! It is a witness, too. What the target does is compared with what it may do: which STag a
//! response invalidates, how much of the memory of a read is written, and that nothing is when the
//! command has ended, or a task management function that ends it was answered.
//!
//! | what | file |
//! |---|---|
//! | from the initiator | `requests.rs` |
//! | from the target | `responses.rs` |
//! | memory of commands, and functions that end them | `memory.rs` |
//! | keys of a login | `keys.rs` |
//! | reads that are not answered | `withholding.rs` |

mod keys;
mod memory;
mod requests;
mod responses;
#[cfg(test)]
mod tests;
mod withholding;

use std::collections::VecDeque;

use iscsi::wire::bhs::Stamps;
use iscsi::wire::iser::{longest_message, private_data};
use rdma::iwarp::startup::{FrameKind, FrameReader, StartupConfig, StartupError, StartupFrame};
use rdma::iwarp::stream::{Stream, StreamConfig};
use rdma::test_support::sent;
use rdma::verbs::{Completion, QueuePair as _};
use scsi::medium::HeapLease;
use scsi::violation::Violation;

use self::memory::Commands;
use self::requests::{PduReader, Request};
use self::withholding::Withholding;

/// How an initiator speaks iSER.
#[derive(Clone, Debug)]
pub struct IserSettings {
    /// It asks for CRCs.
    pub crc: bool,
    /// It takes FPDUs longer than a segment of TCP.
    pub long_fpdus: bool,
    /// It bears a Send with Invalidate.
    pub can_invalidate: bool,
    /// RDMA Reads of the target that may be outstanding.
    pub reads: u16,
    /// TaggedBufferForSolicitedDataOnly; `None`: it is not declared, and unsolicited data skipped.
    pub solicited_only: Option<bool>,
    /// It begins with a Hello.
    pub hello: bool,
    /// TargetRecvDataSegmentLength that it offers.
    pub data_segment: u32,
    /// It sends data along with a command.
    pub immediate_data: bool,
}

impl IserSettings {
    /// As Linux does it, with CRCs.
    #[must_use]
    pub const fn usual() -> Self {
        Self {
            crc: true,
            long_fpdus: true,
            can_invalidate: true,
            reads: 32,
            solicited_only: None,
            hello: false,
            data_segment: 65_536,
            immediate_data: true,
        }
    }
}

/// An initiator's end of a connection.
#[derive(Debug)]
pub struct IserEnd {
    settings: IserSettings,
    link: Link,
    withholding: Withholding,
    pdus: PduReader,
    /// What was not posted, oldest first: it waits for its data, or for a right to send.
    requests: VecDeque<Request>,
    commands: Commands,
    /// A Hello was announced.
    has_hello: bool,
    /// A HelloReply is due.
    awaits_hello_reply: bool,
    /// As the target told them last.
    stamps: Stamps,
    to_wire: Vec<u8>,
    to_initiator: Vec<u8>,
}

/// How far the connection is.
#[derive(Debug)]
enum Link {
    /// The Reply of MPA is coming.
    Startup(FrameReader),
    Open(Box<Stream<HeapLease>>),
    /// By this.
    Over(Violation),
}

impl IserEnd {
    /// An end that begins at once.
    #[must_use]
    pub fn new(settings: IserSettings) -> Self {
        let startup = startup(&settings);
        let private = private_data(settings.can_invalidate);
        Self {
            link: Link::Startup(FrameReader::new(FrameKind::Reply)),
            withholding: Withholding::default(),
            pdus: PduReader::new(),
            requests: VecDeque::new(),
            commands: Commands::default(),
            has_hello: false,
            awaits_hello_reply: false,
            stamps: Stamps::default(),
            to_wire: startup.request(&private).encode(),
            to_initiator: Vec::new(),
            settings,
        }
    }

    /// What goes to the target.
    pub fn to_wire(&mut self) -> &mut Vec<u8> {
        &mut self.to_wire
    }

    /// What goes to the initiator.
    pub fn to_initiator(&mut self) -> &mut Vec<u8> {
        &mut self.to_initiator
    }

    /// From now on the initiator answers no request for data, or it does again.
    ///
    /// # Errors
    /// As with [`Self::receive`], by requests that were withheld until now.
    pub fn withhold(&mut self, withholds: bool) -> Result<(), Violation> {
        if self.withholding.is_on() == withholds {
            return Ok(());
        }
        self.withholding.set(withholds);
        self.receive(&[])
    }

    /// Takes bytes that the initiator sends.
    pub fn send(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while let Some((bhs, data)) = self.pdus.next(&mut rest) {
            self.request(bhs, data);
        }
        self.post();
    }

    /// Takes bytes that came from the target, all of them.
    ///
    /// # Errors
    /// A rule that the target broke, or that it says this end broke: the connection is over.
    pub fn receive(&mut self, bytes: &[u8]) -> Result<(), Violation> {
        let result = match &mut self.link {
            Link::Startup(reader) => match reader.receive(bytes) {
                Ok(None) => Ok(()),
                Ok(Some(reply)) => self.open(&reply),
                Err(error) => Err(error.violation()),
            },
            Link::Open(_) => {
                let bytes = self.withholding.pass(bytes);
                self.hear(&bytes)
            }
            Link::Over(violation) => Err(*violation),
        };
        self.post();
        if let Err(violation) = result {
            self.link = Link::Over(violation);
        }
        result
    }

    fn open(&mut self, reply: &StartupFrame) -> Result<(), Violation> {
        let agreed = startup(&self.settings).agree(reply);
        let agreed = agreed.map_err(StartupError::violation)?;
        let config = StreamConfig {
            segment_size: SEGMENT_SIZE,
            max_receive: longest_message(keys::DATA_SEGMENT),
            can_invalidate: false,
            random: [0x5a; 32],
        };
        self.link = Link::Open(Box::new(Stream::new(agreed, &config)));
        Ok(())
    }

    /// Takes bytes of FPDUs.
    fn hear(&mut self, bytes: &[u8]) -> Result<(), Violation> {
        let mut rest = bytes;
        loop {
            let Link::Open(stream) = &mut self.link else {
                return Ok(());
            };
            let used = stream.receive(rest);
            rest = &rest[used..];
            let Some(completion) = stream.poll() else {
                if rest.is_empty() {
                    return Ok(());
                }
                continue;
            };
            match completion {
                Completion::Received { bytes, invalidated } => self.message(&bytes, invalidated)?,
                Completion::Ended(why) => return Err(why.violation()),
                _ => {}
            }
        }
    }

    /// Nothing of a command comes any more, and nobody is told.
    pub fn forget(&mut self, itt: u32) {
        if let Link::Open(stream) = &mut self.link {
            self.commands.forget(stream, itt);
        }
    }

    /// Posts what may be sent now.
    fn post(&mut self) {
        let Link::Open(stream) = &mut self.link else {
            return;
        };
        while !self.awaits_hello_reply
            && let Some(request) = self.requests.pop_front_if(|request| request.is_whole())
        {
            self.awaits_hello_reply = request.is_hello();
            request.post(stream, &mut self.commands, &self.settings);
        }
        self.to_wire.append(&mut sent(stream));
    }
}

fn startup(settings: &IserSettings) -> StartupConfig {
    StartupConfig {
        crc: settings.crc,
        long_fpdus: settings.long_fpdus,
        ird: settings.reads,
        ord: 1,
    }
}

/// Bytes of a segment of TCP.
const SEGMENT_SIZE: usize = 1460;
