//! One core: a ring, a device server, handles on the volumes, and the connections that live here.
//!
//! The loop is: wait; take what arrived, event by event, each carried through session, device
//! server and volume as far as it goes; then send, once for each connection that has something
//! to say (and once half way, where much came). Sessions never leave their core, so nothing here
//! locks.

mod buffers;
mod census;
mod connection;
mod fc_port;
mod front;
mod login;
mod logins;
mod ports;
mod services;
mod session;
mod stop;
mod timers;
mod token;
mod units;
mod volumes;
mod watch;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use ::io::memory::{Pool, Recall};
use ::io::ring::{Event, Ring, SendBatch, Token};
use block::lease::Lease;
use block::volume::Node;
use scsi::device::{DeviceServer, OpId, Output};
use scsi::medium::{MediumResult, Now};
use scsi::nexus::NexusId;
use scsi::unit::{CoreId, UnitId, UnitState};

use crate::journal::{Journal, Peer, QUIET, Violation};
use crate::mail::{Message, Post};
use crate::volumes::Volumes;
use buffers::SpareBatches;
pub use census::Census;
use connection::Connections;
pub use fc_port::FcPort;
pub use front::{Devices, Front, FrontParts};
pub(crate) use session::Wire;
use timers::{Timer, Timers};
use token::{Key, Purpose};
pub use units::Store;

/// One core. `P` is its way to the others.
pub struct Core<R: Ring, P: Post> {
    id: CoreId,
    ring: R,
    post: P,
    /// Messages of this core to itself.
    local: VecDeque<Message>,
    device: DeviceServer<Lease>,
    volumes: Volumes,
    /// Results of volumes, not yet told to the device server.
    done: Vec<(u64, MediumResult<Lease>)>,
    connections: Connections,
    /// Fibre Channel ports that live here.
    fc_ports: Vec<FcPort>,
    /// Slots of connections that may have something to send.
    dirty: VecDeque<u32>,
    /// Answers to those whom this turn has heard.
    answers: usize,
    /// Batches that no connection is using.
    batches: SpareBatches,
    timers: Timers,
    journal: Arc<Journal>,
    /// Logins, the registry of sessions and the owners of units: on core 0 alone.
    front: Option<Box<Front>>,
    stop: stop::Stop,
    /// What units have lent for reading and wait for.
    recalls: Vec<(UnitId, Recall)>,
    /// The timer of the journal is set.
    sweeping: bool,
    /// What the volumes take buffers from.
    buffers: Pool,
    /// The timer of the buffers is set.
    trimming: bool,
}

/// What a core is made of.
pub struct Parts<R: Ring, P: Post> {
    /// Its number.
    pub id: CoreId,
    /// Its ring.
    pub ring: R,
    /// Its way to the others.
    pub post: P,
    /// The units of the process, by `UnitId`.
    pub units: Vec<Arc<UnitState>>,
    /// Handles on their volumes, in the same order.
    pub volumes: Volumes,
    /// What these take buffers from.
    pub buffers: Pool,
    /// Fibre Channel ports that live here.
    pub fc_ports: Vec<FcPort>,
    /// Where broken rules are told.
    pub journal: Arc<Journal>,
    /// For core 0.
    pub front: Option<Box<Front>>,
}

/// The token with which core 0 listens at a portal.
#[must_use]
pub fn accept_token(portal: u32) -> Token {
    Purpose::Accept(portal).token()
}

/// Which node of a volume an event belongs to, and the node's own slot.
pub(crate) fn volume_token(token: Token) -> Option<(Node, u32)> {
    match Purpose::of(token) {
        Some(Purpose::Volume(node, slot)) => Some((node, slot)),
        _ => None,
    }
}

/// How many connections are heard before they are answered. Among very many, those that are
/// answered first would else be back before the last are, and be heard twice as often.
const HEARD_MAX: usize = 16;

/// How many answers may wait for each other. Who comes just too late for a turn waits for all of
/// it, while others come by each turn: of 8 sessions with 32 commands each, heard in one turn, some
/// got a quarter less done than the mean; with 4 in a turn none gets 1 % less. 64 cost more CPU.
const ANSWERS_MAX: usize = 128;

impl<R: Ring, P: Post> Core<R, P> {
    /// A core of these parts.
    #[must_use]
    pub fn new(parts: Parts<R, P>) -> Self {
        Self {
            id: parts.id,
            ring: parts.ring,
            post: parts.post,
            local: VecDeque::new(),
            device: DeviceServer::new(parts.id, parts.units),
            volumes: parts.volumes,
            done: Vec::new(),
            connections: Connections::default(),
            fc_ports: parts.fc_ports,
            dirty: VecDeque::new(),
            answers: 0,
            batches: SpareBatches::default(),
            timers: Timers::default(),
            journal: parts.journal,
            front: parts.front,
            stop: stop::Stop::default(),
            recalls: Vec::new(),
            sweeping: false,
            buffers: parts.buffers,
            trimming: false,
        }
    }

