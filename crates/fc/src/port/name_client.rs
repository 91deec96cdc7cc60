//! The client of a fabric's name server and fabric controller (FC-GS, FC-LS-2): registers an N_Port
//! and finds the others.
//!
//! | state | in progress | leaves |
//! |---|---|---|
//! | logging in | PLOGI to FFFFFCh | LS_ACC |
//! | registering | RNN_ID, RSNN_NN, RSPN_ID, RFT_ID, RFF_ID, one after the other | all answered |
//! | subscribing | SCR to FFFFFDh | any answer; after silence it is asked again while up |
//! | up | GPN_FT and GFF_ID, GPN_ID | LOGO of FFFFFCh, to logging in |
//!
//! One request is outstanding at a time, but for claims, and it is sent three times. A name that
//! is not accepted is told and passed over; if PLOGI, RFT_ID or RFF_ID fail, the login to the
//! fabric is of no use.
//!
//! An initiator lists the ports of FCP (GPN_FT), and asks what each is (GFF_ID). A target waits for
//! PLOGI, and makes sure of the ports that it knows. What an RSCN names is looked at 100 ms later,
//! together with what others name meanwhile, and not more often than once a second. A port that is
//! known by the same name and N_Port_ID stays known; it may have begun anew all the same, so an
//! initiator verifies its login (ADISC), after each list too: those are asked for in place of RSCNs
//! that name too many ports, or came while questions were lost. A port that was no target is asked
//! again whether it is one now.
//!
//! A port is gone only if the name server says so: GPN_FT is accepted without it, or rejected as no
//! FC-4 type is registered (09h/07h), or GPN_ID is rejected as the N_Port_ID is not. After silence
//! or any other reject what is known stays, and all ports are listed again, with exponential
//! backoff.
//!
//! A PLOGI of a port that is not known waits until GPN_ID has told whether its name is true
//! ([`claims`]).
//!
//! What is found and lost is told as by FIP, so that it is all the same to [`super::Port`].

mod answers;
pub(super) mod changes;
pub(super) mod claims;
mod ports;
mod requests;
pub(super) mod sequence;

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use scsi::medium::Now;

use self::changes::PendingChanges;
use self::claims::LoginClaim;
use self::ports::KnownPorts;
use self::requests::Question;
use self::sequence::ReceivedSequence;
use crate::fip::enode::{FabricLogin, FabricNotice};
use crate::fip::{Neighbour, UnlinkReason};
use crate::remote::Role;
use crate::wire::ct::CtReject;
use crate::wire::els::{LsRejectReason, ServiceParameters};
use crate::wire::frame::{FCtl, FrameType, OxId, RCtl, RxId};
use crate::wire::names::FcId;

/// What the client is told of its port.
#[derive(Clone, Debug)]
pub(super) struct NameClientConfig {
    pub(super) role: Role,
    pub(super) login: FabricLogin,
    /// What PLOGI says.
    pub(super) parameters: ServiceParameters,
    pub(super) symbolic_name: String,
}

/// A frame to a service of the fabric: a sequence of its own.
#[derive(Clone, Debug)]
pub(super) struct ServiceFrame {
    pub(super) to: FcId,
    pub(super) kind: (RCtl, FrameType),
    pub(super) f_ctl: FCtl,
    pub(super) exchange: (OxId, RxId),
    pub(super) payload: Vec<u8>,
}

