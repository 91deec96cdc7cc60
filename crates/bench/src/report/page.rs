//! The page around the plots.

use std::fmt::Write;
use std::path::Path;

use super::figure::Figure;
use super::{beside, escape, plots, reference};
use crate::numbers;
use crate::outcome::table::{
    RaceComparison, TIMES_THE_FIRST, columns, compared, is_of_several, shared,
};
use crate::outcome::{Race, ResultRow, RunResult};
use crate::series::Series;

const STYLE: &str = include_str!("page.css");

/// What stands beside a plot.
struct PlotText {
    /// Its name.
    plot: &'static str,
    /// How it is to be read.
    reading: &'static str,
    /// What stands above the table of its numbers, and how a row's is written.
    caption: &'static str,
    cell: fn(&ResultRow) -> String,
}

const TEXTS: [PlotText; 5] = [
    PlotText {
        plot: "iops",
        reading: "Completed I/Os per second. Small blocks show the cost of an I/O.",
        caption: "I/Os a second",
        cell: |row| numbers::whole(row.iops()),
    },
    PlotText {
        plot: "throughput",
        reading: "Data transferred, in millions of bytes per second. Large blocks show the cost of \
                  data.",
        caption: "MB/s",
        cell: |row| numbers::mb_per_s(row.mb_per_s()),
    },
    PlotText {
        plot: "latency",
        reading: "From submission to completion. 99 of 100 I/Os took no longer than p99; users \
                  notice the slowest ones. The scale is logarithmic.",
        caption: "p50 / p99 / p99.9",
        cell: percentiles,
    },
    PlotText {
        plot: "cpu",
        reading: "CPU time per I/O, in user space and in the kernel: less is better.",
        caption: "us of CPU per I/O: this process + target",
        cell: cpu,
    },
    PlotText {
        plot: "time",
        reading: "Each step is the mean of an interval. A steady line means that the other numbers \
                  are reliable; dips are stalls.",
        caption: "slowest and fastest interval, relative to the mean",
        cell: steadiness,
    },
];

/// The whole page.
pub(super) fn html(
    outcome: &RunResult,
    series: &Series<'_>,
    figures: &[Figure],
    path: &Path,
) -> String {
    let mut page = head_of(outcome);
    page.push_str(&highlights(outcome, series));
    page.push_str(&errors(outcome));
    page.push_str(&races(outcome));
    for figure in figures {
        page.push_str(&section(series, figure, path));
    }
    page.push_str(&all_numbers(outcome));
    page.push_str(&foot(outcome));
    page
}

fn head_of(outcome: &RunResult) -> String {
    let machine = &outcome.machine;
    let (words, host) = (escape(&outcome.words), escape(&machine.host));
    let date = numbers::date(outcome.begin_unix_s);
    head(
        &format!("lunar {words}, {host}"),
        "Storage measured",
        &format!("<code>lunar {words}</code>"),
        &format!("{date} on {host}: {}", escape(&machine_words(outcome))),
    )
}

/// All up to the first section, of markup.
pub(super) fn head(title: &str, what: &str, heading: &str, below: &str) -> String {
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta http-equiv=\"Content-Security-Policy\" \
         content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:\">\n\
         <link rel=\"icon\" href=\"data:,\">\n\
         <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n\
         <header>\n<p class=\"what\">{what}</p>\n<h1>{heading}</h1>\n\
         <p>{below}</p>\n</header>\n<main>\n"
    )
}

fn machine_words(outcome: &RunResult) -> String {
    let machine = &outcome.machine;
    let mut parts = vec![
        machine.processor.clone(),
        format!("{} CPUs", machine.cores),
        format!(
            "{:.0} GiB",
            machine.memory_bytes as f64 / f64::from(1 << 30)
        ),
        machine.kernel.clone(),
        format!("lunar {}", machine.version),
    ];
    parts.retain(|part| !part.is_empty());
    parts.join(", ")
}

