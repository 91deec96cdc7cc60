//! REC and SRR (FC-LS-2; FCP-4, error recovery): how far has the target got, and what is missing,
//! again.

use std::time::Duration;

use scsi::medium::{Lease, Now};

use super::exchanges::{CommandStage, InitiatorExchange, InitiatorSlot, OTHER};
use super::{Data, FcpCause, FcpInitiator, FcpWhy};
use crate::remote::{FcpPeer, RemoteId};
use crate::wire::els::{
    Code, Els, ExchangeName, ExchangeStatus, LsRejectReason, RecAccept, Reply, Srr, reason,
};
use crate::wire::fcoe::ReceivedFrame;
use crate::wire::frame::{FCtl, FrameHeader, FrameType, OxId, RCtl, RxId};

/// A link service that was not answered.
#[derive(Clone, Copy, Debug)]
pub(super) struct PendingLinkService {
    pub(super) remote: RemoteId,
    /// Its own exchange.
    ox_id: OxId,
    /// The exchange that it is about.
    pub(super) about: OxId,
    pub(super) what: LinkServiceKind,
    /// When it was queued.
    pub(super) since: Now,
    pub(super) deadline: Now,
}

/// Which link service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LinkServiceKind {
    Rec,
    Srr,
    Rrq,
    /// REC, as QUERY TASK, for the caller's function of this name.
    Query(u64),
}

impl LinkServiceKind {
    const fn code(self) -> Code {
        match self {
            Self::Rec | Self::Query(_) => Code::REC,
            Self::Srr => Code::SRR,
            Self::Rrq => Code::RRQ,
        }
    }
}

/// What a link service is about whose command has ended; no command has this name.
const NOTHING: OxId = OxId(0xffff);

/// REC and SRR of one command that may go unanswered or lead nowhere, each after REC_TOV; more
/// where the first pauses are shorter. Each loses to a network that loses one frame in ten once in
/// three times; all of them, once in six thousand.
const MAX_RECOVERIES: u8 = 8;

impl<L> InitiatorExchange<L> {
    /// Whether a target that has only its own names for exchanges cannot find it, though it may be
    /// busy with it for long: libfc answers REC so, even as an exchange without data goes on. That
    /// of a read or write has sent something before REC_TOV, or is lost.
    fn is_nameless(&self) -> bool {
        self.rx_id == RxId::UNASSIGNED && matches!(self.data, Data::None)
    }
}

impl<L: Lease> FcpInitiator<L> {
    /// Data has come beyond data that has not.
    pub(super) fn note_gap(&mut self, slot: InitiatorSlot) {
        let Some(task) = self.tasks.at(slot) else {
            return;
        };
        let (remote, is_asking) = (task.remote, task.is_asking);
        let is_quick = self.peer(remote).is_some_and(FcpPeer::is_quick);
        if is_quick && !is_asking && self.may_recover(slot) {
            self.ask_for_missing(slot);
        }
    }

    /// The response has come, or data beyond a gap: what is before them is lost.
    pub(super) fn ask_for_missing(&mut self, slot: InitiatorSlot) {
        if let Some(task) = self.tasks.at(slot)
            && !task.is_asking
        {
            let (unit, offset) = task.missing();
            self.retransmit(slot, unit, offset);
        }
    }

    /// Whether something of a command may be asked for once more.
    fn may_recover(&mut self, slot: InitiatorSlot) -> bool {
        let Some(task) = self.tasks.at(slot) else {
            return false;
        };
        let (remote, recoveries) = (task.remote, task.recoveries);
        let nexus = self.nexus(remote);
        nexus.is_some_and(|nexus| recoveries < nexus.patience.tries(MAX_RECOVERIES))
    }

    /// Asks for a unit and all after it, if the target can send again; else the command is over.
    fn retransmit(&mut self, slot: InitiatorSlot, unit: RCtl, offset: u32) {
        let can = self.may_recover(slot);
        let Some(task) = self.tasks.at(slot) else {
            return;
        };
        let (remote, number, about, rx_id) = (task.remote, task.number, task.ox_id, task.rx_id);
        let srr = Els::Srr(Srr {
            ox_id: about,
            rx_id,
            offset,
            unit,
        });
        let can = can && self.peer(remote).is_some_and(|peer| peer.fcp.retry);
        if !can || !self.serve(remote, about, LinkServiceKind::Srr, &srr, number) {
            return self.abort(slot, FcpWhy::Own(FcpCause::Lost));
        }
        self.is_asking(slot);
    }

