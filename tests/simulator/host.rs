//! A host: an initiator, its connection, and what it waits for.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::rc::Rc;

use iscsi::wire::bhs::{Bhs, Itt};
use iscsi::wire::iser::ISER_HEADER_LEN;
use rdma::iwarp::ddp::UNTAGGED_LEN;
use scsi::medium::Extent;
use scsi::wire::lun::Lun;
use sim::{Rng, SimWire};
use tests::initiator::{Data, Initiator, ReceiveError, Reply, Settings};

use crate::oracle::{Stamp, Tick};

/// A host, and what it knows of each of its commands.
pub(crate) struct Host<W = What> {
    /// Who it is, and which keys it offers.
    pub(crate) settings: Settings,
    /// Its connection, if it has one.
    pub(crate) link: Option<Link>,
    /// Whether it is in full-feature phase.
    pub(crate) logged_in: bool,
    /// Commands that were not answered.
    pub(crate) tasks: BTreeMap<u64, Task<W>>,
    /// Task management functions that were not answered, by their ITT.
    pub(crate) functions: BTreeMap<u32, Function>,
    /// Commands whose connection is gone.
    pub(crate) lost: Vec<Task<W>>,
    /// It was fenced: nothing that it writes from now on may come to the medium.
    pub(crate) fenced: bool,
    /// It takes what arrives.
    pub(crate) reads: bool,
    /// What it was told, for stories that look at that.
    pub(crate) told: VecDeque<Reply>,
    /// Commands it has sent.
    pub(crate) users: u64,
    /// What becomes of its bytes on their way.
    pub(crate) line: Line,
}

/// The way of the bytes of a host, where one of them may be damaged.
#[derive(Default)]
pub(crate) struct Line {
    /// How many bytes have passed, to the target and to the host.
    pub(crate) passed: [usize; 2],
    /// Which byte is to be damaged: which way, and behind how many others.
    pub(crate) damage: Option<(usize, usize)>,
    /// The host has found its connection broken.
    pub(crate) has_ended: bool,
}

/// The ways of a [`Line`].
pub(crate) const TO_TARGET: usize = 0;
pub(crate) const TO_HOST: usize = 1;

impl Line {
    fn pass(&mut self, way: usize, bytes: &mut [u8]) {
        let before = self.passed[way];
        self.passed[way] += bytes.len();
        if let Some((_, at)) = self.damage.filter(|(damaged, _)| *damaged == way)
            && let Some(byte) = at.checked_sub(before).and_then(|at| bytes.get_mut(at))
        {
            *byte ^= 1 << (at % 8);
        }
    }

    /// The connection is over by what has come; that may be after damage alone.
    fn ended(&mut self, error: ReceiveError) {
        assert!(self.damage.is_some(), "{error}");
        self.has_ended = true;
    }
}

/// A connection.
pub(crate) struct Link {
    /// The bytes.
    pub(crate) wire: SimWire,
    /// The protocol.
    pub(crate) initiator: Initiator,
}

/// A command.
#[derive(Clone, Debug)]
pub(crate) struct Task<W = What> {
    /// Its tag.
    pub(crate) itt: Itt,
    /// Its unit.
    pub(crate) unit: usize,
    /// What it does.
    pub(crate) what: W,
    /// Something that was answered may have ended it, and nobody tells.
    pub(crate) vanished: bool,
}

/// What a command does, as far as the oracle looks at it.
#[derive(Clone)]
pub(crate) enum What {
    /// It writes.
    Write(Stamp),
    /// It reads.
    Read(Tick, Extent),
    /// It writes where it finds what it expects.
    CompareAndWrite(Stamp, Tick, Extent, Vec<u8>),
    /// Anything else.
    Other,
}

impl fmt::Debug for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Write(stamp) => write!(f, "writes {stamp:?}"),
            Self::Read(_, extent) => write!(f, "reads {extent:?}"),
            Self::CompareAndWrite(stamp, _, extent, _) => {
                write!(f, "compares {extent:?} and writes {stamp:?}")
            }
            Self::Other => f.write_str("neither reads nor writes"),
        }
    }
}

/// A task management function.
#[derive(Clone, Debug)]
pub(crate) struct Function {
    /// The function code of RFC 7143 §11.5.1.
    pub(crate) code: u8,
    /// The commands that it ends, as far as is known: host and name.
    pub(crate) ends: Vec<(usize, u64)>,
}

impl What {
    /// The write in it.
    #[must_use]
    pub(crate) fn stamp(&self) -> Option<Stamp> {
        match self {
            Self::Write(stamp) | Self::CompareAndWrite(stamp, ..) => Some(*stamp),
            Self::Read(..) | Self::Other => None,
        }
    }
}

impl<W> Host<W> {
    /// A host without a connection.
    #[must_use]
    pub(crate) fn new(settings: Settings) -> Self {
        Self {
            settings,
            link: None,
            logged_in: false,
            tasks: BTreeMap::new(),
            functions: BTreeMap::new(),
            lost: Vec::new(),
            fenced: false,
            reads: true,
            told: VecDeque::new(),
            users: 0,
            line: Line::default(),
        }
    }

