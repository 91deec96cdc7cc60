//! What a login and a session have of an RDMA device: their end of the connection, which is polled.
//!
//! A queue pair has a receive for each message that may come. A login has few, as its peer has
//! proven nothing; a session has as many as its command window is wide, and then some. Their memory
//! is pinned, so it may not be had: then there is no session (RFC 7145 §10.1.3.1), or its window
//! stays as wide as it is.

use ::io::rdma::{
    RdmaEnd, RdmaError, RdmaHeader, RdmaMemory, RdmaPair, RdmaPairOptions, RdmaRequest,
};
use block::lease::BlockLease;
use iscsi::datamover::iser::IserMover;
use iscsi::login::Login;
use iscsi::parameters::{DEFAULT_DATA_SEGMENT, FIRST_WINDOW, Transport, UNEXPECTED_PDUS};
use iscsi::session::Session;
use iscsi::target::TargetLimits;
use iscsi::wire::iser::{invalidates, longest_message, private_data};
use rdma::verbs::{Completion, QueuePair as _};
use runtime::device_pair::{DevicePair, DevicePairInTransit};
use scsi::medium::Now;
use scsi::violation::Violation;

/// TargetRecvDataSegmentLength that we declare: each receive has memory for a whole one, pinned.
const DATA_SEGMENT: u32 = DEFAULT_DATA_SEGMENT;

/// What a login over a device is told of it.
pub(super) const TRANSPORT: Transport = Transport::Iser {
    data_segment: DATA_SEGMENT,
};

/// Receives of a login, whose requests and responses alternate.
const LOGIN_RECEIVES: u16 = 4;

/// Receives beside those of the command window: for what a session takes without a place there, and
/// two that are being posted again.
const BESIDE_WINDOW: u32 = UNEXPECTED_PDUS + 2;

/// The widest command window: 1.2 MB of receives a session. RNICs reach their IOPS with less.
const WINDOW_MAX: u32 = 128;

/// Messages of a session that wait to be looked at, and so the most that are taken at a time. No
/// initiator that keeps to its window has half as many.
const WAITING_MAX: usize = 256;

/// Messages that may come before a session begins: a command for each place that the login opened.
const EARLY_MAX: usize = (FIRST_WINDOW + BESIDE_WINDOW) as usize;

const TOO_EARLY: Violation = Violation {
    rule: "more requests than the command window allows, before the login was over",
    clause: "RFC 7143 §4.2.2.1",
};

/// Takes a connection that a peer asks for.
pub(super) fn accept(
    request: RdmaRequest,
    memory: &RdmaMemory,
    limits: &TargetLimits,
) -> Result<DevicePair, RdmaError> {
    let asked = request.private_data();
    let can_invalidate = invalidates(asked);
    let answer = private_data(can_invalidate);
    // A peer that sends none is of another kind, and may take what it did not ask for amiss.
    let answer: &[u8] = if asked.is_empty() { &[] } else { &answer };
    let options = RdmaPairOptions {
        max_receive: longest_message(DATA_SEGMENT),
        max_send: RdmaHeader::MAX as u32 + DATA_SEGMENT,
        receives: LOGIN_RECEIVES,
        receives_max: receives(limits.window.min(WINDOW_MAX)),
    };
    let pair = request.accept(memory, &options, answer)?;
    Ok(DevicePair::new(pair, can_invalidate))
}

/// Receives for a command window of so many places.
fn receives(places: u32) -> u16 {
    u16::try_from(places + BESIDE_WINDOW).unwrap_or(u16::MAX)
}

/// The end of a connection whose login goes on.
pub(super) struct DeviceLogin {
    pair: DevicePair,
    /// Messages of the session that the login leads to.
    early: Vec<Vec<u8>>,
}

impl DeviceLogin {
    pub(super) const fn new(pair: DevicePair) -> Self {
        Self {
            pair,
            early: Vec::new(),
        }
    }

    pub(super) const fn pair(&self) -> &RdmaPair {
        self.pair.as_pair()
    }

    fn hear(&mut self, login: &mut Login<BlockLease>, now: Now) -> bool {
        self.pair.allow(WAITING_MAX);
        while let Some(completion) = self.pair.poll() {
            match completion {
                Completion::Received { bytes, .. } if login.takes_requests() => {
                    login.receive_message(now, &bytes);
                    self.pair.recycle(bytes);
                }
                Completion::Received { .. } if self.early.len() == EARLY_MAX => {
                    self.give_up(login, TOO_EARLY);
                    break;
                }
                Completion::Received { bytes, .. } => self.early.push(bytes),
                Completion::Ended(why) => self.give_up(login, why.violation()),
                _ => {}
            }
        }
        self.pair.take_told()
    }

    /// Ends the connection, and the login if it has not led to a session yet. What that agreed upon
    /// is needed to end the session.
    fn give_up(&mut self, login: &mut Login<BlockLease>, why: Violation) {
        if login.takes_requests() || login.is_asking() {
            login.close(why);
        }
        self.pair.pair().end();
    }

    /// Returns whether all of it has reached the peer's device.
    fn post(&mut self, login: &mut Login<BlockLease>) -> bool {
        login.post(&mut self.pair);
        self.pair.pair().flush();
        !self.pair().has_work()
    }