    /// Asks how far the target has got.
    pub(super) fn inquire(&mut self, slot: InitiatorSlot) {
        if !self.may_recover(slot) {
            return self.abort(slot, FcpWhy::Own(FcpCause::Lost));
        }
        let Some(task) = self.tasks.at(slot) else {
            return;
        };
        let (remote, about, rx_id, number) = (task.remote, task.ox_id, task.rx_id, task.number);
        if self.ask_rec(remote, (about, rx_id), LinkServiceKind::Rec, number) {
            self.is_asking(slot);
        }
    }

    fn is_asking(&mut self, slot: InitiatorSlot) {
        if let Some(task) = self.tasks.at(slot) {
            task.is_asking = true;
            task.recoveries += 1;
            task.inquiries = task.inquiries.saturating_add(1);
        }
    }

    pub(super) fn ask_rec(
        &mut self,
        remote: RemoteId,
        (ox_id, rx_id): (OxId, RxId),
        what: LinkServiceKind,
        number: u32,
    ) -> bool {
        let Some(peer) = self.peer(remote) else {
            return false;
        };
        let rec = Els::Rec(ExchangeName {
            originator: peer.own.fc_id,
            ox_id,
            rx_id,
        });
        self.serve(remote, ox_id, what, &rec, number)
    }

    /// Sends a link service, and waits for its answer; `false` if it cannot be sent. `number` is
    /// the task retry identifier of the command that it is about.
    pub(super) fn serve(
        &mut self,
        remote: RemoteId,
        about: OxId,
        what: LinkServiceKind,
        request: &Els,
        number: u32,
    ) -> bool {
        let Some(peer) = self.peer(remote).copied() else {
            return false;
        };
        let Some(ox_id) = self.tasks.ids.assign(OTHER) else {
            return false;
        };
        let ox_id = OxId(ox_id);
        let (r_ctl, kind) = match what {
            LinkServiceKind::Srr => (RCtl::FC4_REQUEST, FrameType::FCP),
            _ => (RCtl::ELS_REQUEST, FrameType::ELS),
        };
        let header = FrameHeader {
            f_ctl: FCtl::REQUEST,
            parameter: if peer.fcp.retry_identifier { number } else { 0 },
            ..peer.header(r_ctl, kind, ox_id, RxId::UNASSIGNED)
        };
        let wait = self.answer_within(remote, about, what);
        self.queue_control(remote, header, request.encode());
        self.services.push(PendingLinkService {
            remote,
            ox_id,
            about,
            what,
            since: self.now,
            deadline: self.now.saturating_add(wait),
        });
        true
    }

    /// How long an answer may take: what recovers a command is sent again as soon as it may.
    fn answer_within(&mut self, remote: RemoteId, about: OxId, what: LinkServiceKind) -> Duration {
        let task = self.tasks.find(remote, about);
        let task = task.and_then(|slot| self.tasks.at(slot));
        let asked = match (what, task) {
            (LinkServiceKind::Rec | LinkServiceKind::Srr, Some(task)) => task.inquiries,
            _ => u8::MAX,
        };
        let nexus = self.nexus(remote);
        nexus.map_or(Duration::ZERO, |nexus| nexus.patience.after(asked))
    }

    /// A command has ended, and what was asked about it matters no more but for how long the answer
    /// takes. One that comes after that of the command would else never be measured, and each
    /// command asked about too soon. One such question a target is enough to find out.
    pub(super) fn end_questions(&mut self, remote: RemoteId, about: OxId) {
        // A QUERY TASK is answered on its own: it is another function of the caller's.
        let is_its_own = |one: &PendingLinkService| {
            let is_query = matches!(one.what, LinkServiceKind::Query(_));
            (one.remote, one.about) == (remote, about) && !is_query
        };
        let awaits = |one: &PendingLinkService| (one.remote, one.about) == (remote, NOTHING);
        let limit = self.nexus(remote).and_then(|nexus| nexus.patience.limit());
        let limit = limit.filter(|_| !self.services.iter().any(awaits));
        if let Some(limit) = limit
            && let Some(one) = self.services.iter_mut().find(|one| is_its_own(one))
        {
            (one.about, one.deadline) = (NOTHING, self.now.saturating_add(limit));
        }
        self.drop_services(is_its_own);
    }

    /// Functions of the caller's that ask a target about a command.
    pub(super) fn queries(&self, remote: RemoteId) -> impl Iterator<Item = u64> {
        let of_it = self
            .services
            .iter()
            .filter(move |service| service.remote == remote);
        of_it.filter_map(|service| match service.what {
            LinkServiceKind::Query(id) => Some(id),
            _ => None,
        })
    }

