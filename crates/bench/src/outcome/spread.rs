//! How something came out in several rounds, and what may be said of it.

use serde::Serialize;

/// The ratios of several rounds.
///
/// The median is not moved by a round that something else disturbed, and what is known of it takes
/// no assumption on how noise is distributed: of n rounds, the median of all rounds that could be
/// run lies outside the k-th lowest and the k-th highest as rarely as a coin that is tossed n times
/// shows one side fewer than k times.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RatioSpread {
    /// How many rounds there were.
    pub rounds: usize,
    /// The middle one, or the mean of the two in the middle.
    pub median: f64,
    /// The lowest.
    pub lowest: f64,
    /// The highest.
    pub highest: f64,
    /// Where the median of all rounds lies with [`CONFIDENCE`]; none of fewer than six rounds.
    pub sure: Option<(f64, f64)>,
}

/// How sure a verdict is.
pub const CONFIDENCE: f64 = 0.95;

/// What a spread says of a ratio that would be 1 if both were alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RatioFinding {
    /// Above 1.
    More,
    /// Below 1.
    Less,
    /// Chance alone would do it.
    Level,
    /// There are too few rounds to say.
    Unknown,
}

impl RatioSpread {
    /// `None` where there are no rounds.
    #[must_use]
    pub fn of(mut ratios: Vec<f64>) -> Option<Self> {
        ratios.sort_by(f64::total_cmp);
        let rounds = ratios.len();
        let (lowest, highest) = (*ratios.first()?, *ratios.last()?);
        let median = f64::midpoint(ratios[(rounds - 1) / 2], ratios[rounds / 2]);
        let rank = rank(rounds);
        Some(Self {
            rounds,
            median,
            lowest,
            highest,
            sure: (rank > 0).then(|| (ratios[rank - 1], ratios[rounds - rank])),
        })
    }

    /// What may be said of it.
    #[must_use]
    pub fn finding(&self) -> RatioFinding {
        match self.sure {
            None => RatioFinding::Unknown,
            Some((low, _)) if low > 1.0 => RatioFinding::More,
            Some((_, high)) if high < 1.0 => RatioFinding::Less,
            Some(_) => RatioFinding::Level,
        }
    }
}

/// The largest k for which a coin tossed `rounds` times shows one of its sides fewer than k times
/// in less than one of 20 tries; 0 where there is none.
pub(super) fn rank(rounds: usize) -> usize {
    let n = rounds as f64;
    // As a logarithm, since 0.5 to the power of more than a thousand rounds is no number any more.
    let mut chance = -n * std::f64::consts::LN_2;
    let mut fewer = 0.0;
    for k in 0..rounds {
        fewer += chance.exp();
        if 2.0 * fewer > 1.0 - CONFIDENCE {
            return k;
        }
        chance += ((n - k as f64) / (k as f64 + 1.0)).ln();
    }
    0
}
