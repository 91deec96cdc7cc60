//! Initiators at one end of a cable, each an N_Port of its own, in the test's own thread.

use std::time::{Duration, Instant};

use fc::frames::FrameSink;
use fc::initiator::{self, FcpInitiator, FcpInitiatorConfig, FcpInitiatorEvent, FcpTmf};
use fc::port::{Port, PortEvent};
use fc::remote::RemoteId;
use fc::tests::{bytes, command, config};
use fc::wire::ethernet::EthernetHeader;
use fc::wire::fcoe;
use fc::wire::frame::RCtl;
use io::ether::{EtherOptions, EtherPort};
use scsi::medium::{HeapLease, Lease, Now};
use scsi::wire::lun::Lun;

/// The data of a command.
pub(super) enum Data {
    None,
    /// So many bytes come.
    In(usize),
    /// These go.
    Out(Vec<u8>),
}

/// How a command ended.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) status: u8,
    sense: Vec<u8>,
    pub(super) data: Vec<u8>,
}

impl Ended {
    /// ADDITIONAL SENSE CODE and its qualifier, of fixed format.
    pub(super) fn code(&self) -> u16 {
        let code = self.sense.get(12..14).unwrap_or(&[0; 2]);
        u16::from_be_bytes([code[0], code[1]])
    }
}

struct Host {
    port: Port<FcpInitiator<HeapLease>>,
    /// The target, while there is a nexus.
    target: Option<RemoteId>,
    told: Vec<FcpInitiatorEvent<HeapLease>>,
}

impl Host {
    fn new(number: usize, now: Now, random: u8) -> Self {
        let fcp = FcpInitiator::new(FcpInitiatorConfig::default());
        let mut port = Port::new(&config(number as u16 + 1), fcp, now, [random; 8]);
        port.link(now, true);
        Self {
            port,
            target: None,
            told: Vec::new(),
        }
    }

    fn hear(&mut self) {
        while let Some(event) = self.port.poll() {
            match event {
                PortEvent::Up(id) => self.target = Some(id),
                PortEvent::Down(..) => self.target = None,
                PortEvent::Fc4(event) => self.told.push(event),
                _ => {}
            }
        }
    }
}

/// All of them.
pub(super) struct Hosts {
    ether: EtherPort,
    all: Vec<Host>,
    start: Instant,
    /// How often they have begun anew.
    lives: u8,
}

/// How long anything may take.
const LIMIT: Duration = Duration::from_secs(20);

struct Out<'a>(&'a mut EtherPort);

impl FrameSink for Out<'_> {
    fn slot(&mut self, len: usize) -> Option<&mut [u8]> {
        self.0.slot(len)
    }

    fn commit(&mut self, len: usize) {
        self.0.commit(len);
    }
}

/// Keeps the data of commands, which leaves later, and loses all else.
#[derive(Default)]
struct HeldData {
    frames: Vec<Vec<u8>>,
    slot: Vec<u8>,
}

impl FrameSink for HeldData {
    fn slot(&mut self, len: usize) -> Option<&mut [u8]> {
        self.slot = vec![0; len];
        Some(&mut self.slot)
    }

    fn commit(&mut self, len: usize) {
        let mut frame = std::mem::take(&mut self.slot);
        frame.truncate(len);
        let (_, payload) = EthernetHeader::parse(&frame).unwrap();
        if fcoe::decode(payload).is_ok_and(|frame| frame.header.r_ctl == RCtl::SOLICITED_DATA) {
            self.frames.push(frame);
        }
    }
}

impl Hosts {
    /// This many at the free end of a cable, with the link up.
    pub(super) fn new(place: &str, count: usize) -> Self {
        let Ok(place) = place.parse();
        let mut ether = EtherPort::open(&place, &EtherOptions::default()).unwrap();
        for group in fc::port::PortMode::default().groups() {
            ether.join(group.0).unwrap();
        }
        for number in 0..count {
            ether.join(config(number as u16 + 1).mac.0).unwrap();
        }
        let all = (0..count).map(|number| Host::new(number, Now::ZERO, 1 + number as u8));
        Self {
            ether,
            all: all.collect(),
            start: Instant::now(),
            lives: 1,
        }
    }

    fn now(&self) -> Now {
        self.start.elapsed()
    }

    /// Carries frames until something is so.
    #[track_caller]
    fn until(&mut self, mut is_so: impl FnMut(&mut [Host]) -> bool) {
        let limit = Instant::now() + LIMIT;
        while !is_so(&mut self.all) {
            assert!(Instant::now() < limit, "it takes too long");
            if self.turn() == 0 {
                std::thread::sleep(Duration::from_micros(50));
            }
        }
    }

