//! Logging in, asking, and leaving: a link that one thread waits for, with one command at a time.
//!
//! It opens units, looks at the targets behind a portal or a port, and ends sessions that were
//! opened in vain. Everything blocks, with a limit.

use std::time::{Duration, Instant};

use ::io::memory::Pool;
use ::io::ring::{AnyRing, Ring, RingKind};
use block::lease::BlockLease;
use block::volume::{Context, CoreContext};
use block::volumes::hand_on;
use iscsi::initiator::TargetRecord;
use scsi::client::{Client, ClientOutput, CommandStatus, Data, Facts, UnitRequest};
use scsi::medium::{Lease as _, Now};
use scsi::task::SenseBytes;
use scsi::wire::cdb::{be32, opcode};
use scsi::wire::lun::Lun;
use scsi::wire::sense::Status;

use super::connection::InitiatorConnection;
use super::link::{Link, LinkEvent};
use super::reconnect::REDIRECTIONS;
use super::session::RestingConnection;
use super::{RemoteError, RemoteSettings};

/// A link, and the thread that waits for it.
pub(crate) struct Inquiry<L> {
    ring: AnyRing,
    pub(super) link: L,
    /// What the link's time counts from.
    start: Instant,
    /// When the present question was asked.
    asked: Instant,
    notice: WaitNotice,
}

/// How long each question may take.
pub(crate) const LIMIT: Duration = Duration::from_secs(30);

/// Memory for parameter data comes from the heap; the pool only has to be there.
const POOL: usize = 1 << 20;

/// The pause before a command is sent again that ended with BUSY or a unit attention.
const TURN: Duration = Duration::from_millis(50);

/// How often a command is sent that ends with BUSY or a unit attention.
const TRIES: usize = 8;

/// Bytes of a list of LUNs that are asked for: 1023 of them.
const LIST: usize = 8192;

impl<L: Link> Inquiry<L> {
    /// With a link that is still to connect. Its first question counts from `asked`.
    pub(super) fn new(
        asked: Instant,
        link: impl FnOnce(&CoreContext) -> L,
    ) -> Result<Self, RemoteError> {
        let (ring, _) = AnyRing::open(RingKind::Epoll).map_err(RemoteError::Ring)?;
        let core = CoreContext::new(Pool::new(POOL).map_err(RemoteError::Ring)?);
        let start = Instant::now();
        Ok(Self {
            ring,
            link: link(&core),
            start,
            asked,
            notice: WaitNotice::new(start),
        })
    }

    /// Logs in by a new link, and follows redirections.
    pub(crate) fn log_in(
        asked: Instant,
        link: impl FnOnce(&CoreContext) -> L,
    ) -> Result<Self, RemoteError> {
        let mut inquiry = Self::new(asked, link)?;
        if inquiry.is_late() {
            return Err(late());
        }
        match inquiry.connect() {
            Ok(()) => Ok(inquiry),
            // A port that does not find its target is logged in to the fabric all the same, and
            // has to be logged out.
            Err(cause) => {
                inquiry.put_back();
                Err(cause)
            }
        }
    }

    fn connect(&mut self) -> Result<(), RemoteError> {
        let mut redirections = 0;
        self.act(L::connect);
        loop {
            match self.event() {
                Ok(LinkEvent::LoggedIn { .. }) => return Ok(()),
                Ok(_) => {}
                Err(RemoteError::Session(end)) if end.is_redirection() => {
                    redirections += 1;
                    if redirections > REDIRECTIONS {
                        return Err(RemoteError::Redirected(redirections));
                    }
                    self.act(L::connect);
                }
                Err(cause) => return Err(cause),
            }
        }
    }

    /// The units that there are (SPC-5 §6.33).
    pub(crate) fn report_luns(&mut self) -> Result<Vec<Lun>, RemoteError> {
        let mut cdb = [0; 16];
        cdb[0] = opcode::REPORT_LUNS;
        cdb[6..10].copy_from_slice(&(LIST as u32).to_be_bytes());
        self.asked = Instant::now();
        for last in (0..TRIES).rev() {
            let into = BlockLease::from_bytes(vec![0; LIST]);
            let data = Data::In(into.clone());
            let request = UnitRequest { id: 0, cdb, data };
            let ended = self.command(Lun::from_index(0), request)?;
            let answer = answer(&ended);
            if answer.status == Status::Good as u8 {
                return Ok(luns(&into));
            }
            if last == 0 || !answer.wants_again() {
                let (status, sense) = (answer.status, SenseBytes::new(answer.sense));
                return Err(RemoteError::Luns { status, sense });
            }
            if answer.is_busy() {
                self.wait_until(self.now() + TURN)?;
            }
        }
        Err(late())
    }

