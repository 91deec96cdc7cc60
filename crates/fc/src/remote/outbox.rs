//! What logins want sent and told.

use std::collections::VecDeque;

use scsi::medium::Now;

use super::local::LocalPort;
use super::peer::{FcpPeer, RemoteId};
use super::{NexusEnd, RemotePort};
use crate::wire::els::{Els, LsRejectReason, Reply};
use crate::wire::frame::{OxId, RxId};
use scsi::violation::Violation;

/// An ELS to be sent.
#[derive(Clone, Debug)]
pub(crate) struct PendingEls {
    pub(crate) is_reply: bool,
    pub(crate) ox_id: OxId,
    pub(crate) rx_id: RxId,
    pub(crate) els: Vec<u8>,
}

/// The exchange of a request that is to be answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RequestedExchange {
    pub(crate) ox_id: OxId,
    pub(crate) rx_id: RxId,
}

impl RequestedExchange {
    /// The answer to it.
    pub(crate) fn answered(self, reply: &Reply) -> PendingEls {
        PendingEls {
            is_reply: true,
            ox_id: self.ox_id,
            rx_id: self.rx_id,
            els: reply.encode(),
        }
    }
}

/// What a remote port wants done.
#[derive(Clone, Debug)]
pub(crate) enum RemoteOutput {
    /// Send it this.
    Send(PendingEls),
    /// There is a nexus.
    Up(Box<FcpPeer>),
    /// There is none any more.
    Down(NexusEnd),
    /// Worth a line in the log.
    Remark(Violation),
}

/// Exchange numbers of our own link services.
#[derive(Debug)]
pub(crate) struct OxIds {
    next: u16,
}

impl OxIds {
    /// They begin anywhere: a peer takes a PLOGI for a second copy by its number, also when it is
    /// of a port that has begun anew.
    pub(crate) const fn new(random: u16) -> Self {
        Self {
            next: FIRST + random % (SERVICE_OX_IDS - FIRST),
        }
    }

    /// Whether an exchange may be one of these; it is one of FCP's otherwise.
    pub(crate) const fn has(ox_id: OxId) -> bool {
        ox_id.0 >= FIRST
    }

    pub(crate) const fn take(&mut self) -> OxId {
        let ox_id = OxId(self.next);
        self.next = if ox_id.0 + 1 == SERVICE_OX_IDS {
            FIRST
        } else {
            ox_id.0 + 1
        };
        ox_id
    }
}

/// OX_IDs from this one on are those of requests to services of a fabric.
pub(crate) const SERVICE_OX_IDS: u16 = 0xf800;

/// Below are those of FCP.
const FIRST: u16 = crate::exchange::FCP_OX_IDS;

/// What is at hand while something is done for a remote port.
pub(crate) struct Cx<'a> {
    pub(crate) now: Now,
    pub(crate) local: &'a LocalPort,
    pub(crate) ox_ids: &'a mut OxIds,
    pub(crate) outputs: &'a mut VecDeque<(RemoteId, RemoteOutput)>,
}

impl RemotePort {
    pub(super) fn put(&self, cx: &mut Cx<'_>, output: RemoteOutput) {
        cx.outputs.push_back((self.id, output));
    }

    pub(super) fn remark(&self, cx: &mut Cx<'_>, rule: &'static str, clause: &'static str) {
        self.put(cx, RemoteOutput::Remark(Violation { rule, clause }));
    }

    /// Sends a request, and tells its exchange.
    pub(super) fn request(&self, cx: &mut Cx<'_>, els: &Els) -> OxId {
        let ox_id = cx.ox_ids.take();
        let sending = PendingEls {
            is_reply: false,
            ox_id,
            rx_id: RxId::UNASSIGNED,
            els: els.encode(),
        };
        self.put(cx, RemoteOutput::Send(sending));
        ox_id
    }

    pub(super) fn answer(&self, cx: &mut Cx<'_>, asked: RequestedExchange, reply: &Reply) {
        self.put(cx, RemoteOutput::Send(asked.answered(reply)));
    }

    pub(super) fn refuse(
        &self,
        cx: &mut Cx<'_>,
        asked: RequestedExchange,
        refusal: LsRejectReason,
    ) {
        self.answer(cx, asked, &Reply::Reject(refusal));
    }
}
