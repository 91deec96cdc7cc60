use super::*;
use crate::outcome::DataDirection;
use crate::testing;

/// A served volume by two ways by turns, reading and writing two block sizes.
fn two_ways() -> RunResult {
    let mut outcome = testing::outcome("race --volume ram:1G --over iscsi,fcoe");
    let ways = [
        "iscsi://198.18.0.1:3260/iqn.2026-11.org.lunar:a-long-host-name/0",
        "fcoe://san0/20:00:8e:7b:23:0c:39:bd/0",
    ];
    for direction in [DataDirection::Read, DataDirection::Write] {
        for block_bytes in [512, 262_144] {
            let load = testing::load(direction, block_bytes);
            let rows = ways.map(|way| testing::row(way, load, 10.0));
            outcome.races.push(testing::by_turns(&rows));
            outcome.rows.extend(rows);
        }
    }
    outcome
}

#[test]
fn rows_in_fios_words() {
    insta::assert_snapshot!(table(&testing::one_address()));
}

#[test]
fn columns_with_nothing_to_tell_are_left_out() {
    insta::assert_snapshot!(table(&testing::two_addresses()));
}

/// Addresses are long: they stand once before the tables, and rows have their numbers.
#[test]
fn tables_of_several_addresses_fit_a_terminal() {
    let outcome = two_ways();
    let (table, races) = (table(&outcome), races(&outcome));
    let text = format!("{table}\n{races}");
    for line in text.lines().filter(|line| line.starts_with('|')) {
        assert!(line.len() <= 110 && !line.contains("://"), "{line}");
    }
    for row in &outcome.rows {
        assert_eq!(table.matches(&row.address).count(), 1, "{table}");
    }
    insta::assert_snapshot!(text);
}

#[test]
fn a_sweep_as_vendors_print_it() {
    insta::assert_snapshot!(sweep(&testing::sweep()).unwrap());
}

#[test]
fn what_is_no_sweep_has_no_such_table() {
    assert_eq!(sweep(&testing::two_addresses()), None);
    assert_eq!(sweep(&RunResult::default()), None);
    insta::assert_snapshot!(table(&RunResult::default()));
}
