//! The rules of the book, over any order of operations, ends, losses and returns.

use proptest::prelude::*;

use std::sync::Arc;

use super::{BlockClaim, Route, SessionScheduler};
use crate::remote::indeterminate_writes::{AllIndeterminateWrites, IndeterminateWrites};
use scsi::medium::Extent;

#[derive(Clone, Debug)]
enum Step {
    Enter(BlockClaim),
    /// One of those in flight ends well, or fails with its session.
    End(usize, bool),
    Back(usize),
    GiveUp(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let extent = || (0u64..24, 1u64..6).prop_map(|(lba, blocks)| Extent::new(lba, blocks));
    let any = any::<usize>;
    prop_oneof![
        3 => extent().prop_map(|extent| Step::Enter(BlockClaim::Read(extent))),
        3 => extent().prop_map(|extent| Step::Enter(BlockClaim::Write(extent))),
        1 => Just(Step::Enter(BlockClaim::Write(Extent::new(0, 64)))),
        1 => Just(Step::Enter(BlockClaim::Flush)),
        6 => (any(), prop::bool::weighted(0.8)).prop_map(|(one, good)| Step::End(one, good)),
        2 => any().prop_map(Step::Back),
        1 => any().prop_map(Step::GiveUp),
    ]
}

/// What a book was told and has said.
struct Story {
    all: Arc<AllIndeterminateWrites>,
    book: SessionScheduler,
    next: usize,
    waiting: Vec<(usize, BlockClaim)>,
    in_flight: Vec<(usize, BlockClaim, usize)>,
    doubts: Vec<(Extent, usize)>,
}

impl Story {
    fn new(sessions: usize) -> Self {
        let all = Arc::<AllIndeterminateWrites>::default();
        Self {
            book: SessionScheduler::new(sessions, Arc::clone(&all)),
            all,
            next: 0,
            waiting: Vec::new(),
            in_flight: Vec::new(),
            doubts: Vec::new(),
        }
    }

    fn take(&mut self, step: &Step, sessions: usize) {
        match step {
            Step::Enter(claim) => {
                self.book.enter(self.next, *claim);
                self.waiting.push((self.next, *claim));
                self.next += 1;
            }
            Step::End(one, good) if !self.in_flight.is_empty() => {
                let one = one % self.in_flight.len();
                let (key, claim, session) = self.in_flight.swap_remove(one);
                assert_eq!(self.book.leave(key), Some(claim));
                if let (BlockClaim::Write(extent), false) = (claim, good) {
                    self.book.set_away(session, true);
                    self.doubts.push((extent, session));
                    self.tell(session);
                }
            }
            Step::End(..) => {}
            Step::Back(session) => self.back(session % sessions),
            Step::GiveUp(session) => {
                let away = (session % sessions) as u16;
                if let Some((key, way)) = self.book.next(|other| other == away) {
                    self.goes(key, way);
                }
            }
        }
        self.go_on();
    }

    fn go_on(&mut self) {
        while let Some((key, way)) = self.book.next(comes_back) {
            self.goes(key, way);
        }
        for (key, claim) in &self.waiting {
            assert!(self.has_cause(*key, *claim), "{claim:?} waits for nothing");
        }
    }

    /// Whether there is anything that an operation has to wait for.
    fn has_cause(&self, key: usize, claim: BlockClaim) -> bool {
        let waiting = self.waiting.iter().map(|(other, what)| (*other, *what));
        let in_flight = self
            .in_flight
            .iter()
            .map(|(other, what, _)| (*other, *what));
        let mut before = waiting.chain(in_flight).filter(|(other, _)| *other < key);
        let mut doubts = self.doubts.iter();
        before.any(|(_, other)| matter(claim, other))
            || doubts.any(|(extent, _)| claim.touches(*extent))
    }

    fn back(&mut self, session: usize) {
        self.book.set_away(session, false);
        self.doubts.retain(|(_, other)| *other != session);
        self.tell(session);
    }

    fn tell(&self, session: usize) {
        let own = self.doubts.iter().filter(|(_, other)| *other == session);
        let own: Vec<_> = own.map(|(extent, _)| *extent).collect();
        tell(&self.all, session as u16, &own);
    }