    /// What a unit says of itself. Where it is the unit that cannot, the target can be asked on.
    pub(crate) fn facts(&mut self, lun: Lun) -> Result<Facts, RemoteError> {
        self.asked = Instant::now();
        self.facts_for(&mut Client::default(), lun)
    }

    /// What the unit says to one with these wishes. No registration is left behind.
    pub(super) fn probe(&mut self, settings: &RemoteSettings) -> Result<Facts, RemoteError> {
        let mut client = Client::default().wishing(settings.wishes);
        let facts = self.facts_for(&mut client, settings.lun);
        // A link that has ended carries no command.
        let answers = matches!(facts, Ok(_) | Err(RemoteError::Unit { .. }));
        if answers && client.depart() {
            let mut left = self.carry_out(&mut client, settings.lun);
            while left.is_ok_and(|output| !matches!(output, ClientOutput::Departed)) {
                left = self.carry_out(&mut client, settings.lun);
            }
        }
        facts
    }

    fn facts_for(
        &mut self,
        client: &mut Client<BlockLease>,
        lun: Lun,
    ) -> Result<Facts, RemoteError> {
        client.begin();
        loop {
            match self.carry_out(client, lun)? {
                ClientOutput::Ready => {
                    if let Some(facts) = client.facts() {
                        return Ok(facts.clone());
                    }
                }
                ClientOutput::Refused(refusal) => {
                    let lun = lun.to_string();
                    return Err(RemoteError::Unit { lun, refusal });
                }
                _ => {}
            }
        }
    }

    /// Carries out what a client wants of a unit, until it tells something else.
    fn carry_out(
        &mut self,
        client: &mut Client<BlockLease>,
        lun: Lun,
    ) -> Result<ClientOutput<BlockLease>, RemoteError> {
        loop {
            match client.poll() {
                Some(ClientOutput::Execute(request)) => {
                    let id = request.id;
                    match self.command(lun, request)? {
                        LinkEvent::Late(_) => client.late(self.now(), id),
                        ended => client.answered(self.now(), id, &answer(&ended)),
                    }
                }
                Some(output) => return Ok(output),
                // A unit that is busy is asked again.
                None => {
                    let next = client.next_deadline();
                    self.wait_until(next.unwrap_or(self.now() + TURN))?;
                    client.expire(self.now());
                }
            }
        }
    }

    /// Carries out a command; returns how it ended.
    fn command(
        &mut self,
        lun: Lun,
        request: UnitRequest<BlockLease>,
    ) -> Result<LinkEvent, RemoteError> {
        // One that is not taken is over with the link, which the next event tells.
        self.link.execute(self.now(), lun, request);
        loop {
            match self.event()? {
                LinkEvent::LoggedIn { .. }
                | LinkEvent::Targets(_)
                // The end that follows says why.
                | LinkEvent::Unanswered { .. } => {}
                ended => return Ok(ended),
            }
        }
    }

    /// Logs out.
    pub(crate) fn leave(self) {
        self.leave_since(Instant::now());
    }

    /// Logs out, which has what time is left of a question that was asked then; the target is told
    /// in any case. What can be left to the next user is not ended.
    pub(super) fn leave_since(mut self, asked: Instant) {
        self.asked = asked;
        // A session that rests is taken up before it can log out.
        let _ = self.turn(Some(Now::ZERO));
        let now = self.now();
        if self.link.hand_over(now) || !self.link.log_out(now) {
            return;
        }
        loop {
            match self.event() {
                Err(RemoteError::Session(end)) if !end.is_wanted() => {
                    return tracing::debug!("logout after the inquiry: {end}");
                }
                Err(_) => return,
                Ok(_) => {}
            }
        }
    }

    /// Leaves what there is to the next user, if that can be; else it ends without a word.
    pub(crate) fn put_back(mut self) {
        let now = self.now();
        self.link.hand_over(now);
    }

    /// What happens next, unless it is the end.
    fn event(&mut self) -> Result<LinkEvent, RemoteError> {
        loop {
            if let Some(event) = self.turn(None)? {
                return Ok(event);
            }
        }
    }

    /// Waits for a moment, in which nothing should happen but the end.
    fn wait_until(&mut self, at: Now) -> Result<(), RemoteError> {
        while self.turn(Some(at))?.is_some() {}
        Ok(())
    }

