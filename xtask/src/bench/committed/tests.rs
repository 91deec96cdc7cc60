use super::*;

fn committed(kind: &str, cpu_us: f64, iops: f64) -> Committed {
    let medians = Medians {
        cpu_us: Some(cpu_us),
        iops,
        p50_us: 10.0,
        p99_us: 20.0,
    };
    let row = BTreeMap::from([("lunar".to_owned(), medians)]);
    Committed {
        kind: kind.to_owned(),
        rows: BTreeMap::from([("4 KiB read".to_owned(), row)]),
    }
}

#[test]
fn changes_are_told_in_percent() {
    let before = committed("Linux 6.18", 2.0, 500_000.0);
    let text = before.changes(&committed("Linux 6.18", 1.5, 550_000.0));
    let line: Vec<_> = text.lines().nth(1).unwrap().split_whitespace().collect();
    let expected = "4 KiB read lunar 2.00 -> 1.50 -25 % +10 %";
    assert_eq!(line.join(" "), expected);
}

#[test]
fn a_row_that_got_worse_is_marked() {
    let before = committed("Linux 6.18", 2.0, 500_000.0);
    for (cpu_us, iops, worse) in [
        (2.1, 480_000.0, false),
        (1.0, 900_000.0, false),
        (2.3, 900_000.0, true),
        (1.0, 400_000.0, true),
    ] {
        let text = before.changes(&committed("Linux 6.18", cpu_us, iops));
        assert_eq!(text.contains("WORSE"), worse, "{text}");
    }
}

#[test]
fn another_kind_of_machine_or_generator_is_not_compared() {
    let before = committed("lunar race, Linux 6.12", 2.0, 500_000.0);
    let text = before.changes(&committed("lunar race, Linux 6.18", 1.5, 550_000.0));
    assert_eq!(
        text,
        "docs/measured.json is of another kind (lunar race, Linux 6.12; this is lunar race, Linux \
         6.18): not compared\n"
    );
}

#[test]
fn rows_that_were_not_measured_before_are_no_change() {
    let mut before = committed("Linux 6.18", 2.0, 500_000.0);
    before.rows.clear();
    let text = before.changes(&committed("Linux 6.18", 1.5, 550_000.0));
    assert_eq!(text.lines().count(), 1, "{text}");
}

#[test]
fn four_digits_are_kept() {
    let values = [1.234_56, 0.012_345_6, 562_345.6, 0.0, 1000.0];
    assert_eq!(
        values.map(rounded),
        [1.235, 0.012_35, 562_300.0, 0.0, 1000.0]
    );
}

/// What is written can be read again, and has everything.
#[test]
fn the_file_holds_it_all() {
    let before = committed("Linux 6.18", 2.0, 500_000.0);
    let text = serde_json::to_string(&before).unwrap();
    assert_eq!(serde_json::from_str::<Committed>(&text).unwrap(), before);
}