    /// Posts the receives that a session begins with.
    pub(super) fn reserve(&mut self) -> Result<(), RdmaError> {
        self.pair.pair().grow_receives(receives(FIRST_WINDOW))
    }

    /// Lets it rest, after its last response has come to the peer; `None` if it has ended.
    pub(super) fn rest(mut self) -> Option<DevicePairInTransit> {
        self.early.into_iter().for_each(|one| self.pair.keep(one));
        self.pair.release()
    }
}

/// A session over a device, and its end of the connection.
pub(super) struct DeviceSession {
    pub(super) session: Session<BlockLease, IserMover<BlockLease>>,
    pair: DevicePair,
    /// The widest command window that there are or can be receives for.
    window_max: u32,
}

impl DeviceSession {
    /// The session that a login led to.
    pub(super) fn new(login: Login<BlockLease>, now: Now, pair: DevicePair) -> Option<Self> {
        let window = login.config().limits.window.min(WINDOW_MAX);
        let most = u32::from(pair.as_pair().receives_max());
        let mut session: Session<_, IserMover<_>> = login.into_session_over(now)?;
        session.limit_window(FIRST_WINDOW.min(window));
        Some(Self {
            session,
            pair,
            window_max: window.min(most.saturating_sub(BESIDE_WINDOW)),
        })
    }

    pub(super) const fn pair(&self) -> &RdmaPair {
        self.pair.as_pair()
    }

    fn hear(&mut self, now: Now) -> bool {
        let waiting = self.session.messages_waiting();
        self.pair.allow(WAITING_MAX.saturating_sub(waiting));
        let room = self.pair.limits().room;
        self.session.receive(now, &mut self.pair);
        if self.pair.limits().room > room {
            // The peer's device has acknowledged it: it takes its data.
            self.session.has_put_out(self.pair().has_work());
        }
        self.pair.take_told()
    }

    pub(super) fn settle(&mut self) {
        self.session.settle(&mut self.pair);
    }

    /// A session that takes nothing more, and has messages enough, is left to its deadlines: its
    /// peer sends more than it may and reads nothing.
    fn arm(&mut self) -> bool {
        let is_full = self.session.messages_waiting() >= WAITING_MAX;
        if is_full && self.session.is_stalled() {
            return false;
        }
        let has_more = self.session.has_message() || self.pair.is_keeping();
        has_more || self.pair.pair().arm()
    }

    /// One chain of all. Returns whether there is nothing left to send.
    fn post(&mut self) -> bool {
        self.widen();
        self.session.transmit(&mut self.pair);
        self.pair.pair().flush();
        self.has_ended() || self.session.queued() == 0 && !self.pair().has_work()
    }

    /// Posts more receives where the initiator makes use of all, before it is told that it may send
    /// more.
    fn widen(&mut self) {
        let Some(places) = self.session.used_up_window() else {
            return;
        };
        let wanted = places.saturating_mul(2).min(self.window_max);
        if wanted <= places {
            return;
        }
        match self.pair.pair().grow_receives(receives(wanted)) {
            Ok(()) => self.session.limit_window(wanted),
            Err(error) => {
                self.window_max = places;
                let peer = self.session.parameters().endpoints.peer;
                tracing::warn!("{peer}: its session stays at {places} commands at once: {error}");
            }
        }
    }

    /// Whether nothing leaves any more.
    pub(super) fn has_ended(&self) -> bool {
        self.pair.end().is_some()
    }

    pub(super) fn trim(&mut self) {
        self.pair.pair().trim();
    }
}

/// The end of a connection over a device, whatever it is used for.
pub(super) enum DeviceEnd<'a> {
    /// With the login that goes over it.
    Login(&'a mut DeviceLogin, &'a mut Login<BlockLease>),
    Session(&'a mut DeviceSession),
}

impl DeviceEnd<'_> {
    /// The descriptor was readable.
    pub(super) fn wake(&mut self) {
        match self {
            Self::Login(device, _) => device.pair.pair().wake(),
            Self::Session(over) => over.pair.pair().wake(),
        }
    }

    /// Whether there is more to be heard; else the descriptor will tell.
    pub(super) fn arm(&mut self) -> bool {
        match self {
            Self::Login(device, _) => device.pair.pair().arm(),
            Self::Session(over) => over.arm(),
        }
    }

    /// Has its user hear what has come; returns whether anything has.
    pub(super) fn hear(&mut self, now: Now) -> bool {
        match self {
            Self::Login(device, login) => device.hear(login, now),
            Self::Session(over) => over.hear(now),
        }
    }

    /// Posts what there is to be said; returns whether all of it is over.
    pub(super) fn post(&mut self) -> bool {
        match self {
            Self::Login(device, login) => device.post(login),
            Self::Session(over) => over.post(),
        }
    }

    /// Whether it has ended, and nothing is to be said of that: the peer has disconnected, or a
    /// session has not begun.
    pub(super) fn is_gone(&self) -> bool {
        match self {
            Self::Login(device, login) => match device.pair.end() {
                Some(RdmaEnd::ByPeer) => true,
                Some(_) => login.outcome().is_some(),
                None => false,
            },
            Self::Session(over) => over.pair.end() == Some(RdmaEnd::ByPeer),
        }
    }
}
