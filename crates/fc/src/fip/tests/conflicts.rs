use super::rig::{Lan, alone, config, ms, multicast, port, receive, told};
use crate::fip::FipConfig;
use crate::wire::ethernet::Mac;
use crate::wire::fip::FipOperation;
use crate::wire::names::{FcId, Wwn};

/// Ports whose addresses end alike want the same N_Port_ID.
fn alike(number: u16) -> FipConfig {
    FipConfig {
        mac: Mac([2, 0, 0, number as u8, 0x41, 0]),
        ..config(number)
    }
}

#[test]
fn of_two_that_start_together_the_higher_wwpn_gets_the_id() {
    let mut lan = Lan::of(&[alike(1), alike(2)]);
    lan.run(ms(3000));
    assert_eq!(lan.ports[1].fc_id(), Some(FcId(0x4100)));
    assert_ne!(lan.ports[0].fc_id().unwrap(), FcId(0x4100));
    assert!(lan.all_know(1));
    assert_eq!(lan.ports[0].statistics().conflicts, 1);
}

#[test]
fn who_comes_later_takes_another_id_whatever_its_wwpn() {
    let mut lan = Lan::of(&[alike(1)]);
    lan.run(ms(2000));
    lan.trace();
    lan.add(alike(2), 2);
    lan.run(ms(4000));
    assert_eq!(lan.ports[0].fc_id(), Some(FcId(0x4100)));
    assert_eq!(lan.ports[0].statistics().conflicts, 0);
    assert!(lan.all_know(1));
    let trace = lan.trace();
    assert!(trace[1].ends_with("ProbeReply 004100"), "{trace:?}");
}

/// Two Ethernets, with the same N_Port_ID on each, become one.
#[test]
fn when_ethernets_are_joined_the_lower_wwpn_moves() {
    let mut lan = Lan::of(&[alike(1), alike(2), config(3)]);
    // Apart for as long as they come up.
    lan.run_with(ms(1500), |_| false);
    assert_eq!(lan.ports[0].fc_id(), lan.ports[1].fc_id());
    lan.told();
    lan.run(ms(30_000));
    assert_eq!(lan.ports[1].fc_id(), Some(FcId(0x4100)));
    assert_eq!(lan.told()[0], "0: released 004100");
    assert!(lan.all_know(2));
}

/// That is a mistake of whoever set them up, but they do not claim against each other for ever.
#[test]
fn two_of_the_same_wwpn_do_not_quarrel() {
    let twin = |number| FipConfig {
        wwpn: Wwn(0x2000_0200_0000_0001),
        ..alike(number)
    };
    let mut lan = Lan::of(&[twin(1), twin(2)]);
    lan.run_with(ms(1500), |_| false);
    lan.trace();
    lan.run(ms(30_000));
    assert_ne!(lan.ports[0].fc_id(), lan.ports[1].fc_id());
    assert!(lan.trace().len() < 60);
}

#[test]
fn ten_conflicts_make_it_slow() {
    let mut fip = port(config(5));
    let mut now = ms(0);
    let mut tried = vec![fip.fc_id];
    for _ in 0..12 {
        let claim = multicast(
            &config(9),
            FipOperation::ClaimNotification,
            fip.fc_id.0 as u16,
        );
        receive(&mut fip, now, &claim).unwrap();
        tried.push(fip.fc_id);
        now = fip.next_deadline().unwrap();
    }
    assert!(now >= ms(20_000) && now < ms(40_000), "{now:?}");
    assert!(tried.windows(2).all(|pair| pair[0] != pair[1]));
    assert_eq!(fip.statistics().conflicts, 12);
}

/// It comes back by a loop of bridges, or because the Ethernet port hears itself.
#[test]
fn what_is_ours_is_no_conflict() {
    let mut fip = port(config(5));
    alone(&mut fip, ms(1000));
    for operation in [FipOperation::ProbeRequest, FipOperation::ClaimNotification] {
        receive(&mut fip, ms(1000), &multicast(&config(5), operation, 5)).unwrap();
    }
    assert_eq!(fip.fc_id(), Some(FcId(5)));
    assert_eq!(told(&mut fip), ["claimed 000005"]);
    assert_eq!(alone(&mut fip, ms(1000)).len(), 0);
}

#[test]
fn the_id_is_kept_over_a_link_flap() {
    let mut lan = Lan::of(&[alike(1)]);
    lan.run(ms(2000));
    lan.add(alike(2), 2);
    lan.run(ms(4000));
    let had = lan.ports[1].fc_id();
    lan.ports[1].link(ms(4000), false);
    lan.run(ms(4100));
    lan.ports[1].link(ms(4100), true);
    lan.run(ms(6000));
    assert_eq!(lan.ports[1].fc_id(), had);
    assert_eq!(lan.ports[1].statistics().conflicts, 1);
}

#[test]
fn ids_that_nobody_may_have_are_not_preferred() {
    for (low, fc_id) in [(0, 1), (0xffff, 0xfffe), (0x4100, 0x4100)] {
        assert_eq!(port(config(low)).fc_id, FcId(fc_id));
    }
}
