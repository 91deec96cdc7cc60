//! Connections that log in, on core 0, and their way to the core that their session lives on.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;
use std::time::Duration;

use ::io::ring::Ring;
use iscsi::login::status::AUTHORIZATION_FAILURE;
use iscsi::login::{Login, LoginEvent};
use iscsi::target::{AdmissionDecision, AdmissionWish, Endpoints};
use scsi::medium::Now;
use scsi::nexus::AttentionHistory;
use scsi::unit::CoreId;
use scsi::violation::Violation;

use super::Core;
use super::connection::ConnectionPhase;
use super::event_key::SlotKey;
use super::logins::Admission;
use super::rdma_carrier::DeviceLogin;
use super::session::{PARTING, tell_of_session};
use super::transport::CoreLogin;
use crate::mailbox::{CoreMessage, Mailer, NewSession, SessionInfo};
use crate::survey::LoginResult;

const TOO_MANY_LOGINS: Violation = Violation {
    rule: "too many connections that have not logged in",
    clause: "--max-logins",
};

/// How often it is worth a line that connections are not accepted.
const NOT_ACCEPTED_EVERY: Duration = Duration::from_secs(60);

impl<R: Ring, P: Mailer> Core<R, P> {
    /// A connection came in.
    pub(super) fn accepted(&mut self, now: Now, socket: OwnedFd, peer: SocketAddr) {
        // What was accepted before the listening sockets were closed may come after them.
        if self.stop.is_stopping() {
            return;
        }
        if !self.has_room(now, peer.ip()) {
            return;
        }
        let Some(control) = &mut self.control else {
            return;
        };
        let Ok(local) = (control.local_address)(&socket) else {
            return;
        };
        let offer = control.iwarp_offer(&socket, local);
        // Later the kernel may tell the CPU of this core, which receives the login.
        let near = (control.near_core)(&socket);
        let Ok(socket) = self.ring.adopt(socket) else {
            return;
        };
        let config = control.config.clone();
        let endpoints = Endpoints { local, peer };
        let login = Login::new(now, config, endpoints, (control.random)());
        let phase = ConnectionPhase::Login(Box::new(CoreLogin::new(login, offer, near)));
        let key = self.connections.insert(peer.ip(), Some(socket), phase);
        control.logins.insert(peer.ip(), key);
        self.listen_to(key);
        self.arm(now, key);
    }

    /// Connections wait until there are descriptors or memory again; the log says so once a minute.
    pub(super) fn not_accepted(&mut self, now: Now, cause: &io::Error) {
        let Some(control) = &mut self.control else {
            return;
        };
        if control
            .not_accepted
            .is_none_or(|last| now - last >= NOT_ACCEPTED_EVERY)
        {
            control.not_accepted = Some(now);
            tracing::error!(
                "cannot accept new connections until others end: {cause}; raise the limit of open \
                 files (ulimit -n)"
            );
        }
    }

    /// Whether another connection from `peer` may log in.
    fn has_room(&mut self, now: Now, peer: IpAddr) -> bool {
        let admission = self.control.as_ref().map_or(Admission::Full, |control| {
            let most = control.config.limits.logins;
            control.logins.admission(peer, most)
        });
        self.make_room(now, peer, admission)
    }

    /// The same by an RDMA device, where there are half as many places.
    pub(super) fn has_room_by_device(&mut self, now: Now, peer: IpAddr) -> bool {
        let admission = self.control.as_ref().map_or(Admission::Full, |control| {
            let most = control.config.limits.logins.div_ceil(2);
            control.device_logins.admission(peer, most)
        });
        self.make_room(now, peer, admission)
    }

    /// Where an address that holds many more places has to give one up, that connection is closed.
    fn make_room(&mut self, now: Now, peer: IpAddr, admission: Admission) -> bool {
        match admission {
            Admission::Free => true,
            Admission::InPlaceOf(fullest, oldest) => {
                self.tell_of(now, fullest, TOO_MANY_LOGINS);
                self.hang_up(oldest);
                true
            }
            Admission::Full => {
                self.tell_of(now, peer, TOO_MANY_LOGINS);
                false
            }
        }
    }

