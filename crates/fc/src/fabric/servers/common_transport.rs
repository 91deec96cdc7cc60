//! Requests by the common transport (FC-GS): to whom they go, and their answers.

use scsi::medium::Now;
use scsi::violation::Violation;

use super::service::Service;
use super::{Allowance, Asked, Servers};
use crate::wire::ct::{CtError, CtHeader, CtReject, CtService, REVISION, explanation, reason};
use crate::wire::fcoe::ReceivedFrame;
use crate::wire::frame::{FrameType, RCtl};
use crate::wire::names::FcId;

impl Servers {
    pub(super) fn ct_frame(&mut self, now: Now, frame: &ReceivedFrame<'_>) {
        let asked = Asked::by(&frame.header);
        let Some(port) = self.ports.get_mut(&asked.from) else {
            return;
        };
        let service = Service::at(asked.at);
        if !service.is_some_and(|service| port.has_login(service)) {
            // One answer to a request, however many frames it has.
            let is_last = frame.header.f_ctl.end_sequence();
            if is_last && self.allow(now, asked.from) == Allowance::Served {
                self.log_out(asked);
            }
            return;
        }
        let station = port.login.station();
        let times = (now, self.config.e_d_tov);
        let Some(request) = self.reassembly.frame(times, station, frame) else {
            return;
        };
        let allowance = self.allow(now, asked.from);
        let Ok((header, payload)) = CtHeader::parse(&request.bytes) else {
            return self.remark(now, asked.from, UNREADABLE);
        };
        let answer = match allowance {
            Allowance::Dropped => return,
            Allowance::Refused => Err(BUSY),
            Allowance::Served if request.is_too_long => Err(SIZE),
            Allowance::Served => self.ct_request(now, asked, &header, payload),
        };
        if answer == Err(SIZE) {
            self.remark(now, asked.from, UNREADABLE);
        }
        let answer = answer.unwrap_or_else(|why| header.reject(why).encode().to_vec());
        self.answer_ct(asked, &answer);
    }

    fn answer_ct(&mut self, asked: Asked, answer: &[u8]) {
        if let Some(port) = self.ports.get_mut(&asked.from) {
            let frame_max = port.frame_max(Service::at(asked.at));
            let kind = (RCtl::SOLICITED_CONTROL, FrameType::CT);
            self.outbox.answer(asked, kind, answer, frame_max);
        }
    }

    /// The whole CT_IU of an accept.
    fn ct_request(
        &mut self,
        now: Now,
        asked: Asked,
        header: &CtHeader,
        payload: &[u8],
    ) -> Result<Vec<u8>, CtReject> {
        if header.revision != REVISION {
            return Err(CtReject::new(reason::INVALID_VERSION, explanation::NONE));
        }
        match (asked.at, header.service) {
            (FcId::DIRECTORY, CtService::NAME_SERVER) => {
                self.name_server(now, asked, header, payload)
            }
            (FcId::MANAGEMENT, CtService::FDMI) => self.device_management(asked, header, payload),
            _ => Err(NOT_SUPPORTED),
        }
    }
}

const BUSY: CtReject = CtReject::new(reason::LOGICAL_BUSY, explanation::NONE);

/// A request that is too short for what it asks, or too long for any.
pub(super) const SIZE: CtReject = CtReject::new(reason::INVALID_IU_SIZE, explanation::NONE);

/// What no service at this address does.
pub(super) const NOT_SUPPORTED: CtReject = CtReject::new(reason::NOT_SUPPORTED, explanation::NONE);

impl From<CtError> for CtReject {
    fn from(_: CtError) -> Self {
        SIZE
    }
}

const UNREADABLE: Violation = Violation {
    rule: "a CT_IU whose lengths do not agree",
    clause: "FC-GS",
};
