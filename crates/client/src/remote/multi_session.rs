//! One remote unit over several sessions of one core (`?sessions=N`).
//!
//! Each session has an ISID of its own and is a [`RemoteHandle`] of its own, which comes back after
//! a loss as every other one does, and asks again for what it had in flight itself; nothing moves
//! to another session. Which one an operation goes to is in the [`SessionScheduler`]: the one that
//! has what touches the same blocks, else the one with the least to do. So a single operation at a
//! time uses a single session, and the others are made when there is more.
//!
//! # Flushes
//!
//! Each session keeps book on its own writes and on the resets that it was told of. A flush waits
//! for every write before it, and goes to all sessions that have written since their last one. When
//! the target was reset, each is told by its own unit attention, so together they report lost
//! writes once.
//!
//! # When a session stays away
//!
//! What it has in flight fails in the end, and flushes with it, if it has written and not flushed.
//! All else goes to the others, but to the blocks of failed writes: these may still be on their
//! way, until the session is back. It is asked to come back with every operation. If it comes
//! back to another portal group, nothing ends what is on its way to the one before (RFC 7143
//! §6.3.5), and what is asked for there fails.

mod scheduler;

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use block::lease::BlockLease;
use block::volume::{Context, Handle, HandleEvent, HandleId};
use scsi::medium::{Extent, MediumError, MediumOp, MediumResult, Now};
use slab::Slab;

use self::scheduler::{BlockClaim, Route, SessionScheduler};
use super::connection::InitiatorConnection;
use super::handle::{RemoteHandle, blocks};
use super::indeterminate_writes::AllIndeterminateWrites;
use super::inquiry::Inquiry;
use super::{FIRST_SESSION, RemoteError, RemoteSettings, TargetPortal};

/// A remote unit over several sessions.
pub(super) struct MultiSessionHandle {
    sessions: Vec<MultiSession>,
    /// The node of the first; those of the others follow.
    first: HandleId,
    /// The number of its session.
    number: u16,
    book: SessionScheduler,
    asked: Slab<PendingOp>,
    ended: Vec<SessionResult>,
}

struct MultiSession {
    handle: SessionHandle,
    /// When it wants to be called.
    call: Option<Now>,
    done: Vec<(u64, MediumResult<BlockLease>)>,
}

/// What a session has done with its piece of an operation.
struct SessionResult {
    session: usize,
    key: usize,
    result: MediumResult<BlockLease>,
    /// Blocks are in doubt since.
    stray: bool,
}

/// An operation that has not ended.
struct PendingOp {
    id: u64,
    /// Until it goes to a session.
    op: Option<MediumOp<BlockLease>>,
    /// How many sessions have it.
    pieces: usize,
    error: Option<MediumError>,
}

/// As many sessions as one core is to have, with the `first` of them: whether the target lets them
/// in is to be known when the volume is opened. All logins and logouts together have the time that
/// one has, since `asked`.
pub(super) fn log_in_others(
    settings: &RemoteSettings,
    (portal, found): (&TargetPortal, &(String, u16)),
    first: Inquiry<InitiatorConnection>,
    asked: Instant,
) -> Result<Vec<Inquiry<InitiatorConnection>>, RemoteError> {
    let mut sessions = vec![first];
    for place in 1..settings.sessions {
        let portal = portal.of_session(FIRST_SESSION + place);
        let another = Inquiry::log_in(asked, |core| {
            let mut link = settings.connection(core, &portal, None);
            link.go_to(found.clone());
            link
        });
        match another {
            Ok(session) => sessions.push(session),
            Err(cause) => {
                let leave = |session: Inquiry<_>| session.leave_since(asked);
                sessions.into_iter().for_each(leave);
                return Err(RemoteError::Sessions {
                    there: place,
                    wanted: settings.sessions,
                    cause: Box::new(cause),
                });
            }
        }
    }
    Ok(sessions)
}

type SessionHandle = RemoteHandle<InitiatorConnection>;

impl MultiSessionHandle {
    /// Over these sessions, whose numbers follow `number`, and their nodes `first`.
    pub(super) fn new(
        handles: Vec<SessionHandle>,
        number: u16,
        first: HandleId,
        doubts: Arc<AllIndeterminateWrites>,
    ) -> Self {
        let book = SessionScheduler::new(handles.len(), doubts);
        let session = |handle| MultiSession {
            handle,
            // It may have a session to take up.
            call: Some(Now::ZERO),
            done: Vec::new(),
        };
        Self {
            sessions: handles.into_iter().map(session).collect(),
            first,
            number,
            book,
            asked: Slab::new(),
            ended: Vec::new(),
        }
    }

