//! Connections on the move: bytes in, bytes out, and the sessions between them and the device
//! server.

use std::io;

use ::io::ring::{Ring, SendBatch, SocketId, Token};
use block::lease::BlockLease;
use iscsi::parameters::Parameters;
use iscsi::session::SessionEvent;
use scsi::medium::Now;
use scsi::nexus::NexusId;
use scsi::unit::CoreId;
use tracing::Level;

use super::Core;
use super::connection::{ConnectionPhase, CoreConnection, NexusState};
use super::event_key::{EventKey, SlotKey};
use super::nexus_table::NexusOwner;
use crate::mailbox::{CoreMessage, Mailer, NewSession};
use runtime::journal::Journal;

/// As many answers as are worth a system call of their own, while there are more to come.
const EARLY: usize = 32;

/// The same while the core spins for one connection. It costs a client that sleeps some time to
/// wake up, in which the core carries the rest out; and while that client works on these answers,
/// the others come. Where the core sleeps too, the client would be asleep again by then.
const EARLY_SPINNING: usize = 16;

/// How long a peer has to take what is still to be sent before its connection is closed.
pub(super) const PARTING: Now = Now::from_secs(15);

/// For how long a connection of iSER stays after a logout was answered. A queue pair of the peer
/// fails if the connection ends while it still sends its request, as seen of siw: its initiator
/// takes it for a broken connection, and Linux logs that. Usually the initiator closes it in less
/// than 5 ms.
const ISER_PARTING: Now = Now::from_millis(100);

/// Logs what became of a session. Discovery sessions come and go, and change nothing.
pub(super) fn tell_of_session(
    journal: &Journal,
    session: &Parameters,
    what: impl FnOnce(&Parameters) -> String,
) {
    let peer = session.endpoints.peer;
    if session.node().is_none() {
        tracing::debug!("{peer}: {}", what(session));
    } else if tracing::enabled!(Level::INFO) && journal.tells_of_session(peer.ip()) {
        tracing::info!("{peer}: {}", what(session));
    }
}

impl<R: Ring, P: Mailer> Core<R, P> {
    /// A connection comes over from the core that logged it in.
    pub(super) fn begin_session(&mut self, now: Now, new: NewSession) {
        // It was on its way when the end came; this core may have told that it has none any more.
        if self.stop.is_stopping() {
            return self.post_ended(new.tsih);
        }
        let peer = new.login.login.endpoints().peer.ip();
        let Ok(socket) = new.socket.map(|one| self.ring.adopt(one)).transpose() else {
            self.post_ended(new.tsih);
            return;
        };
        let Some(session) = new.login.into_session(now, &self.rdma.memory) else {
            if let Some(socket) = socket {
                self.ring.close(socket);
            }
            return self.post_ended(new.tsih);
        };
        let sends_by_kernel = session.sends_by_kernel();
        if let Some(socket) = socket {
            self.ring.lend_sends(socket);
        }
        let session = Box::new(session);
        let nexus = match new.nexus {
            Some(_) => NexusState::Yes,
            None => NexusState::No,
        };
        let phase = ConnectionPhase::Session {
            session,
            tsih: new.tsih,
            nexus,
        };
        let key = self.connections.insert(peer, socket, phase);
        let id = NexusId(key.slot);
        match (new.nexus, new.heard) {
            (Some(nexus), Some(heard)) => self.device.nexus_back(id, nexus, &heard),
            (Some(nexus), None) => self.device.nexus_up(id, nexus),
            (None, _) => {}
        }
        if sends_by_kernel {
            self.device.nexus_sends_by_kernel(id);
        }
        self.feed(now, key, &new.early);
        self.add_pair(key);
        self.listen_to(key);
        self.arm(now, key);
    }

    /// Bytes came in.
    pub(super) fn received(&mut self, now: Now, key: SlotKey, bytes: io::Result<R::Received>) {
        let Some(connection) = self.connections.get(key) else {
            return;
        };
        connection.receiving = false;
        match bytes {
            Ok(bytes) if !bytes.is_empty() => {
                if connection.early.is_empty() {
                    self.feed(now, key, &bytes);
                } else {
                    connection.early.extend_from_slice(&bytes);
                    self.feed_early(now, key);
                }
            }
            _ => return self.hang_up(key),
        }
        // One look at the connection for all of these.
        if let Some(connection) = self.connections.get(key) {
            self.answers += connection.queued();
            if let Some(socket) = connection.begin_to_receive() {
                self.ring.receive(socket, EventKey::Receive(key).token());
            }
            self.timers.arm(now, connection);
        }
    }

