//! Which figures an outcome has.

use super::axis::Axis;
use super::figure::{BarOf, Bars, ChartShape, Curve, Figure, LegendKey, Panel, Panels};
use super::scene::Ink;
use crate::numbers;
use crate::outcome::{Latency, ResultRow, RowInterval, RunResult};
use crate::series::{ResultSeries, Series};

/// All figures that the outcome has numbers for.
pub(super) fn figures<'a>(outcome: &'a RunResult, series: &Series<'a>) -> Vec<Figure> {
    if outcome.rows.is_empty() {
        return Vec::new();
    }
    let plots = Plots { outcome, series };
    let mut figures = vec![
        plots.figure("iops", "IOPS", &[("", &IOPS)]),
        plots.figure("throughput", "Throughput", &[("", &THROUGHPUT)]),
        plots.latency(),
    ];
    figures.extend(plots.cpu());
    figures.extend(plots.over_time());
    figures
}

struct Plots<'p, 'a> {
    outcome: &'a RunResult,
    series: &'p Series<'a>,
}

/// A number that each row has, or may have.
struct PlotMeasure {
    unit: &'static str,
    value: fn(&ResultRow) -> Option<f64>,
    text: fn(f64) -> String,
    /// Whether bare TCP has it too.
    floor: bool,
}

const IOPS: PlotMeasure = PlotMeasure {
    unit: "I/Os a second",
    value: |row| Some(row.iops()),
    text: numbers::whole,
    floor: true,
};

const THROUGHPUT: PlotMeasure = PlotMeasure {
    unit: "MB/s",
    value: |row| Some(row.mb_per_s()),
    text: numbers::mb_per_s,
    floor: true,
};

const CPU: PlotMeasure = PlotMeasure {
    unit: "us of CPU time per I/O",
    value: ResultRow::cpu_us_per_io,
    text: numbers::digits,
    floor: false,
};

const TARGET_CPU: PlotMeasure = PlotMeasure {
    value: ResultRow::target_cpu_us_per_io,
    ..CPU
};

/// What is drawn of latencies over a sweep, the lowest first.
const DEGREES: [(&str, f64); 4] = [
    ("p50", 50.0),
    ("p99", 99.0),
    ("p99.9", 99.9),
    ("max", 100.0),
];

impl Plots<'_, '_> {
    fn cpu(&self) -> Option<Figure> {
        let measures = [("This process", &CPU), ("Target", &TARGET_CPU)];
        let rows = &self.outcome.rows;
        let there = |measure: &&(&str, &PlotMeasure)| {
            rows.iter().any(|row| (measure.1.value)(row).is_some())
        };
        let measures: Vec<_> = measures.iter().filter(there).copied().collect();
        (!measures.is_empty()).then(|| self.figure("cpu", "CPU per I/O", &measures))
    }

    fn figure(&self, name: &'static str, what: &str, measures: &[(&str, &PlotMeasure)]) -> Figure {
        if self.series.is_sweep() {
            let title = format!("{what} against {}", self.series.across.name());
            return Figure::of_panels(name, title, self.sweep(measures));
        }
        Figure {
            name,
            title: what.to_owned(),
            shape: ChartShape::Bars(self.bars(measures)),
        }
    }

    fn bars(&self, measures: &[(&str, &PlotMeasure)]) -> Bars {
        let mut bars = Vec::new();
        for (at, line) in self.series.lines.iter().enumerate() {
            for (prefix, measure) in measures {
                let values = line.rows.iter().filter_map(|row| (measure.value)(row));
                let name = join(prefix, &line.name);
                bars.extend(values.map(|value| bar(&name, measure, value, Ink::Series(at))));
                let floors = line.rows.iter().filter_map(|row| self.floor(measure, row));
                let name = join("Bare TCP", &line.name);
                bars.extend(floors.map(|value| bar(&name, measure, value, Ink::Axis)));
            }
        }
        let unit = measures[0].1.unit.to_owned();
        Bars { unit, bars }
    }

    fn sweep(&self, measures: &[(&str, &PlotMeasure)]) -> Panels {
        let mut max = 0f64;
        for row in &self.outcome.rows {
            for (_, measure) in measures {
                let values = (measure.value)(row)
                    .into_iter()
                    .chain(self.floor(measure, row));
                max = values.fold(max, f64::max);
            }
        }
        let y = Axis::linear(measures[0].1.unit, max);
        let panel = |(title, measure): &(&str, &PlotMeasure)| self.sweep_panel(title, measure, &y);
        let panels = measures.iter().map(panel).collect();
        let mut legend = self.line_keys();
        if measures.iter().any(|(_, measure)| measure.floor) && !self.outcome.floors.is_empty() {
            legend.push(LegendKey {
                dashed: true,
                ..LegendKey::of("the same over bare TCP", Ink::Axis)
            });
        }
        Panels { y, legend, panels }
    }