    fn goes(&mut self, key: usize, way: Route) {
        let at = self.waiting.iter().position(|(other, _)| *other == key);
        let (_, claim) = self.waiting.remove(at.expect("it waits"));
        if way == Route::Nowhere {
            let mut doubts = self.doubts.iter();
            assert!(doubts.any(|(extent, _)| claim.touches(*extent)));
            return;
        }
        let earlier = self.waiting.iter().filter(|(other, _)| *other < key);
        for (_, other) in earlier {
            assert!(!matter(claim, *other), "{claim:?} overtook {other:?}");
        }
        let Route::One(session) = way else {
            let mut writes = self.in_flight.iter();
            let missed = writes.any(|(other, what, _)| *other < key && what.writes());
            assert!(!missed && claim == BlockClaim::Flush);
            return;
        };
        for (_, other, place) in &self.in_flight {
            let apart = *place != session && matter(claim, *other);
            assert!(!apart, "{claim:?} is apart from {other:?}");
        }
        for (extent, _) in &self.doubts {
            assert!(
                !claim.touches(*extent),
                "{claim:?} goes where {extent:?} may land"
            );
        }
        self.in_flight.push((key, claim, session));
    }
}

impl BlockClaim {
    fn writes(self) -> bool {
        matches!(self, Self::Write(_))
    }
}

/// Whether the order of a later operation and an earlier one can be seen.
fn matter(later: BlockClaim, earlier: BlockClaim) -> bool {
    match (later, earlier) {
        (BlockClaim::Flush, earlier) => earlier.writes(),
        (_, BlockClaim::Flush) => false,
        (
            BlockClaim::Read(one) | BlockClaim::Write(one),
            BlockClaim::Read(other) | BlockClaim::Write(other),
        ) => one.overlaps(other) && (later.writes() || earlier.writes()),
    }
}

/// No session stays away.
fn comes_back(_: u16) -> bool {
    false
}

fn tell(all: &AllIndeterminateWrites, session: u16, extents: &[Extent]) {
    let mut doubts = IndeterminateWrites::default();
    doubts.add(0, extents.to_vec());
    all.set(session, &doubts);
}

#[test]
fn only_the_blocks_of_failed_writes_wait() {
    let all = Arc::<AllIndeterminateWrites>::default();
    let mut book = SessionScheduler::new(2, Arc::clone(&all));
    book.set_away(0, true);
    tell(&all, 0, &[Extent::new(0, 8), Extent::new(1000, 8)]);
    book.enter(0, BlockClaim::Write(Extent::new(1007, 1)));
    book.enter(1, BlockClaim::Write(Extent::new(500, 8)));
    assert_eq!(book.next(comes_back), Some((1, Route::One(1))));
    assert_eq!(book.next(comes_back), None);
    tell(&all, 0, &[]);
    assert_eq!(book.next(comes_back), Some((0, Route::One(1))));
}

proptest! {
    #[test]
    fn what_overlaps_stays_together_and_everything_goes(
        sessions in 1usize..5,
        steps in prop::collection::vec(step(), 1..120),
    ) {
        let mut story = Story::new(sessions);
        for step in &steps {
            story.take(step, sessions);
        }
        for session in 0..sessions {
            story.back(session);
        }
        story.go_on();
        while !story.in_flight.is_empty() {
            story.take(&Step::End(0, true), sessions);
        }
        prop_assert!(story.waiting.is_empty(), "{:?} hang", story.waiting);
    }
}

#[test]
fn operations_go_to_the_session_with_the_least_to_do_that_is_there() {
    let mut book = SessionScheduler::new(3, Arc::default());
    let go = |book: &mut SessionScheduler, key: usize| {
        let extent = Extent::new(key as u64, 1);
        book.enter(key, BlockClaim::Write(extent));
        book.next(comes_back)
    };
    assert_eq!(go(&mut book, 0), Some((0, Route::One(0))));
    assert_eq!(go(&mut book, 1), Some((1, Route::One(1))));
    book.set_away(2, true);
    assert_eq!(go(&mut book, 2), Some((2, Route::One(0))));
    assert_eq!(book.leave(1), Some(BlockClaim::Write(Extent::new(1, 1))));
    assert_eq!(go(&mut book, 3), Some((3, Route::One(1))));
    book.set_away(2, false);
    assert_eq!(go(&mut book, 4), Some((4, Route::One(2))));
}