/// What the client tells.
#[derive(Clone, Debug)]
pub(super) enum NameClientEvent {
    /// There is a port.
    Found(Neighbour),
    /// It is there no more, or not under this N_Port_ID.
    Lost(FcId, UnlinkReason),
    /// This port has the same name and N_Port_ID as before, but may have begun anew.
    Changed(FcId),
    /// This port, which was no target, is one now.
    IsTarget(FcId),
    /// A PLOGI tells the name that its sender has.
    Proven(LoginClaim),
    /// It does not, or that cannot be told now.
    Unproven(LoginClaim, LsRejectReason),
    /// Worth a line in the log.
    Notice(FabricNotice),
    /// All that is needed is registered.
    Registered,
    /// Without these services the login to the fabric is of no use.
    Useless,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ClientState {
    LoggingIn,
    /// By its number among all registrations.
    Registering(usize),
    Subscribing,
    Up,
}

/// A request that is outstanding.
#[derive(Debug)]
struct AskedQuestion {
    question: Question,
    ox_id: OxId,
    until: Now,
    answer: ReceivedSequence,
}

/// The client, for as long as one login to the fabric lasts.
#[derive(Debug)]
pub(super) struct NameClient {
    config: NameClientConfig,
    now: Now,
    state: ClientState,
    asked: Option<AskedQuestion>,
    /// How often the next question was asked, and not before when it is asked again.
    tries: u32,
    not_before: Option<Now>,
    /// PLOGIs whose names are to be looked up.
    claims: VecDeque<LoginClaim>,
    /// What is asked about the first of them, beside the other questions: a login does not wait for
    /// those.
    asked_claim: Option<AskedQuestion>,
    /// What is to be asked while up.
    questions: VecDeque<Question>,
    ports: KnownPorts,
    is_full_told: bool,
    changes: PendingChanges,
    /// Ports whose features the name server has not told in time: the last ones to be asked for.
    silent: BTreeSet<FcId>,
    /// Questions without an answer, one after the other, while up.
    silences: u32,
    /// Whether ports were listed since the login, or the list was refused.
    has_listed: bool,
    /// The reject of a list that was told last.
    refusal: Option<CtReject>,
    /// SCR was not answered, so that each round asks it again when all else is answered.
    needs_scr: bool,
    scr_is_due: bool,
    next_ox_id: u16,
    outgoing: VecDeque<ServiceFrame>,
    events: VecDeque<NameClientEvent>,
}

impl NameClient {
    /// Begins to log in. Its exchanges are numbered from `next_ox_id` on.
    pub(super) fn new(config: NameClientConfig, now: Now, next_ox_id: u16) -> Self {
        let mut client = Self {
            config,
            now,
            state: ClientState::LoggingIn,
            asked: None,
            tries: 0,
            not_before: None,
            claims: VecDeque::new(),
            asked_claim: None,
            questions: VecDeque::new(),
            ports: KnownPorts::default(),
            is_full_told: false,
            changes: PendingChanges::default(),
            silent: BTreeSet::new(),
            silences: 0,
            has_listed: false,
            refusal: None,
            needs_scr: false,
            scr_is_due: false,
            next_ox_id,
            outgoing: VecDeque::new(),
            events: VecDeque::new(),
        };
        client.go_on();
        client
    }

    /// The number of its next exchange.
    pub(super) const fn next_ox_id(&self) -> u16 {
        self.next_ox_id
    }

    /// Whether it may still find ports that have been there for long.
    pub(super) fn is_looking(&self) -> bool {
        let is_asking = self.asked.is_some() || !self.questions.is_empty();
        self.state != ClientState::Up || is_asking || self.discovers() && !self.has_listed
    }

    /// Whether the name server has accepted the login to it.
    pub(super) fn is_logged_in(&self) -> bool {
        self.state != ClientState::LoggingIn
    }

    /// The FCF-MAC, where all frames go, and come from.
    pub(super) const fn login(&self) -> &FabricLogin {
        &self.config.login
    }

    /// A frame that is to be sent.
    pub(super) fn transmit(&mut self) -> Option<ServiceFrame> {
        self.outgoing.pop_front()
    }

    /// What happened next.
    pub(super) fn poll(&mut self) -> Option<NameClientEvent> {
        self.events.pop_front()
    }

    /// Ports that are known, and what is to be asked, answered and sent.
    pub(super) fn records(&self) -> usize {
        let known = self.ports.iter().count() + self.silent.len() + self.changes.records();
        let asked = [&self.asked, &self.asked_claim].into_iter().flatten();
        let waiting = self.claims.len() + self.questions.len() + asked.count();
        known + waiting + self.outgoing.len() + self.events.len()
    }

    /// When [`Self::expire`] has something to do.
    pub(super) fn next_deadline(&self) -> Option<Now> {
        let asked = self.asked.as_ref().map(|asked| asked.until);
        // What has changed waits for the questions before it.
        let is_free = asked.is_none() && self.not_before.is_none() && self.questions.is_empty();
        let changes = self.changes.at.filter(|_| is_free);
        [asked, self.claims_deadline(), self.not_before, changes]
            .into_iter()
            .flatten()
            .min()
    }

