//! Back into the fabric that an ENode was in, at a standby that takes over or at the same FCF.
//!
//! FKA_ADV_PERIOD is 1 s. FCF 1 is heard at 1000 ms for the last time, so it is silent at 3500 ms.

use super::rig::{Rig, Says, fcf, ms};
use crate::wire::fip::Flags;
use crate::wire::names::Wwn;

const UNAVAILABLE: Flags = Flags(0x8000 | 1);

const fn active() -> Says {
    Says {
        period_ms: 1000,
        ..fcf(1)
    }
}

/// The standby of FCF 1, which has the same names.
const fn standby() -> Says {
    Says {
        switch_name: active().switch_name,
        period_ms: 1000,
        ..fcf(2)
    }
}

/// An FCF that accepts no logins.
fn waiting(says: Says) -> Says {
    let flags = UNAVAILABLE;
    Says { flags, ..says }
}

/// Logged in to FCF 1, at 1000 ms. FCF 2 has been solicited.
fn before_a_takeover() -> Rig {
    let mut rig = Rig::up_with(active());
    rig.hear(&waiting(standby()).solicited().advertisement());
    rig.run(ms(1000));
    rig.hear(&active().advertisement());
    rig.hear(&waiting(standby()).advertisement());
    assert_eq!(rig.sent(), [""; 0]);
    rig
}

/// The standby alone advertises until then. Gives what the ENode sends meanwhile.
fn run(rig: &mut Rig, until: u64) -> Vec<String> {
    let mut lines = Vec::new();
    for second in [2100, 3100] {
        lines.extend(rig.run(ms(second)));
        rig.hear(&waiting(standby()).advertisement());
    }
    lines.extend(rig.run(ms(until)));
    lines
}

#[test]
fn a_takeover_after_the_silence_is_followed_at_once() {
    let mut rig = before_a_takeover();
    let lines = run(&mut rig, 3499);
    assert!(lines.iter().all(|line| line.ends_with("fcf1 KeepAlive")));
    assert_eq!(rig.run(ms(3503)), [" 3500 enode > FCFs Solicitation"]);
    rig.hear(&standby().advertisement());
    assert_eq!(
        rig.run(ms(3503)),
        [" 3503 enode > fcf2 ElsRequest FLOGI 000000 > fffffe"]
    );
}

#[test]
fn a_takeover_before_the_silence_is_followed_when_that_ends() {
    let mut rig = before_a_takeover();
    run(&mut rig, 3498);
    rig.hear(&standby().advertisement());
    assert_eq!(
        rig.run(ms(3500)),
        [
            " 3500 enode > FCFs Solicitation",
            " 3500 enode > fcf2 ElsRequest FLOGI 000000 > fffffe"
        ]
    );
}

/// The order of what the two switches say is any.
#[test]
fn a_takeover_of_a_switch_that_is_told_to_end_is_followed_at_once() {
    let [unavailable, cleared, taken_over] = [
        waiting(active()).advertisement(),
        active().clears(&[]),
        standby().advertisement(),
    ];
    for frames in [
        [&unavailable, &taken_over, &cleared],
        [&unavailable, &cleared, &taken_over],
    ] {
        let mut rig = before_a_takeover();
        for frame in frames {
            rig.hear(frame);
        }
        let lines = rig.run(ms(1000));
        let flogi = lines.last().map(String::as_str);
        let expected = " 1000 enode > fcf2 ElsRequest FLOGI 000000 > fffffe";
        assert_eq!(flogi, Some(expected), "{lines:?}");
    }
}

/// It is the better one, as it was when it was chosen.
#[test]
fn an_fcf_that_clears_a_link_is_awaited_though_there_is_another() {
    let mut rig = Rig::up();
    rig.hear(&fcf(2).solicited().advertisement());
    rig.hear(&fcf(1).clears(&[]));
    assert_eq!(rig.run(ms(560)), ["  500 enode > FCFs Solicitation"]);
    rig.hear(&fcf(1).solicited().advertisement());
    assert_eq!(
        rig.run(ms(560)),
        ["  560 enode > fcf1 ElsRequest FLOGI 000000 > fffffe"]
    );
}

#[test]
fn an_fcf_that_clears_a_link_is_not_awaited_for_long() {
    let mut rig = Rig::up();
    rig.hear(&fcf(2).solicited().advertisement());
    rig.hear(&fcf(1).clears(&[]));
    assert_eq!(
        rig.run(ms(1000))[1..],
        [" 1000 enode > fcf2 ElsRequest FLOGI 000000 > fffffe"]
    );
}

/// There may be more of it, or of others, which decide about a pin.
#[test]
fn another_fabric_is_not_logged_in_to_at_once() {
    let other = Says {
        fabric_name: Wwn(0x2001_0000_0000_0001),
        ..standby()
    };
    let mut rig = Rig::up_with(active());
    assert_eq!(
        rig.run(ms(2600)).last().unwrap(),
        " 2500 enode > FCFs Solicitation"
    );
    rig.hear(&other.solicited().advertisement());
    assert_eq!(
        rig.run(ms(3100)),
        [" 3100 enode > fcf2 ElsRequest FLOGI 000000 > fffffe"]
    );
}

#[test]
fn a_link_that_goes_down_has_all_fcfs_asked_again() {
    let mut rig = before_a_takeover();
    rig.enode.link(rig.now, false);
    rig.enode.link(rig.now, true);
    rig.sent();
    rig.hear(&active().solicited().advertisement());
    assert_eq!(
        rig.run(ms(1500)),
        [" 1500 enode > fcf1 ElsRequest FLOGI 000000 > fffffe"]
    );
}
