//! What comes of DCBX in the dialect of IEEE.

use super::rig::*;
use crate::lldp::{Agreement, DcbProblem, DcbSettings, Dcbx, Lldp, LldpMode};
use crate::wire::lldp::ieee::{App, EtsTable, IeeeDcb, Pfc};

/// What a switch with FCoE at this priority tells.
fn switch(priority: u8) -> IeeeDcb {
    DcbSettings::fcoe(priority, false).ieee(None)
}

fn agreed(agent: &Lldp) -> &Agreement {
    match agent.dcbx() {
        Dcbx::Heard(agreed) => agreed,
        other => panic!("{other:?}"),
    }
}

#[test]
fn one_that_is_willing_takes_what_the_switch_has_and_tells_it() {
    let mut host = with_dcb(1, LldpMode::Send, true);
    hear_dcb(&mut host, s(1), 2, (Some(&switch(4)), None));
    assert_eq!(outcome(&host), "IEEE 10 10 4");
    assert_eq!(agreed(&host).table, DcbSettings::fcoe(4, false).table);
    let (ieee, _) = last_word(&mut host, s(2));
    let ieee = ieee.unwrap();
    assert_eq!(ieee.pfc.unwrap().enabled, 0x10);
    assert_eq!(ieee.apps.unwrap(), switch(4).apps.unwrap());
    assert_eq!(ieee.recommendation, None);
}

#[test]
fn a_switch_stays_with_its_own() {
    let mut switch = with_dcb(1, LldpMode::Send, false);
    let host = DcbSettings::fcoe(5, true).ieee(None);
    hear_dcb(&mut switch, s(1), 2, (Some(&host), None));
    assert_eq!(
        outcome(&switch),
        "IEEE 08 20 OtherPriority { ours: 3, peers: 5 }"
    );
    let host = DcbSettings::fcoe(3, true).ieee(None);
    hear_dcb(&mut switch, s(2), 2, (Some(&host), None));
    assert_eq!(outcome(&switch), "IEEE 08 08 3");
}

/// The lower address decides on PFC where both would give way.
#[test]
fn of_two_that_are_willing_the_lower_address_decides() {
    let told = DcbSettings {
        pfc: 0x18,
        ..DcbSettings::fcoe(3, true)
    };
    let told = told.ieee(None);
    let mut lower = with_dcb(1, LldpMode::Send, true);
    hear_dcb(&mut lower, s(1), 2, (Some(&told), None));
    assert_eq!(agreed(&lower).pfc, 0x08);
    let mut higher = with_dcb(3, LldpMode::Send, true);
    hear_dcb(&mut higher, s(1), 2, (Some(&told), None));
    assert_eq!(agreed(&higher).pfc, 0x18);
}

#[test]
fn each_problem_is_told() {
    let spoilt = |spoil: &dyn Fn(&mut IeeeDcb)| {
        let mut told = switch(3);
        spoil(&mut told);
        let mut us = with_dcb(1, LldpMode::Send, false);
        hear_dcb(&mut us, s(1), 2, (Some(&told), None));
        us.dcbx().lossless()
    };
    assert_eq!(spoilt(&|_| {}), Ok(3));
    let off = Pfc {
        enabled: 0xf7,
        ..Pfc::default()
    };
    let problem = DcbProblem::PeerPfcOff(3);
    assert_eq!(spoilt(&|told| told.pfc = Some(off)), Err(problem));
    assert_eq!(spoilt(&|told| told.pfc = None), Err(problem));
    let problem = DcbProblem::PeerNoPriority(3);
    assert_eq!(spoilt(&|told| told.apps = None), Err(problem));
    let port = App {
        selector: 2,
        protocol: 0x8906,
        priority: 3,
    };
    assert_eq!(spoilt(&|told| told.apps = Some(vec![port])), Err(problem));

    let ours = |dcb: DcbSettings| {
        let mut us = with_dcb(1, LldpMode::Send, false);
        us.set_dcb(s(0), Some(dcb));
        hear_dcb(&mut us, s(1), 2, (Some(&switch(3)), None));
        us.dcbx().lossless().unwrap_err()
    };
    let usual = DcbSettings::fcoe(3, false);
    let without_pfc = DcbSettings {
        pfc: 0,
        ..usual.clone()
    };
    assert_eq!(ours(without_pfc), DcbProblem::PfcOff(3));
    let without_apps = DcbSettings {
        apps: Vec::new(),
        ..usual
    };
    assert_eq!(ours(without_apps), DcbProblem::NoPriority);
}

#[test]
fn where_there_is_no_dcb_there_is_no_agreement() {
    let mut us = agent(config(1, LldpMode::Send));
    assert_eq!(us.dcbx().lossless(), Err(DcbProblem::NoNeighbour));
    hear_dcb(&mut us, s(1), 2, (Some(&switch(3)), None));
    assert_eq!(us.dcbx().lossless(), Err(DcbProblem::NotHere));
    assert_eq!(last_word(&mut us, s(2)), (None, None));
    let mut us = with_dcb(1, LldpMode::Send, true);
    hear(&mut us, s(1), 2, 120);
    assert_eq!(us.dcbx().lossless(), Err(DcbProblem::NotSpoken));
    hear(&mut us, s(1), 3, 120);
    assert_eq!(us.dcbx().lossless(), Err(DcbProblem::Crowded));
    assert_eq!(last_word(&mut us, s(2)), (None, None));
}

#[test]
fn traffic_classes_are_those_that_are_recommended() {
    let mut host = with_dcb(1, LldpMode::Send, true);
    let table = EtsTable {
        bandwidth: [30, 70, 0, 0, 0, 0, 0, 0],
        ..DcbSettings::fcoe(3, false).table
    };
    let told = IeeeDcb {
        recommendation: Some(table),
        ..switch(3)
    };
    hear_dcb(&mut host, s(1), 2, (Some(&told), None));
    assert_eq!(agreed(&host).table, table);
    let told = IeeeDcb {
        recommendation: None,
        ..told
    };
    hear_dcb(&mut host, s(2), 2, (Some(&told), None));
    assert_eq!(agreed(&host).table, DcbSettings::fcoe(3, true).table);
}

/// Two agents at one cable, one of them a switch.
#[test]
fn host_and_switch_agree_within_a_second() {
    let mut host = with_dcb(1, LldpMode::Send, true);
    host.set_dcb(s(0), Some(DcbSettings::fcoe(2, true)));
    let mut switch = with_dcb(2, LldpMode::Send, false);
    for at in [0, 0, 0, 1] {
        pass(at, 1, &mut host, &mut switch);
        pass(at, 2, &mut switch, &mut host);
    }
    assert_eq!(outcome(&host), "IEEE 08 08 3");
    assert_eq!(outcome(&switch), "IEEE 08 08 3");
}

/// What one sends the other hears.
fn pass(at: u64, low: u16, from: &mut Lldp, to: &mut Lldp) {
    from.expire(s(at));
    for payload in sent(from) {
        hear_bytes(to, s(at), low, &payload).unwrap();
    }
}
