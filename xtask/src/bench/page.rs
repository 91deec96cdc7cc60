//! The report as a page with charts.

use bench::outcome::Latency;
use bench::report::{Article, Chart, NamedValues, ReportSection, ReportTable};

use super::lineup::Who;
use super::load::Job;
use super::meter::Measured;
use super::report::{Finished, Report};
use super::verdict::{Column, Spread};

/// Those that are drawn against each other.
const DRAWN: [Who; 3] = [Who::Lunar, Who::Tgtd, Who::Floor];

/// The page of a report and what its model says.
pub(crate) fn article(report: &Report, date: &str) -> Article {
    let machine = &report.machine;
    let mut parts = vec![
        by_size(&report.rows),
        by_sessions(&report.rows),
        latency(&report.rows),
    ];
    parts.retain(|part| part.chart.is_some());
    parts.push(numbers(&report.rows));
    parts.push(verdicts(report));
    if !report.model.is_empty() {
        parts.push(model(&report.model));
    }
    Article {
        title: "lunar serve beside other targets and bare TCP".to_owned(),
        below: format!(
            "{date} on {}: {}, {} CPUs, {}, lunar {}",
            machine.host, machine.processor, machine.cores, machine.kernel, machine.version
        ),
        parts,
    }
}

/// What a target gave, of a row.
fn of(row: &Finished, who: Who) -> Option<&Column> {
    row.columns.iter().find(|column| column.who == who)
}

fn cpu_us(row: &Finished, who: Who) -> Option<f64> {
    of(row, who)?.median(Measured::cpu_us)
}

/// Plain rows one way, each size at the greatest depth.
pub(crate) fn plain(rows: &[Finished], write: bool) -> Vec<&Finished> {
    let plain = |row: &&Finished| {
        let Job {
            sessions,
            sleeps,
            depth,
            ..
        } = row.job;
        let compared = of(row, Who::Lunar).is_some() && of(row, Who::Digests).is_none();
        row.job.write == write && sessions == 1 && !sleeps && depth > 1 && compared
    };
    let mut plain: Vec<_> = rows.iter().filter(plain).collect();
    plain.sort_by_key(|row| (row.job.size, std::cmp::Reverse(row.job.depth)));
    plain.dedup_by_key(|row| row.job.size);
    plain
}

fn by_size(rows: &[Finished]) -> ReportSection {
    let ways = [("Reads", plain(rows, false)), ("Writes", plain(rows, true))];
    let mut sizes: Vec<_> = ways
        .iter()
        .flat_map(|(_, rows)| rows)
        .map(|row| row.job.size)
        .collect();
    sizes.sort_unstable();
    sizes.dedup();
    let values = |rows: &[&Finished], who: Who| -> NamedValues {
        let at = |size: &u32| {
            let row = rows.iter().find(|row| row.job.size == *size)?;
            Some(cpu_us(row, who)? * 1e3)
        };
        (who.to_string(), sizes.iter().map(at).collect())
    };
    let panel = |(title, rows): &(&str, Vec<&Finished>)| {
        let curves = DRAWN.map(|who| values(rows, who)).to_vec();
        ((*title).to_owned(), curves)
    };
    let chart = Chart::Marks {
        title: "Target CPU an I/O against block size".to_owned(),
        across: "block size".to_owned(),
        marks: sizes
            .iter()
            .map(|size| bench::numbers::block_size(*size))
            .collect(),
        unit: "CPU time of the target for each I/O".to_owned(),
        times: true,
        panels: ways.iter().map(panel).collect(),
    };
    ReportSection {
        name: "cpu",
        reading: "Less is better. The floor is bare TCP: the same bytes in the same pieces at the \
                  same depth without iSCSI."
            .to_owned(),
        chart: (!sizes.is_empty()).then_some(chart),
        tables: Vec::new(),
    }
}

