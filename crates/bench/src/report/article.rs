//! Pages of other charts and tables, for measurements that are more than loads on volumes.

#[cfg(test)]
mod tests;

use std::fmt;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::axis::Axis;
use super::figure::{Curve, Figure, LegendKey, Panel, Panels};
use super::page;
use super::plots::percentiles;
use super::scene::Ink;
use super::{CannotWrite, escape, save, save_figure};
use crate::numbers;
use crate::outcome::Latency;
use crate::outcome::table::draw;

/// A page.
#[derive(Clone, Debug, Default)]
pub struct Article {
    /// What was measured.
    pub title: String,
    /// When, where and with what.
    pub below: String,
    /// What it holds, in this order.
    pub parts: Vec<ReportSection>,
}

/// A chart, tables, or both.
#[derive(Clone, Debug)]
pub struct ReportSection {
    /// What its files are named by.
    pub name: &'static str,
    /// How it is to be read.
    pub reading: String,
    /// The chart, if it has one.
    pub chart: Option<Chart>,
    /// Tables beside or below it.
    pub tables: Vec<ReportTable>,
}

/// Rows of words.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ReportTable {
    /// What stands above it.
    pub caption: String,
    /// The names of its columns.
    pub head: Vec<String>,
    /// Its cells, line by line.
    pub lines: Vec<Vec<String>>,
}

/// What is drawn.
#[derive(Clone, Debug)]
pub enum Chart {
    /// Values over marks.
    Marks {
        /// What stands above all panels.
        title: String,
        /// What the marks are.
        across: String,
        /// The marks.
        marks: Vec<String>,
        /// What the values are.
        unit: String,
        /// Whether they are times in nanoseconds, drawn by powers of ten.
        times: bool,
        /// Panels of a title and curves, each with a name and a value for each mark. The curves of
        /// a name are alike in all panels.
        panels: Vec<(String, Vec<NamedValues>)>,
    },
    /// Percentiles of times, each with a name.
    Percentiles {
        /// What stands above it.
        title: String,
        /// The times.
        lines: Vec<(String, Latency)>,
    },
}

/// A name, and a value for each mark that has one.
pub type NamedValues = (String, Vec<Option<f64>>);

/// Writes the page, and beside it each chart as SVG and PNG, as [`super::write`] does.
///
/// # Errors
///
/// [`CannotWrite`], for the first file that cannot be written.
pub fn write(article: &Article, page: &Path) -> Result<Vec<PathBuf>, CannotWrite> {
    let mut written = vec![page.to_owned()];
    let title = escape(&article.title);
    let mut html = page::head(&title, "Measured", &title, &escape(&article.below));
    for part in &article.parts {
        let figure = part.chart.as_ref().map(|chart| chart.figure(part.name));
        if let Some(figure) = &figure {
            written.extend(save_figure(figure, page)?);
        }
        html.push_str(&part.section(figure.as_ref(), page));
    }
    html.push_str("</main>\n</body>\n</html>\n");
    save(page, Ok(html.into_bytes()))?;
    Ok(written)
}

impl ReportSection {
    fn section(&self, figure: Option<&Figure>, path: &Path) -> String {
        let tables: String = self.tables.iter().map(ReportTable::html).collect();
        let reading = escape(&self.reading);
        match figure {
            Some(figure) => page::plot(figure, path, &reading, &tables),
            None => format!(
                "<section id=\"{}\">\n<p>{reading}</p>\n{tables}</section>\n",
                self.name
            ),
        }
    }
}

/// The longest line of words, in columns.
const WIDTH: usize = 100;

/// As text.
impl fmt::Display for ReportTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let table = draw(self.head.clone(), self.lines.iter().cloned());
        let mut column = 0;
        for word in self.caption.split(' ') {
            let gap = if column == 0 {
                ""
            } else if column + word.len() < WIDTH {
                " "
            } else {
                "\n"
            };
            column = if gap == "\n" { 0 } else { column + gap.len() } + word.len();
            write!(f, "{gap}{word}")?;
        }
        write!(f, "\n\n{table}")
    }
}

impl ReportTable {
    fn html(&self) -> String {
        let head: Vec<_> = self.head.iter().map(String::as_str).collect();
        page::table(&self.caption, &head, self.lines.iter().cloned())
    }
}

impl Chart {
    fn figure(&self, name: &'static str) -> Figure {
        let (title, panels) = match self {
            Self::Marks {
                title,
                across,
                marks,
                unit,
                times,
                panels,
            } => {
                let x = Axis::marks(across, marks);
                let y = upwards(unit, *times, panels);
                (title, over_marks(&x, y, marks, panels))
            }
            Self::Percentiles { title, lines } => {
                let lines = lines.iter().enumerate();
                let keys = lines.clone();
                let keys = keys.map(|(at, (name, _))| LegendKey::of(name, Ink::Series(at)));
                let latencies = lines.map(|(at, (_, latency))| (at, latency.clone()));
                let latencies: Vec<_> = latencies.collect();
                (title, percentiles(&latencies, keys.collect()))
            }
        };
        Figure::of_panels(name, title.clone(), panels)
    }
}

fn upwards(unit: &str, times: bool, panels: &[(String, Vec<NamedValues>)]) -> Axis {
    let curves = panels.iter().flat_map(|(_, curves)| curves);
    let values = || {
        curves
            .clone()
            .flat_map(|(_, values)| values.iter().flatten().copied())
    };
    let max = values().fold(0.0, f64::max);
    if times {
        Axis::times(unit, values().fold(max, f64::min), max)
    } else {
        Axis::linear(unit, max)
    }
}

fn over_marks(
    x: &Axis,
    y: Axis,
    marks: &[String],
    panels: &[(String, Vec<NamedValues>)],
) -> Panels {
    let mut names: Vec<&String> = Vec::new();
    for (name, _) in panels.iter().flat_map(|(_, curves)| curves) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let ink = |name: &str| Ink::Series(names.iter().position(|other| *other == name).unwrap_or(0));
    let curve = |(name, values): &NamedValues| {
        let there = values.iter().zip(marks).enumerate();
        let there = there.filter_map(|(at, (value, mark))| Some((at, (*value)?, mark)));
        let dots = there.map(|(at, value, mark)| {
            let tip = format!("{name}, {mark}: {}", numbers::digits(value));
            ((x.place(at as f64), y.place(value)), tip)
        });
        Curve::dotted(ink(name), dots)
    };
    let panel = |(title, curves): &(String, Vec<NamedValues>)| {
        Panel::new(title, x.clone(), curves.iter().map(curve).collect())
    };
    let panels = panels.iter().map(panel).collect();
    let keys = names.iter().map(|name| LegendKey::of(name, ink(name)));
    let legend = keys.collect();
    Panels { y, legend, panels }
}