    fn act(
        &mut self,
        cx: &mut Context<'_>,
        session: usize,
        act: impl FnOnce(&mut SessionHandle, &mut Context<'_>),
    ) {
        let Some(one) = self.sessions.get_mut(session) else {
            return;
        };
        let mut inside = Context {
            ring: &mut *cx.ring,
            done: &mut one.done,
            now: cx.now,
            call: &mut one.call,
        };
        act(&mut one.handle, &mut inside);
        self.book.set_away(session, one.handle.is_away());
        let stray = one.handle.has_doubts();
        let ended = one.done.drain(..).map(|(key, result)| SessionResult {
            session,
            key: key as usize,
            result,
            stray,
        });
        self.ended.extend(ended);
    }

    /// The same for the session that a node belongs to.
    fn act_of(
        &mut self,
        cx: &mut Context<'_>,
        node: HandleId,
        act: impl FnOnce(&mut SessionHandle, &mut Context<'_>),
    ) {
        self.act(cx, node.0.wrapping_sub(self.first.0) as usize, act);
        self.drive_sessions(cx);
    }

    /// Takes what the sessions have done, gives them what may go now, and says when the earliest
    /// wants to be called.
    fn drive_sessions(&mut self, cx: &mut Context<'_>) {
        loop {
            if let Some(ended) = self.ended.pop() {
                self.ended(cx, ended);
            } else if let Some((key, way)) = self.next() {
                self.start(cx, key, way);
            } else {
                break;
            }
        }
        let calls = self.sessions.iter().filter_map(|session| session.call);
        calls.min().into_iter().for_each(|at| cx.call_at(at));
    }

    fn start(&mut self, cx: &mut Context<'_>, key: usize, way: Route) {
        let asked = &mut self.asked[key];
        let Some(op) = asked.op.take() else {
            return;
        };
        match (way, op) {
            (Route::One(session), op) => {
                asked.pieces = 1;
                self.act(cx, session, |handle, cx| handle.submit(cx, key as u64, op));
            }
            (Route::All, MediumOp::Flush { extent }) => self.flush(cx, key, extent),
            (Route::All, _) => {}
            (Route::Nowhere, _) => {
                let asked = self.asked.remove(key);
                cx.done(asked.id, Err(MediumError::Gone));
            }
        }
    }

    fn flush(&mut self, cx: &mut Context<'_>, key: usize, extent: Extent) {
        let idlest = self.book.idlest();
        let owes = |session: &MultiSession| session.handle.owes_flush();
        let none = !self.sessions.iter().any(owes);
        for session in 0..self.sessions.len() {
            if owes(&self.sessions[session]) || none && session == idlest {
                self.asked[key].pieces += 1;
                let op = MediumOp::Flush { extent };
                self.act(cx, session, |handle, cx| handle.submit(cx, key as u64, op));
            }
        }
    }

    fn ended(&mut self, cx: &mut Context<'_>, ended: SessionResult) {
        let SessionResult {
            session,
            key,
            result,
            stray,
        } = ended;
        self.book.leave(key);
        let asked = &mut self.asked[key];
        asked.pieces -= 1;
        asked.error = asked.error.or(result.as_ref().err().copied());
        if asked.pieces == 0 {
            let asked = self.asked.remove(key);
            let error = asked.error.map(Err);
            cx.done(asked.id, error.unwrap_or(result));
            if stray && asked.error.is_some() {
                self.act(cx, session, RemoteHandle::want);
            }
        }
    }

    /// An operation that may go now, or that waits for a session which does not come back, or is of
    /// another core.
    fn next(&mut self) -> Option<(usize, Route)> {
        let (sessions, first) = (&self.sessions, self.number);
        self.book.next(|number| {
            let session = sessions.get(usize::from(number.wrapping_sub(first)));
            session.is_none_or(|session| !session.handle.is_wanted())
        })
    }
}

impl Handle for MultiSessionHandle {
    fn submit(&mut self, cx: &mut Context<'_>, id: u64, op: MediumOp<BlockLease>) {
        let claim = claim(&op);
        let key = self.asked.insert(PendingOp {
            id,
            op: Some(op),
            pieces: 0,
            error: None,
        });
        match claim {
            Some(claim) => self.book.enter(key, claim),
            None => self.start(cx, key, Route::One(0)),
        }
        for session in 0..self.sessions.len() {
            if self.sessions[session].handle.is_away() {
                self.act(cx, session, RemoteHandle::want);
            }
        }
        self.drive_sessions(cx);
    }

    fn cancel(&mut self, cx: &mut Context<'_>, ids: &Range<u64>) {
        let asked = self.asked.iter().filter(|(_, one)| ids.contains(&one.id));
        let keys: Vec<usize> = asked.map(|(key, _)| key).collect();
        for key in keys {
            if self.book.withdraw(key) {
                let id = self.asked.remove(key).id;
                cx.done(id, Err(MediumError::Cancelled));
                continue;
            }
            let pieces = key as u64..key as u64 + 1;
            for session in 0..self.sessions.len() {
                self.act(cx, session, |handle, cx| handle.cancel(cx, &pieces));
            }
        }
        self.drive_sessions(cx);
    }

    fn event(&mut self, cx: &mut Context<'_>, node: HandleId, slot: u32, event: HandleEvent<'_>) {
        self.act_of(cx, node, |handle, cx| handle.event(cx, node, slot, event));
    }

    fn resume(&mut self, cx: &mut Context<'_>) {
        for session in 0..self.sessions.len() {
            let call = &mut self.sessions[session].call;
            if call.take_if(|at| *at <= cx.now).is_some() {
                self.act(cx, session, Handle::resume);
            }
        }
        self.drive_sessions(cx);
    }

    fn leave(&mut self, cx: &mut Context<'_>) {
        for session in 0..self.sessions.len() {
            self.act(cx, session, Handle::leave);
        }
        self.drive_sessions(cx);
    }

    fn has_left(&self) -> bool {
        let mut sessions = self.sessions.iter();
        sessions.all(|session| session.handle.has_left())
    }
}

/// What an operation does to which blocks; `None` where it only wants memory.
fn claim(op: &MediumOp<BlockLease>) -> Option<BlockClaim> {
    match op {
        MediumOp::Flush { .. } => Some(BlockClaim::Flush),
        MediumOp::Read { .. } | MediumOp::Status { .. } => blocks(op).map(BlockClaim::Read),
        _ => blocks(op).map(BlockClaim::Write),
    }
}
