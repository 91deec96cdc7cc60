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
    let mut figures = vec![plots.iops(), plots.throughput(), plots.latency()];
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
    fn iops(&self) -> Figure {
        self.figure("iops", "IOPS", &[("", &IOPS)])
    }

    fn throughput(&self) -> Figure {
        self.figure("throughput", "Throughput", &[("", &THROUGHPUT)])
    }

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
        if !self.series.is_sweep() {
            let shape = ChartShape::Bars(self.bars(measures));
            return Figure {
                name,
                title: what.to_owned(),
                shape,
            };
        }
        let title = format!("{what} against {}", self.series.across.name());
        let shape = ChartShape::Panels(self.sweep(measures));
        Figure { name, title, shape }
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
        let unit = measures
            .first()
            .map_or("", |(_, measure)| measure.unit)
            .to_owned();
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
        let unit = measures.first().map_or("", |(_, measure)| measure.unit);
        let y = Axis::linear(unit, max);
        let panel = |(title, measure): &(&str, &PlotMeasure)| self.sweep_panel(title, measure, &y);
        let panels = measures.iter().map(panel).collect();
        let mut legend = self.line_keys();
        if measures.iter().any(|(_, measure)| measure.floor) && !self.outcome.floors.is_empty() {
            let name = "the same over bare TCP".to_owned();
            legend.push(LegendKey {
                name,
                ink: Ink::Axis,
                dashed: true,
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
            let floors = line
                .rows
                .iter()
                .filter_map(|row| Some(place(row, self.floor(measure, row)?)));
            let points = floors.collect();
            curves.push(Curve {
                ink,
                dashed: true,
                points,
                tips: Vec::new(),
            });
            let values = line
                .rows
                .iter()
                .filter_map(|row| Some((row, (measure.value)(row)?)));
            let (points, tips) = values
                .map(|(row, value)| {
                    let mark = self.series.across.word(self.series.across.of(&row.load));
                    let text = (measure.text)(value);
                    (place(row, value), format!("{}, {mark}: {text}", line.name))
                })
                .unzip();
            curves.push(Curve {
                ink,
                dashed: ink.is_repeated(),
                points,
                tips,
            });
        }
        let walls = Vec::new();
        Panel {
            title: (*title).to_owned(),
            x,
            walls,
            curves,
        }
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
            .map(|(at, line)| key(&line.name, Ink::Series(at)))
            .collect()
    }

    fn latency(&self) -> Figure {
        let rows = &self.outcome.rows;
        let all: Vec<_> = rows.iter().map(ResultRow::latency).collect();
        let max = all.iter().map(Latency::max_ns).max().unwrap_or(0);
        let low = if self.series.is_sweep() { 50.0 } else { 0.0 };
        let min = all
            .iter()
            .map(|latency| latency.percentile_ns(low))
            .min()
            .unwrap_or(0);
        let y = Axis::times("from submission to completion", min as f64, max as f64);
        if self.series.is_sweep() {
            let panels = self
                .series
                .lines
                .iter()
                .map(|line| self.degrees(line, &y))
                .collect();
            let degrees = DEGREES.iter().enumerate();
            let legend = degrees
                .map(|(at, (name, _))| key(name, Ink::Degree(at)))
                .collect();
            let title = format!("Latency against {}", self.series.across.name());
            let shape = ChartShape::Panels(Panels { y, legend, panels });
            return Figure {
                name: "latency",
                title,
                shape,
            };
        }
        let count = all.iter().map(Latency::count).max().unwrap_or(0);
        let panels = vec![self.percentiles(&y, count)];
        let legend = self.line_keys();
        let title = "Latency by percentile".to_owned();
        Figure {
            name: "latency",
            title,
            shape: ChartShape::Panels(Panels { y, legend, panels }),
        }
    }

    fn degrees(&self, line: &ResultSeries<'_>, y: &Axis) -> Panel {
        let x = self.mark_axis();
        let curve = |(at, (name, percentile)): (usize, &(&str, f64))| {
            let (points, tips) = line
                .rows
                .iter()
                .map(|row| {
                    let ns = row.latency().percentile_ns(*percentile) as f64;
                    let place = (x.place(self.series.mark(row) as f64), y.place(ns));
                    let mark = self.series.across.word(self.series.across.of(&row.load));
                    (
                        place,
                        format!("{}, {mark}, {name}: {}", line.name, numbers::time(ns)),
                    )
                })
                .unzip();
            Curve {
                ink: Ink::Degree(at),
                dashed: false,
                points,
                tips,
            }
        };
        let curves = DEGREES.iter().enumerate().map(curve).collect();
        Panel {
            title: line.name.clone(),
            x,
            walls: Vec::new(),
            curves,
        }
    }

    fn percentiles(&self, y: &Axis, count: u64) -> Panel {
        let x = Axis::nines("percentile: share of I/Os that took no longer", count);
        let lines = self.series.lines.iter().enumerate();
        let rows = lines.flat_map(|(at, line)| line.rows.iter().map(move |row| (at, row)));
        let curves = rows.map(|(at, row)| percentile_curve(&row.latency(), &x, y, at));
        Panel {
            title: String::new(),
            curves: curves.collect(),
            walls: Vec::new(),
            x,
        }
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
        Some(Figure {
            name: "time",
            title,
            shape: ChartShape::Panels(panels),
        })
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
        let across = self.series.across;
        let marks = line
            .rows
            .iter()
            .map(|row| across.word(across.of(&row.load)));
        let longest_s = line
            .rows
            .iter()
            .map(|row| row.runtime_us)
            .max()
            .unwrap_or(0) as f64
            / 1e6;
        let label = format!("{}, {longest_s:.0} s each", across.name());
        let x = Axis::marks(label, &marks.collect::<Vec<_>>());
        let count = line.rows.len() as f64;
        let ink = Ink::Series(at);
        let curve = |(nth, row): (usize, &&ResultRow)| {
            let place = |s: f64| (nth as f64 + s / longest_s) / count;
            let points = stairs(row, place, |rate| y.place(percent_of_mean(row, rate)));
            Curve {
                ink,
                dashed: false,
                points,
                tips: Vec::new(),
            }
        };
        let curves = line.rows.iter().enumerate().map(curve).collect();
        let walls = (1..line.rows.len()).map(|nth| nth as f64 / count).collect();
        Panel {
            title: line.name.clone(),
            x,
            walls,
            curves,
        }
    }

    fn at_the_same_time(&self, y: &Axis) -> Panel {
        let runtimes = self.outcome.rows.iter().map(|row| row.runtime_us);
        let longest_s = runtimes.max().unwrap_or(0) as f64 / 1e6;
        let x = Axis::linear("s since the start", longest_s);
        let mut curves = Vec::new();
        for (at, line) in self.series.lines.iter().enumerate() {
            let ink = Ink::Series(at);
            for row in &line.rows {
                let points = stairs(row, |s| x.place(s), |rate| y.place(rate));
                curves.push(Curve {
                    ink,
                    dashed: ink.is_repeated(),
                    points,
                    tips: Vec::new(),
                });
            }
        }
        Panel {
            title: String::new(),
            x,
            walls: Vec::new(),
            curves,
        }
    }
}

/// Times by percentile, of the series of this number.
pub(super) fn percentile_curve(latency: &Latency, x: &Axis, y: &Axis, number: usize) -> Curve {
    /// Enough for a smooth line.
    const STEPS: u32 = 300;
    let places = (0..=STEPS).map(|step| f64::from(step) / f64::from(STEPS));
    let time = |place| latency.percentile_ns(x.percentile(place)) as f64;
    let ink = Ink::Series(number);
    Curve {
        ink,
        dashed: ink.is_repeated(),
        points: places.map(|place| (place, y.place(time(place)))).collect(),
        tips: Vec::new(),
    }
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

pub(super) fn key(name: &str, ink: Ink) -> LegendKey {
    let (name, dashed) = (name.to_owned(), ink.is_repeated());
    LegendKey { name, ink, dashed }
}

fn join(prefix: &str, name: &str) -> String {
    if prefix.is_empty() {
        return name.to_owned();
    }
    format!("{prefix}, {name}")
}
