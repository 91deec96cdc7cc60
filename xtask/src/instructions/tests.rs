//! What passes, and what does not.

use std::collections::BTreeMap;

use super::baseline::Baseline;
use super::row;

fn counts(rows: &[(&str, f64)]) -> BTreeMap<String, f64> {
    rows.iter()
        .map(|(name, count)| ((*name).to_owned(), *count))
        .collect()
}

fn baseline(rows: &[(&str, f64)]) -> Baseline {
    Baseline {
        made_by: vec!["rustc 1.95.0".to_owned(), "valgrind-3.19.0".to_owned()],
        counts: counts(rows),
    }
}

/// How many rows are bad when the one of the baseline has 1000.
fn bad(rows: &[(&str, f64)]) -> usize {
    baseline(&[("read", 1000.0)]).compare(&counts(rows)).1
}

#[test]
fn three_percent_more_pass_and_what_is_above_does_not() {
    assert_eq!(bad(&[("read", 1030.0)]), 0);
    assert_eq!(bad(&[("read", 1030.1)]), 1);
    assert_eq!(bad(&[("read", 500.0)]), 0);
}

#[test]
fn each_benchmark_needs_its_row_and_each_row_its_benchmark() {
    assert_eq!(bad(&[("read", 1000.0), ("write", 1.0)]), 1);
    assert_eq!(bad(&[]), 1);
}

#[test]
fn another_compiler_is_told_how_to_renew() {
    let committed = baseline(&[]);
    assert!(committed.check_compiler(&committed.made_by).is_ok());
    let told = committed.check_compiler(&["rustc 1.96.0".to_owned()]);
    assert_eq!(
        told.unwrap_err().to_string(),
        "the baseline is of rustc 1.95.0, and this is rustc 1.96.0: renew it, in a commit of its \
         own, with cargo xtask instructions --renew"
    );
}

#[test]
fn a_row_that_grew_says_what_else_is_new() {
    let told = baseline(&[]).other_tools(&["rustc 1.95.0".into(), "valgrind-3.25.0".into()]);
    assert_eq!(
        told,
        "; the baseline is of valgrind-3.19.0, this is valgrind-3.25.0"
    );
}

#[test]
fn what_is_written_is_read_again() {
    let written = baseline(&[("target_32/read_512", 4320.7), ("wire/parse", 41.0)]);
    let read: Baseline = written.to_string().parse().unwrap();
    assert_eq!(read, written);
    assert!("#\nread many\n".parse::<Baseline>().is_err());
}

#[test]
fn nothing_counted_is_an_error() {
    let line = |counted| {
        format!(
            r#"{{"function_name":"wire","id":"parse","profiles":[{{"data":{{"total":{{"metrics":
            {{"Ir":{{"values":{{"new":{counted}}}}}}}}}}}}}]}}"#
        )
    };
    assert_eq!(row(&line(256)).unwrap(), ("wire/parse".to_owned(), 2.0));
    assert!(row(&line(0)).is_err());
}