/// The few numbers that are asked for first.
fn highlights(outcome: &RunResult, series: &Series<'_>) -> String {
    let mut tiles = String::new();
    let mut tile = |what: &str, number: String, where_: &str| {
        let (number, where_) = (escape(&number), escape(where_));
        let _ = writeln!(
            tiles,
            "<div><dt>{what}</dt><dd>{number}<small>{where_}</small></dd></div>"
        );
    };
    let rows = || all_rows(series);
    if let Some((name, row)) = rows().max_by(|a, b| a.1.iops().total_cmp(&b.1.iops())) {
        tile("Most IOPS", numbers::whole(row.iops()), &name);
    }
    if let Some((name, row)) = rows().max_by(|a, b| a.1.mb_per_s().total_cmp(&b.1.mb_per_s())) {
        let number = format!("{} MB/s", numbers::mb_per_s(row.mb_per_s()));
        tile("Most throughput", number, &name);
    }
    let p99 = |row: &ResultRow| row.latency().percentile_ns(99.0);
    if let Some((name, row)) = rows().max_by_key(|(_, row)| p99(row)) {
        tile("Highest p99", numbers::time(p99(row) as f64), &name);
    }
    let shares = rows().filter_map(|(name, row)| Some((name, outcome.share_of_floor(row)?)));
    if let Some((name, share)) = shares.min_by(|a, b| a.1.total_cmp(&b.1)) {
        tile("Least share of bare TCP", numbers::percent(share), &name);
    }
    format!("<dl class=\"tiles\">\n{tiles}</dl>\n")
}

/// Each row with what tells it from all others.
fn all_rows<'s>(series: &'s Series<'_>) -> impl Iterator<Item = (String, &'s ResultRow)> {
    let named = |name: &str, row: &ResultRow| {
        if series.is_sweep() {
            format!("{name}, {}", series.word(row))
        } else {
            name.to_owned()
        }
    };
    let lines = series.lines.iter();
    lines.flat_map(move |line| {
        line.rows
            .iter()
            .map(move |row| (named(&line.name, row), *row))
    })
}

fn errors(outcome: &RunResult) -> String {
    let count: u64 = outcome.rows.iter().map(ResultRow::errors).sum();
    if count == 0 {
        return String::new();
    }
    let rows = outcome.rows.iter();
    let mut tallies = rows.flat_map(|row| [&row.reads, &row.writes]);
    let first = tallies.find_map(|tally| tally.first_error.as_deref());
    format!(
        "<p class=\"errors\"><strong>{} {} failed.</strong> The first: {}</p>\n",
        numbers::whole(count as f64),
        if count == 1 { "I/O" } else { "I/Os" },
        escape(first.unwrap_or("no cause was reported")),
    )
}

/// How those that took turns compare.
fn races(outcome: &RunResult) -> String {
    if outcome.races.is_empty() {
        return String::new();
    }
    let RaceComparison { head, lines } = compared(outcome);
    let head: Vec<_> = head.iter().map(String::as_str).collect();
    let table = table(TIMES_THE_FIRST, &head, lines.into_iter());
    let said = outcome.races.iter().flat_map(Race::said);
    let said: String = said
        .map(|line| format!("<li>{}</li>\n", escape(&line)))
        .collect();
    format!(
        "<section id=\"race\">\n<h2>By turns</h2>\n<ul>\n{said}</ul>\n{}{table}</section>\n",
        numbered(outcome)
    )
}

fn section(series: &Series<'_>, figure: &Figure, path: &Path) -> String {
    let text = TEXTS.iter().find(|text| text.plot == figure.name);
    let (reading, aside) = text.map_or_else(Default::default, |text| {
        (text.reading, grid(series, text.caption, text.cell))
    });
    plot(figure, path, reading, &aside)
}

/// A plot with what is said of it, and what stands beside it, both of markup.
pub(super) fn plot(figure: &Figure, path: &Path, reading: &str, aside: &str) -> String {
    let scene = figure.draw();
    let link = |extension: &str| {
        let file = beside(path, figure, extension);
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        format!(
            "<a href=\"{}\">{}</a>",
            escape(&reference(&name)),
            extension.to_uppercase()
        )
    };
    let wide = if scene.width > 700.0 { " wide" } else { "" };
    format!(
        "<section class=\"plot{wide}\" id=\"{}\">\n<figure>\n{}<figcaption>{reading} {} {}\
         </figcaption>\n</figure>\n<div class=\"beside\">\n{aside}</div>\n</section>\n",
        figure.name,
        scene.svg(),
        link("svg"),
        link("png"),
    )
}