    /// Gives bytes that could not be used before once more.
    pub(super) fn feed_early(&mut self, now: Now, key: SlotKey) {
        let Some(connection) = self.connections.get(key) else {
            return;
        };
        let early = std::mem::take(&mut connection.early);
        self.feed(now, key, &early);
    }

    /// Gives bytes to the connection's machine, one event after the other; keeps what it cannot
    /// use now.
    fn feed(&mut self, now: Now, key: SlotKey, bytes: &[u8]) {
        let mut rest = bytes;
        let mut half = bytes.len() / 2;
        while let Some(connection) = self.connections.get(key) {
            if rest.is_empty() && !connection.has_more() {
                break;
            }
            if connection.is_deaf() {
                return;
            }
            let may_have_more = connection.is_rdma();
            let (used, has_session) = match &mut connection.phase {
                ConnectionPhase::Session { session, .. } => (session.receive(now, rest), true),
                ConnectionPhase::Login(login) => (login.receive(now, rest), false),
                ConnectionPhase::Moving(_) | ConnectionPhase::Ending { .. } => (0, false),
            };
            rest = rest.get(used..).unwrap_or_default();
            let progressed = if has_session {
                self.session_events(now, key)
            } else {
                self.events(now, key)
            };
            self.run_until_quiet(now);
            if used == 0 && !progressed || rest.is_empty() && !may_have_more {
                break;
            }
            if rest.len() <= half && !rest.is_empty() {
                half = 0;
                self.answer_early(now, key);
            }
        }
        self.mark_dirty(key.slot);
        if let Some(connection) = self.connections.get(key)
            && !rest.is_empty()
        {
            connection.early = rest.to_vec();
        }
    }

    pub(super) fn events(&mut self, now: Now, key: SlotKey) -> bool {
        match self
            .connections
            .get(key)
            .map(|connection| &connection.phase)
        {
            Some(ConnectionPhase::Login(_)) => self.login_events(now, key),
            Some(ConnectionPhase::Session { .. }) => self.session_events(now, key),
            _ => false,
        }
    }

    /// Carries out what a session wants; returns whether it wanted anything.
    pub(super) fn session_events(&mut self, now: Now, key: SlotKey) -> bool {
        let mut any = false;
        loop {
            let Some(connection) = self.connections.get(key) else {
                return any;
            };
            let ConnectionPhase::Session { session, .. } = &mut connection.phase else {
                return any;
            };
            let Some(event) = session.poll() else {
                return any;
            };
            any = true;
            self.session_event(now, key, event);
        }
    }

    fn session_event(&mut self, now: Now, key: SlotKey, event: SessionEvent<BlockLease>) {
        let nexus = NexusId(key.slot);
        match event {
            SessionEvent::Execute(mut command) => {
                command.nexus = nexus;
                self.device.execute(command);
            }
            SessionEvent::DataOut { tag, offset, data } => {
                self.device.data_out(nexus, tag, offset, data);
            }
            SessionEvent::Manage { id, lun, function } => {
                self.device.manage(nexus, id, lun, function);
            }
            SessionEvent::Close(violation) => {
                self.log_violation(now, key, violation);
                self.tell_of_end(key, false);
                self.close_after_send(now, key);
            }
            SessionEvent::ColdReset => self.post_cold_reset(key),
            SessionEvent::LoggedOut => {
                self.tell_of_end(key, true);
                self.logged_out(now, key);
            }
            SessionEvent::Remark(violation) => self.log_violation(now, key, violation),
        }
    }

    /// Logs that a session has ended.
    fn tell_of_end(&mut self, key: SlotKey, logged_out: bool) {
        if let Some(connection) = self.connections.get(key)
            && let ConnectionPhase::Session { session, .. } = &connection.phase
        {
            let session = session.parameters();
            tell_of_session(&self.journal, session, |session| {
                session.farewell(logged_out)
            });
        }
    }

