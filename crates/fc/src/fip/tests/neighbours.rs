use super::rig::{Lan, config, ms};
use crate::wire::names::Wwn;

fn pair() -> Lan {
    let mut lan = Lan::of(&[config(1), config(2)]);
    lan.run(ms(2000));
    assert_eq!(lan.told().len(), 4);
    lan
}

#[test]
fn beacons_keep_a_link() {
    let mut lan = pair();
    lan.run(ms(3_600_000));
    assert_eq!(lan.told().len(), 0);
    assert!(lan.all_know(1));
}

#[test]
fn a_neighbour_that_is_silent_for_two_beacons_and_a_half_is_lost() {
    let mut lan = pair();
    lan.run_with(ms(12_000), |_| true);
    lan.run_with(ms(26_000), |line| !line.starts_with("vn:0001"));
    assert_eq!(lan.told().len(), 0);
    lan.run_with(ms(40_000), |line| !line.starts_with("vn:0001"));
    assert_eq!(lan.told(), ["1: lost 000001, Silent"]);
    assert_eq!(lan.ports[1].statistics().link_failures, 1);
    lan.run(ms(60_000));
    assert!(lan.told().contains(&"1: found 000001".into()));
}

#[test]
fn a_port_that_was_killed_is_found_again_before_it_is_missed() {
    let mut lan = pair();
    lan.ports.remove(0);
    lan.run(ms(5000));
    lan.add(config(1), 9);
    lan.run(ms(7000));
    assert_eq!(
        lan.told(),
        [
            "0: lost 000001, Restarted",
            "1: claimed 000001",
            "1: found 000002",
            "0: found 000001",
        ]
    );
}

#[test]
fn a_port_that_comes_back_with_another_id_is_not_there_twice() {
    let mut lan = pair();
    lan.ports.remove(0);
    let mut moved = config(0x77);
    (moved.wwpn, moved.wwnn) = (config(1).wwpn, config(1).wwnn);
    lan.add(moved, 9);
    lan.run(ms(5000));
    let told = lan.told();
    assert_eq!(told[0], "0: lost 000001, Moved");
    let known: Vec<_> = lan.ports[0].neighbours().map(|who| who.fc_id.0).collect();
    assert_eq!(known, [0x77]);
}

#[test]
fn another_port_under_a_known_id_is_another_neighbour() {
    let mut lan = pair();
    lan.ports.remove(0);
    let mut other = config(1);
    other.wwpn = Wwn(0x2000_0200_0000_0999);
    lan.add(other, 9);
    lan.run(ms(5000));
    assert_eq!(lan.told()[0], "0: lost 000001, Moved");
    let known: Vec<_> = lan.ports[0].neighbours().map(|who| who.wwpn).collect();
    assert_eq!(known, [other.wwpn]);
}

#[test]
fn the_link_going_down_loses_all() {
    let mut lan = pair();
    lan.ports[0].link(ms(2000), false);
    lan.run(ms(2000));
    assert_eq!(
        lan.told(),
        ["0: lost 000002, LinkDown", "0: released 000001"]
    );
}

/// The host was asleep: nobody was heard, and nobody heard it.
#[test]
fn after_a_leap_of_the_clock_all_is_found_again() {
    let mut lan = pair();
    let later = ms(10_000_000);
    lan.ports[0].expire(later);
    lan.run(ms(2100));
    assert_eq!(lan.told(), ["0: lost 000002, Silent"]);
    lan.now = later;
    lan.run(later + ms(20_000));
    assert!(lan.all_know(1));
}

#[test]
fn time_does_not_go_back() {
    let mut lan = pair();
    let before = lan.ports[0].next_deadline();
    lan.ports[0].expire(ms(10));
    assert_eq!(lan.ports[0].next_deadline(), before);
}

/// All the Claim Notifications of a port are lost. Its Beacons make the others claim, which it
/// answers.
#[test]
fn a_port_that_was_not_heard_to_claim_is_asked() {
    let mut lan = Lan::of(&[config(1)]);
    lan.run(ms(2000));
    lan.add(config(2), 2);
    lan.run_with(ms(4000), |line| {
        !line.contains("0002 > all ClaimNotification")
    });
    assert!(lan.all_know(1));
}

#[test]
fn sixteen_ports_all_find_each_other() {
    let mut lan = Lan::of(&[]);
    for number in 1..=16 {
        lan.add(config(number), number as u8);
    }
    lan.run(ms(4000));
    for port in &lan.ports {
        assert_eq!(port.neighbours().count(), 15);
    }
}