    /// What happens until then, unless it is the end. Nothing is sent or received after an event,
    /// so that a session can rest.
    fn turn(&mut self, until: Option<Now>) -> Result<Option<LinkEvent>, RemoteError> {
        loop {
            match self.act(L::poll) {
                Some(LinkEvent::Ended { end, .. }) => return Err(RemoteError::Session(end)),
                Some(event) => return Ok(Some(event)),
                None if until.is_some_and(|at| at <= self.now()) => return Ok(None),
                None => {}
            }
            let is_late = self.is_late();
            self.act(L::push);
            self.wait(until)?;
            if is_late {
                return Err(late());
            }
        }
    }

    fn wait(&mut self, until: Option<Now>) -> Result<(), RemoteError> {
        let (now, instant) = (self.now(), Instant::now());
        self.notice.wait(instant, self.link.awaited());
        let deadlines = [until, self.link.next_deadline()].into_iter().flatten();
        let waits = deadlines.map(|at| at.saturating_sub(now));
        let waits = waits.chain(self.notice.left(instant));
        let left = LIMIT.saturating_sub(self.asked.elapsed());
        let wait = waits.fold(left, Duration::min);
        self.ring.wait(Some(wait)).map_err(RemoteError::Ring)?;
        while let Some(event) = self.ring.next_event() {
            let mut heard = Ok(());
            hand_on(event, |_, slot, event| {
                heard = self.act(|link, cx| link.event(cx, slot, event));
            });
            heard?;
        }
        self.link.expire(self.now());
        Ok(())
    }

    fn is_late(&self) -> bool {
        self.asked.elapsed() >= LIMIT
    }

    fn now(&self) -> Now {
        self.start.elapsed()
    }

    fn act<T>(&mut self, act: impl FnOnce(&mut L, &mut Context<'_>) -> T) -> T {
        let now = self.now();
        let mut cx = Context {
            ring: &mut self.ring,
            done: &mut Vec::new(),
            now,
            call: &mut None,
        };
        act(&mut self.link, &mut cx)
    }
}

impl Inquiry<InitiatorConnection> {
    /// The targets that there are, by a discovery session (RFC 7143 Appendix C).
    pub(crate) fn targets(&mut self) -> Result<Vec<TargetRecord>, RemoteError> {
        self.link.send_targets(self.now());
        loop {
            if let LinkEvent::Targets(targets) = self.event()? {
                return Ok(targets);
            }
        }
    }

    /// Lays the session down for a handle; where something is in flight, it is ended instead.
    pub(super) fn rest(mut self) -> Option<RestingConnection> {
        let resting = self.link.rest(&mut self.ring, self.asked);
        if resting.is_none() {
            let asked = self.asked;
            self.leave_since(asked);
        }
        resting
    }
}

const fn late() -> RemoteError {
    RemoteError::Late(LIMIT.as_secs())
}

/// How a command ended; one without an answer as if the unit had aborted it.
fn answer(ended: &LinkEvent) -> CommandStatus<'_> {
    match ended {
        LinkEvent::Answered(done) => done.answer(),
        _ => CommandStatus::bare(Status::TaskAborted),
    }
}

fn luns(list: &BlockLease) -> Vec<Lun> {
    let mut bytes = vec![0; list.len()];
    list.copy_out(0, &mut bytes);
    let length = be32(&bytes, 0) as usize;
    let listed = bytes[8..].chunks_exact(8).take(length / 8);
    let lun = |bytes: &[u8]| bytes.try_into().ok().map(Lun);
    listed.filter_map(lun).collect()
}

/// Tells once in the log what is waited for, when that takes a while.
#[derive(Debug)]
struct WaitNotice {
    awaited: String,
    since: Instant,
    is_told: bool,
}

/// Where nothing is wrong, each step takes milliseconds; a person begins to wonder about now.
const SILENCE: Duration = Duration::from_secs(3);

impl WaitNotice {
    fn new(now: Instant) -> Self {
        Self {
            awaited: String::new(),
            since: now,
            is_told: false,
        }
    }

    /// This is waited for now.
    fn wait(&mut self, now: Instant, awaited: String) {
        if let Some(line) = self.line(now, awaited) {
            tracing::info!("{line}");
        }
    }

    fn line(&mut self, now: Instant, awaited: String) -> Option<String> {
        if self.awaited != awaited {
            (self.awaited, self.since, self.is_told) = (awaited, now, false);
        }
        if self.is_told || now.duration_since(self.since) < SILENCE {
            return None;
        }
        self.is_told = true;
        Some(format!("waiting for {}", self.awaited))
    }

    /// How long until there is something to tell, if nothing happens.
    fn left(&self, now: Instant) -> Option<Duration> {
        let left = SILENCE.saturating_sub(now.duration_since(self.since));
        (!self.is_told).then_some(left)
    }
}

#[cfg(test)]
mod tests;
