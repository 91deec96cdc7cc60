//! FLOGI, FDISC and LOGO inside FIP.

use super::rig::{ask, frames, host, ms, receive, sent, switch, told, vn};
use crate::fabric::login::Logins;
use crate::fabric::{PortNumber, SwitchLogin};
use crate::wire::els::{Code, Els, Reply};
use crate::wire::ethernet::{EthernetHeader, Mac};
use crate::wire::fip::{Descriptor, DescriptorType, FipMessage, Flags};
use crate::wire::frame::OxId;
use crate::wire::names::{FcId, Wwn};

const FIRST: FcId = FcId(0x01_0100);

#[test]
fn a_host_logs_in_and_out() {
    let mut switch = switch();
    let host = host(0, 1);
    assert_eq!(
        ask(&mut switch, 1, 0, &host.flogi(5)),
        ["fcf1.0 > host1 ElsReply LS_ACC of 0005 to 010100 vn:010100"]
    );
    assert_eq!(
        told(&mut switch),
        ["ids", "20:00:02:00:00:00:00:01 in at eth0 as 010100"]
    );
    assert_eq!(
        ask(&mut switch, 2, 0, &host.logo(FIRST, 6)),
        ["fcf1.0 > host1 ElsReply LS_ACC of 0006 to 010100 vn:010100"]
    );
    assert_eq!(told(&mut switch), ["010100 out, LoggedOut"]);
    ask(&mut switch, 3, 0, &host.flogi(7));
    assert_eq!(
        told(&mut switch),
        ["20:00:02:00:00:00:00:01 in at eth0 as 010100"],
        "the same"
    );
}

#[test]
fn the_f_port_says_what_the_fabric_is() {
    let mut switch = switch();
    receive(&mut switch, 1, 1, &mut host(1, 1).flogi(5));
    let frame = frames(&mut switch, 1).remove(0);
    let (_, payload) = EthernetHeader::parse(&frame).unwrap();
    let message = FipMessage::parse(payload).unwrap();
    let first = message.descriptors().next().unwrap().unwrap();
    let Descriptor::Els(els) = first else {
        panic!("{first:?}");
    };
    let Ok(Reply::Login(login)) = Reply::parse(Code::FLOGI, els.payload) else {
        panic!("{els:?}");
    };
    assert_eq!((login.r_a_tov_ms(), login.e_d_tov_ms()), (10_000, 2_000));
    assert_eq!((login.features.0, login.receive_size), (0xb000, 2112));
    assert_eq!(login.wwnn, switch.fabric_name());
    assert_eq!(login.wwpn, Wwn(0x3001_0200_00fc_0101));
    assert_eq!((els.header.s_id, els.header.d_id), (FcId::FABRIC_F, FIRST));
    assert_eq!(message.flags, Flags::FPMA);
}

#[test]
fn a_request_that_comes_twice_logs_in_once() {
    let mut switch = switch();
    let host = host(0, 1);
    host.log_in(&mut switch, 1);
    assert_eq!(ask(&mut switch, 1_000, 0, &host.flogi(1)).len(), 1);
    assert!(told(&mut switch).is_empty());
    ask(&mut switch, 2_001, 0, &host.flogi(1));
    assert_eq!(told(&mut switch).len(), 2, "after 2 s it is another one");
}

/// The ENode would not hear that it is logged in anew, and that what it has registered is gone.
#[test]
fn a_late_copy_of_a_request_before_the_last_one_changes_nothing() {
    let mut switch = switch();
    let host = host(0, 1);
    host.log_in(&mut switch, 1);
    for ox_id in [2, 3] {
        ask(&mut switch, 2, 0, &host.flogi(ox_id));
        assert_eq!(told(&mut switch).len(), 2);
    }
    for ox_id in [1, 2, 3] {
        ask(&mut switch, 3, 0, &host.flogi(ox_id));
        assert!(told(&mut switch).is_empty(), "{ox_id}");
    }
}

