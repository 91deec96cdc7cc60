//! One core: a ring, a device server, handles on the volumes, and the connections that live here.
//!
//! The loop is: wait; take what arrived, event by event, each carried through session, device
//! server and volume as far as it goes; then send, once for each connection that has something
//! to say (and once half way, where much came). Sessions never leave their core, so nothing here
//! locks.
//!
//! | duty | module |
//! |---|---|
//! | what a completion of the ring belongs to | `event_key` |
//! | connections before their login, and their way to a core (core 0) | `login`, `logins` |
//! | what carries them: TCP, software iWARP, RDMA devices | `transport`, `iwarp`, `rdma_carrier` |
//! | queue pairs of RDMA devices; the portals that these listen on (core 0) | `rdma_pairs`, `rdma_portals` |
//! | admission, the registry of sessions, unit owners (core 0) | `control_core`, `units` |
//! | a table of nexuses; iSCSI connections and FC ports behind them | `nexus_table`, `session`, `fc_port` |
//! | nexuses of an FC port on this core; the part of a port of another core | `fc_nexuses`, `fc_branch` |
//! | lists of sessions, and their end by order (core 0) | `sessions` |
//! | SAM's protocol services: device server to transport | `services` |
//! | medium operations: device server to volumes; growth and loss of volumes | `volumes` |
//! | deadlines; buffers that are given back | `timers`, `buffers` |
//! | unit attentions for initiators that are away | `nexus_table` |
//! | changes of what is served: on core 0; on every core | `change_steps`; `inventory` |
//! | shutdown; what a core holds, and what it has counted | `stop`, `census`, `survey` |

mod buffers;
mod census;
mod change_steps;
mod connection;
mod control_core;
mod event_key;
mod fc_branch;
mod fc_nexuses;
mod fc_port;
mod inventory;
mod iwarp;
mod login;
mod logins;
mod nexus_table;
mod rdma_carrier;
mod rdma_pairs;
mod rdma_portals;
mod services;
mod session;
mod session_balancer;
mod sessions;
mod stop;
mod survey;
mod timers;
mod transport;
mod units;
mod volumes;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use ::io::memory::Recall;
use ::io::ring::{Ring, RingEvent, SendBatch};
use block::lease::BlockLease;
use block::volume::{CoreContext, HandleEvent};
use scsi::device::{DeviceOutput, DeviceServer, OpId};
use scsi::medium::{MediumError, MediumResult, Now};
use scsi::nexus::NexusId;
use scsi::unit::{CoreId, UnitId, UnitState};
use scsi::violation::Violation;
use slab::Slab;

use crate::mailbox::{CoreMessage, Mailer};
use crate::views::Views;
use block::volumes::Volumes;
use buffers::SpareBatches;
pub use census::Census;
use control_core::RESERVED;
pub use control_core::{ControlCore, ControlCoreParts, ControlUnit, NearCore, Vanished};
pub use event_key::accept_token;
use event_key::{EventKey, SlotKey};
use fc_branch::FcBranch;
pub use fc_branch::{BranchOrder, FcPortKey};
use fc_port::FcPort;
use inventory::CoreUnits;
use nexus_table::NexusTable;
use rdma_pairs::CoreRdma;
use runtime::journal::{Journal, PeerName, QUIET};
use timers::{Timer, Timers};
pub use transport::RestingLogin;
pub use units::Store;

