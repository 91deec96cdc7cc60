//! Process login: PRLI and PRLO, which make and end image pairs (FC-LS-2, FCP-4).

use super::login::PAUSE;
use super::refusal;
use super::{Asked, Cx, End, Fcp, Local, Output, Remote, Role, Seen, State};
use crate::wire::els::{FcpParameters, Page, Reply};
use crate::wire::frame::Type;

/// A PRLI to which the answer waits.
#[derive(Clone, Debug)]
pub(super) struct Parked {
    asked: Asked,
    pages: Vec<Page>,
}

impl Remote {
    pub(super) fn prli_asked(&mut self, cx: &mut Cx<'_>, asked: Asked, pages: Vec<Page>) {
        match self.state {
            State::Prli | State::Open => {}
            State::Plogi => return self.refuse(cx, asked, refusal::BUSY),
            State::Idle | State::Awaited => return self.refuse(cx, asked, refusal::NO_LOGIN),
        }
        let parked = Parked { asked, pages };
        let is_wish = cx.local.role == Role::Target && wish(&parked.pages).is_some();
        let is_repeated = self.pair.is_some() && Seen::is_repeated(self.prli, cx, asked);
        if !is_wish || is_repeated {
            self.answer_prli(cx, &parked);
            return;
        }
        self.end(cx, End::Replaced);
        if self.is_ending {
            self.parked = Some(parked);
        } else {
            self.pair_up(cx, &parked);
        }
    }

    /// There is a nexus, at a target.
    pub(super) fn pair_up(&mut self, cx: &mut Cx<'_>, parked: &Parked) {
        if let Some(theirs) = wish(&parked.pages) {
            self.answer_prli(cx, parked);
            self.prli = Some(Seen::now(cx, parked.asked));
            self.up(cx, theirs);
        }
    }

    fn up(&mut self, cx: &mut Cx<'_>, theirs: FcpParameters) {
        self.pair = Some(cx.local.pair(theirs));
        if let Some(peer) = self.peer(cx.local) {
            self.put(cx, Output::Up(Box::new(peer)));
        }
    }

    fn answer_prli(&self, cx: &mut Cx<'_>, parked: &Parked) {
        let pages = parked.pages.iter().map(|page| cx.local.response(*page));
        let reply = Reply::Process(pages.collect());
        self.answer(cx, parked.asked, &reply);
    }

    /// Our PRLI was accepted, which does not mean that there is a nexus.
    pub(super) fn prli_answered(&mut self, cx: &mut Cx<'_>, pages: &[Page]) {
        let page = pages.iter().find(|page| page.kind == Type::FCP);
        match page.map(Page::response) {
            Some(Page::NO_RESOURCES | Page::NOT_READY) => self.again(cx, cx.local.e_d_tov),
            Some(Page::EXECUTED | Page::CONDITIONAL) => self.paired(cx, page),
            _ => self.paired(cx, None),
        }
    }

    fn paired(&mut self, cx: &mut Cx<'_>, page: Option<&Page>) {
        self.enter(cx, State::Open);
        let parameters = page.filter(|page| page.image_pair()).map(fcp);
        match parameters.filter(|theirs| theirs.has(FcpParameters::TARGET)) {
            Some(theirs) => self.up(cx, theirs),
            // It is no target, or not one for us.
            None => self.wake_after(cx, PAUSE),
        }
    }

    pub(super) fn prlo_asked(&mut self, cx: &mut Cx<'_>, asked: Asked, pages: &[Page]) {
        if !self.is_logged_in() {
            return self.refuse(cx, asked, refusal::NO_LOGIN);
        }
        let pages_done = pages.iter().map(|page| page.logged_out(Page::EXECUTED));
        self.answer(cx, asked, &Reply::Process(pages_done.collect()));
        if pages.iter().any(|page| page.kind == Type::FCP) {
            self.unpaired(cx);
        }
    }

    /// The image pair is over, by the word of the other end or of a third port.
    pub(crate) fn unpaired(&mut self, cx: &mut Cx<'_>) {
        if self.state == State::Open {
            self.end(cx, End::LoggedOut);
            if cx.local.role == Role::Initiator {
                self.wake_after(cx, cx.local.e_d_tov);
            }
        }
    }
}

/// What an initiator says of itself that wants an image pair.
fn wish(pages: &[Page]) -> Option<FcpParameters> {
    let mut wanted = pages.iter().filter(|page| page.image_pair());
    let page = wanted.find(|page| page.kind == Type::FCP)?;
    Some(fcp(page)).filter(|theirs| theirs.has(FcpParameters::INITIATOR))
}

const fn fcp(page: &Page) -> FcpParameters {
    FcpParameters(page.parameters)
}

impl Local {
    /// The page of our PRLI.
    pub(super) fn process_login(&self) -> Page {
        Page::fcp(self.fcp())
    }

    /// The answer to a page of a PRLI. Two initiators, or two targets, make no pair; but Linux, as
    /// target, sends PRLI too, and makes its half of the pair by the answer to that.
    fn response(&self, page: Page) -> Page {
        let other = match self.role {
            Role::Initiator => FcpParameters::TARGET,
            Role::Target => FcpParameters::INITIATOR,
        };
        if page.kind != Type::FCP {
            return page.answered(Page::INVALID);
        }
        let fits = fcp(&page).has(other);
        let code = if fits || !page.image_pair() {
            Page::EXECUTED
        } else {
            Page::PRECLUDED
        };
        let flags = if fits {
            page.flags & Page::IMAGE_PAIR
        } else {
            0
        };
        let answer = Page {
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
