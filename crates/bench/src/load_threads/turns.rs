//! Crews that take turns: all are there all the time, and one of them works.
//!
//! What they have opened stays open while others have their turn, so that a turn costs no login and
//! may be short. Those whose turn is over finish what is in flight first: no two ever work at a
//! time.

use std::collections::BTreeSet;
use std::io;
use std::thread;

use super::control::{LoadControl, LoadPhase, LoadThread, ThreadEvent};
use super::coordinator::{Coordinator, SAMPLE};
use super::{LoadTotals, RunObserver, RunTimes, ThreadTotals};
use crate::processes;

/// Members that have their turn together.
pub(crate) struct ThreadGroup<F> {
    pub(crate) members: Vec<F>,
    /// Whose CPU time is that of their target; where none is named, the process at the other end of
    /// their sockets.
    pub(crate) targets: Vec<u32>,
    /// Sockets that it had before it was started.
    pub(crate) sockets: BTreeSet<u64>,
}

/// A group that waits for its turn.
pub(crate) struct RestingGroup<'scope> {
    lead: Coordinator<'scope>,
    targets: Vec<u32>,
}

impl RestingGroup<'_> {
    /// Lets it work for some time. Nothing was measured if that is no time at all: it was stopped,
    /// or a member has failed.
    pub(crate) fn turn(&mut self, times: RunTimes, watch: &mut RunObserver<'_>) -> LoadTotals {
        let Self { lead, targets } = self;
        lead.turn += 1;
        lead.set(LoadPhase::Ramp);
        let mut result = lead.measure(times, watch, || targets.clone());
        lead.set(LoadPhase::Rest);
        while result.reports.len() < lead.threads.len() && lead.goes_on(watch) {
            if let Some(ThreadEvent::Rested(report)) = lead.event(SAMPLE) {
                result.reports.push(*report);
            }
        }
        result
    }

    /// Whether it can have another turn.
    pub(crate) fn goes_on(&self, watch: &RunObserver<'_>) -> bool {
        self.lead.goes_on(watch)
    }
}

/// Starts all groups, one after the other, lets `race` give them turns, and ends them. Returns the
/// first failure of a member.
///
/// # Errors
///
/// When there are no more threads to be had.
pub(crate) fn take_turns<F>(
    groups: Vec<ThreadGroup<F>>,
    watch: &mut RunObserver<'_>,
    race: impl FnOnce(&mut [RestingGroup<'_>], &mut RunObserver<'_>),
) -> io::Result<Option<String>>
where
    F: FnOnce(&LoadThread<'_>) -> ThreadTotals + Send,
{
    let stages = groups.iter().map(|group| group.members.len());
    let stages: Vec<_> = stages
        .map(|members| LoadControl::new(LoadPhase::Rest, members))
        .collect();
    thread::scope(|scope| {
        let mut all = Vec::new();
        for (group, stage) in groups.into_iter().zip(&stages) {
            // Whose sockets those are that come now is beyond doubt, as the others rest.
            let before = processes::sockets();
            let mut lead = Coordinator::start(scope, group.members, stage)?;
            lead.meet(watch);
            let targets = if group.targets.is_empty() {
                let own = &(&processes::sockets() - &before) | &group.sockets;
                processes::peers(&own)
            } else {
                group.targets
            };
            all.push(RestingGroup { lead, targets });
        }
        race(&mut all, watch);
        all.iter().for_each(|group| group.lead.set(LoadPhase::Stop));
        let reports = all.into_iter().flat_map(|group| group.lead.end(watch));
        let failures: Vec<_> = reports.filter_map(|report| report.failure).collect();
        Ok(failures.into_iter().next())
    })
}