    /// Carries out what a login wants; returns whether it wanted anything.
    pub(super) fn login_events(&mut self, now: Now, key: SlotKey) -> bool {
        let mut any = false;
        loop {
            let Some(connection) = self.connections.get(key) else {
                return any;
            };
            let ConnectionPhase::Login(login) = &mut connection.phase else {
                return any;
            };
            let Some(event) = login.poll() else {
                return any;
            };
            any = true;
            self.login_event(now, key, event);
        }
    }

    fn login_event(&mut self, now: Now, key: SlotKey, event: LoginEvent) {
        match event {
            LoginEvent::Session { wish, .. } => self.decide(now, key, wish),
            LoginEvent::Done => self.start_moving(now, key),
            LoginEvent::Close(violation) => {
                self.count_login(key, LoginResult::Refused);
                self.log_violation(now, key, violation);
                self.close_after_send(now, key);
            }
            LoginEvent::Remark(violation) => self.log_violation(now, key, violation),
        }
    }

    fn count_login(&mut self, key: SlotKey, result: LoginResult) {
        if let Some(connection) = self.connections.get(key)
            && let ConnectionPhase::Login(login) = &connection.phase
        {
            self.counts
                .login(login.login.endpoints().local.to_string(), result);
        }
    }

    /// Puts the wish for a session before the registry.
    fn decide(&mut self, now: Now, key: SlotKey, wish: AdmissionWish) {
        let Some(control) = &mut self.control else {
            return;
        };
        let Some(connection) = self.connections.get(key) else {
            return;
        };
        let ConnectionPhase::Login(login) = &mut connection.phase else {
            return;
        };
        // It may have begun before the initiator's name was revoked.
        let identity = (wish.initiator.clone(), wish.scope.clone());
        if !control.admits(&identity, wish.local) {
            login.login.refuse(AUTHORIZATION_FAILURE);
            self.mark_dirty(key.slot);
            self.login_events(now, key);
            return;
        }
        if let Err(error) = login.reserve() {
            let peer = login.login.endpoints().peer;
            login.login.refuse_for_resources();
            self.tell_of_refusal(now, peer, &error);
            self.mark_dirty(key.slot);
            self.login_events(now, key);
            return;
        }
        match control.registry.decide(&wish) {
            AdmissionDecision::Admit(tsih) => {
                control.balancer.assign(tsih, login.near());
                login.login.admit(tsih);
                self.sweep_later(now);
            }
            AdmissionDecision::Refuse(status) => login.login.refuse(status),
            AdmissionDecision::Reinstate(old) => {
                control.waiting.push((old, key, wish));
                return self.end_anywhere(old);
            }
        }
        self.mark_dirty(key.slot);
        self.login_events(now, key);
    }

    /// Ends a session wherever it is: here, when its connection has not moved yet; else on its
    /// core, which hears of the session before it hears of its end.
    pub(super) fn end_anywhere(&mut self, tsih: u16) {
        if self.connections.find(tsih).is_some() {
            return self.end_session(tsih);
        }
        let control = self.control.as_ref();
        if let Some(core) = control.and_then(|control| control.balancer.core_of(tsih)) {
            self.post(core, CoreMessage::End(tsih));
        }
    }

    /// A session has ended: its port may have another.
    pub(super) fn session_ended(&mut self, now: Now, tsih: u16) {
        let Some(control) = &mut self.control else {
            return;
        };
        control.registry.ended(tsih);
        control.balancer.leave(tsih);
        control.tell_dropped(tsih);
        let waiting = std::mem::take(&mut control.waiting);
        let (ready, waiting): (Vec<_>, Vec<_>) =
            waiting.into_iter().partition(|(old, ..)| *old == tsih);
        control.waiting = waiting;
        for (_, key, wish) in ready {
            self.decide(now, key, wish);
        }
        self.change_ends_session(tsih);
        self.sweep_later(now);
    }

