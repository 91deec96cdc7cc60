use std::fs;

use super::*;
use crate::report::figure::ChartShape;

fn table() -> ReportTable {
    ReportTable {
        caption: "numbers & more".to_owned(),
        head: vec!["a <b>".to_owned(), "c".to_owned()],
        lines: vec![vec!["1".to_owned(), "2".to_owned()]],
    }
}

fn article() -> Article {
    let curve = |name: &str, scale: f64| {
        let values = [Some(900.0 * scale), None, Some(70_000.0 * scale)];
        (name.to_owned(), values.to_vec())
    };
    let marks = Chart::Marks {
        title: "CPU per I/O".to_owned(),
        across: "block size".to_owned(),
        marks: ["512", "4k", "64k"].map(str::to_owned).to_vec(),
        unit: "CPU".to_owned(),
        times: true,
        panels: vec![
            (
                "read".to_owned(),
                vec![curve("one", 1.0), curve("other", 9.0)],
            ),
            ("write".to_owned(), vec![curve("other", 8.0)]),
        ],
    };
    let mut latency = Latency::default();
    (1..2000).for_each(|time| latency.record(time * 100));
    let percentiles = Chart::Percentiles {
        title: "Latency".to_owned(),
        lines: vec![("one".to_owned(), latency)],
    };
    let part = |name, chart| ReportSection {
        name,
        reading: "less is better & so on".to_owned(),
        chart,
        tables: vec![table()],
    };
    Article {
        title: "what <i>was</i> measured".to_owned(),
        below: "here".to_owned(),
        parts: vec![
            part("marks", Some(marks)),
            part("percentiles", Some(percentiles)),
            part("words", None),
        ],
    }
}

#[test]
fn charts_are_in_the_page_and_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("run.html");
    let files = write(&article(), &page).unwrap();
    let html = fs::read_to_string(&page).unwrap();
    let there = files.iter().filter(|file| file.exists()).count();
    assert_eq!((files.len(), there), (5, 5));
    assert_eq!(html.matches("<svg ").count(), 2);
    assert_eq!(html.matches("numbers &amp; more").count(), 3);
    for wrong in ["<i>", "<b>", "NaN"] {
        assert!(!html.contains(wrong), "{html}");
    }
}

/// A name has one colour wherever it stands, and where it has no value there is no point.
#[test]
fn curves_of_a_name_are_alike_in_all_panels() {
    let article = article();
    let chart = article.parts[0].chart.as_ref().unwrap();
    let ChartShape::Panels(panels) = chart.figure("marks").shape else {
        panic!("no panels");
    };
    let curves = panels.panels.iter().flat_map(|panel| &panel.curves);
    let inks: Vec<_> = curves.map(|curve| curve.ink).collect();
    assert!(inks == [Ink::Series(0), Ink::Series(1), Ink::Series(1)]);
    assert_eq!(panels.panels[0].curves[0].points.len(), 2);
    assert_eq!(panels.legend.len(), 2);
}