fn percentiles(row: &ResultRow) -> String {
    let latency = row.latency();
    let at = |percent| numbers::time(latency.percentile_ns(percent) as f64);
    [50.0, 99.0, 99.9].map(at).join(" / ")
}

fn cpu(row: &ResultRow) -> String {
    let both = [row.cpu_us_per_io(), row.target_cpu_us_per_io()];
    let known: Vec<_> = both.into_iter().flatten().map(numbers::digits).collect();
    known.join(" + ")
}

fn steadiness(row: &ResultRow) -> String {
    let shares = || plots::steps(row).map(|(_, _, rate)| rate / row.mb_per_s());
    let ends = [
        shares().min_by(f64::total_cmp),
        shares().max_by(f64::total_cmp),
    ];
    ends.map(|end| numbers::or_dash(end.map(numbers::percent)))
        .join(" to ")
}

/// Something of each row: marks down, lines across; lines down where there is one mark only.
fn grid(series: &Series<'_>, caption: &str, cell: fn(&ResultRow) -> String) -> String {
    if !series.is_sweep() {
        let lines = all_rows(series).map(|(name, row)| vec![name, cell(row)]);
        return table(caption, &[], lines);
    }
    let mut head = vec![series.across.name()];
    head.extend(series.lines.iter().map(|line| line.name.as_str()));
    let lines = series.marks.iter().map(|mark| {
        let mut cells = vec![series.across.word(*mark)];
        let rows = series.lines.iter().map(|line| series.at_mark(line, *mark));
        cells.extend(rows.map(|row| numbers::or_dash(row.map(cell))));
        cells
    });
    table(caption, &head, lines)
}

fn all_numbers(outcome: &RunResult) -> String {
    let rows: Vec<_> = outcome.rows.iter().collect();
    let columns = columns(outcome, &rows);
    let head: Vec<_> = columns.iter().map(|column| column.name).collect();
    let line = |row| columns.iter().map(|column| (column.cell)(row)).collect();
    let shared = is_of_several(outcome).then(|| shared(&rows));
    let lines = outcome.rows.iter().map(line);
    let table = table(&shared.unwrap_or_default(), &head, lines);
    let addresses = numbered(outcome);
    format!("<section id=\"all\">\n<h2>All numbers</h2>\n{addresses}{table}</section>\n")
}

/// The addresses by their numbers.
fn numbered(outcome: &RunResult) -> String {
    let addresses = outcome.addresses().into_iter();
    let item = |address| format!("<li><code>{}</code></li>\n", escape(address));
    let items: String = addresses.map(item).collect();
    format!("<ol>\n{items}</ol>\n")
}

pub(super) fn table(
    caption: &str,
    head: &[&str],
    lines: impl Iterator<Item = Vec<String>>,
) -> String {
    let cells = |tag: &str, texts: &mut dyn Iterator<Item = &str>| {
        let cell = |text| format!("<{tag}>{}</{tag}>", escape(text));
        texts.map(cell).collect::<String>()
    };
    let mut html = "<div class=\"scroll\"><table>\n".to_owned();
    if !caption.is_empty() {
        let _ = writeln!(html, "<caption>{}</caption>", escape(caption));
    }
    if !head.is_empty() {
        let head = cells("th", &mut head.iter().copied());
        let _ = writeln!(html, "<thead><tr>{head}</tr></thead>");
    }
    for line in lines {
        let line = cells("td", &mut line.iter().map(String::as_str));
        let _ = writeln!(html, "<tr>{line}</tr>");
    }
    html.push_str("</table></div>\n");
    html
}

fn foot(outcome: &RunResult) -> String {
    let bare = if outcome.floors.is_empty() {
        ""
    } else {
        " Bare TCP transfers the same bytes in the same pieces at the same depth without iSCSI: an \
         upper bound for any target and initiator over this link."
    };
    format!(
        "</main>\n<footer>\n<p>1 MB is 1,000,000 bytes; block sizes count in 1024s. Percentiles \
         are within 1 %. CPU time of 100 % is one core.{bare}</p>\n</footer>\n</body>\n</html>\n"
    )
}
