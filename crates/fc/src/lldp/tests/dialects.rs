//! CEE: which dialect is spoken, how changes are numbered, and what comes of it.

use super::rig::*;
use crate::lldp::dcbx::CeeErrors;
use crate::lldp::{Agreement, DcbProblem, DcbSettings, Dialect, LldpMode};
use crate::wire::lldp::cee::{CeeDcb, CeePfc, Control, FeatureFlags};

/// What a neighbour with FCoE at this priority tells.
fn cee(priority: u8, willing: bool, seq_no: u32, ack_no: u32) -> CeeDcb {
    let agreed = Agreement {
        dialect: Dialect::Cee,
        pfc: 0,
        peer_pfc: 0,
        table: DcbSettings::fcoe(priority, willing).table,
        apps: Vec::new(),
        peer_apps: Vec::new(),
        errors: CeeErrors::default(),
        peer_error: false,
    };
    CeeDcb {
        control: Control { seq_no, ack_no },
        ..DcbSettings::fcoe(priority, willing).cee(&agreed)
    }
}

#[test]
fn cee_is_spoken_to_a_neighbour_that_speaks_nothing_else() {
    let mut host = with_dcb(1, LldpMode::Send, true);
    let is_ieee = |(ieee, cee): (Option<_>, Option<CeeDcb>)| (ieee.is_some(), cee.is_some());
    assert_eq!(is_ieee(last_word(&mut host, s(0))), (true, false));
    let told = cee(3, false, 1, 0);
    hear_dcb(&mut host, s(1), 2, (None, Some(&told)));
    assert_eq!(is_ieee(last_word(&mut host, s(1))), (false, true));
    let ieee = DcbSettings::fcoe(3, false).ieee(None);
    hear_dcb(&mut host, s(2), 2, (Some(&ieee), Some(&told)));
    assert_eq!(is_ieee(last_word(&mut host, s(2))), (true, false));
    hear(&mut host, s(3), 2, 0);
    assert_eq!(is_ieee(last_word(&mut host, s(3))), (true, false));
}

#[test]
fn numbers_are_repeated_and_grow_with_changes() {
    let mut host = with_dcb(1, LldpMode::Send, true);
    let mut control = |at, seq_no, ack_no, priority| {
        hear_dcb(
            &mut host,
            s(at),
            2,
            (None, Some(&cee(3, false, seq_no, ack_no))),
        );
        host.set_dcb(s(at), Some(DcbSettings::fcoe(priority, true)));
        let (_, cee) = last_word(&mut host, s(at));
        let Control { seq_no, ack_no } = cee.unwrap().control;
        (seq_no, ack_no)
    };
    assert_eq!(control(1, 7, 0, 3), (1, 7));
    assert_eq!(control(2, 7, 1, 3), (1, 7), "the same again");
    assert_eq!(control(3, 8, 1, 3), (1, 8));
    assert_eq!(control(4, 8, 1, 4), (2, 8), "we want something else");
}

/// It would wait for half a minute otherwise.
#[test]
fn a_number_is_repeated_soon() {
    let mut host = with_dcb(1, LldpMode::Send, true);
    hear_dcb(&mut host, s(1), 2, (None, Some(&cee(3, false, 7, 0))));
    times(&mut host, s(20));
    hear_dcb(&mut host, s(21), 2, (None, Some(&cee(3, false, 8, 1))));
    assert_eq!(times(&mut host, s(25)), [(21, 120)]);
}

#[test]
fn who_gives_way_takes_what_the_other_wants() {
    let mut host = with_dcb(1, LldpMode::Send, true);
    hear_dcb(&mut host, s(1), 2, (None, Some(&cee(4, false, 1, 0))));
    assert_eq!(outcome(&host), "CEE 10 10 4");
}

/// One that gives way has done so when it has heard what it has to take.
#[test]
fn a_switch_is_followed_once_it_is_acknowledged() {
    let mut switch = with_dcb(1, LldpMode::Send, false);
    hear_dcb(&mut switch, s(1), 2, (None, Some(&cee(5, true, 1, 0))));
    let before = "CEE 08 20 OtherPriority { ours: 3, peers: 5 }";
    assert_eq!(outcome(&switch), before);
    last_word(&mut switch, s(1));
    hear_dcb(&mut switch, s(2), 2, (None, Some(&cee(5, true, 1, 1))));
    assert_eq!(outcome(&switch), "CEE 08 08 3");
}

#[test]
fn two_that_want_something_else_have_nothing_and_say_so() {
    for willing in [false, true] {
        let mut us = with_dcb(1, LldpMode::Send, willing);
        hear_dcb(&mut us, s(1), 2, (None, Some(&cee(3, willing, 1, 0))));
        assert_eq!(outcome(&us), "CEE 08 08 3", "they want the same");
        hear_dcb(&mut us, s(1), 2, (None, Some(&cee(4, willing, 2, 0))));
        assert_eq!(us.dcbx().lossless(), Err(DcbProblem::Incompatible));
        let (_, told) = last_word(&mut us, s(2));
        let told = told.unwrap();
        let errors = [
            told.groups.unwrap().flags.error,
            told.pfc.unwrap().flags.error,
            told.apps.unwrap().flags.error,
        ];
        assert_eq!(errors, [true; 3]);
    }
}

#[test]
fn a_feature_that_is_not_enabled_there_is_off() {
    let mut host = with_dcb(1, LldpMode::Send, true);
    let told = CeeDcb {
        pfc: Some(CeePfc {
            flags: FeatureFlags::default(),
            enabled: 0x08,
            classes_max: 8,
        }),
        ..cee(3, false, 1, 0)
    };
    hear_dcb(&mut host, s(1), 2, (None, Some(&told)));
    assert_eq!(outcome(&host), "CEE 00 00 PfcOff(3)");
    let told = CeeDcb {
        apps: None,
        ..cee(3, false, 1, 0)
    };
    hear_dcb(&mut host, s(2), 2, (None, Some(&told)));
    assert_eq!(outcome(&host), "CEE 08 08 PeerNoPriority(3)");
}

#[test]
fn a_feature_with_an_error_there_is_off_there() {
    let mut switch = with_dcb(1, LldpMode::Send, false);
    let mut outcome_of = |pfc_error, apps_error| {
        let mut told = cee(3, true, 1, 0);
        told.pfc.as_mut().unwrap().flags.error = pfc_error;
        told.apps.as_mut().unwrap().flags.error = apps_error;
        hear_dcb(&mut switch, s(1), 2, (None, Some(&told)));
        outcome(&switch)
    };
    assert_eq!(outcome_of(false, false), "CEE 08 08 3");
    assert_eq!(outcome_of(true, false), "CEE 08 00 PeerError");
    assert_eq!(outcome_of(false, true), "CEE 08 08 PeerError");
    assert_eq!(outcome_of(false, false), "CEE 08 08 3", "it was mended");
}