    fn turn(&mut self) -> usize {
        let count = self.receive();
        for host in &mut self.all {
            host.port.transmit(&mut Out(&mut self.ether));
            host.hear();
        }
        self.ether.flush().unwrap();
        count
    }

    fn receive(&mut self) -> usize {
        let (now, all) = (self.now(), &mut self.all);
        let count = self.ether.receive(|frame, _| {
            for host in &mut *all {
                host.port.receive(now, frame, None);
            }
        });
        for host in &mut self.all {
            if host.port.next_deadline().is_some_and(|at| at <= now) {
                host.port.expire(now);
            }
            host.hear();
            if let Some(address) = host.port.address() {
                self.ether.join(address.mac.0).unwrap();
            }
        }
        count
    }

    /// All have a nexus with the target.
    pub(super) fn log_in(&mut self) {
        self.until(|all| all.iter().all(|host| host.target.is_some()));
    }

    /// All log out, and are there again.
    pub(super) fn log_out(&mut self) {
        let now = self.now();
        for host in &mut self.all {
            host.port.log_out(now);
        }
        for _ in 0..10 {
            self.turn();
        }
        let now = self.now();
        for host in &mut self.all {
            host.port.link(now, false);
            host.port.link(now, true);
        }
    }

    /// All are killed once the target has asked for this much data of each, and begin anew. Gives
    /// the frames of the data, none of which has left.
    pub(super) fn begin_anew(&mut self, len: usize) -> Vec<Vec<u8>> {
        self.turn();
        let mut held = HeldData::default();
        let limit = Instant::now() + LIMIT;
        while held.frames.iter().map(Vec::len).sum::<usize>() < len * self.all.len() {
            assert!(Instant::now() < limit, "it takes too long");
            self.receive();
            for host in &mut self.all {
                host.port.transmit(&mut held);
                host.hear();
            }
        }
        self.lives += 1;
        let (now, lives) = (self.now(), self.lives);
        for (number, host) in self.all.iter_mut().enumerate() {
            *host = Host::new(number, now, lives * 16 + number as u8);
        }
        held.frames
    }

    /// Sends whole frames.
    pub(super) fn send(&mut self, frames: &[Vec<u8>]) {
        let limit = Instant::now() + LIMIT;
        for frame in frames {
            while self.ether.slot(frame.len()).is_none() {
                assert!(Instant::now() < limit, "it takes too long");
                self.ether.flush().unwrap();
            }
            let slot = self.ether.slot(frame.len()).unwrap();
            slot.copy_from_slice(frame);
            self.ether.commit(frame.len());
        }
        self.ether.flush().unwrap();
    }

    /// Has a unit attention told that is pending.
    pub(super) fn settle(&mut self, host: usize) {
        while self.execute(host, &[0; 16], Data::None).status != 0 {}
    }

    /// Sends a command.
    pub(super) fn begin(&mut self, host: usize, cdb: &[u8], data: Data) {
        let data = match data {
            Data::None => initiator::Data::None,
            Data::In(len) => initiator::Data::In(Lease::from_bytes(vec![0; len])),
            Data::Out(bytes) => initiator::Data::Out(Lease::from_bytes(bytes)),
        };
        let now = self.now();
        let host = &mut self.all[host];
        host.told.clear();
        let target = host.target.expect("no nexus");
        let fcp = host.port.fc4_mut();
        fcp.execute(now, target, command(1, cdb, data)).unwrap();
    }

    /// Sends one, and waits for its end.
    #[track_caller]
    pub(super) fn execute(&mut self, host: usize, cdb: &[u8], data: Data) -> Ended {
        self.begin(host, cdb, data);
        self.until(|all| !all[host].told.is_empty());
        let told = self.all[host].told.remove(0);
        let FcpInitiatorEvent::Done(done) = told else {
            panic!("{told:?}")
        };
        let data = match &done.data {
            initiator::Data::In(into) => bytes(into),
            _ => Vec::new(),
        };
        Ended {
            status: done.status,
            sense: done.sense.as_slice().to_vec(),
            data,
        }
    }

    /// Has a task management function carried out on LUN 0; gives its RSP_CODE.
    #[track_caller]
    pub(super) fn manage(&mut self, host: usize, function: FcpTmf) -> Option<u8> {
        let now = self.now();
        let one = &mut self.all[host];
        one.told.clear();
        let target = one.target.expect("no nexus");
        let fcp = one.port.fc4_mut();
        fcp.manage(now, target, 1, Lun::from_index(0), function)
            .unwrap();
        self.until(|all| !all[host].told.is_empty());
        match self.all[host].told.remove(0) {
            FcpInitiatorEvent::Managed { response, .. } => response,
            told => panic!("{told:?}"),
        }
    }
}
