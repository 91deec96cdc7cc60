//! Axes: where values lie between one end and the other, and which of them are written down.

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
    /// One with these values written down.
    fn new(label: &str, scale: Scale, values: impl Iterator<Item = (f64, String)>) -> Self {
        let mut axis = Self {
            label: label.to_owned(),
            ticks: Vec::new(),
            scale,
        };
        axis.ticks = values
            .map(|(value, text)| (axis.place(value), text))
            .collect();
        axis
    }

    /// From 0 to at least `max`.
    pub(super) fn linear(label: &str, max: f64) -> Self {
        let step = nice_step(max);
        let steps = (max / step).ceil().max(1.0);
        let values = (0..=steps as u32).map(|at| f64::from(at) * step);
        let values = values.map(|value| (value, short(value)));
        Self::new(label, Scale::Linear(steps * step), values)
    }

    /// Times in ns, by powers of ten around those given.
    pub(super) fn times(label: &str, min_ns: f64, max_ns: f64) -> Self {
        let first = min_ns.max(1.0).log10().floor();
        let last = max_ns.max(1.0).log10().ceil().max(first + 1.0);
        let decades = (0..=(last - first) as u32).map(|at| 10f64.powf(first + f64::from(at)));
        let values = decades.map(|ns| (ns, power(ns)));
        Self::new(label, Scale::Decades(first, last), values)
    }

    /// Marks side by side; the n-th value is n.
    pub(super) fn marks(label: &str, marks: &[String]) -> Self {
        let values = marks.iter().enumerate();
        let values = values.map(|(at, mark)| (at as f64, mark.clone()));
        Self::new(label, Scale::Marks(marks.len() as f64), values)
    }

    /// Percentiles; `count` values can tell one in `count` and nothing rarer.
    pub(super) fn nines(label: &str, count: u64) -> Self {
        let parts = (count.max(10) as f64).log10().ceil().min(6.0);
        let texts = ["0", "50", "90", "99", "99.9", "99.99", "99.999", "99.9999"];
        let values = texts.map(|text| (text.parse().unwrap_or_default(), text.to_owned()));
        let is_told = |percent: f64| -(1.0 - percent / 100.0).log10() < parts + 0.01;
        let values = values.into_iter().filter(|(percent, _)| is_told(*percent));
        Self::new(label, Scale::Nines(parts), values)
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
