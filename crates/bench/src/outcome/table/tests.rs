use super::*;
use crate::testing;

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
    let outcome = testing::two_ways();
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
    assert_eq!(sweep(&Outcome::default()), None);
    insta::assert_snapshot!(table(&Outcome::default()));
}
