use super::rig::{Lan, alone, config, ms, multicast, port, receive, told};
use crate::fip::{FipConfig, Mode};
use crate::wire::fip::FipOperation;

const fn p2p(number: u16) -> FipConfig {
    FipConfig {
        mode: Mode::PointToPoint,
        ..config(number)
    }
}

#[test]
fn a_port_alone_says_so_in_what_is_no_probe() {
    assert_eq!(
        alone(&mut port(p2p(1)), ms(1100)),
        [
            "0001 > both ProbeRequest 000001",
            "0001 > both ProbeRequest 000001",
            "0001 > both ClaimNotification 000001 P",
            "vn:0001 > both Beacon 000001 P",
        ]
    );
}

#[test]
fn two_ports_find_each_other() {
    let mut lan = Lan::of(&[p2p(1), p2p(2)]);
    lan.run(ms(2000));
    assert!(lan.all_know(1));
    lan.run(ms(60_000));
    assert_eq!(lan.told().len(), 4);
}

#[test]
fn a_third_one_parts_them_until_it_has_left() {
    let mut lan = Lan::of(&[p2p(1), p2p(2)]);
    lan.run(ms(2000));
    lan.told();
    // What the third says is refused by the others, who note that it is there.
    let claim = super::rig::message(
        &p2p(3),
        FipOperation::ClaimNotification,
        3,
        crate::wire::ethernet::Mac::ALL_PT2PT_ENODE,
    );
    for port in &mut lan.ports {
        let refused = receive(port, ms(2000), &claim).unwrap_err();
        assert!(refused.rule.starts_with("a third VN_Port"), "{refused}");
    }
    lan.run_with(ms(2000), |_| false);
    assert_eq!(
        lan.told(),
        ["0: lost 000002, Crowded", "1: lost 000001, Crowded"]
    );
    for until in [12_000, 20_000] {
        lan.run_with(ms(until), |line| !line.contains("Beacon"));
        assert!(lan.all_know(0));
    }
}

#[test]
fn who_hears_of_multipoint_changes_over() {
    let mut lan = Lan::of(&[config(1)]);
    lan.run(ms(2000));
    lan.trace();
    lan.add(p2p(2), 2);
    lan.run(ms(4000));
    let trace = lan.trace();
    let invited = trace
        .iter()
        .position(|line| line == "0001 > all ProbeRequest 000001");
    let claimed = trace
        .iter()
        .position(|line| line == "0002 > both ClaimNotification 000002 P");
    assert!(claimed.is_some() && claimed < invited, "{trace:?}");
    assert_eq!(lan.ports[1].mode(), Mode::Multipoint);
    assert!(lan.all_know(1));
}

#[test]
fn a_link_of_two_ends_when_a_third_speaks_multipoint() {
    let mut lan = Lan::of(&[p2p(1), p2p(2)]);
    lan.run(ms(2000));
    lan.told();
    lan.add(config(3), 3);
    lan.run(ms(6000));
    let lost: Vec<_> = lan.told().into_iter().take(4).collect();
    assert_eq!(
        lost,
        [
            "0: lost 000002, Mode",
            "0: released 000001",
            "1: lost 000001, Mode",
            "1: released 000002",
        ]
    );
    assert!(lan.all_know(2));
}

#[test]
fn the_mode_is_the_own_one_again_after_a_flap() {
    let mut fip = port(p2p(1));
    alone(&mut fip, ms(1000));
    let probe = multicast(&config(2), FipOperation::ProbeRequest, 2);
    receive(&mut fip, ms(1000), &probe).unwrap();
    assert_eq!(told(&mut fip), ["claimed 000001", "released 000001"]);
    assert_eq!(fip.mode(), Mode::Multipoint);
    fip.link(ms(1100), false);
    fip.link(ms(1200), true);
    assert_eq!(fip.mode(), Mode::PointToPoint);
}