/// One core. `P` is its way to the others.
pub struct Core<R: Ring, P: Mailer> {
    id: CoreId,
    ring: R,
    post: P,
    /// Messages of this core to itself.
    local: VecDeque<CoreMessage>,
    device: DeviceServer<BlockLease>,
    volumes: Volumes,
    /// Which of them is whose.
    units: CoreUnits,
    /// What this core gives to volumes that it attaches.
    context: CoreContext,
    /// What everybody sees.
    views: Arc<Views>,
    /// Results of volumes, not yet told to the device server.
    done: Vec<(u64, MediumResult<BlockLease>)>,
    connections: NexusTable,
    /// Fibre Channel ports that live here.
    fc_ports: Slab<FcPort>,
    /// Parts of Fibre Channel ports of other cores.
    fc_branches: Slab<FcBranch>,
    /// What there is for RDMA devices.
    rdma: CoreRdma,
    /// Slots of connections that may have something to send.
    dirty: VecDeque<u32>,
    /// Answers to those whom this turn has heard.
    answers: usize,
    /// Connections with input in the last turn that had any.
    heard: usize,
    /// The last wait had a timeout of zero.
    spins: bool,
    /// Batches that no connection is using.
    batches: SpareBatches,
    timers: Timers,
    journal: Arc<Journal>,
    /// Logins, the registry of sessions and the owners of units: on core 0 alone.
    control: Option<Box<ControlCore>>,
    stop: stop::CoreStop,
    /// What units have lent for reading and wait for.
    recalls: Vec<(UnitId, Recall)>,
    counts: survey::CoreCounts,
    /// The timer of the journal is set.
    sweeping: bool,
    /// The timer of the buffers is set.
    trimming: bool,
}

/// What a core is made of.
pub struct CoreParts<R: Ring, P: Mailer> {
    /// Its number.
    pub id: CoreId,
    /// Its ring.
    pub ring: R,
    /// Its way to the others.
    pub post: P,
    /// The units that are there from the start, each the first in its slot.
    pub units: Vec<Arc<UnitState>>,
    /// Handles on their volumes, in the same order.
    pub volumes: Volumes,
    /// What these were given, and those that come later will be.
    pub context: CoreContext,
    /// What everybody sees.
    pub views: Arc<Views>,
    /// Where broken rules are told.
    pub journal: Arc<Journal>,
    /// For core 0.
    pub control: Option<Box<ControlCore>>,
}

/// How many connections are heard before they are answered. Among very many, those that are
/// answered first would else be back before the last are, and be heard twice as often.
const HEARD_MAX: usize = 16;

/// How many answers may wait for each other. A request that comes just too late for a turn waits
/// for all of it, while others come by each turn: of 8 sessions with 32 commands each, heard in one
/// turn, some got a quarter less done than the mean; with 4 in a turn none gets 1 % less. 64 cost
/// more CPU.
const ANSWERS_MAX: usize = 128;