    /// Lets the nexus go, then answers and closes.
    fn logged_out(&mut self, now: Now, key: SlotKey) {
        if let Some(connection) = self.connections.get(key)
            && let ConnectionPhase::Session {
                nexus,
                session,
                tsih,
            } = &mut connection.phase
            && *nexus == NexusState::Yes
        {
            *nexus = NexusState::Leaving;
            let told = session.has_told().then_some(*tsih);
            return self.lose_nexus(key.slot, told);
        }
        self.close_after_send(now, key);
    }

    /// Sends the PDUs of the connections in the order in which their requests came. In another
    /// order, a client that was answered early could be served twice while the last one waits.
    pub(super) fn flush(&mut self, now: Now) {
        while let Some(slot) = self.dirty.pop_front() {
            let Some(connection) = self.connections.at(slot) else {
                continue;
            };
            connection.dirty = false;
            let (key, stall) = (connection.key, connection.rdma_stall());
            if let Some((socket, token, batch)) = self.next_batch(now, slot) {
                self.ring.send(socket, token, batch);
            }
            if let Some(was_stalled) = stall {
                self.look_again(now, key, was_stalled);
            }
        }
    }

    /// Over iSER, what was to be sent may have ended the session, or its stall, and nothing left.
    /// Over a device it has not been sent yet.
    fn look_again(&mut self, now: Now, key: SlotKey, was_stalled: bool) {
        self.post_by_pair(now, key);
        self.session_events(now, key);
        let connection = self.connections.get(key);
        let stall = connection.and_then(|connection| connection.rdma_stall());
        if was_stalled && stall == Some(false) {
            self.feed_early(now, key);
            self.listen_to(key);
        }
    }

    /// Half way through what was received, sends the answers that there are, if they are worth a
    /// system call of their own. The peer has something to do meanwhile: where both ends take and
    /// give everything at once, each only waits for the other.
    fn answer_early(&mut self, now: Now, key: SlotKey) {
        let least = if self.spins && self.heard == 1 {
            EARLY_SPINNING
        } else {
            EARLY
        };
        let worth = |connection: &mut CoreConnection| connection.queued() >= least;
        if !self.connections.get(key).is_some_and(worth) {
            return;
        }
        if let Some((socket, token, batch)) = self.next_batch(now, key.slot)
            && let Some(batch) = self.ring.send_now(socket, token, batch)
        {
            self.recycle(batch);
            if let Some(connection) = self.connections.get(key) {
                connection.sending = false;
            }
        }
    }

    /// What a connection has to say, to be sent now; `None` if it has nothing, or may not yet.
    fn next_batch(&mut self, now: Now, slot: u32) -> Option<(SocketId, Token, Box<SendBatch>)> {
        let connection = self.connections.at(slot)?;
        let (key, socket) = (connection.key, connection.socket?);
        if connection.sending || connection.is_leaving() {
            return None;
        }
        let mut batch = self.batches.take();
        connection.transmit(&mut batch);
        connection.sending = !batch.is_empty();
        if let Some(bytes) = connection.data_in_queued() {
            // The batch is bounded and does not count.
            self.device.data_in_queued(NexusId(slot), bytes);
        }
        // What waits for RDMA Reads to be over is not sent yet.
        let is_all = batch.is_empty() && connection.queued() == 0;
        if batch.is_empty() {
            self.recycle(batch);
            if is_all {
                self.all_sent(now, key);
            }
            return None;
        }
        Some((socket, EventKey::Send(key).token(), batch))
    }

    /// A batch has left.
    pub(super) fn sent(&mut self, now: Now, key: SlotKey, result: &io::Result<()>) {
        let Some(connection) = self.connections.get(key) else {
            return;
        };
        connection.sending = false;
        let untaken = (!connection.early.is_empty() || connection.has_more())
            && !matches!(connection.phase, ConnectionPhase::Moving(_));
        if result.is_err() {
            return self.hang_up(key);
        }
        if connection.rests() {
            // What an abort took from the queue is not on its way either.
            self.device.data_in_queued(NexusId(key.slot), 0);
        } else {
            self.mark_dirty(key.slot);
        }
        // Bytes that a crowded session did not take; the peer may have nothing more to send.
        if untaken {
            self.feed_early(now, key);
        }
        self.listen_to(key);
    }