    pub(super) fn drop_services(&mut self, which: impl Fn(&PendingLinkService) -> bool) {
        let ids = &mut self.tasks.ids;
        self.services.retain(|service| {
            let goes = which(service);
            if goes {
                ids.release(service.ox_id.0);
                if service.what == LinkServiceKind::Rrq {
                    ids.release(service.about.0);
                }
            }
            !goes
        });
    }

    /// An answer to one of ours.
    pub(super) fn service_answered(&mut self, remote: RemoteId, frame: &ReceivedFrame<'_>) {
        let ox_id = frame.header.ox_id;
        let known =
            |service: &PendingLinkService| service.ox_id == ox_id && service.remote == remote;
        let Some(service) = self.services.iter().copied().find(known) else {
            return;
        };
        let Ok(reply) = Reply::parse(service.what.code(), frame.payload) else {
            return;
        };
        self.drop_services(|other| other.ox_id == ox_id);
        let took = self.now.saturating_sub(service.since);
        if let Some(nexus) = self.nexus(remote) {
            nexus.patience.measured(took);
        }
        if let LinkServiceKind::Query(id) = service.what {
            return self.queried(remote, id, &reply);
        }
        let Some(slot) = self.tasks.find(remote, service.about) else {
            return;
        };
        let Some(task) = self.tasks.at(slot) else {
            return;
        };
        (task.is_asking, task.touched) = (false, self.now);
        if let Some(until) = self.silence_until(slot) {
            self.look_by(until);
        }
        match (service.what, reply) {
            (LinkServiceKind::Rec, Reply::Rec(status)) => self.inquired(slot, &status),
            (LinkServiceKind::Rec, Reply::Reject(reject)) => {
                self.rec_rejected(remote, slot, reject);
            }
            (LinkServiceKind::Srr, Reply::Reject(_)) => {
                self.abort(slot, FcpWhy::Own(FcpCause::Lost));
            }
            _ => {}
        }
    }

    /// The target says how far it has got: what has not come by now is lost.
    fn inquired(&mut self, slot: InitiatorSlot, at: &RecAccept) {
        let is_sending = self.sequences.iter().any(|(waiting, _)| *waiting == slot);
        let Some(task) = self.tasks.at(slot) else {
            return;
        };
        // An answer about another exchange is none.
        if task.stage != CommandStage::Open || !task.is_named(at.ox_id, at.rx_id) {
            return;
        }
        if task.rx_id == RxId::UNASSIGNED {
            task.rx_id = at.rx_id;
        }
        let is_complete = at.status.has(ExchangeStatus::COMPLETE);
        if is_sending || at.status.has(ExchangeStatus::INITIATIVE) && !is_complete {
            return self.goes_on(slot);
        }
        let come = task.cover.next();
        let (unit, offset) = match task.data {
            Data::Out(_) if !is_complete && at.transferred < task.len => {
                (RCtl::DATA_DESCRIPTOR, at.transferred)
            }
            Data::In(_) if come < at.transferred => (RCtl::SOLICITED_DATA, come),
            _ => (RCtl::COMMAND_STATUS, 0),
        };
        self.retransmit(slot, unit, offset);
    }

    /// The target does not know the exchange, or not REC.
    fn rec_rejected(&mut self, remote: RemoteId, slot: InitiatorSlot, reject: LsRejectReason) {
        let unknown = matches!(
            reject.reason,
            reason::NOT_SUPPORTED | reason::INVALID_COMMAND
        );
        let may_be_busy = self.tasks.at(slot).is_some_and(|task| task.is_nameless());
        match self.nexus(remote) {
            Some(nexus) if unknown => nexus.knows_no_rec = true,
            Some(nexus) if may_be_busy && !nexus.peer.fcp.rec => self.goes_on(slot),
            _ => self.abort(slot, FcpWhy::Own(FcpCause::Lost)),
        }
    }

    /// A command is left alone for now.
    fn goes_on(&mut self, slot: InitiatorSlot) {
        if let Some(task) = self.tasks.at(slot) {
            task.recoveries = 0;
        }
    }

    pub(super) fn check_services(&mut self) {
        let now = self.now;
        let late = |service: &PendingLinkService| service.deadline <= now;
        if !self.services.iter().any(late) {
            return;
        }
        let passed: Vec<_> = self.services.iter().copied().filter(late).collect();
        self.drop_services(late);
        for service in passed {
            if let LinkServiceKind::Query(id) = service.what {
                self.unanswered(service.remote, id);
            }
            if let Some(slot) = self.tasks.find(service.remote, service.about)
                && let Some(task) = self.tasks.at(slot)
                && task.stage == CommandStage::Open
            {
                task.is_asking = false;
                self.inquire(slot);
            }
        }
    }
}
