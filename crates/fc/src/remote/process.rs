//! Process login: PRLI and PRLO, which make and end image pairs (FC-LS-2, FCP-4).

use super::login::PAUSE;
use super::{
    AcceptedRequest, Cx, Fcp, LocalPort, LoginRefusal, NexusEnd, RemoteOutput, RemotePort,
    RemoteState, RequestedExchange, Role,
};
use crate::wire::els::{FcpParameters, LsRejectReason, Reply, ServicePage};
use crate::wire::frame::FrameType;

/// A PRLI to which the answer waits.
#[derive(Clone, Debug)]
pub(super) struct ParkedPrli {
    asked: RequestedExchange,
    pages: Vec<ServicePage>,
}

impl RemotePort {
    pub(super) fn prli_asked(
        &mut self,
        cx: &mut Cx<'_>,
        asked: RequestedExchange,
        pages: Vec<ServicePage>,
    ) {
        match self.state {
            RemoteState::Prli | RemoteState::Open => {}
            RemoteState::Plogi => return self.refuse(cx, asked, LsRejectReason::BUSY),
            RemoteState::Idle | RemoteState::Awaited => {
                return self.refuse(cx, asked, LsRejectReason::NO_LOGIN);
            }
        }
        let parked = ParkedPrli { asked, pages };
        let is_wish = cx.local.role == Role::Target && wish(&parked.pages).is_some();
        let is_repeated = self.pair.is_some() && AcceptedRequest::is_repeated(self.prli, cx, asked);
        if !is_wish || is_repeated {
            self.answer_prli(cx, &parked);
            return;
        }
        self.end(cx, NexusEnd::Replaced);
        if self.is_ending {
            self.parked = Some(parked);
        } else {
            self.pair_up(cx, &parked);
        }
    }

    /// There is a nexus, at a target.
    pub(super) fn pair_up(&mut self, cx: &mut Cx<'_>, parked: &ParkedPrli) {
        if let Some(theirs) = wish(&parked.pages) {
            self.answer_prli(cx, parked);
            self.prli = Some(AcceptedRequest::now(cx, parked.asked));
            self.up(cx, theirs);
        }
    }

    fn up(&mut self, cx: &mut Cx<'_>, theirs: FcpParameters) {
        self.pair = Some(cx.local.pair(theirs));
        self.refusal = None;
        if let Some(peer) = self.peer(cx.local) {
            self.put(cx, RemoteOutput::Up(Box::new(peer)));
        }
    }

    fn answer_prli(&self, cx: &mut Cx<'_>, parked: &ParkedPrli) {
        let pages = parked.pages.iter().map(|page| cx.local.response(*page));
        let reply = Reply::Process(pages.collect());
        self.answer(cx, parked.asked, &reply);
    }

    /// Our PRLI was accepted, which does not mean that there is a nexus.
    pub(super) fn prli_answered(&mut self, cx: &mut Cx<'_>, pages: &[ServicePage]) {
        let page = pages.iter().find(|page| page.kind == FrameType::FCP);
        let response = page.map(ServicePage::response);
        self.refusal = Some(LoginRefusal::NoPair(response));
        match response {
            Some(ServicePage::NO_RESOURCES | ServicePage::NOT_READY) => {
                self.again(cx, cx.local.e_d_tov);
            }
            Some(ServicePage::EXECUTED | ServicePage::CONDITIONAL) => self.paired(cx, page),
            _ => self.paired(cx, None),
        }
    }

    fn paired(&mut self, cx: &mut Cx<'_>, page: Option<&ServicePage>) {
        self.enter(cx, RemoteState::Open);
        let parameters = page.filter(|page| page.image_pair()).map(fcp);
        match parameters.filter(|theirs| theirs.has(FcpParameters::TARGET)) {
            Some(theirs) => {
                self.up(cx, theirs);
                self.wake_after(cx, cx.local.r_a_tov);
                self.verify_at = self.deadline;
            }
            // It is not a target, or not one for us.
            None => self.wake_after(cx, PAUSE),
        }
    }

