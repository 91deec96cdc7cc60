//! An initiator's session, from its login to its end (RFC 7143 §4.2, §6, §11), at
//! ErrorRecoveryLevel 0: one connection's life.
//!
//! | phase | what may be asked of it | where it leads |
//! |---|---|---|
//! | login | nothing | open, by [`InitiatorEvent::LoggedIn`]; or the end |
//! | open | [`Initiator::execute`], [`Initiator::manage`]; for discovery [`Initiator::send_targets`] | leaving, or the end |
//! | leaving | nothing more: what is in flight ends, then it logs out | the end |
//! | ended | nothing; bytes are thrown away | |
//!
//! The last event is always [`InitiatorEvent::Ended`], and says why. Before it, each command that
//! has not ended does so by [`InitiatorEvent::Failed`], which tells those that were never sent from
//! those that may have been carried out: the first may be sent again at once, the others only when
//! their old nexus is known dead. The machine repeats nothing by itself.
//!
//! It is split as the target's is. Below it a [`mover`] carries PDUs and data; `receive` hands PDUs
//! out, `command` carries SCSI commands, `manage` task management, `late` what is done about
//! commands that are late, `transmit` is the order of what leaves; `numbers` and `tasks` hold what
//! is counted.

mod chap;
mod command;
pub mod config;
mod count_watchdog;
pub mod error;
mod event;
pub mod iser;
mod late;
mod login;
mod logout;
mod manage;
pub mod mover;
mod nop;
mod notice;
mod numbers;
mod offer;
pub mod portal;
mod receive;
mod rest;
mod tasks;
pub mod tcp;
mod text;
mod transmit;

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::sync::Arc;

pub use scsi::client::{ClientCommand, Data, Done, Fate};
use scsi::medium::{Lease, Now};

use self::config::{InitiatorConfig, Misconfigured};
use self::count_watchdog::CountWatchdog;
use self::error::{LoginError, SessionEnd};
pub use self::event::{
    InitiatorEvent, IscsiCause, IscsiFailed, IscsiRefusal, IscsiRefused, IscsiWhy, TargetNotice,
    TargetRecord, Tmf,
};
use self::late::Ladder;
use self::login::InitiatorLogin;
pub use self::login::LoginOutcome;
use self::logout::Logout;
use self::manage::PendingFunction;
use self::mover::InitiatorMover;
use self::nop::TargetLiveness;
use self::numbers::SequenceNumbers;
pub use self::rest::RestingSession;
use self::tasks::{InitiatorTaskSlot, InitiatorTasks};
use self::tcp::InitiatorTcpMover;
use self::text::PendingText;
use self::transmit::ControlRequest;
use crate::parameters::Operational;
use crate::wire::serial::CmdSn;
use scsi::violation::Violation;

/// An initiator's session, whose PDUs and data move by `M`.
#[derive(Debug)]
pub struct Initiator<L, M: InitiatorMover = InitiatorTcpMover> {
    config: Arc<InitiatorConfig>,
    now: Now,
    phase: InitiatorPhase,
    /// What holds now; the defaults during the login.
    keys: Operational,
    outcome: Option<LoginOutcome>,
    mover: M,
    numbers: SequenceNumbers,
    tasks: InitiatorTasks<L, M::Transfer>,
    /// Commands that wait for their place in the window, in order.
    ready: VecDeque<InitiatorTaskSlot>,
    controls: VecDeque<ControlRequest>,
    functions: Vec<PendingFunction>,
    ladder: Option<Ladder>,
    /// When commands are looked at for those that are late.
    look: Option<Now>,
    /// Whether the target counts the commands that it gets.
    watch: Option<CountWatchdog>,
    text: Option<PendingText>,
    logout: Option<Logout>,
    liveness: TargetLiveness,
    events: VecDeque<InitiatorEvent<L>>,
}

#[derive(Debug)]
enum InitiatorPhase {
    Login(Box<InitiatorLogin>, Now),
    Open,
    Ended,
}

impl<L: Lease> Initiator<L> {
    /// A TCP connection that was just made. `random` are fresh random bytes, used for the challenge
    /// of mutual CHAP and the first CmdSN.
    ///
    /// # Errors
    /// What of the configuration cannot work.
    pub fn new(
        config: Arc<InitiatorConfig>,
        now: Now,
        random: [u8; 37],
    ) -> Result<Self, Misconfigured> {
        Self::log_in(config, now, random)
    }
}

impl<L: Lease, M: InitiatorMover> Initiator<L, M> {
    /// A session that begins with its login.
    fn log_in(
        config: Arc<InitiatorConfig>,
        now: Now,
        random: [u8; 37],
    ) -> Result<Self, Misconfigured> {
        config.check()?;
        let [a, b, c, d, random @ ..] = random;
        let offer = M::offer(&config.offer);
        let (login, request) = InitiatorLogin::new(&config, &offer, random);
        let deadline = now.saturating_add(config.times.login);
        let phase = InitiatorPhase::Login(Box::new(login), deadline);
        let cmd_sn = CmdSn(u32::from_be_bytes([a, b, c, d]));
        let numbers = SequenceNumbers::new(cmd_sn, config.is_discovery(), M::MAY_OVERTAKE);
        Ok(Self {
            controls: VecDeque::from([request]),
            ..Self::idle(config, now, phase, numbers)
        })
    }

