use std::collections::BTreeSet;

use super::*;

#[test]
fn each_row_has_a_name_of_its_own() {
    let rows = all();
    let names: BTreeSet<_> = rows.iter().map(|row| &row.name).collect();
    assert_eq!(names.len(), rows.len(), "measured.json keeps rows by name");
}

#[test]
fn a_row_on_a_loop_device_may_lack() {
    let on_loop = |contender: &Contender| match contender {
        On(backend) | Epoll(backend) | Fio(backend) => backend.needs_loop(),
        _ => false,
    };
    for row in all() {
        assert_eq!(row.may_lack, row.by.iter().any(on_loop), "{}", row.name);
    }
}

#[test]
fn what_a_row_wants_is_of_its_own_contenders() {
    for row in all() {
        for want in &row.wants {
            let others = match *want {
                Want::Cpu(other, _) | Want::TimesLess(other, _) => vec![other],
                Want::Beyond(fio, other, _) => vec![fio, other],
                Want::P50(_) | Want::P99(_) | Want::Fair(_) => Vec::new(),
            };
            let is_there = others.iter().all(|other| row.by[1..].contains(other));
            assert!(is_there, "{}: {want:?}", row.name);
        }
    }
}
