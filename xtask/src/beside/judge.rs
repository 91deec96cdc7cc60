//! What is required of lunar beside a target that spins, and whether it was reached.

#[cfg(test)]
mod tests;

use super::{LoadClient, OTHER};
use crate::bench::{Column, Contender, Figures, Verdict};

/// The share of a core that lunar takes at the most where it counts as sleeping a third of the
/// time.
const RESTING: f64 = 2.0 / 3.0;

pub(super) fn iops(round: &Figures) -> Option<f64> {
    Some(round.iops)
}

pub(super) fn cpu_us(round: &Figures) -> Option<f64> {
    round.target_us
}

pub(super) fn p50_us(round: &Figures) -> Option<f64> {
    Some(round.p50_us)
}

/// The share of a core that the target took.
fn share(round: &Figures) -> Option<f64> {
    Some(round.target_us? * round.iops / 1e6)
}

/// How many times the other's median a median is; `None` where one was not measured.
pub(super) fn ratio(
    own: &Column,
    other: &Column,
    figure: fn(&Figures) -> Option<f64>,
) -> Option<f64> {
    Some(own.median(figure)? / other.median(figure)?)
}

/// What is required at this depth, by the medians.
pub(super) fn judge(depth: u32, client: LoadClient, columns: &[Column]) -> Vec<Verdict> {
    let column = |contender| columns.iter().find(|column| column.contender == contender);
    let of = |contender, figure| ratio(column(contender)?, column(OTHER)?, figure);
    let (lunar, spinning) = (Contender::Lunar, Contender::Spinning);
    let more_iops = |limit| {
        let value = of(lunar, iops)?;
        Some(Verdict::at_least(value, "times the other's IOPS", limit))
    };
    let less_cpu = |limit| {
        let what = "times the other's CPU an I/O";
        Some(Verdict::at_most(of(lunar, cpu_us)?, what, limit))
    };
    let sooner = || {
        let what = "times the other's p50, with --poll always";
        Some(Verdict::at_most(of(spinning, p50_us)?, what, 1.0))
    };
    let rests = || Some(column(lunar)?.median(share)? <= RESTING);
    let verdicts = match (depth, client) {
        (1, LoadClient::Sleeping) => [more_iops(0.9), sooner()],
        (1, LoadClient::Spinning) => [None, sooner()],
        (32, _) => {
            let limit = if rests() == Some(true) { 0.9 } else { 1.0 };
            [more_iops(limit), less_cpu(0.85)]
        }
        _ => [None, less_cpu(0.7)],
    };
    verdicts.into_iter().flatten().collect()
}