    /// A session in which nothing is in flight, by the keys that hold before a login.
    fn idle(
        config: Arc<InitiatorConfig>,
        now: Now,
        phase: InitiatorPhase,
        numbers: SequenceNumbers,
    ) -> Self {
        let keys = Operational::default();
        Self {
            config,
            now,
            phase,
            keys,
            outcome: None,
            mover: M::new(&keys),
            numbers,
            tasks: InitiatorTasks::new(),
            ready: VecDeque::new(),
            controls: VecDeque::new(),
            functions: Vec::new(),
            ladder: None,
            look: None,
            watch: None,
            text: None,
            logout: None,
            liveness: TargetLiveness::new(now),
            events: VecDeque::new(),
        }
    }

    /// The configuration it goes by.
    #[must_use]
    pub const fn config(&self) -> &Arc<InitiatorConfig> {
        &self.config
    }

    /// What the login agreed upon, after [`InitiatorEvent::LoggedIn`]; `None` before it.
    #[must_use]
    pub const fn outcome(&self) -> Option<&LoginOutcome> {
        self.outcome.as_ref()
    }

    /// What happened; to be asked until `None` after each call of another function.
    pub fn poll(&mut self) -> Option<InitiatorEvent<L>> {
        self.events.pop_front()
    }

    /// Whether so much waits to be transmitted that nothing is taken from the wire.
    #[must_use]
    pub fn is_stalled(&self) -> bool {
        self.controls.len() >= MAX_CONTROLS
    }

    /// When [`Initiator::expire`] wants to be called.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Now> {
        let earliest = match self.phase {
            InitiatorPhase::Ended => None,
            InitiatorPhase::Login(_, deadline) => Some(deadline),
            InitiatorPhase::Open => [
                self.look,
                self.ladder.as_ref().map(Ladder::deadline),
                self.functions
                    .iter()
                    .filter_map(PendingFunction::deadline)
                    .min(),
                self.text.as_ref().map(PendingText::deadline),
                self.logout.as_ref().and_then(Logout::deadline),
                self.silence_deadline(),
            ]
            .into_iter()
            .flatten()
            .min(),
        };
        let watch = self.watch.as_ref().map(CountWatchdog::deadline);
        match (earliest, watch) {
            (Some(earliest), Some(watch)) => Some(earliest.min(watch)),
            (earliest, watch) => earliest.or(watch),
        }
    }

    /// The deadline passed.
    pub fn expire(&mut self, now: Now) {
        self.now = now;
        match self.phase {
            InitiatorPhase::Ended => {}
            InitiatorPhase::Login(_, deadline) if now < deadline => {}
            InitiatorPhase::Login(..) => self.end(SessionEnd::Login(LoginError::Late)),
            InitiatorPhase::Open => {
                self.check_silence();
                self.check_counting();
                self.check_functions();
                self.check_text();
                self.check_logout();
                self.check_late();
            }
        }
    }

    /// The connection was closed by the other side, or broke.
    pub fn lost(&mut self) {
        self.end(match &self.phase {
            InitiatorPhase::Login(login, _) => SessionEnd::Login(login.lost()),
            _ if self.is_logged_out() => SessionEnd::LoggedOut,
            _ => SessionEnd::Lost,
        });
    }

    /// Ends the session without a word; the caller closes the connection.
    pub fn give_up(&mut self) {
        self.end(SessionEnd::GivenUp);
    }

    /// Whether nothing is in flight, and nothing is left to be sent.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.tasks.len() == 0
            && self.controls.is_empty()
            && !self.is_managing()
            && self.text.is_none()
            && self.logout.is_none()
            && !matches!(self.phase, InitiatorPhase::Login(..))
    }

    /// How many commands may be given now before [`IscsiRefusal::Full`].
    #[must_use]
    pub fn room(&self) -> usize {
        match self.refusal() {
            Some(_) => 0,
            None => {
                let most = self.config.limits.tasks.min(M::MAX_TASKS);
                most.saturating_sub(self.tasks.len())
            }
        }
    }

    const fn is_open(&self) -> bool {
        matches!(self.phase, InitiatorPhase::Open)
    }

    const fn is_ended(&self) -> bool {
        matches!(self.phase, InitiatorPhase::Ended)
    }

    /// Why nothing may be asked now.
    fn refusal(&self) -> Option<IscsiRefusal> {
        match self.phase {
            InitiatorPhase::Login(..) => Some(IscsiRefusal::NotYet),
            InitiatorPhase::Ended => Some(IscsiRefusal::Over),
            InitiatorPhase::Open if self.logout.is_some() => Some(IscsiRefusal::Over),
            InitiatorPhase::Open => None,
        }
    }

    fn violated(&mut self, violation: Violation) {
        self.end(SessionEnd::Violated(violation));
    }

    /// The end: all that is in flight fails.
    fn end(&mut self, end: SessionEnd) {
        if self.is_ended() {
            return;
        }
        self.phase = InitiatorPhase::Ended;
        self.mover.end();
        self.controls.clear();
        self.ladder = None;
        self.watch = None;
        self.text = None;
        self.logout = None;
        self.fail_all(|task| {
            let fate = match task.sent {
                Some(_) => Fate::Unknown,
                None => Fate::NeverSent,
            };
            Some((fate, IscsiWhy::Ended))
        });
        for function in std::mem::take(&mut self.functions) {
            self.events.extend(function.unanswered());
        }
        self.events.push_back(InitiatorEvent::Ended(end));
    }
}

/// Answers to pings, and requests, that may wait before nothing more is taken from the wire.
const MAX_CONTROLS: usize = 64;