    /// The ring, for what surrounds the loop.
    pub fn ring(&mut self) -> &mut R {
        &mut self.ring
    }

    /// To be called once, before the loop.
    pub fn begin(&mut self, now: Now) {
        self.watch(now);
        self.begin_fc_ports(now);
    }

    /// How long the ring may wait at `now`.
    #[must_use]
    pub fn patience(&self, now: Now) -> Option<Duration> {
        self.timers.next().map(|at| at.saturating_sub(now))
    }

    /// Handles what the ring's last wait found, and what came of it. Returns whether something to
    /// do had arrived: more than word that something has left. What is left of many is handled by
    /// the next turn, before which no wait sleeps.
    pub fn turn(&mut self, now: Now) -> bool {
        let mut busy = false;
        let mut heard = 0;
        self.answers = 0;
        while heard < HEARD_MAX
            && self.answers < ANSWERS_MAX
            && let Some(event) = self.ring.next_event()
        {
            busy |= !matches!(event, Event::Sent { .. });
            heard += usize::from(matches!(event, Event::Received { .. }));
            self.event(now, event);
            self.settle(now);
        }
        self.expire(now);
        self.settle(now);
        // What has been sent may leave something to do for this core: a connection that moves here,
        // or the last response of a session, whose end somebody waits for.
        while self.go_on(now) || self.has_to_send() || self.look_at_recalls() {
            self.settle(now);
            self.flush();
            self.flush_fc_ports(now);
            self.settle(now);
        }
        self.trim_later(now);
        busy
    }

    fn has_to_send(&self) -> bool {
        !self.dirty.is_empty() || self.fc_ports.iter().any(FcPort::is_dirty)
    }

    /// Calls the volumes that waited until they have all that there is for them.
    fn go_on(&mut self, now: Now) -> bool {
        let mut any = false;
        while let Some(volume) = self.volumes.next_soon() {
            self.submit(now, volume, |handle, cx| handle.expire(cx));
            any = true;
        }
        any
    }

    fn event(&mut self, now: Now, event: Event<R::Received>) {
        match event {
            Event::Accepted { socket, peer, .. } => self.accepted(now, socket, peer),
            Event::NotAccepted { cause } => self.not_accepted(now, &cause),
            Event::Received { token, octets } => match Purpose::of(token) {
                Some(Purpose::Receive(key)) => self.received(now, key, octets),
                Some(Purpose::Volume(node, slot)) => {
                    self.with_node(now, node, |handle, cx| {
                        let octets = octets.as_deref().map_err(|error| error.kind().into());
                        handle.received(cx, node, slot, octets);
                    });
                }
                _ => {}
            },
            Event::Sent {
                token,
                batch,
                result,
            } => match Purpose::of(token) {
                Some(Purpose::Volume(node, slot)) => {
                    self.with_node(now, node, |handle, cx| {
                        handle.sent(cx, node, slot, batch, result);
                    });
                }
                purpose => {
                    self.recycle(batch);
                    if let Some(Purpose::Send(key)) = purpose {
                        self.sent(now, key, &result);
                    }
                }
            },
            Event::File {
                token,
                result,
                buffer,
            } => match Purpose::of(token) {
                Some(Purpose::Volume(node, slot)) => {
                    self.with_node(now, node, |handle, cx| {
                        handle.completed(cx, node, slot, result, buffer);
                    });
                }
                Some(Purpose::Persist(unit)) => self.persisted(now, unit, &result),
                Some(Purpose::Watch(unit)) => self.looked_at(unit, &result),
                _ => {}
            },
            Event::Ready { token } => match Purpose::of(token) {
                Some(Purpose::FcPort(fc_port)) => self.fc_port_ready(now, fc_port),
                Some(Purpose::Volume(node, slot)) => {
                    self.with_node(now, node, |handle, cx| handle.ready(cx, node, slot));
                }
                _ => {}
            },
            Event::Woken => {
                while let Some(message) = self.post.receive() {
                    self.deliver(now, message);
                    self.settle(now);
                }
            }
        }
    }

    /// Carries on until device server, volumes and messages of this core to itself are quiet.
    fn settle(&mut self, now: Now) {
        loop {
            if let Some(output) = self.device.poll() {
                self.carry_out(now, output);
            } else if let Some((id, result)) = self.done.pop() {
                if !self.flushed(id, &result) {
                    self.device.medium_done(OpId(id), result);
                }
            } else if let Some(message) = self.local.pop_front() {
                self.deliver(now, message);
            } else {
                return;
            }
        }
    }

