//! Who is there, and who is told that it is not logged in.

use super::rig::{
    Host, ask, fcoe_frame, host, open, quiet, receive, sent, switch, switch_of, told, vn, wait,
};
use crate::fabric::{DropReason, SwitchConfig, Verdict};
use crate::wire::ethernet::Mac;
use crate::wire::names::{FcId, Wwn};

const FIRST: FcId = FcId(0x01_0100);

/// A sender at port 0 makes them up.
fn forged(number: u32) -> Host {
    let [_, _, a, b] = number.to_be_bytes();
    let mac = Mac([2, 9, 0, 0, a, b]);
    Host { mac, ..host(0, 0) }
}

#[test]
fn an_enode_is_silent_after_two_and_a_half_periods() {
    let mut switch = switch();
    let host = host(0, 1);
    host.log_in(&mut switch, 1_000);
    ask(&mut switch, 10_000, 0, &host.keep_alive());
    wait(&mut switch, 29_999, 0);
    assert!(told(&mut switch).is_empty());
    let lines = wait(&mut switch, 30_010, 0);
    assert_eq!(lines, ["fcf1.0 > host1 ClearVirtualLinks 010100"]);
    assert_eq!(told(&mut switch), ["010100 out, EnodeSilent"]);
    assert_eq!(switch.fip_statistics().silent, 1);
}

/// Linux selects an FCF 2 s after its Advertisement, sends a keep alive each period from then on,
/// and its FLOGI 4 s after the Advertisement.
#[test]
fn an_enode_that_solicited_has_time_to_log_in() {
    let mut switch = switch();
    let host = host(0, 1);
    assert_eq!(ask(&mut switch, 1, 0, &host.solicitation(2500)).len(), 1);
    for at in [3_000, 4_000, 16_000] {
        assert!(ask(&mut switch, at, 0, &host.keep_alive()).is_empty());
    }
    let all = ["fcf1.0 > host1 ClearVirtualLinks"];
    assert_eq!(ask(&mut switch, 16_001, 0, &host.keep_alive()), all);
    ask(&mut switch, 16_100, 0, &host.solicitation(2500));
    assert!(ask(&mut switch, 18_000, 0, &host.keep_alive()).is_empty());
}

/// Linux solicits a standby at each of its Advertisements. When it becomes the active one, the last
/// of them counts.
#[test]
fn an_enode_that_solicits_again_has_time_again() {
    let mut switch = switch();
    let host = host(0, 1);
    for at in (0..=30_000).step_by(1_000) {
        assert_eq!(ask(&mut switch, at, 0, &host.solicitation(2500)).len(), 1);
    }
    assert!(ask(&mut switch, 38_000, 0, &host.keep_alive()).is_empty());
    let all = ["fcf1.0 > host1 ClearVirtualLinks"];
    assert_eq!(ask(&mut switch, 46_001, 0, &host.keep_alive()), all);
}

#[test]
fn a_vn_port_is_silent_after_225_seconds() {
    let mut switch = switch();
    let host = host(0, 1);
    host.log_in(&mut switch, 0);
    ask(&mut switch, 0, 0, &host.named(11).fdisc(2));
    told(&mut switch);
    for at in (8..=320).step_by(8) {
        ask(&mut switch, at * 1000, 0, &host.keep_alive());
        if at == 96 {
            ask(&mut switch, at * 1000, 0, &host.port_keep_alive(FIRST));
        }
        wait(&mut switch, at * 1000, 0);
        let out = told(&mut switch);
        match at {
            232 => assert_eq!(out, ["010101 out, Silent"]),
            // 225 s after 96 s are 321 s.
            _ => assert!(out.is_empty(), "{at}: {out:?}"),
        }
    }
}

/// We have begun anew: an ENode that has no login here is told that all it had is gone, once a
/// second.
#[test]
fn keep_alives_of_those_that_are_not_logged_in_are_answered() {
    let mut switch = switch();
    let host = host(0, 1);
    let all = ["fcf1.0 > host1 ClearVirtualLinks"];
    assert_eq!(ask(&mut switch, 1, 0, &host.keep_alive()), all);
    assert!(ask(&mut switch, 1_000, 0, &host.keep_alive()).is_empty());
    assert_eq!(ask(&mut switch, 1_001, 0, &host.keep_alive()), all);
    let one = ["fcf1.0 > host1 ClearVirtualLinks 010100"];
    assert_eq!(ask(&mut switch, 1, 0, &host.port_keep_alive(FIRST)), one);
    host.log_in(&mut switch, 3_000);
    assert!(ask(&mut switch, 4_000, 0, &host.keep_alive()).is_empty());
    assert!(ask(&mut switch, 4_000, 0, &host.port_keep_alive(FIRST)).is_empty());
    let impostor = host.named(9).port_keep_alive(FIRST);
    assert_eq!(
        ask(&mut switch, 4_000, 0, &impostor),
        one,
        "of another name"
    );
}

