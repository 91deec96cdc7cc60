//! The same load on several addresses by turns: what each turn yielded, and what that says.

#[cfg(test)]
mod tests;

use std::fmt::Write;

use serde::{Deserialize, Serialize, Serializer};

use super::Load;
use super::spread::{RatioFinding, RatioSpread};
use crate::numbers::{block_size, digits};

/// One load, in turns.
#[derive(Clone, Debug, Deserialize)]
pub struct Race {
    /// What was done.
    pub load: Load,
    /// To whom; the first is what the others are compared with.
    pub lanes: Vec<Contender>,
}

/// One of those that took turns.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Contender {
    /// The volume, without secrets.
    pub address: String,
    /// One a round.
    pub turns: Vec<TurnResult>,
    /// Frames that were lost during its turns, where that was looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub losses: Option<Vec<LossCount>>,
}

/// What one turn yielded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnResult {
    /// How long it was measured.
    pub runtime_us: u64,
    /// I/Os that went well.
    pub ios: u64,
    /// Bytes of data moved by them.
    pub bytes: u64,
    /// CPU time of this process.
    pub cpu_us: Option<u64>,
    /// CPU time of the target, where its process is known.
    pub target_cpu_us: Option<u64>,
}

/// What was lost in one place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LossCount {
    /// Where, in words.
    pub place: String,
    /// How many frames or segments.
    pub count: u64,
}

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// I/Os a second; more is better.
    Iops,
    /// CPU time of this process an I/O; less is better.
    Cpu,
    /// CPU time of the target an I/O; less is better.
    TargetCpu,
}

impl TurnResult {
    fn value(&self, quantity: Quantity) -> Option<f64> {
        let per_io = |us: u64| us as f64 / self.ios as f64;
        let value = match quantity {
            Quantity::Iops => self.ios as f64 * 1e6 / self.runtime_us as f64,
            Quantity::Cpu => per_io(self.cpu_us?),
            Quantity::TargetCpu => per_io(self.target_cpu_us?),
        };
        (value.is_finite() && value > 0.0).then_some(value)
    }
}

impl Contender {
    /// Where frames were lost, as a sentence, where that was looked at.
    fn lost(&self) -> Option<String> {
        let own = &self.address;
        let losses = self.losses.as_ref()?.iter();
        let losses: Vec<_> = losses
            .map(|LossCount { place, count }| format!("{count} {place}"))
            .collect();
        Some(if losses.is_empty() {
            format!("{own}: no frame was lost in any place checked")
        } else {
            format!("{own}: lost: {}", losses.join("; "))
        })
    }
}

impl Race {
    /// How a lane compares with the first: its share in each round. `None` where a turn has nothing
    /// to compare, as leaving that out would tell of the other rounds only.
    #[must_use]
    pub fn ratio(&self, lane: &Contender, quantity: Quantity) -> Option<RatioSpread> {
        let first = self.lanes.first()?.turns.iter();
        let rounds = first.zip(&lane.turns);
        let ratio = |(first, own): (&TurnResult, &TurnResult)| {
            Some(own.value(quantity)? / first.value(quantity)?)
        };
        RatioSpread::of(rounds.map(ratio).collect::<Option<_>>()?)
    }

    /// What may be said of it, a line each: of all but the first how it compares with that, of all
    /// what they have lost.
    pub fn said(&self) -> impl Iterator<Item = String> {
        let load = format!(
            "{} {}: ",
            self.load.word(),
            block_size(self.load.block_bytes)
        );
        let verdicts = self.others().map(|lane| self.verdict(lane));
        let lines = verdicts.chain(self.lanes.iter().filter_map(Contender::lost));
        lines.map(move |line| load.clone() + &line)
    }

    /// Those that are compared with the first.
    pub fn others(&self) -> impl Iterator<Item = &Contender> {
        self.lanes.iter().skip(1)
    }

    /// What may be said of a lane against the first, as a sentence.
    #[must_use]
    pub fn verdict(&self, lane: &Contender) -> String {
        let first = self.lanes.first().map_or("", |first| &first.address);
        let own = &lane.address;
        let Some(iops) = self.ratio(lane, Quantity::Iops) else {
            return format!(
                "{own}: no comparison, because some turns completed no I/O: give a longer --turn"
            );
        };
        let Some(sure) = iops.sure else {
            let rounds = rounds(iops.rounds);
            return format!(
                "{own}: {rounds} too few for a comparison: give a longer --runtime or a shorter \
                 --turn"
            );
        };
        let (times, sure) = (digits(iops.median), range(sure));
        let is = |how| format!("{own} is {how} than {first}: {times} times its IOPS ({sure})");
        let mut text = match iops.finding() {
            RatioFinding::More => is("faster"),
            RatioFinding::Less => is("slower"),
            RatioFinding::Level | RatioFinding::Unknown => format!(
                "{own} and {first}: no significant difference in speed, {sure} times the IOPS"
            ),
        };
        for (quantity, whose) in [
            (Quantity::Cpu, "this process"),
            (Quantity::TargetCpu, "the target"),
        ] {
            if let Some(spread) = self.ratio(lane, quantity) {
                let _ = write!(text, "; {}", cpu(whose, &spread));
            }
        }
        text
    }
}

fn cpu(whose: &str, spread: &RatioSpread) -> String {
    let what = match spread.finding() {
        RatioFinding::More => "more",
        RatioFinding::Less => "less",
        RatioFinding::Level | RatioFinding::Unknown => "no difference",
    };
    let (median, sure) = (digits(spread.median), spread.sure.map(range));
    let sure = sure.unwrap_or_default();
    format!("CPU time per I/O of {whose}: {what}, {median} times ({sure})")
}

/// `1.08 to 1.17`.
fn range((low, high): (f64, f64)) -> String {
    format!("{} to {}", digits(low), digits(high))
}

fn rounds(count: usize) -> String {
    match count {
        1 => "1 round is".to_owned(),
        _ => format!("{count} rounds are"),
    }
}

/// What stands in a file: what was counted, and in plain figures for readers without tools.
#[derive(Serialize)]
struct RaceFile<'a> {
    load: &'a Load,
    lanes: &'a [Contender],
    against_first: Vec<RatioToFirst<'a>>,
}

#[derive(Serialize)]
struct RatioToFirst<'a> {
    address: &'a str,
    iops: Option<RatioSpread>,
    cpu: Option<RatioSpread>,
    target_cpu: Option<RatioSpread>,
    verdict: String,
}

impl<'a> RatioToFirst<'a> {
    fn of(race: &Race, lane: &'a Contender) -> Self {
        Self {
            address: &lane.address,
            iops: race.ratio(lane, Quantity::Iops),
            cpu: race.ratio(lane, Quantity::Cpu),
            target_cpu: race.ratio(lane, Quantity::TargetCpu),
            verdict: race.verdict(lane),
        }
    }
}

impl Serialize for Race {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let written = RaceFile {
            load: &self.load,
            lanes: &self.lanes,
            against_first: self
                .others()
                .map(|lane| RatioToFirst::of(self, lane))
                .collect(),
        };
        written.serialize(serializer)
    }
}