impl<R: Ring, P: Mailer> Core<R, P> {
    /// A core of these parts.
    #[must_use]
    pub fn new(parts: CoreParts<R, P>) -> Self {
        Self {
            id: parts.id,
            ring: parts.ring,
            post: parts.post,
            local: VecDeque::new(),
            device: DeviceServer::new(parts.id, parts.units),
            units: CoreUnits::of(&parts.volumes),
            volumes: parts.volumes,
            context: parts.context,
            views: parts.views,
            done: Vec::new(),
            connections: NexusTable::default(),
            fc_ports: Slab::new(),
            fc_branches: Slab::new(),
            rdma: CoreRdma::default(),
            dirty: VecDeque::new(),
            answers: 0,
            heard: 0,
            spins: false,
            batches: SpareBatches::default(),
            timers: Timers::default(),
            journal: parts.journal,
            control: parts.control,
            stop: stop::CoreStop::default(),
            recalls: Vec::new(),
            counts: survey::CoreCounts::default(),
            sweeping: false,
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
        self.device.set_time(now);
        let mut busy = false;
        let mut heard = 0;
        self.answers = 0;
        while heard < HEARD_MAX
            && self.answers < ANSWERS_MAX
            && let Some(event) = self.ring.next_event()
        {
            busy |= !matches!(event, RingEvent::Sent { .. });
            heard += usize::from(matches!(event, RingEvent::Received { .. }));
            self.event(now, event);
            self.run_until_quiet(now);
        }
        if heard > 0 {
            self.heard = heard;
        }
        busy |= self.hear_pairs(now);
        self.expire(now);
        self.run_until_quiet(now);
        // What has been sent may leave something to do for this core: a connection that moves here,
        // or the last response of a session, whose end another login waits for.
        while self.resume_volumes(now) || self.has_to_send() || self.look_at_recalls() {
            self.run_until_quiet(now);
            self.flush(now);
            self.flush_fc_ports(now);
            self.flush_fc_branches(now);
            self.run_until_quiet(now);
        }
        if self.is_closing() {
            self.close_volumes(now);
            self.run_until_quiet(now);
        }
        self.trim_later(now);
        busy
    }

    fn has_to_send(&self) -> bool {
        !self.dirty.is_empty()
            || self.fc_ports.iter().any(|(_, port)| port.is_dirty())
            || self.fc_branches.iter().any(|(_, one)| one.is_dirty())
    }

    /// Calls the volumes that waited until they have all that there is for them.
    fn resume_volumes(&mut self, now: Now) -> bool {
        let mut any = false;
        while let Some(volume) = self.volumes.next_soon() {
            self.submit(now, volume, |handle, cx| handle.resume(cx));
            any = true;
        }
        any
    }

    fn event(&mut self, now: Now, event: RingEvent<R::Received>) {
        match event {
            RingEvent::Accepted { socket, peer, .. } => self.accepted(now, socket, peer),
            RingEvent::NotAccepted { cause } => self.not_accepted(now, &cause),
            RingEvent::Received { token, bytes } => match EventKey::of(token) {
                Some(EventKey::Receive(key)) => self.received(now, key, bytes),
                Some(EventKey::Volume(node, slot)) => {
                    let bytes = bytes.as_deref().map_err(|error| error.kind().into());
                    self.tell_volume(now, (node, slot), HandleEvent::Received(bytes));
                }
                _ => {}
            },
            RingEvent::Sent {
                token,
                batch,
                result,
            } => match EventKey::of(token) {
                Some(EventKey::Volume(node, slot)) => {
                    self.tell_volume(now, (node, slot), HandleEvent::Sent { batch, result });
                }
                purpose => {
                    self.recycle(batch);
                    if let Some(EventKey::Send(key)) = purpose {
                        self.sent(now, key, &result);
                    }
                }
            },
            RingEvent::File {
                token,
                result,
                buffer,
            } => match EventKey::of(token) {
                Some(EventKey::Volume(node, slot)) => {
                    self.tell_volume(now, (node, slot), HandleEvent::File { result, buffer });
                }
                Some(EventKey::Persist(unit)) => self.persisted(now, unit, &result),
                Some(EventKey::Watch) => self.look_ended(),
                _ => {}
            },
            RingEvent::Ready { token } => match EventKey::of(token) {
                Some(EventKey::FcPort(fc_port)) => self.fc_port_ready(now, fc_port),
                Some(EventKey::FcBranch(branch)) => self.fc_branch_ready(now, branch),
                Some(EventKey::Rdma) => self.rdma_ready(now),
                Some(EventKey::Volume(node, slot)) => {
                    self.tell_volume(now, (node, slot), HandleEvent::Ready);
                }
                _ => {}
            },
            RingEvent::Woken => self.take_mail(now),
        }
    }

    /// Does what other threads have told this core.
    fn take_mail(&mut self, now: Now) {
        while let Some(message) = self.post.receive() {
            self.deliver(now, message);
            self.run_until_quiet(now);
        }
    }

    /// Carries on until device server, volumes and messages of this core to itself are quiet.
    fn run_until_quiet(&mut self, now: Now) {
        loop {
            if let Some(output) = self.device.poll() {
                self.carry_out(now, output);
            } else if let Some((id, result)) = self.done.pop() {
                // The newest first: a volume ends operations in any order anyway, and its memory
                // is still in the cache.
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

    fn carry_out(&mut self, now: Now, output: DeviceOutput<BlockLease>) {
        match output {
            DeviceOutput::Medium { id, unit, op } => match self.units.volume(unit) {
                Some(volume) => self.submit(now, volume, |handle, cx| {
                    handle.submit(cx, id.0, op);
                }),
                None => self.done.push((id.0, Err(MediumError::Gone))),
            },
            DeviceOutput::Cancel { unit, ids } => {
                if let Some(volume) = self.units.volume(unit) {
                    self.submit(now, volume, |handle, cx| handle.cancel(cx, &ids));
                }
            }
            DeviceOutput::SendDataIn {
                nexus,
                tag,
                offset,
                data,
            } => self.serve(now, nexus, |one| one.send_data_in(tag, offset, data)),
            DeviceOutput::ReceiveDataOut {
                nexus,
                tag,
                offset,
                into,
            } => self.serve(now, nexus, |one| one.receive_data_out(tag, offset, into)),
            DeviceOutput::Complete {
                nexus,
                tag,
                completed,
            } => {
                self.counts.completed += 1;
                self.serve(now, nexus, |one| one.complete(tag, &completed));
            }
            DeviceOutput::Aborted { nexus, tag } => self.serve(now, nexus, |one| one.aborted(tag)),
            DeviceOutput::Managed { nexus, id, result } => {
                self.serve(now, nexus, |one| one.managed(id, result));
            }
            DeviceOutput::Attention { nexus, lun, code } => {
                self.serve(now, nexus, |one| one.attention(lun, code));
            }
            DeviceOutput::NexusGone(NexusId(slot)) => self.gone(now, slot),
            DeviceOutput::Ask { unit, request } => {
                self.post(CoreId(0), CoreMessage::Ask(unit, request));
            }
            DeviceOutput::Recall { unit } => self.recall(unit),
            DeviceOutput::Fenced(number) => self.fenced(now, number),
            DeviceOutput::Acknowledge { unit, version } => {
                self.post(CoreId(0), CoreMessage::Acknowledge(unit, self.id, version));
            }
        }
    }

    fn deliver(&mut self, now: Now, message: CoreMessage) {
        match message {
            CoreMessage::Session(new) => self.begin_session(now, *new),
            CoreMessage::End(tsih) => self.end_session(tsih),
            CoreMessage::Heard(tsih, heard) => self.keep_heard(tsih, heard),
            CoreMessage::Ended { tsih } => self.session_ended(now, tsih),
            CoreMessage::ColdReset(tsih) => self.cold_reset(tsih),
            CoreMessage::Ask(unit, request) => self.asked(unit, request),
            CoreMessage::Acknowledge(unit, core, version) => self.acknowledged(unit, core, version),
            CoreMessage::Publish(unit, publication) => self.device.publish(unit, publication),
            CoreMessage::Reply(_, id, result) if id & RESERVED != 0 => {
                self.owner_answered(id, result.is_ok());
            }
            CoreMessage::Reply(unit, id, result) => self.device.replied(unit, id, result),
            CoreMessage::Change(change) => self.change(change),
            CoreMessage::Prepare(preparation) => self.prepare(now, preparation),
            CoreMessage::Switch(switch) => self.switch(now, &switch),
            CoreMessage::Retire(retirement) => self.retire(retirement),
            CoreMessage::Stepped(_, number, result) => self.step_taken(now, number, result),
            CoreMessage::OpenFcPort(attachment) => self.open_fc_port(now, *attachment),
            CoreMessage::CloseFcPort(wwpn) => self.close_fc_port(now, wwpn),
            CoreMessage::FcBranch(key, order) => self.fc_branch_order(now, key, *order),
            CoreMessage::FcEnded(port, remote, heard) => self.branch_over(now, port, remote, heard),
            CoreMessage::Sessions(reply) => self.tell_sessions(&reply),
            CoreMessage::UnitStates(reply) => self.tell_unit_states(&reply),
            CoreMessage::Drop(tsih, reply) => self.drop_session(tsih, reply),
            CoreMessage::Survey(reply) => self.tell_survey(now, &reply),
            CoreMessage::Stop => self.stop(now),
            CoreMessage::Stopped(core) => self.stopped(now, core),
            CoreMessage::Leave => self.leave(now),
        }
    }

    /// Leaves a message for a core; this one's own does not go through the post.
    fn post(&mut self, to: CoreId, message: CoreMessage) {
        if to == self.id {
            self.local.push_back(message);
        } else {
            self.post.send(to, message);
        }
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
    fn log_violation(&mut self, now: Now, key: SlotKey, violation: Violation) {
        let Some(connection) = self.connections.get(key) else {
            return;
        };
        let (host, claimed) = (connection.peer, connection.claimed());
        let peer = claimed.map_or(PeerName::Host(host), |name| {
            PeerName::Claimed(host, name.to_owned())
        });
        self.tell_of(now, peer, violation);
    }

    fn tell_of(&mut self, now: Now, peer: impl Into<PeerName>, violation: Violation) {
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