    /// Nothing is left to be sent: what waited for that goes on.
    pub(super) fn all_sent(&mut self, now: Now, key: SlotKey) {
        let Some(connection) = self.connections.get(key) else {
            return;
        };
        if matches!(connection.phase, ConnectionPhase::Moving(_)) {
            self.hand_over(now, key);
        } else if let Some(at) = connection.closing {
            if !connection.lets_peer_close() {
                return self.hang_up(key);
            }
            connection.closing = Some(at.min(now + ISER_PARTING));
            self.arm(now, key);
        }
    }

    /// Receives more, unless the peer does not take what it asked for, or must wait.
    pub(super) fn listen_to(&mut self, key: SlotKey) {
        let connection = self.connections.get(key);
        if let Some(socket) = connection.and_then(CoreConnection::begin_to_receive) {
            self.ring.receive(socket, EventKey::Receive(key).token());
        }
    }

    /// Closes a connection when everything queued has been sent, or its peer does not take it.
    pub(super) fn close_after_send(&mut self, now: Now, key: SlotKey) {
        let Some(connection) = self.connections.get(key) else {
            return;
        };
        connection.closing.get_or_insert(now + PARTING);
        self.mark_dirty(key.slot);
        self.arm(now, key);
    }

    /// Closes the socket; the slot is free when the device server has let the nexus go.
    pub(super) fn hang_up(&mut self, key: SlotKey) {
        if self
            .connections
            .get(key)
            .is_some_and(|one| one.closing.is_none())
        {
            self.tell_of_end(key, false);
        }
        let Some(connection) = self.connections.get(key) else {
            return;
        };
        if let Some(socket) = connection.socket.take() {
            self.ring.close(socket);
        }
        match &connection.phase {
            &ConnectionPhase::Session {
                tsih,
                nexus,
                ref session,
            } => match nexus {
                NexusState::Yes => {
                    let told = session.has_told().then_some(tsih);
                    connection.phase = ConnectionPhase::Ending { tsih };
                    self.lose_nexus(key.slot, told);
                }
                NexusState::Leaving => connection.phase = ConnectionPhase::Ending { tsih },
                NexusState::No => self.ended(key.slot, tsih),
            },
            ConnectionPhase::Login(_) | ConnectionPhase::Moving(_) => self.login_over(key),
            ConnectionPhase::Ending { .. } => {}
        }
    }

    /// The nexus in this slot is gone. If its session `told` everything that it was to tell, the
    /// next one of the same port goes on from there.
    fn lose_nexus(&mut self, slot: u32, told: Option<u16>) {
        let nexus = NexusId(slot);
        if let Some(tsih) = told
            && let Some(heard) = self.device.heard(nexus)
        {
            self.post(CoreId(0), CoreMessage::Heard(tsih, heard));
        }
        self.device.nexus_lost(nexus);
    }

    /// The last task of a nexus has ended.
    pub(super) fn gone(&mut self, now: Now, slot: u32) {
        let connection = match self.connections.place(slot) {
            Some(NexusOwner::Connection(connection)) => connection,
            Some(&mut NexusOwner::Remote(remote)) => return self.remote_gone(now, slot, remote),
            Some(&mut NexusOwner::Branched(remote)) => {
                return self.branched_gone(slot, remote);
            }
            None => return,
        };
        match &mut connection.phase {
            ConnectionPhase::Session { nexus, .. } => {
                *nexus = NexusState::No;
                let key = connection.key;
                self.close_after_send(now, key);
            }
            ConnectionPhase::Ending { tsih } => {
                let tsih = *tsih;
                self.ended(slot, tsih);
            }
            ConnectionPhase::Login(_) | ConnectionPhase::Moving(_) => {}
        }
    }

    /// Nothing is left of a session.
    fn ended(&mut self, slot: u32, tsih: u16) {
        self.connections.remove(slot);
        self.post_ended(tsih);
        self.check_stopped();
    }

    pub(super) fn post_ended(&mut self, tsih: u16) {
        self.post(CoreId(0), CoreMessage::Ended { tsih });
    }

    fn post_cold_reset(&mut self, key: SlotKey) {
        if let Some(connection) = self.connections.get(key)
            && let ConnectionPhase::Session { tsih, .. } = connection.phase
        {
            self.post(CoreId(0), CoreMessage::ColdReset(tsih));
        }
    }

    /// Another login of the same port takes this session's place, or its target was reset.
    pub(super) fn end_session(&mut self, tsih: u16) {
        if let Some(key) = self.connections.find(tsih) {
            self.hang_up(key);
        }
    }
}
