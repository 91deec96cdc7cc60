use super::{EarlierTasks, OrderKey, Ordering};
use crate::task::Attribute;

const CLASSES: [Ordering; 5] = [
    Ordering::Free,
    Ordering::Read,
    Ordering::Write,
    Ordering::Flush,
    Ordering::Exclusive,
];

fn rank(attribute: Attribute, class: Ordering) -> OrderKey {
    OrderKey { attribute, class }
}

fn simple(class: Ordering) -> OrderKey {
    rank(Attribute::Simple, class)
}

#[test]
fn simple_reads_and_writes_pass_everything() {
    for older in CLASSES {
        assert!(!simple(Ordering::Read).waits_for(simple(older)));
        assert!(!simple(Ordering::Write).waits_for(simple(older)));
    }
}

#[test]
fn flush_waits_for_older_writes_only() {
    let waits = CLASSES.map(|older| simple(Ordering::Flush).waits_for(simple(older)));
    assert_eq!(waits, [false, false, true, false, false]);
}

#[test]
fn format_waits_for_older_transfers_and_nothing_waits_for_it() {
    let waits = CLASSES.map(|older| simple(Ordering::Exclusive).waits_for(simple(older)));
    assert_eq!(waits, [false, true, true, true, false]);
    for newer in CLASSES {
        assert!(!simple(newer).waits_for(simple(Ordering::Exclusive)));
    }
}

#[test]
fn ordered_waits_for_all_and_all_but_head_of_queue_wait_for_it() {
    for class in CLASSES {
        let ordered = rank(Attribute::Ordered, Ordering::Free);
        assert!(ordered.waits_for(simple(class)));
        assert!(simple(class).waits_for(ordered));
        assert!(!rank(Attribute::HeadOfQueue, class).waits_for(ordered));
    }
}

#[test]
fn everything_else_waits_for_head_of_queue() {
    let head = rank(Attribute::HeadOfQueue, Ordering::Read);
    assert!(simple(Ordering::Free).waits_for(head));
    assert!(rank(Attribute::Ordered, Ordering::Read).waits_for(head));
    assert!(!head.waits_for(head));
}

#[test]
fn those_who_never_wait_for_simple_commands_need_not_look_back() {
    for class in CLASSES {
        let waits = CLASSES
            .iter()
            .any(|older| simple(class).waits_for(simple(*older)));
        assert_eq!(simple(class).looks_back(), waits);
        assert!(!rank(Attribute::HeadOfQueue, class).looks_back());
        assert!(rank(Attribute::Ordered, class).looks_back());
    }
}

#[test]
fn a_crowd_holds_back_what_any_of_it_would() {
    let attributes = [
        Attribute::Simple,
        Attribute::Ordered,
        Attribute::HeadOfQueue,
    ];
    let ranks: Vec<OrderKey> = attributes
        .iter()
        .flat_map(|attribute| CLASSES.map(|class| rank(*attribute, class)))
        .collect();
    for &newer in &ranks {
        for &first in &ranks {
            for &second in &ranks {
                let mut older = EarlierTasks::default();
                older.add(first);
                older.add(second);
                let expected = newer.waits_for(first) || newer.waits_for(second);
                assert_eq!(
                    older.holds_back(newer),
                    expected,
                    "{newer:?} {first:?} {second:?}"
                );
            }
        }
    }
}