    fn sweep_panel(&self, title: &str, measure: &PlotMeasure, y: &Axis) -> Panel {
        let x = self.mark_axis();
        let mut curves = Vec::new();
        for (at, line) in self.series.lines.iter().enumerate() {
            let ink = Ink::Series(at);
            let place =
                |row: &ResultRow, value| (x.place(self.series.mark(row) as f64), y.place(value));
            let rows = line.rows.iter();
            let floors = rows.filter_map(|row| Some(place(row, self.floor(measure, row)?)));
            curves.push(Curve {
                dashed: true,
                ..Curve::line(ink, floors.collect())
            });
            let dots = line.rows.iter().filter_map(|row| {
                let value = (measure.value)(row)?;
                let (mark, text) = (self.series.word(row), (measure.text)(value));
                Some((place(row, value), format!("{}, {mark}: {text}", line.name)))
            });
            curves.push(Curve::dotted(ink, dots));
        }
        Panel::new(title, x, curves)
    }

    fn floor(&self, measure: &PlotMeasure, row: &ResultRow) -> Option<f64> {
        let floor = self.outcome.floor_of(row).filter(|_| measure.floor)?;
        (measure.value)(floor)
    }

    fn mark_axis(&self) -> Axis {
        let series = self.series;
        let marks = series.marks.iter().map(|mark| series.across.word(*mark));
        Axis::marks(series.across.name(), &marks.collect::<Vec<_>>())
    }

    fn line_keys(&self) -> Vec<LegendKey> {
        let lines = self.series.lines.iter().enumerate();
        lines
            .map(|(at, line)| LegendKey::of(&line.name, Ink::Series(at)))
            .collect()
    }

    fn latency(&self) -> Figure {
        if self.series.is_sweep() {
            let title = format!("Latency against {}", self.series.across.name());
            return Figure::of_panels("latency", title, self.degrees());
        }
        let lines = self.series.lines.iter().enumerate();
        let rows = lines.flat_map(|(at, line)| line.rows.iter().map(move |row| (at, row)));
        let latencies: Vec<_> = rows.map(|(at, row)| (at, row.latency())).collect();
        let panels = percentiles(&latencies, self.line_keys());
        Figure::of_panels("latency", "Latency by percentile".to_owned(), panels)
    }

    /// Percentiles of each line, each over the marks.
    fn degrees(&self) -> Panels {
        let all = || self.outcome.rows.iter().map(ResultRow::latency);
        let min = all().map(|latency| latency.percentile_ns(50.0)).min();
        let max = all().map(|latency| latency.max_ns()).max();
        let y = latency_axis(min, max);
        let lines = self.series.lines.iter();
        let panels = lines.map(|line| self.degrees_of(line, &y)).collect();
        let keys = DEGREES.iter().enumerate();
        let keys = keys.map(|(at, (name, _))| LegendKey::of(name, Ink::Degree(at)));
        let legend = keys.collect();
        Panels { y, legend, panels }
    }

    fn degrees_of(&self, line: &ResultSeries<'_>, y: &Axis) -> Panel {
        let x = self.mark_axis();
        let curve = |(at, (name, percentile)): (usize, &(&str, f64))| {
            let dots = line.rows.iter().map(|row| {
                let ns = row.latency().percentile_ns(*percentile) as f64;
                let place = (x.place(self.series.mark(row) as f64), y.place(ns));
                let (mark, time) = (self.series.word(row), numbers::time(ns));
                (place, format!("{}, {mark}, {name}: {time}", line.name))
            });
            Curve::dotted(Ink::Degree(at), dots)
        };
        let curves = DEGREES.iter().enumerate().map(curve).collect();
        Panel::new(&line.name, x, curves)
    }

    fn over_time(&self) -> Option<Figure> {
        let rows = &self.outcome.rows;
        if rows.iter().all(|row| row.series.is_empty()) {
            return None;
        }
        let title = "Throughput over time".to_owned();
        let lines = self.series.lines.iter().enumerate();
        let panels = if self.series.is_sweep() {
            let y = Axis::linear("% of the mean", self.fastest(percent_of_mean));
            // Of several volumes only all together have one.
            let known =
                |line: &ResultSeries<'_>| line.rows.iter().any(|row| !row.series.is_empty());
            let lines = lines.filter(|(_, line)| known(line));
            let panels = lines.map(|(at, line)| self.one_after_another(at, line, &y));
            let (panels, legend) = (panels.collect(), Vec::new());
            Panels { y, legend, panels }
        } else {
            let y = Axis::linear("MB/s", self.fastest(|_, rate| rate));
            let (panels, legend) = (vec![self.at_the_same_time(&y)], self.line_keys());
            Panels { y, legend, panels }
        };
        Some(Figure::of_panels("time", title, panels))
    }

    /// The highest of all intervals' throughputs, each seen as `told`.
    fn fastest(&self, told: impl Fn(&ResultRow, f64) -> f64) -> f64 {
        let rows = self.outcome.rows.iter();
        let rates = rows.flat_map(|row| steps(row).map(move |(_, _, rate)| (row, rate)));
        rates.map(|(row, rate)| told(row, rate)).fold(0.0, f64::max)
    }