/// A frame tells no WWPN, without which Linux believes nothing. If the N_Port_ID is remembered, the
/// VN_Port is back within a round trip.
#[test]
fn a_frame_of_a_port_that_is_not_logged_in_is_answered_with_its_name() {
    let config = SwitchConfig {
        ids: vec![(Wwn(0x2000_0200_0000_0001), FIRST)],
        ..open()
    };
    let mut switch = quiet(switch_of(1, &config, 1));
    let stranger = FcId(0x01_0200);
    let mut stray = |at: u64, from| {
        let mut frame = fcoe_frame(0, from, stranger, 64);
        let verdict = receive(&mut switch, at, 0, &mut frame);
        assert_eq!(verdict, Verdict::Dropped(DropReason::NotLoggedIn));
        sent(&mut switch, 0)
    };
    let cleared = ["fcf1.0 > enodes ClearVirtualLinks 010100"];
    assert_eq!(stray(1, FIRST), cleared);
    assert!(stray(2, FIRST).is_empty(), "once a second");
    assert_eq!(stray(1_001, FIRST), cleared);
    assert!(stray(1_002, stranger).is_empty(), "no name");
    let mut forged = fcoe_frame(0, FIRST, stranger, 64);
    forged[6..12].copy_from_slice(&vn(stranger).0);
    receive(&mut switch, 5_000, 0, &mut forged);
    assert!(sent(&mut switch, 0).is_empty(), "not from its address");
}

#[test]
fn shut_down_clears_all_links_after_the_standby_was_told() {
    let mut switch = switch();
    let (one, two) = (host(0, 1), host(1, 2));
    one.log_in(&mut switch, 1);
    two.log_in(&mut switch, 1);
    switch.shut_down(super::rig::ms(2));
    let expected = [
        "fcf1.0 > enodes Advertisement",
        "fcf1.0 > fcfs Advertisement",
        "fcf1.0 > host1 ClearVirtualLinks",
    ];
    assert_eq!(sent(&mut switch, 0), expected);
    let mut out = told(&mut switch);
    out.sort();
    assert_eq!(out, ["010100 out, ShutDown", "010101 out, ShutDown"]);
    assert_eq!(switch.next_deadline(), None);
    assert!(ask(&mut switch, 3, 0, &one.flogi(9)).is_empty());
    assert!(!switch.is_active());
}

/// A kernel that solicited begins keep alives before its FLOGI, whoever else solicited.
#[test]
fn forged_solicitations_do_not_keep_others_from_logging_in() {
    let mut switch = switch();
    for number in 0..5_000 {
        ask(&mut switch, 1, 0, &forged(number).solicitation(2500));
    }
    for port in [1, 0] {
        let host = host(port, 1);
        ask(&mut switch, 2, port, &host.solicitation(2500));
        let cleared = ask(&mut switch, 3_000, port, &host.keep_alive());
        assert!(cleared.is_empty(), "{cleared:?}");
    }
}

/// Those that are not logged in are told so, whoever else was.
#[test]
fn forged_keep_alives_do_not_keep_others_from_being_told() {
    let mut switch = switch();
    for number in 0..5_000 {
        ask(&mut switch, 1, 0, &forged(number).keep_alive());
    }
    for port in [1, 0] {
        let all = [format!("fcf1.{port} > host1 ClearVirtualLinks")];
        let host = host(port, 1);
        assert_eq!(ask(&mut switch, 2, port, &host.keep_alive()), all);
        assert!(ask(&mut switch, 3, port, &host.keep_alive()).is_empty());
    }
}

/// All ENodes get the answer to a frame, and no budget bounds frames: 1,024 a second are answered.
#[test]
fn frames_of_many_that_are_not_logged_in_are_answered_within_bounds() {
    let ids =
        (0..2_000).map(|number| (Wwn(0x2000 << 48 | number), FcId(0x01_1000 + number as u32)));
    let ids: Vec<_> = ids.collect();
    let config = SwitchConfig {
        ids: ids.clone(),
        ..open()
    };
    let mut switch = quiet(switch_of(1, &config, 1));
    for at in [1, 2, 1_002] {
        for (_, from) in &ids {
            receive(&mut switch, at, 0, &mut fcoe_frame(0, *from, FIRST, 64));
        }
        let expected = if at == 2 { 0 } else { 1024 };
        assert_eq!(sent(&mut switch, 0).len(), expected);
    }
}
