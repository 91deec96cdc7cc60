//! Axes: where values lie between one end and the other, and which of them are written down.

#[cfg(test)]
mod tests;

use crate::numbers;

/// An axis. Places on it run from 0 to 1.
#[derive(Clone)]
pub(super) struct Axis {
    pub(super) label: String,
    /// Places and what is written there.
    pub(super) ticks: Vec<(f64, String)>,
    scale: Scale,
}

#[derive(Clone, Copy)]
enum Scale {
    /// From 0 to this.
    Linear(f64),
    /// From this power of ten to that.
    Decades(f64, f64),
    /// This many things side by side.
    Marks(f64),
    /// Up to 100 %, each part as long as the one before and ten times as rare: this many parts.
    Nines(f64),
}

impl Axis {
    /// From 0 to at least `max`.
    pub(super) fn linear(label: impl Into<String>, max: f64) -> Self {
        let step = nice_step(max);
        let steps = (max / step).ceil().max(1.0);
        let scale = Scale::Linear(steps * step);
        let tick = |at: f64| (at / steps, short(at * step));
        let ticks = (0..=steps as u32).map(|at| tick(f64::from(at))).collect();
        Self {
            label: label.into(),
            ticks,
            scale,
        }
    }

    /// Times in ns, by powers of ten around those given.
    pub(super) fn times(label: impl Into<String>, min_ns: f64, max_ns: f64) -> Self {
        let first = min_ns.max(1.0).log10().floor();
        let last = max_ns.max(1.0).log10().ceil().max(first + 1.0);
        let decades = last - first;
        let tick = |at: u32| {
            let ns = 10f64.powf(first + f64::from(at));
            (f64::from(at) / decades, power(ns))
        };
        let ticks = (0..=decades as u32).map(tick).collect();
        Self {
            label: label.into(),
            ticks,
            scale: Scale::Decades(first, last),
        }
    }

    /// Marks side by side; the n-th value is n.
    pub(super) fn marks(label: impl Into<String>, marks: &[String]) -> Self {
        let scale = Scale::Marks(marks.len() as f64);
        let mut axis = Self {
            label: label.into(),
            ticks: Vec::new(),
            scale,
        };
        let ticks = marks.iter().enumerate();
        axis.ticks = ticks
            .map(|(at, mark)| (axis.place(at as f64), mark.clone()))
            .collect();
        axis
    }

    /// Percentiles; `count` values can tell one in `count` and nothing rarer.
    pub(super) fn nines(label: impl Into<String>, count: u64) -> Self {
        let parts = (count.max(10) as f64).log10().ceil().min(6.0);
        let mut axis = Self {
            label: label.into(),
            ticks: Vec::new(),
            scale: Scale::Nines(parts),
        };
        let percents = ["0", "50", "90", "99", "99.9", "99.99", "99.999", "99.9999"];
        for text in percents {
            let percent: f64 = text.parse().unwrap_or_default();
            if -(1.0 - percent / 100.0).log10() < parts + 0.01 {
                axis.ticks.push((axis.place(percent), text.to_owned()));
            }
        }
        axis
    }

    /// Where a value lies.
    pub(super) fn place(&self, value: f64) -> f64 {
        let place = match self.scale {
            Scale::Linear(max) => value / max,
            Scale::Decades(first, last) => (value.max(1.0).log10() - first) / (last - first),
            Scale::Marks(count) => (value + 0.5) / count,
            Scale::Nines(parts) => -(1.0 - value / 100.0).max(1e-9).log10() / parts,
        };
        place.clamp(0.0, 1.0)
    }

    /// The percentile at a place: the inverse of [`Self::place`] where there are percentiles.
    pub(super) fn percentile(&self, place: f64) -> f64 {
        match self.scale {
            Scale::Nines(parts) => 100.0 * (1.0 - 10f64.powf(-place * parts)),
            Scale::Linear(_) | Scale::Decades(..) | Scale::Marks(_) => place * 100.0,
        }
    }
}

/// 1, 2 or 5 times a power of ten, four to eight times in `max`.
fn nice_step(max: f64) -> f64 {
    if max <= 0.0 {
        return 1.0;
    }
    let power = 10f64.powf((max / 4.0).log10().floor());
    let steps = [5.0, 2.0, 1.0].map(|factor| factor * power);
    let enough = |step: &&f64| max / **step >= 4.0;
    steps.iter().find(enough).copied().unwrap_or(power)
}

/// `250k`, `1.5M`, `400`, `0.2`.
fn short(value: f64) -> String {
    let (value, letter) = match value {
        _ if value >= 1e6 => (value / 1e6, "M"),
        _ if value >= 1e4 => (value / 1e3, "k"),
        _ => (value, ""),
    };
    // Rounded where binary fractions end: 0.30000000000000004.
    let rounded = (value * 1e6).round() / 1e6;
    format!("{rounded}{letter}")
}

/// A power of ten without the digits that `numbers::time` adds: `10 us`.
fn power(ns: f64) -> String {
    numbers::time(ns).replace(".00", "").replace(".0", "")
}
