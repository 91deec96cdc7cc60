//! Who works when, told by those who do; and a member that a test leads.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use super::control::{LoadPhase, LoadThread, ThreadCounters, ThreadEvent, at};
use super::{RunTimes, ThreadGroup, ThreadTotals, take_turns};
use crate::load::tests::observed;

/// A post where the test leads, beginning with what is measured.
pub(crate) fn led<T>(act: impl FnOnce(&LoadThread<'_>, &TestLead<'_>) -> T) -> T {
    let (sender, events) = channel();
    let at = &AtomicU32::new(0);
    let lead = TestLead { at, events };
    lead.set(0, LoadPhase::Measure);
    let post = LoadThread {
        at,
        counters: &ThreadCounters::default(),
        events: sender,
    };
    act(&post, &lead)
}

pub(crate) struct TestLead<'a> {
    at: &'a AtomicU32,
    events: Receiver<ThreadEvent>,
}

impl TestLead<'_> {
    pub(crate) fn set(&self, turn: u32, phase: LoadPhase) {
        self.at.store(at(turn, phase), Relaxed);
    }

    /// What was handed in, if anything was.
    pub(crate) fn rested(&self) -> Option<ThreadTotals> {
        match self.events.try_recv() {
            Ok(ThreadEvent::Rested(report)) => Some(*report),
            _ => None,
        }
    }
}

/// What a member does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Did {
    Begin(usize),
    End(usize),
}

/// A member that works in each of its turns, however late it sees it, and is slow to end that.
fn work(group: usize, diary: &Mutex<Vec<Did>>, post: &LoadThread<'_>) -> ThreadTotals {
    let tell = |did| diary.lock().unwrap().push(did);
    let (mut begun, mut rested) = (0, 0);
    post.ready(None);
    loop {
        let (turn, phase) = post.at();
        match phase {
            _ if phase.is_end() => return ThreadTotals::default(),
            _ if turn > begun => {
                tell(Did::Begin(group));
                begun = turn;
            }
            LoadPhase::Rest if turn > rested => {
                // Whoever does not wait for this one goes ahead.
                (0..1000).for_each(|_| thread::yield_now());
                tell(Did::End(group));
                rested = turn;
                post.rested(ThreadTotals::default());
            }
            _ => thread::yield_now(),
        }
    }
}

#[test]
fn turns_do_not_overlap() {
    const MEMBERS: usize = 3;
    let diary = Mutex::default();
    let member = |group| {
        let diary = &diary;
        move |post: &LoadThread<'_>| work(group, diary, post)
    };
    let groups = [0, 1].map(|group| ThreadGroup {
        members: (0..MEMBERS).map(|_| member(group)).collect(),
        targets: vec![std::process::id()],
        sockets: BTreeSet::new(),
    });
    let times = RunTimes {
        ramp: Duration::ZERO,
        runtime: Duration::from_millis(1),
    };
    let order = [0, 1, 1, 0];
    let failure = observed(false, |watch| {
        take_turns(groups.into(), watch, |resting, watch| {
            for group in order {
                let result = resting[group].turn(times, watch);
                assert_eq!(result.reports.len(), MEMBERS);
            }
        })
    });
    assert_eq!(failure.unwrap(), None);
    let diary = diary.into_inner().unwrap();
    let turns: Vec<_> = diary.chunks(2 * MEMBERS).collect();
    assert_eq!(turns.len(), order.len());
    for (turn, group) in turns.into_iter().zip(order) {
        let count = |did| turn.iter().filter(|one| **one == did).count();
        assert_eq!(count(Did::Begin(group)), MEMBERS, "{turn:?}");
        assert_eq!(count(Did::End(group)), MEMBERS, "{turn:?}");
    }
}
