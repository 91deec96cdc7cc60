//! Crews that take turns: all are there all the time, and one of them works.
//!
//! What they have opened stays open while others have their turn, so that a turn costs no login and
//! may be short. Those whose turn is over end what is under way first: no two ever work at a time.

#[cfg(test)]
mod tests;

use std::io;
use std::thread;

use super::lead::{Lead, SAMPLE};
use super::post::{Event, Phase, Post, Stage};
use super::{Report, Result, Times, Watch};
use crate::processes;

/// Members that have their turn together.
pub(crate) struct Group<F> {
    pub(crate) members: Vec<F>,
    /// Whose CPU time is that of their target; where none is named, who is at the other end of
    /// their sockets.
    pub(crate) targets: Vec<u32>,
}

/// A group that waits for its turn.
pub(crate) struct Resting<'scope> {
    lead: Lead<'scope>,
    targets: Vec<u32>,
}

impl Resting<'_> {
    /// Lets it work for some time. Nothing was measured if that is no time at all: it was stopped,
    /// or a member has failed.
    pub(crate) fn turn(&mut self, times: Times, watch: &mut Watch<'_>) -> Result {
        let Self { lead, targets } = self;
        lead.turn += 1;
        lead.set(Phase::Ramp);
        let mut result = lead.measure(times, watch, || targets.clone());
        lead.set(Phase::Rest);
        while result.reports.len() < lead.threads.len() && lead.goes_on(watch) {
            if let Some(Event::Rested(report)) = lead.event(SAMPLE) {
                result.reports.push(*report);
            }
        }
        result
    }

    /// Whether it can have another turn.
    pub(crate) fn goes_on(&self, watch: &Watch<'_>) -> bool {
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
    groups: Vec<Group<F>>,
    watch: &mut Watch<'_>,
    race: impl FnOnce(&mut [Resting<'_>], &mut Watch<'_>),
) -> io::Result<Option<String>>
where
    F: FnOnce(&Post<'_>) -> Report + Send,
{
    let stages = groups.iter().map(|group| group.members.len());
    let stages: Vec<_> = stages
        .map(|members| Stage::new(Phase::Rest, members))
        .collect();
    thread::scope(|scope| {
        let mut all = Vec::new();
        for (Group { members, targets }, stage) in groups.into_iter().zip(&stages) {
            // Whose sockets those are that come now is beyond doubt, as the others rest.
            let before = processes::sockets();
            let mut lead = Lead::start(scope, members, stage)?;
            lead.meet(watch);
            let targets = match targets.is_empty() {
                true => processes::peers(&(&processes::sockets() - &before)),
                false => targets,
            };
            all.push(Resting { lead, targets });
        }
        race(&mut all, watch);
        all.iter().for_each(|group| group.lead.set(Phase::Stop));
        let reports = all.into_iter().flat_map(|group| group.lead.end(watch));
        let failures: Vec<_> = reports.filter_map(|report| report.failure).collect();
        Ok(failures.into_iter().next())
    })
}