    /// Takes a new connection in the place of the old one, and logs in by it.
    pub(crate) fn dial(&mut self, wire: SimWire) {
        self.hang_up();
        let initiator = Initiator::new(self.settings.clone());
        self.link = Some(Link { wire, initiator });
    }

    /// Lets its connection go as it is; returns it.
    pub(crate) fn hang_up(&mut self) -> Option<SimWire> {
        let tasks = std::mem::take(&mut self.tasks);
        self.lost.extend(tasks.into_values());
        self.functions.clear();
        self.logged_in = false;
        self.link.take().map(|link| link.wire)
    }

    /// Begins to log out, if it is logged in.
    pub(crate) fn log_out(&mut self) {
        if let Some(link) = self.link.as_mut().filter(|_| self.logged_in) {
            link.initiator.log_out();
        }
    }

    /// Whether it may send another command.
    #[must_use]
    pub(crate) fn is_ready(&self) -> bool {
        let ready = |link: &Link| link.initiator.is_ready() && !link.wire.is_over();
        self.logged_in && self.link.as_ref().is_some_and(ready)
    }

    /// Sends a command; returns its name.
    ///
    /// # Panics
    /// When it is not logged in.
    pub(crate) fn command(
        &mut self,
        attribute: u8,
        unit: usize,
        cdb: &[u8],
        data: Data,
        what: W,
    ) -> u64 {
        self.users += 1;
        let user = self.users;
        let link = self.link.as_mut().expect("a connection");
        let lun = Lun::from_index(unit as u16);
        let itt = link.initiator.command_with(attribute, user, lun, cdb, data);
        let task = Task {
            itt,
            unit,
            what,
            vanished: false,
        };
        self.tasks.insert(user, task);
        user
    }

    /// Bytes that it has not sent.
    #[must_use]
    pub(crate) fn unsent(&mut self) -> usize {
        let link = self.link.as_mut();
        link.map_or(0, |link| link.initiator.output().len())
    }

    /// Bytes that it could take.
    #[must_use]
    pub(crate) fn arrived(&self) -> usize {
        match &self.link {
            Some(link) if self.reads => link.wire.arrived(),
            _ => 0,
        }
    }

    /// Sends so many bytes.
    pub(crate) fn send(&mut self, len: usize) {
        if let Some(link) = &mut self.link {
            let output = link.initiator.output();
            let mut bytes = output[..len].to_vec();
            output.drain(..len);
            self.line.pass(TO_TARGET, &mut bytes);
            link.wire.put(&bytes);
        }
    }

    /// Takes so many bytes.
    ///
    /// # Panics
    /// When they end the connection, and none was damaged.
    pub(crate) fn take(&mut self, len: usize) {
        if let Some(link) = &mut self.link {
            let mut bytes = link.wire.take(len);
            self.line.pass(TO_HOST, &mut bytes);
            if let Err(error) = link.initiator.receive(&bytes) {
                self.line.ended(error);
            }
        }
    }

    /// Sends some of what it has to say, or takes some of what has arrived; whether it has taken
    /// something.
    pub(crate) fn exchange(&mut self, rng: &mut Rng) -> bool {
        let (unsent, arrived) = (self.unsent(), self.arrived());
        let sends = unsent > 0 && (arrived == 0 || rng.one_in(2));
        if sends {
            self.send(1 + rng.below(unsent));
        } else {
            self.take(1 + rng.below(arrived));
        }
        !sends
    }

    /// Whether it has something to send or to take, or is to notice that its connection is gone.
    #[must_use]
    pub(crate) fn has_something_to_do(&mut self) -> bool {
        self.unsent() > 0 || self.arrived() > 0 || self.is_cut_off()
    }

    /// The header of the PDU that these bytes begin with: over iSER it stands behind the headers of
    /// an FPDU, of a segment and of the message.
    pub(crate) fn header_in(&self, bytes: &[u8]) -> Bhs {
        let at = self.settings.iser.as_ref().map_or(0, |_| {
            let segment = 2 + UNTAGGED_LEN;
            segment + ISER_HEADER_LEN
        });
        Bhs(*bytes[at..].first_chunk().expect("a header"))
    }

    /// What it was told next.
    pub(crate) fn poll(&mut self) -> Option<Reply> {
        self.link.as_mut()?.initiator.poll()
    }

    /// Whether its connection is gone and everything that came by it was taken.
    #[must_use]
    pub(crate) fn is_cut_off(&self) -> bool {
        let over = |link: &Link| link.wire.is_over() && link.wire.arrived() == 0;
        self.link.as_ref().is_some_and(over)
    }
}

/// Data-Out of these bytes.
#[must_use]
pub(crate) fn out(bytes: impl Into<Vec<u8>>) -> Data {
    Data::Out(Rc::from(bytes.into()))
}