    /// The rows of a line, each as wide as any other. Small blocks move few bytes: only against
    /// their own mean is a stall of theirs as deep as one of large blocks.
    fn one_after_another(&self, at: usize, line: &ResultSeries<'_>, y: &Axis) -> Panel {
        let marks = line.rows.iter().map(|row| self.series.word(row));
        let longest_s = longest_s(line.rows.iter().copied());
        let label = format!("{}, {longest_s:.0} s each", self.series.across.name());
        let x = Axis::marks(&label, &marks.collect::<Vec<_>>());
        let count = line.rows.len() as f64;
        let curve = |(nth, row): (usize, &&ResultRow)| {
            let place = |s: f64| (nth as f64 + s / longest_s) / count;
            let points = stairs(row, place, |rate| y.place(percent_of_mean(row, rate)));
            Curve {
                dashed: false,
                ..Curve::line(Ink::Series(at), points)
            }
        };
        let curves = line.rows.iter().enumerate().map(curve).collect();
        Panel {
            walls: (1..line.rows.len()).map(|nth| nth as f64 / count).collect(),
            ..Panel::new(&line.name, x, curves)
        }
    }

    fn at_the_same_time(&self, y: &Axis) -> Panel {
        let x = Axis::linear("s since the start", longest_s(self.outcome.rows.iter()));
        let mut curves = Vec::new();
        for (at, line) in self.series.lines.iter().enumerate() {
            let stairs = |row: &&ResultRow| stairs(row, |s| x.place(s), |rate| y.place(rate));
            let stairs = line.rows.iter().map(stairs);
            curves.extend(stairs.map(|points| Curve::line(Ink::Series(at), points)));
        }
        Panel::new("", x, curves)
    }
}

/// Percentiles of times, each of the series of its number.
pub(super) fn percentiles(latencies: &[(usize, Latency)], legend: Vec<LegendKey>) -> Panels {
    /// Enough for a smooth line.
    const STEPS: u32 = 300;
    let all = || latencies.iter().map(|(_, latency)| latency);
    let count = all().map(Latency::count).max();
    let y = latency_axis(
        all().map(Latency::min_ns).min(),
        all().map(Latency::max_ns).max(),
    );
    let label = "percentile: share of I/Os that took no longer";
    let x = Axis::nines(label, count.unwrap_or(0));
    let curve = |(number, latency): &(usize, Latency)| {
        let places = (0..=STEPS).map(|step| f64::from(step) / f64::from(STEPS));
        let time = |place| latency.percentile_ns(x.percentile(place)) as f64;
        let points = places.map(|place| (place, y.place(time(place))));
        Curve::line(Ink::Series(*number), points.collect())
    };
    let curves = latencies.iter().map(curve).collect();
    let panels = vec![Panel::new("", x, curves)];
    Panels { y, legend, panels }
}

fn latency_axis(min_ns: Option<u64>, max_ns: Option<u64>) -> Axis {
    let [min, max] = [min_ns, max_ns].map(|ns| ns.unwrap_or(0) as f64);
    Axis::times("from submission to completion", min, max)
}

fn longest_s<'a>(rows: impl Iterator<Item = &'a ResultRow>) -> f64 {
    rows.map(|row| row.runtime_us).max().unwrap_or(0) as f64 / 1e6
}

/// A step an interval: nothing is known of what was inside.
fn stairs(row: &ResultRow, x: impl Fn(f64) -> f64, y: impl Fn(f64) -> f64) -> Vec<(f64, f64)> {
    let step = |(begin_s, end_s, rate)| [(x(begin_s), y(rate)), (x(end_s), y(rate))];
    steps(row).flat_map(step).collect()
}

fn percent_of_mean(row: &ResultRow, mb_per_s: f64) -> f64 {
    mb_per_s * 100.0 / row.mb_per_s().max(f64::MIN_POSITIVE)
}

/// Begin and end in seconds, and MB/s between them.
pub(super) fn steps(row: &ResultRow) -> impl Iterator<Item = (f64, f64, f64)> {
    let begins = std::iter::once(0).chain(row.series.iter().map(|interval| interval.end_ms));
    let intervals = begins
        .zip(&row.series)
        .filter(|(begin, interval)| interval.end_ms > *begin);
    intervals.map(|(begin_ms, RowInterval { end_ms, bytes, .. })| {
        let rate = *bytes as f64 / 1e3 / (end_ms - begin_ms) as f64;
        (begin_ms as f64 / 1e3, *end_ms as f64 / 1e3, rate)
    })
}

fn bar(name: &str, measure: &PlotMeasure, value: f64, ink: Ink) -> BarOf {
    let (name, text) = (name.to_owned(), (measure.text)(value));
    BarOf {
        name,
        value,
        text,
        ink,
    }
}

fn join(prefix: &str, name: &str) -> String {
    if prefix.is_empty() {
        return name.to_owned();
    }
    format!("{prefix}, {name}")
}