    /// Does what is due.
    pub(super) fn expire(&mut self, now: Now) {
        self.tick(now);
        if self.not_before.is_some_and(|at| at <= self.now) {
            self.not_before = None;
        }
        let is_late = |asked: &mut AskedQuestion| asked.until <= self.now;
        if let Some(asked) = self.asked.take_if(is_late) {
            self.unanswered(asked.question);
        }
        self.expire_claims();
        self.go_on();
    }

    fn tick(&mut self, now: Now) {
        self.now = self.now.max(now);
    }

    /// Asks the next question, if none is outstanding.
    fn go_on(&mut self) {
        self.ask_about_claim();
        if self.asked.is_some() || self.not_before.is_some() {
            return;
        }
        if self.state == ClientState::Up {
            self.begin_round();
        }
        let question = match self.state {
            ClientState::LoggingIn => Some(Question::Plogi),
            ClientState::Registering(number) => Some(Question::Register(number)),
            ClientState::Subscribing => Some(Question::Scr),
            ClientState::Up => self.questions.front().copied(),
        };
        if let Some(question) = question {
            self.asked = Some(self.ask(question));
        }
    }

    /// The question that was asked is done with.
    fn answered(&mut self) {
        self.tries = 0;
        match self.state {
            ClientState::LoggingIn => self.state = ClientState::Registering(0),
            ClientState::Registering(number) if number + 1 < requests::REGISTRATIONS => {
                self.state = ClientState::Registering(number + 1);
            }
            ClientState::Registering(_) => self.state = ClientState::Subscribing,
            ClientState::Subscribing => {
                self.state = ClientState::Up;
                self.events.push_back(NameClientEvent::Registered);
                self.list_now();
            }
            ClientState::Up => drop(self.questions.pop_front()),
        }
    }

    /// A question got no answer, or one that asks for patience.
    fn unanswered(&mut self, question: Question) {
        self.tries += 1;
        if self.tries < TRIES {
            return;
        }
        match self.state {
            ClientState::Up => self.unanswered_while_up(question),
            ClientState::Subscribing => {
                self.notice(FabricNotice::ServiceSilent {
                    request: question.name(),
                });
                self.needs_scr = true;
                self.answered();
            }
            ClientState::LoggingIn | ClientState::Registering(_) => {
                self.notice(FabricNotice::ServiceSilent {
                    request: question.name(),
                });
                self.fail();
            }
        }
    }

    /// Known ports stay known, and others may be answered: the next round asks again. Without SCR
    /// changes are not told.
    fn unanswered_while_up(&mut self, question: Question) {
        self.answered();
        self.silences += 1;
        if let Question::Features(fc_id, _) = question {
            self.silent.insert(fc_id);
        }
        if question == Question::List || self.silences >= MAX_SILENCES {
            self.silences = 0;
            self.questions.clear();
        }
        self.list_later();
    }

    /// The login to the fabric is of no use.
    fn fail(&mut self) {
        (self.asked, self.asked_claim) = (None, None);
        self.claims.clear();
        // The port ends the client when it takes this. Until then it is silent.
        self.not_before = Some(Now::MAX);
        self.events.push_back(NameClientEvent::Useless);
    }

    /// The name server has forgotten us. Which ports there are is asked when we are registered.
    fn log_in_again(&mut self) {
        self.state = ClientState::LoggingIn;
        (self.asked, self.asked_claim) = (None, None);
        self.tries = 0;
        self.questions.clear();
        (self.needs_scr, self.scr_is_due) = (false, false);
        // It may log us out again at once.
        self.not_before = Some(self.now.saturating_add(AFTER_LOGOUT));
    }

    fn notice(&mut self, notice: FabricNotice) {
        self.events.push_back(NameClientEvent::Notice(notice));
    }
}

/// Our OX_IDs: the last of those of link services.
pub(super) const FIRST_OX_ID: u16 = crate::remote::SERVICE_OX_IDS;

/// So often a question is asked.
const TRIES: u32 = 3;

/// After so many questions in a row without an answer the name server itself seems to be silent,
/// and the round ends.
const MAX_SILENCES: u32 = 3;

/// After a LOGO of the name server.
const AFTER_LOGOUT: Duration = Duration::from_millis(500);