    pub(super) fn prlo_asked(
        &mut self,
        cx: &mut Cx<'_>,
        asked: RequestedExchange,
        pages: &[ServicePage],
    ) {
        if !self.is_logged_in() {
            return self.refuse(cx, asked, LsRejectReason::NO_LOGIN);
        }
        let pages_done = pages
            .iter()
            .map(|page| page.logged_out(ServicePage::EXECUTED));
        self.answer(cx, asked, &Reply::Process(pages_done.collect()));
        if pages.iter().any(|page| page.kind == FrameType::FCP) {
            self.unpaired(cx);
        }
    }

    /// The image pair is over, by the word of the other end or of a third port.
    pub(crate) fn unpaired(&mut self, cx: &mut Cx<'_>) {
        if self.state == RemoteState::Open {
            self.end(cx, NexusEnd::LoggedOut);
            self.asked = None;
            if cx.local.role == Role::Initiator {
                self.wake_after(cx, cx.local.e_d_tov);
            }
        }
    }
}

/// What an initiator says of itself that wants an image pair.
fn wish(pages: &[ServicePage]) -> Option<FcpParameters> {
    let mut wanted = pages.iter().filter(|page| page.image_pair());
    let page = wanted.find(|page| page.kind == FrameType::FCP)?;
    Some(fcp(page)).filter(|theirs| theirs.has(FcpParameters::INITIATOR))
}

const fn fcp(page: &ServicePage) -> FcpParameters {
    FcpParameters(page.parameters)
}

impl LocalPort {
    /// The page of our PRLI.
    pub(super) fn process_login(&self) -> ServicePage {
        ServicePage::fcp(self.fcp())
    }

    /// The answer to a page of a PRLI. Two initiators, or two targets, make no pair; but Linux, as
    /// target, sends PRLI too, and makes its half of the pair by the answer to that.
    fn response(&self, page: ServicePage) -> ServicePage {
        let other = match self.role {
            Role::Initiator => FcpParameters::TARGET,
            Role::Target => FcpParameters::INITIATOR,
        };
        if page.kind != FrameType::FCP {
            return page.answered(ServicePage::INVALID);
        }
        let fits = fcp(&page).has(other);
        let code = if fits || !page.image_pair() {
            ServicePage::EXECUTED
        } else {
            ServicePage::PRECLUDED
        };
        let flags = if fits {
            page.flags & ServicePage::IMAGE_PAIR
        } else {
            0
        };
        let answer = ServicePage {
            flags,
            parameters: self.fcp().0,
            ..page
        };
        answer.answered(code)
    }

    /// What PRLI says of us. All data of a write is asked for: what comes without that may find no
    /// place, as nothing but requests keeps initiators from sending.
    fn fcp(&self) -> FcpParameters {
        let function = match self.role {
            Role::Initiator => FcpParameters::INITIATOR,
            Role::Target => FcpParameters::TARGET,
        };
        let offers = [
            (self.offer.retry, FcpParameters::RETRY),
            (self.offer.confirm, FcpParameters::CONFIRM),
            (self.offer.rec, FcpParameters::REC),
            (self.offer.retry_identifier, FcpParameters::TASK_RETRY_ID),
        ];
        let offered = offers.into_iter().filter(|offer| offer.0);
        let always = function.with(FcpParameters::READ_XFER_RDY_DISABLED);
        offered.fold(always, |all, offer| all.with(offer.1))
    }

    /// What both offer.
    fn pair(&self, theirs: FcpParameters) -> Fcp {
        let ours = self.fcp();
        let both = |bit| ours.has(bit) && theirs.has(bit);
        Fcp {
            retry: both(FcpParameters::RETRY),
            confirm: both(FcpParameters::CONFIRM),
            rec: both(FcpParameters::REC),
            retry_identifier: both(FcpParameters::TASK_RETRY_ID),
        }
    }
}
