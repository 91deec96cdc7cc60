//! Races: the same load on several addresses, in short turns that follow one another.
//!
//! What else goes on upon a machine changes from second to second. By turns it hits all alike, and
//! the ratios of one round tell more than those of two long runs. Each round begins with another
//! one, so that no one always follows the same state of caches, clocks and buffers.

pub mod losses;
#[cfg(test)]
mod tests;

use std::time::Duration;

use crate::load::{self, RunError};
use crate::load_threads::{self, LiveFigures, RunObserver, RunTimes, ThreadGroup};
use crate::outcome::race::{Contender, TurnResult};
use crate::outcome::{Load, Race, ResultRow, RowInterval, RunResult};
use crate::run::RunPlan;
use losses::Losses;

/// A race that is to be run.
#[derive(Debug)]
pub struct RacePlan {
    /// The load, and on what; the first subject is what the others are compared with.
    pub plan: RunPlan,
    /// How long each turn is measured, about.
    pub turn: Duration,
    /// Where it is looked for frames that were lost.
    pub losses: Option<Losses>,
}

/// Of a turn, what is not counted at its begin: TCP opens its window anew after a rest, and caches
/// hold what the others have left.
const LEAD_IN: u32 = 4;

impl RacePlan {
    /// Measures load after load into `outcome`, until all are, something fails, or it is stopped.
    ///
    /// # Errors
    ///
    /// When it failed; what was measured before is in `outcome`.
    pub fn run(
        &self,
        outcome: &mut RunResult,
        watch: &mut RunObserver<'_>,
    ) -> Result<(), RunError> {
        let mut later = self.plan.loads().count() as u32;
        self.plan.each_load(watch, |load, watch| {
            later = later.saturating_sub(1);
            let mut course = RaceLoad::new(self, load, later);
            let failure = course.run(watch)?;
            let RaceLoad { mut rows, race, .. } = course;
            rows.retain(|row| row.runtime_us > 0);
            outcome.rows.extend(rows);
            outcome.races.push(race);
            failure.map_or(Ok(()), |failure| Err(RunError::Load(failure)))
        })
    }

    fn rounds(&self) -> u32 {
        let rounds = self.plan.words.runtime.as_secs_f64() / self.turn.as_secs_f64();
        (rounds.round() as u32).max(1)
    }

    /// The times of a turn in a round; round 0 warms up.
    fn times(&self, round: u32) -> RunTimes {
        let words = &self.plan.words;
        if round == 0 {
            return RunTimes {
                ramp: words.ramp,
                runtime: Duration::ZERO,
            };
        }
        let runtime = words.runtime / self.rounds();
        RunTimes {
            ramp: runtime / LEAD_IN,
            runtime,
        }
    }

    /// The remaining time of a load after `had` lanes had their turn in this round.
    fn left(&self, round: u32, had: u32) -> Duration {
        let lanes = self.plan.subjects.len() as u32;
        let turn = |round| {
            let RunTimes { ramp, runtime } = self.times(round);
            ramp + runtime
        };
        let rounds = self.rounds().saturating_sub(round);
        turn(round) * lanes.saturating_sub(had) + turn(1) * lanes * rounds
    }
}

/// One load of a race.
struct RaceLoad<'a> {
    plan: &'a RacePlan,
    load: Load,
    /// How many loads come after this one.
    later: u32,
    /// What all turns of a lane gave together.
    rows: Vec<ResultRow>,
    race: Race,
}

impl<'a> RaceLoad<'a> {
    fn new(plan: &'a RacePlan, load: Load, later: u32) -> Self {
        let subjects = plan.plan.subjects.iter();
        let row = |address: String| load::row(address, load, Duration::ZERO, &[]);
        let rows: Vec<_> = subjects
            .map(|subject| row(subject.address.clone()))
            .collect();
        let lane = |row: &ResultRow| Contender {
            address: row.address.clone(),
            turns: Vec::new(),
            losses: plan.losses.as_ref().map(|_| Vec::new()),
        };
        let lanes = rows.iter().map(lane).collect();
        Self {
            plan,
            load,
            later,
            rows,
            race: Race { load, lanes },
        }
    }

    /// Gives everybody turns, and returns the first failure of a load.
    fn run(&mut self, watch: &mut RunObserver<'_>) -> Result<Option<String>, RunError> {
        let plan = &self.plan.plan;
        let (work, waits, run) = (
            (&plan.words, self.load),
            plan.machinery.waits,
            load::new_run(),
        );
        let groups = plan.subjects.iter().map(|subject| ThreadGroup {
            members: load::members(subject, work, waits, run).collect(),
            targets: plan.machinery.targets.clone(),
            sockets: subject.sockets.clone(),
        });
        let groups = groups.collect();
        let rounds = self.plan.rounds();
        let later = self.plan.left(0, 0) * self.later;
        let failure = load_threads::take_turns(groups, watch, |resting, watch| {
            for round in 0..=rounds {
                let times = self.plan.times(round);
                for (had, lane) in order(round as usize, resting.len()).enumerate() {
                    (watch.live)(LiveFigures::Turn {
                        lane: lane + 1,
                        round,
                        rounds,
                        left: self.plan.left(round, had as u32) + later,
                    });
                    let before = self.losses();
                    let result = resting[lane].turn(times, watch);
                    // A turn that was cut short is no turn.
                    if !resting[lane].goes_on(watch) {
                        return;
                    }
                    if round > 0 {
                        self.count(lane, &result, before);
                    }
                }
            }
        })?;
        Ok(failure)
    }

    fn losses(&self) -> Option<losses::LossCounts> {
        self.plan.losses.as_ref().map(Losses::count)
    }

    fn count(
        &mut self,
        lane: usize,
        result: &load_threads::LoadTotals,
        before: Option<losses::LossCounts>,
    ) {
        let mut turn = load::row(String::new(), self.load, result.runtime, &result.reports);
        load::add_cpu(&mut turn, result);
        let after = self.losses();
        let lost = &mut self.race.lanes[lane];
        if let (Some(all), Some(after), Some(before)) = (&mut lost.losses, after, before) {
            after.add_since(&before, all);
        }
        lost.turns.push(TurnResult {
            runtime_us: turn.runtime_us,
            ios: turn.ios(),
            bytes: turn.bytes(),
            cpu_us: turn.cpu_us,
            target_cpu_us: turn.target_cpu_us,
        });
        add(&mut self.rows[lane], &turn);
    }
}

/// The order of turns: all, beginning with another one each time, and the other way round every
/// second time, so that each also has another one before it.
fn order(round: usize, lanes: usize) -> impl Iterator<Item = usize> {
    let nth = move |at: usize| {
        if round.is_multiple_of(2) {
            (round + at) % lanes
        } else {
            (round + lanes - at) % lanes
        }
    };
    (0..lanes).map(nth)
}

/// Adds a turn to what all turns gave.
fn add(row: &mut ResultRow, turn: &ResultRow) {
    let first = row.runtime_us == 0;
    let sum = |all: Option<u64>, own: Option<u64>| Some(all.or(first.then_some(0))? + own?);
    row.cpu_us = sum(row.cpu_us, turn.cpu_us);
    row.target_cpu_us = sum(row.target_cpu_us, turn.target_cpu_us);
    row.runtime_us += turn.runtime_us;
    row.reads.add(&turn.reads);
    row.writes.add(&turn.writes);
    row.series.push(RowInterval {
        end_ms: row.runtime_us / 1000,
        ios: turn.ios(),
        bytes: turn.bytes(),
    });
}
