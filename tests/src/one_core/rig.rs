//! A core on a real ring, and hosts on loopback that take turns with it on one thread.

use std::io::{ErrorKind, Read, Result, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use ::io::counting::allocations;
use ::io::ring::{AnyRing, Ring, RingKind};
use engine::core::{Core, accept_token};
use engine::mailbox::CoreMailbox;
use iscsi::target::TargetLimits;
use scsi::wire::lun::Lun;

use super::{TARGET, serving};
use crate::initiator::{Data, Initiator, Reply, Settings};
use crate::iser_end::IserSettings;

/// A core, and hosts that take turns with it. What goes wrong is a panic.
pub struct Rig {
    core: Core<AnyRing, CoreMailbox>,
    /// Its hosts.
    pub hosts: Vec<Host>,
    /// What the core's waits and turns have allocated, where the allocator counts that.
    pub allocated: usize,
}

/// An initiator, and its socket.
pub struct Host {
    /// Its protocol.
    pub initiator: Initiator,
    socket: TcpStream,
    /// Output of the initiator that the socket has not taken.
    unsent: Vec<u8>,
    input: Vec<u8>,
}

impl Rig {
    /// So many hosts, logged in to a core whose LUN 0 has `size` bytes; `None` where the kernel
    /// does not have the ring.
    #[must_use]
    pub fn new(kind: RingKind, hosts: u32, size: u64, limits: TargetLimits) -> Option<Self> {
        Self::over(None, kind, hosts, (size, limits))
    }

    /// The same for hosts that come over iSER, if so told.
    #[must_use]
    pub fn over(
        iser: Option<&IserSettings>,
        kind: RingKind,
        hosts: u32,
        (size, limits): (u64, TargetLimits),
    ) -> Option<Self> {
        let (mut ring, _) = AnyRing::open(kind)
            .inspect_err(|cause| eprintln!("SKIPPED: {kind:?}: {cause}"))
            .ok()?;
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("its address");
        let listening = ring.listen(listener.into(), accept_token(0));
        listening.expect("a ring that listens");
        let mut core = serving(ring, size, limits).expect("address space");
        core.begin(Duration::ZERO);
        let hosts = (0..hosts).map(|number| {
            let settings = Settings {
                iser: iser.cloned(),
                ..Settings::new(number, TARGET)
            };
            Host::new(address, settings).expect("a connection")
        });
        let mut rig = Self {
            hosts: hosts.collect(),
            core,
            allocated: 0,
        };
        rig.until(|host| host.initiator.poll() == Some(Reply::LoggedIn));
        Some(rig)
    }

    /// Turns, until this has been so for every host.
    pub fn until(&mut self, mut so: impl FnMut(&mut Host) -> bool) {
        let mut left: Vec<_> = (0..self.hosts.len()).collect();
        for _ in 0..10_000 {
            left.retain(|at| !so(&mut self.hosts[*at]));
            if left.is_empty() {
                return;
            }
            self.hosts.iter_mut().for_each(Host::say);
            self.wait();
            self.turn();
            self.hosts.iter_mut().for_each(Host::hear);
        }
        panic!("nothing comes any more for {left:?}");
    }

    /// What the hosts are told until every command is answered.
    pub fn answers(&mut self) -> Vec<Reply> {
        let mut answers = Vec::new();
        self.until(|host| {
            answers.extend(std::iter::from_fn(|| host.initiator.poll()));
            host.initiator.outstanding() == 0
        });
        answers
    }

    /// The core takes its next waits for those of a thread that spins, or sleeps.
    pub fn spin(&mut self, spins: bool) {
        self.core.may_wait(spins.then_some(Duration::ZERO));
    }

    /// What there is to send leaves, and what has come is found.
    pub fn wait(&mut self) {
        let before = allocations();
        let waited = self.core.ring().wait(Some(Duration::from_millis(1)));
        self.allocated += allocations() - before;
        waited.expect("a ring that works");
    }

    /// What has come is dealt with.
    pub fn turn(&mut self) {
        let before = allocations();
        self.core.turn(Duration::ZERO);
        self.allocated += allocations() - before;
    }
}

impl Host {
    fn new(address: SocketAddr, settings: Settings) -> Result<Self> {
        let socket = TcpStream::connect(address)?;
        socket.set_nonblocking(true)?;
        socket.set_nodelay(true)?;
        Ok(Self {
            initiator: Initiator::new(settings),
            socket,
            unsent: Vec::new(),
            input: vec![0; 1 << 20],
        })
    }

    /// A command to LUN 0.
    pub fn command(&mut self, cdb: &[u8], data: Data) {
        self.initiator.command(0, Lun::from_index(0), cdb, data);
    }

    /// Says what there is to say, as far as the socket takes it.
    pub fn say(&mut self) {
        self.say_at_most(usize::MAX);
    }

    /// Says no more than so many bytes.
    pub fn say_at_most(&mut self, most: usize) {
        self.unsent.append(self.initiator.output());
        let now = self.unsent.len().min(most);
        match self.socket.write(&self.unsent[..now]) {
            Ok(len) => drop(self.unsent.drain(..len)),
            Err(cause) => assert_eq!(cause.kind(), ErrorKind::WouldBlock, "{cause}"),
        }
    }

    /// Whether anything is left to be said.
    pub fn has_more(&mut self) -> bool {
        !self.unsent.is_empty() || !self.initiator.output().is_empty()
    }

    /// Hears what has come.
    pub fn hear(&mut self) {
        match self.socket.read(&mut self.input) {
            Ok(0) => panic!("the core has closed the connection"),
            Ok(len) => {
                let received = self.initiator.receive(&self.input[..len]);
                received.expect("PDUs");
            }
            Err(cause) => assert_eq!(cause.kind(), ErrorKind::WouldBlock, "{cause}"),
        }
    }
}