/// Its ENode has heard that the login is over, and has begun anew or is about to.
#[test]
fn a_late_copy_of_a_request_whose_login_is_over_makes_no_other() {
    let mut switch = switch();
    let host = host(0, 1);
    host.log_in(&mut switch, 1);
    for up in [false, true] {
        switch.link(ms(2), PortNumber(0), up);
    }
    told(&mut switch);
    assert!(ask(&mut switch, 3, 0, &host.flogi(1)).is_empty());
    assert!(told(&mut switch).is_empty());
    ask(&mut switch, 4, 0, &host.flogi(2));
    assert_eq!(told(&mut switch).len(), 1);
}

/// Its ENode has asked again since, and would not hear that this login is over.
#[test]
fn a_late_copy_of_a_request_that_was_rejected_changes_nothing() {
    let mut switch = switch();
    let host = host(0, 1);
    let early = host.named(11).fdisc(7);
    assert_eq!(
        ask(&mut switch, 1, 0, &early),
        ["fcf1.0 > host1 ElsReply LS_RJT 09/1e of 0007 to 000000"]
    );
    host.log_in(&mut switch, 2);
    ask(&mut switch, 3, 0, &host.named(11).fdisc(8));
    told(&mut switch);
    assert_eq!(
        ask(&mut switch, 4, 0, &early),
        ["fcf1.0 > host1 ElsReply LS_ACC of 0007 to 010101 vn:010101"]
    );
    assert!(told(&mut switch).is_empty());
}

/// An ENode that begins anew has forgotten its further ports.
#[test]
fn a_new_flogi_ends_all_logins_of_its_enode() {
    let mut switch = switch();
    let host = host(0, 1);
    host.log_in(&mut switch, 1);
    ask(&mut switch, 2, 0, &host.named(11).fdisc(2));
    ask(&mut switch, 3, 0, &host.named(12).fdisc(3));
    told(&mut switch);
    ask(&mut switch, 4, 0, &host.flogi(9));
    let expected = [
        "010100 out, Restarted",
        "010101 out, Restarted",
        "010102 out, Restarted",
        "20:00:02:00:00:00:00:01 in at eth0 as 010100",
    ];
    assert_eq!(told(&mut switch), expected);
}

#[test]
fn further_ports_of_an_enode_log_in_by_fdisc() {
    let mut switch = switch();
    let host = host(0, 1);
    assert_eq!(
        ask(&mut switch, 1, 0, &host.named(11).fdisc(1)),
        ["fcf1.0 > host1 ElsReply LS_RJT 09/1e of 0001 to 000000"],
        "its ENode has not logged in"
    );
    host.log_in(&mut switch, 2);
    assert_eq!(
        ask(&mut switch, 3, 0, &host.named(11).fdisc(2)),
        ["fcf1.0 > host1 ElsReply LS_ACC of 0002 to 010101 vn:010101"]
    );
    assert_eq!(
        ask(&mut switch, 4, 0, &host.fdisc(3)),
        ["fcf1.0 > host1 ElsReply LS_RJT 09/0d of 0003 to 000000"],
        "the WWPN of its FLOGI"
    );
    told(&mut switch);
    ask(&mut switch, 5, 0, &host.named(11).fdisc(4));
    assert_eq!(
        told(&mut switch),
        [
            "010101 out, Restarted",
            "20:00:02:00:00:00:00:0b in at eth0 as 010101"
        ]
    );
    ask(&mut switch, 6, 0, &host.logo(FIRST, 5));
    let left: Vec<_> = switch.logins().map(|login| login.fc_id).collect();
    assert_eq!(left, [FcId(0x01_0101)], "the others stay");
}

