//! A member's place in the crew: which phase it is, told by the lead, and what the member counts.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::Sender;

use ::io::ring::Waker;

use super::ThreadTotals;

/// What all are in at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LoadPhase {
    /// It is the turn of others: nothing is begun, and what was counted is handed in.
    Rest,
    /// Nothing is counted.
    Ramp,
    /// Everything is.
    Measure,
    /// Nothing is begun any more, and what is in flight is waited for.
    Stop,
    /// What is in flight is given up.
    Cancel,
    /// Nothing is waited for either.
    Abandon,
}

impl LoadPhase {
    /// Whether nothing is begun any more.
    pub(crate) const fn is_end(self) -> bool {
        matches!(self, Self::Stop | Self::Cancel | Self::Abandon)
    }
}

const PHASES: [LoadPhase; 6] = [
    LoadPhase::Rest,
    LoadPhase::Ramp,
    LoadPhase::Measure,
    LoadPhase::Stop,
    LoadPhase::Cancel,
    LoadPhase::Abandon,
];

/// A phase and the number of a turn in one word, so that no member sees the one without the other.
const PHASE_BITS: u32 = 3;

/// Written by one member, on a cache line of its own.
#[derive(Default)]
#[repr(align(128))]
pub(super) struct ThreadCounters {
    ios: AtomicU64,
    bytes: AtomicU64,
}

/// What members and their lead share.
pub(super) struct LoadControl {
    /// The turn and the phase.
    at: AtomicU32,
    counters: Vec<ThreadCounters>,
}

impl LoadControl {
    pub(super) fn new(phase: LoadPhase, members: usize) -> Self {
        Self {
            at: AtomicU32::new(phase as u32),
            counters: (0..members).map(|_| ThreadCounters::default()).collect(),
        }
    }

    pub(super) fn set(&self, turn: u32, phase: LoadPhase) {
        self.at.store(at(turn, phase), Relaxed);
    }

    /// A place for each member.
    pub(super) fn posts(
        &self,
        events: &Sender<ThreadEvent>,
    ) -> impl Iterator<Item = LoadThread<'_>> {
        self.counters.iter().map(|counters| LoadThread {
            at: &self.at,
            counters,
            events: events.clone(),
        })
    }

    /// I/Os and bytes of all members.
    pub(super) fn counted(&self) -> (u64, u64) {
        let each =
            |counters: &ThreadCounters| (counters.ios.load(Relaxed), counters.bytes.load(Relaxed));
        let sum = |a: (u64, u64), b: (u64, u64)| (a.0 + b.0, a.1 + b.1);
        self.counters.iter().map(each).fold((0, 0), sum)
    }
}

pub(super) const fn at(turn: u32, phase: LoadPhase) -> u32 {
    turn << PHASE_BITS | phase as u32
}

/// A member's place in the crew.
pub(crate) struct LoadThread<'a> {
    pub(super) at: &'a AtomicU32,
    pub(super) counters: &'a ThreadCounters,
    pub(super) events: Sender<ThreadEvent>,
}

pub(super) enum ThreadEvent {
    Ready(Option<Waker>),
    Rested(Box<ThreadTotals>),
    Ended,
}

impl LoadThread<'_> {
    /// It can be measured from now on. A thread that waits for long is woken by `waker`.
    pub(crate) fn ready(&self, waker: Option<Waker>) {
        self.tell(ThreadEvent::Ready(waker));
    }

    /// The turn is over, and this is what was counted in it.
    pub(crate) fn rested(&self, report: ThreadTotals) {
        self.show(&ThreadTotals::default());
        self.tell(ThreadEvent::Rested(Box::new(report)));
    }

    pub(super) fn tell(&self, event: ThreadEvent) {
        // The receiver is gone when it is over already.
        let _ = self.events.send(event);
    }

    pub(crate) fn phase(&self) -> LoadPhase {
        self.at().1
    }

    /// The number of the turn, 0 before the first, and the phase.
    pub(crate) fn at(&self) -> (u32, LoadPhase) {
        let at = self.at.load(Relaxed);
        let phase = (at % (1 << PHASE_BITS)) as usize;
        (at >> PHASE_BITS, PHASES[phase.min(PHASES.len() - 1)])
    }

    /// Shows what was counted until now.
    pub(crate) fn show(&self, report: &ThreadTotals) {
        let ThreadTotals { reads, writes, .. } = report;
        self.counters.ios.store(reads.ios + writes.ios, Relaxed);
        self.counters
            .bytes
            .store(reads.bytes + writes.bytes, Relaxed);
    }
}