    fn carry_out(&mut self, now: Now, output: Output<Lease>) {
        match output {
            Output::Medium { id, unit, op } => self.submit(now, unit.0, |handle, cx| {
                handle.submit(cx, id.0, op);
            }),
            Output::Cancel { unit, ids } => {
                self.submit(now, unit.0, |handle, cx| handle.cancel(cx, &ids));
            }
            Output::SendDataIn {
                nexus,
                tag,
                offset,
                data,
            } => self.serve(now, nexus, |one| one.send_data_in(tag, offset, data)),
            Output::ReceiveDataOut {
                nexus,
                tag,
                offset,
                into,
            } => self.serve(now, nexus, |one| one.receive_data_out(tag, offset, into)),
            Output::Complete {
                nexus,
                tag,
                completed,
            } => self.serve(now, nexus, |one| one.complete(tag, &completed)),
            Output::Aborted { nexus, tag } => self.serve(now, nexus, |one| one.aborted(tag)),
            Output::Managed { nexus, id, result } => {
                self.serve(now, nexus, |one| one.managed(id, result));
            }
            Output::Attention { nexus, lun, code } => {
                self.serve(now, nexus, |one| one.attention(lun, code));
            }
            Output::NexusGone(NexusId(slot)) => self.gone(now, slot),
            Output::Ask { unit, request } => self.post(CoreId(0), Message::Ask(unit, request)),
            Output::Recall { unit } => self.recall(unit),
            Output::Acknowledge { unit, version } => {
                self.post(CoreId(0), Message::Acknowledge(unit, self.id, version));
            }
        }
    }

    fn deliver(&mut self, now: Now, message: Message) {
        match message {
            Message::Session(new) => self.begin_session(now, *new),
            Message::End(tsih) => self.end_session(tsih),
            Message::Heard(tsih, heard) => self.keep_heard(tsih, heard),
            Message::Ended { tsih } => self.session_ended(now, tsih),
            Message::ColdReset(tsih) => self.cold_reset(tsih),
            Message::Ask(unit, request) => self.asked(unit, request),
            Message::Acknowledge(unit, core, version) => self.acknowledged(unit, core, version),
            Message::Publish(unit, publication) => self.device.publish(unit, publication),
            Message::Reply(unit, id, result) => self.device.replied(unit, id, result),
            Message::Stop => self.stop(now),
            Message::Stopped(core) => self.stopped(now, core),
            Message::Leave => self.leave(now),
        }
    }

    /// Leaves a message for a core; this one's own does not go through the post.
    fn post(&mut self, to: CoreId, message: Message) {
        if to == self.id {
            self.local.push_back(message);
        } else {
            self.post.send(to, message);
        }
    }

    /// Calls back what a volume has lent for reading.
    fn recall(&mut self, unit: UnitId) {
        match self.volumes.recall(unit.0) {
            Some(recall) => self.recalls.push((unit, recall)),
            None => self.device.recalled(unit),
        }
    }

    /// Tells the device server what has come back; returns whether anything has.
    fn look_at_recalls(&mut self) -> bool {
        let before = self.recalls.len();
        let device = &mut self.device;
        self.recalls.retain(|(unit, recall)| {
            let over = recall.is_over();
            if over {
                device.recalled(*unit);
            }
            !over
        });
        self.recalls.len() < before
    }

    fn recycle(&mut self, batch: Box<SendBatch>) {
        self.batches.give_back(batch);
    }

    fn mark_dirty(&mut self, slot: u32) {
        if let Some(connection) = self.connections.at(slot)
            && !connection.dirty
        {
            connection.dirty = true;
            self.dirty.push_back(slot);
        }
    }

    /// Logs that a connection's peer broke a rule.
    fn tell(&mut self, now: Now, key: Key, violation: impl Into<Violation>) {
        let Some(connection) = self.connections.get(key) else {
            return;
        };
        let (host, claimed) = (connection.peer, connection.claimed());
        let peer = claimed.map_or(Peer::Host(host), |name| {
            Peer::Claimed(host, name.to_owned())
        });
        self.tell_of(now, peer, violation);
    }

    fn tell_of(&mut self, now: Now, peer: impl Into<Peer>, violation: impl Into<Violation>) {
        if let Some(line) = self.journal.tell(now, peer, violation) {
            tracing::warn!("{line}");
        }
        self.sweep_later(now);
    }

    /// Has the journal swept in a minute.
    fn sweep_later(&mut self, now: Now) {
        if !self.sweeping {
            self.sweeping = true;
            self.timers.set(now + QUIET, Timer::Sweep);
        }
    }

    /// Writes what was not told of rules broken a minute ago.
    fn sweep(&mut self, now: Now) {
        for line in self.journal.sweep(now) {
            tracing::warn!("{line}");
        }
        self.sweeping = false;
        if !self.journal.is_empty() {
            self.sweep_later(now);
        }
    }
}