#[test]
fn a_wwpn_is_of_the_enode_that_has_it_while_that_is_heard() {
    let mut switch = switch();
    host(0, 1).log_in(&mut switch, 1);
    let refused = "LS_RJT 09/0d of 0001 to 000000";
    let other = host(0, 2).named(1);
    assert_eq!(
        ask(&mut switch, 2, 0, &other.flogi(1)),
        [format!("fcf1.0 > host2 ElsReply {refused}")]
    );
    let elsewhere = host(1, 1);
    assert_eq!(
        ask(&mut switch, 3, 1, &elsewhere.flogi(1)),
        [format!("fcf1.1 > host1 ElsReply {refused}")]
    );
    assert_eq!(told(&mut switch).len(), 2);
    switch.expire(ms(20_001));
    assert_eq!(told(&mut switch), ["010100 out, EnodeSilent"]);
    assert_eq!(other.log_in(&mut switch, 20_002), FIRST, "it has its place");
}

#[test]
fn the_link_going_down_ends_its_logins() {
    let mut switch = switch();
    host(0, 1).log_in(&mut switch, 1);
    host(1, 2).log_in(&mut switch, 1);
    switch.link(ms(2), PortNumber(0), false);
    assert_eq!(told(&mut switch), ["010100 out, LinkDown"]);
    let ids: Vec<_> = switch.logins().map(|login| login.mac).collect();
    assert_eq!(ids, [vn(FcId(0x01_0101))]);
    switch.remove_port(ms(3), PortNumber(1));
    assert_eq!(told(&mut switch), ["010101 out, LinkDown"]);
    assert!(sent(&mut switch, 1).is_empty());
}

/// What is offered is FPMA. An ENode that takes either has that; one that takes its own address
/// alone is told why it is refused.
#[test]
fn addresses_are_provided_by_the_fabric() {
    let mut switch = switch();
    let host = host(0, 1);
    let flogi = |flags| {
        let kind = (DescriptorType::FLOGI, FcId::UNIDENTIFIED, OxId(1));
        host.els_with(flags, kind, &Els::Flogi(host.parameters()))
    };
    assert_eq!(
        ask(&mut switch, 1, 0, &flogi(Flags::SPMA)),
        ["fcf1.0 > host1 ElsReply LS_RJT 20/60 of 0001 to 000000"]
    );
    for flags in [Flags::FPMA.with(Flags::SPMA), Flags::default()] {
        assert_eq!(
            ask(&mut switch, 1, 0, &flogi(flags)),
            ["fcf1.0 > host1 ElsReply LS_ACC of 0001 to 010100 vn:010100"]
        );
    }
}

/// So that the hosts at one port cannot take the places of all others.
#[test]
fn logins_are_bounded_and_each_port_has_some_for_itself() {
    let mut logins = Logins::default();
    let mut count = 0;
    let mut fill = |logins: &mut Logins, port, enode| {
        let key = (PortNumber(port), Mac([2, 0, 0, 0, enode, 0]));
        let before = count;
        while logins.has_room(key) {
            count += 1;
            logins.insert(ms(0), login(count, key), OxId(0));
        }
        count - before
    };
    for enode in 0..16 {
        assert_eq!(fill(&mut logins, 0, enode), 256, "of one ENode");
    }
    assert_eq!(fill(&mut logins, 0, 16), 0, "4,096 in all");
    assert_eq!(fill(&mut logins, 1, 17), 16, "of another port");
    logins.remove(FcId(1));
    assert_eq!(fill(&mut logins, 1, 18), 0);
    let mut first = FcId(2);
    while logins.iter().count() >= 4096 {
        logins.remove(first);
        first.0 += 1;
    }
    assert_eq!(fill(&mut logins, 1, 18), 1);
}

fn login(number: u32, (port, enode): (PortNumber, Mac)) -> SwitchLogin {
    SwitchLogin {
        fc_id: FcId(number),
        wwpn: Wwn(number.into()),
        wwnn: Wwn(1),
        port,
        place: "eth0".into(),
        enode,
        mac: vn(FcId(number)),
        max_payload: 2112,
        is_further: false,
    }
}