    /// A session loses its nexus: what its port had heard is kept until that comes back.
    pub(super) fn keep_heard(&mut self, tsih: u16, heard: AttentionHistory) {
        if let Some(control) = &mut self.control
            && let Some(port) = control.registry.identity(tsih)
        {
            control.ports.go_away(port.clone(), heard);
        }
    }

    /// Ends every session with the target of this one, but this one: it ends by itself, when its
    /// response has left.
    pub(super) fn cold_reset(&mut self, tsih: u16) {
        let Some(control) = &self.control else { return };
        for session in control.sessions_beside(tsih) {
            self.end_anywhere(session);
        }
    }

    /// The final response is queued; the connection moves once that has been sent.
    fn start_moving(&mut self, now: Now, key: SlotKey) {
        let Some(connection) = self.connections.get(key) else {
            return;
        };
        let phase = std::mem::replace(&mut connection.phase, ConnectionPhase::Ending { tsih: 0 });
        connection.phase = match phase {
            ConnectionPhase::Login(login) => ConnectionPhase::Moving(login),
            other => other,
        };
        connection.closing = Some(now + PARTING);
        self.connections.note_session(key);
        self.mark_dirty(key.slot);
    }

    /// Gives a connection whose login has ended to the core that its session lives on. Nothing of
    /// it is in flight: the response has left, and it was not listened to since the last request;
    /// or, over a device, what came since goes along.
    pub(super) fn hand_over(&mut self, now: Now, key: SlotKey) {
        let Some(connection) = self.connections.remove(key.slot) else {
            return;
        };
        let ConnectionPhase::Moving(login) = connection.phase else {
            return;
        };
        let pair = login.device().map(DeviceLogin::pair);
        if let Some(pair) = pair {
            self.rdma.forget(pair);
        }
        let Some(control) = &mut self.control else {
            return;
        };
        control.logins.remove(key);
        control.device_logins.remove(key);
        let Some(session) = login.login.outcome() else {
            return;
        };
        let at = session.endpoints.local.to_string();
        self.counts.login(at, LoginResult::Accepted);
        let device = pair.map(|pair| &*pair.domain().device().name);
        tell_of_session(&self.journal, session, |session| {
            session.introduction(device)
        });
        let (tsih, nexus) = (session.tsih, control.nexus(session));
        // A discovery session, even one that names the target, has no nexus to tell anything to.
        let port = control.registry.identity(tsih).filter(|_| nexus.is_some());
        let heard = control.ports.come_back(port);
        let core = control.balancer.core_of(tsih).unwrap_or(CoreId(0));
        let info = SessionInfo::of(session, device, core, now);
        control.sessions.insert(tsih, info);
        let Some(login) = login.rest() else {
            if let Some(socket) = connection.socket {
                self.ring.close(socket);
            }
            return self.post_ended(tsih);
        };
        let socket = connection.socket.map(|socket| self.ring.release(socket));
        let early = connection.early;
        let new = NewSession {
            socket,
            login,
            nexus,
            heard,
            tsih,
            early,
        };
        self.post(core, CoreMessage::Session(Box::new(new)));
    }

    /// A connection has gone before it had a session.
    pub(super) fn login_over(&mut self, key: SlotKey) {
        let Some(connection) = self.connections.remove(key.slot) else {
            return;
        };
        let Some(control) = &mut self.control else {
            return;
        };
        control.logins.remove(key);
        control.device_logins.remove(key);
        control.waiting.retain(|(_, waiting, _)| *waiting != key);
        if let ConnectionPhase::Moving(login) = connection.phase
            && let Some(session) = login.login.outcome()
        {
            let tsih = session.tsih;
            self.post(CoreId(0), CoreMessage::Ended { tsih });
        }
        self.check_stopped();
    }
}