fn by_sessions(rows: &[Finished]) -> ReportSection {
    let shared = |row: &&Finished| !row.job.write && row.name.contains("sessions ");
    let rows: Vec<_> = rows.iter().filter(shared).collect();
    let curve = |name: &str, value: &dyn Fn(&Finished) -> Option<f64>| -> NamedValues {
        (name.to_owned(), rows.iter().map(|row| value(row)).collect())
    };
    let chart = Chart::Marks {
        title: "Target CPU an I/O against sessions, 4 KiB reads, 32 for each under way".to_owned(),
        across: "sessions".to_owned(),
        marks: rows
            .iter()
            .map(|row| row.job.sessions.to_string())
            .collect(),
        unit: "us of CPU time of the target for each I/O".to_owned(),
        times: false,
        panels: vec![(
            String::new(),
            vec![
                curve("lunar", &|row| cpu_us(row, Who::Lunar)),
                curve("floor", &|row| cpu_us(row, Who::SharedFloor)),
            ],
        )],
    };
    ReportSection {
        name: "sessions",
        reading: "All sessions are with one LUN and one core; the floor has as many connections."
            .to_owned(),
        chart: (!rows.is_empty()).then_some(chart),
        tables: Vec::new(),
    }
}

fn latency(rows: &[Finished]) -> ReportSection {
    let alone = rows.iter().filter(|row| row.job.depth == 1);
    let columns = alone.flat_map(|row| row.columns.iter().map(move |column| (row, column)));
    let lines: Vec<_> = columns
        .map(|(row, column)| {
            let how = if row.job.sleeps {
                ", both ends sleep"
            } else {
                ""
            };
            (format!("{}{how}", column.who), together(column))
        })
        .collect();
    ReportSection {
        name: "latency",
        reading: "Of a 4 KiB read with nothing else under way.".to_owned(),
        chart: (!lines.is_empty()).then_some(Chart::Percentiles {
            title: "Latency at depth 1 by percentile".to_owned(),
            lines,
        }),
        tables: Vec::new(),
    }
}

/// The times of all rounds.
fn together(column: &Column) -> Latency {
    let mut all = Latency::default();
    for round in &column.rounds {
        all.add(&round.latency);
    }
    all
}

fn numbers(rows: &[Finished]) -> ReportSection {
    let head = [
        "row",
        "who",
        "CPU us an I/O",
        "lowest",
        "highest",
        "IOPS",
        "lowest",
        "highest",
        "generator us",
        "p50 us",
        "p99 us",
        "I/Os a sleep",
    ];
    let line = |row: &Finished, column: &Column| {
        let three = |spread: Option<Spread>, digits: usize| {
            let cell = |value: f64| format!("{value:.digits$}");
            spread.map_or([const { String::new() }; 3], |spread| {
                [spread.median, spread.min, spread.max].map(cell)
            })
        };
        let median = |figure: fn(&Measured) -> Option<f64>, digits: usize| {
            let median = column.median(figure);
            median.map_or(String::new(), |value| format!("{value:.digits$}"))
        };
        let mut cells = vec![row.name.clone(), column.who.to_string()];
        cells.extend(three(column.spread(Measured::cpu_us), 2));
        cells.extend(three(column.spread(|round| Some(round.iops)), 0));
        cells.push(median(|round| Some(round.generator_us()), 2));
        cells.push(median(|round| Some(round.p50_us), 0));
        cells.push(median(|round| Some(round.p99_us), 0));
        cells.push(median(Measured::ios_a_sleep, 0));
        cells
    };
    let lines = rows
        .iter()
        .flat_map(|row| row.columns.iter().map(move |column| line(row, column)));
    ReportSection {
        name: "all",
        reading: "Medians of all rounds, with the lowest and the highest.".to_owned(),
        chart: None,
        tables: vec![ReportTable {
            caption: String::new(),
            head: head.map(str::to_owned).to_vec(),
            lines: lines.collect(),
        }],
    }
}

fn verdicts(report: &Report) -> ReportSection {
    let of_rows = report.rows.iter().flat_map(|row| {
        let verdicts = row.verdicts.iter();
        verdicts.map(|verdict| vec![row.name.clone(), verdict.to_string()])
    });
    let footprint = report
        .footprint
        .iter()
        .flat_map(super::report::Footprint::cells);
    ReportSection {
        name: "required",
        reading: "What is required, and whether it was reached.".to_owned(),
        chart: None,
        tables: vec![ReportTable {
            caption: String::new(),
            head: vec!["row".to_owned(), "verdict".to_owned()],
            lines: of_rows.chain(footprint).collect(),
        }],
    }
}

fn model(tables: &[ReportTable]) -> ReportSection {
    ReportSection {
        name: "model",
        reading: "On paper, where this machine cannot measure: what the CPU an I/O measured here \
                  means on other networks and more cores."
            .to_owned(),
        chart: None,
        tables: tables.to_vec(),
    }
}
