//! Extended link services of each well-known address.

use super::rig::{ELS, Rig, SWITCH, id, login, parameters, told, wwnn, wwpn};
use crate::fabric::PortNumber;
use crate::fabric::servers::{PortLogin, ServersEvent};
use crate::wire::els::{
    Adisc, Code, Els, FcpParameters, LinkErrors, Logo, LsRejectReason, Reply, ServicePage, TimeOuts,
};
use crate::wire::fcoe::{Eof, Sof};
use crate::wire::frame::{FCtl, FrameHeader, FrameType, OxId, RCtl, RxId};
use crate::wire::names::{FcId, Wwn};

const SERVICES: [FcId; 3] = [FcId::DIRECTORY, FcId::FABRIC_CONTROLLER, FcId::MANAGEMENT];

fn logo(number: u32) -> Els {
    Els::Logo(Logo {
        fc_id: id(number),
        wwpn: wwpn(number),
    })
}

fn adisc(number: u32) -> Els {
    Els::Adisc(Adisc {
        hard_address: FcId(0),
        wwpn: wwpn(number),
        wwnn: wwnn(number),
        fc_id: id(number),
    })
}

#[test]
fn a_port_logs_in_to_a_service_and_out() {
    for service in SERVICES {
        let mut rig = Rig::new([1]);
        let mut ask = |els: &Els| told(&rig.els(1, service, els));
        let (plogi, pdisc) = (
            Els::Plogi(parameters(1, 2048)),
            Els::Pdisc(parameters(1, 2048)),
        );
        assert_eq!(ask(&adisc(1)), "LS_RJT 09/1e");
        assert_eq!(ask(&pdisc), "LS_RJT 09/1e");
        assert_eq!(ask(&plogi), "LS_ACC");
        assert_eq!(ask(&pdisc), "LS_ACC");
        assert_eq!(ask(&adisc(1)), "LS_ACC");
        assert_eq!(ask(&adisc(2)), "LS_RJT 03/0d");
        assert_eq!(ask(&logo(1)), "LS_ACC");
        assert_eq!(ask(&adisc(1)), "LS_RJT 09/1e");
    }
}

#[test]
fn a_service_has_a_name_of_its_own() {
    let mut rig = Rig::new([1]);
    let plogi = Els::Plogi(parameters(1, 2112));
    let Reply::Login(login) = rig.els(1, FcId::DIRECTORY, &plogi) else {
        unreachable!("not accepted")
    };
    assert_eq!(
        (login.wwpn, login.wwnn),
        (Wwn(0x20fc_0200_0000_0001), SWITCH)
    );
    assert_eq!(
        (login.class_3.receive_size, login.e_d_tov_ms()),
        (2112, 2000)
    );
    let Reply::Adisc(adisc) = rig.els(1, FcId::DIRECTORY, &adisc(1)) else {
        unreachable!("not accepted")
    };
    assert_eq!((adisc.wwpn, adisc.fc_id), (login.wwpn, FcId::DIRECTORY));
}

#[test]
fn logins_that_cannot_be() {
    let mut rig = Rig::new([1]);
    let mut ask = |els: &Els| told(&rig.els(1, FcId::DIRECTORY, els));
    assert_eq!(
        ask(&Els::Plogi(parameters(2, 2112))),
        "LS_RJT 03/0d",
        "another's name"
    );
    assert_eq!(ask(&Els::Plogi(parameters(1, 255))), "LS_RJT 03/07");
    let mut classless = parameters(1, 2112);
    classless.class_3.options = 0;
    assert_eq!(ask(&Els::Plogi(classless)), "LS_RJT 03/07");
    assert_eq!(ask(&adisc(1)), "LS_RJT 09/1e");
}

/// All that no service does, at each address.
#[test]
fn everything_else_is_not_supported() {
    let mut rig = Rig::new([1]);
    let page = ServicePage::fcp(FcpParameters::INITIATOR);
    let other = [
        Els::Flogi(parameters(1, 2112)),
        Els::Fdisc(parameters(1, 2112)),
        Els::Prli(vec![page]),
        Els::Other(Code(0x7f)),
    ];
    let addresses = [FcId(0xff_fffb), FcId(0xff_fc01), FcId::FABRIC_F];
    for to in SERVICES.into_iter().chain(addresses) {
        for els in &other {
            assert_eq!(told(&rig.els(1, to, els)), "LS_RJT 0b/2c", "{to} {els:?}");
        }
    }
    assert_eq!(
        told(&rig.els(1, FcId::FABRIC_F, &Els::Plogi(parameters(1, 2112)))),
        "LS_RJT 0b/2c"
    );
}

/// A search for a fault begins with these, at any address. None of them needs a PLOGI.
#[test]
fn every_service_tells_its_times_names_and_errors() {
    let names = [0x20fc, 0x20fd, 0x20fa].map(|high| Wwn(high << 48 | 0x0200_0000_0001));
    for (service, name) in SERVICES.into_iter().zip(names) {
        tells_times_names_and_errors(service, name);
    }
    tells_times_names_and_errors(FcId::FABRIC_F, login(1).f_port_name);
}

fn tells_times_names_and_errors(to: FcId, name: Wwn) {
    let mut rig = Rig::new([1]);
    let reply = rig.els(1, to, &Els::Rtv);
    let times = TimeOuts {
        r_a_tov_ms: 10_000,
        e_d_tov: 2000,
        qualifier: 0,
    };
    assert_eq!(reply, Reply::Rtv(times));

    let Reply::Rnid(node) = rig.els(1, to, &Els::Rnid(0xdf)) else {
        unreachable!("not accepted")
    };
    assert_eq!(node.names, Some((name, SWITCH)));

    let errors = LinkErrors {
        link_failures: 3,
        ..LinkErrors::default()
    };
    rig.servers.set_link_errors(PortNumber(1), errors);
    let others = LinkErrors::default();
    rig.servers.set_link_errors(PortNumber(2), others);
    for of in [FcId(0), id(1), to] {
        assert_eq!(rig.els(1, to, &Els::Rls(of)), Reply::Rls(errors));
    }
    assert_eq!(told(&rig.els(1, to, &Els::Rls(id(2)))), "LS_RJT 03/1f");

    let data: Vec<_> = (0..2108).map(|byte| byte as u8).collect();
    let echoed = rig.els(1, to, &Els::Echo(data.clone()));
    assert_eq!(echoed, Reply::Echo(data));
}

/// The answer to a LOGO of the fabric is sent before the login is taken away.
#[test]
fn a_port_logs_out_of_the_fabric() {
    let mut rig = Rig::new([1, 2]);
    assert_eq!(told(&rig.els(1, FcId::FABRIC_F, &logo(2))), "LS_RJT 03/0d");
    assert!(rig.events().is_empty());
    assert_eq!(told(&rig.els(1, FcId::FABRIC_F, &logo(1))), "LS_ACC");
    assert_eq!(rig.events(), [ServersEvent::LoggedOut(id(1))]);
    rig.servers.logged_out(rig.now, id(1));
    assert_eq!(rig.servers.ports().count(), 1);
    rig.sends((id(1), FcId::FABRIC_F), ELS, &Els::Rtv.encode(), 2112);
    assert!(rig.sent().is_empty(), "no login, no answer");
}

#[test]
fn a_port_that_forgot_its_login_to_the_fabric_begins_anew() {
    let mut rig = Rig::new([1]);
    rig.log_in(1, FcId::DIRECTORY);
    rig.servers.logged_in(rig.now, login(1));
    assert_eq!(
        told(&rig.els(1, FcId::DIRECTORY, &adisc(1))),
        "LS_RJT 09/1e"
    );
}

#[test]
fn an_abort_is_accepted() {
    let mut rig = Rig::new([1]);
    let kind = (RCtl::ABTS, FrameType::BLS);
    let exchange = (OxId(7), RxId(0xffff));
    let header = FrameHeader::new(kind, (id(1), FcId::DIRECTORY), exchange);
    let mut frame = rig
        .frames((id(1), FcId::DIRECTORY), kind, &[], 2112)
        .remove(0);
    frame.header = header;
    rig.comes(&frame);
    let sent = rig.sent_one();
    assert_eq!(
        (sent.header.r_ctl, sent.header.kind),
        (RCtl::BA_ACC, FrameType::BLS)
    );
    assert_eq!(
        (sent.header.ox_id, sent.header.f_ctl),
        (OxId(7), FCtl::REPLY)
    );
    assert_eq!(sent.payload[4..], [0, 7, 0xff, 0xff, 0, 0, 0xff, 0xff]);
}

#[test]
fn frames_that_are_no_requests_are_dropped_and_told_once() {
    let mut rig = Rig::new([1]);
    let fcp = (RCtl::UNSOLICITED_COMMAND, FrameType::FCP);
    for _ in 0..3 {
        rig.sends((id(1), FcId::DIRECTORY), fcp, &[0; 32], 2112);
    }
    let mut half = rig.frames((id(1), FcId::DIRECTORY), ELS, &Els::Rtv.encode(), 2112);
    half[0].eof = Eof::N;
    rig.comes(&half[0]);
    half[0].eof = Eof::T;
    half[0].sof = Sof::N3;
    rig.comes(&half[0]);
    assert!(rig.sent().is_empty());
    assert_eq!(rig.events().len(), 1);
    // A second later there may be another.
    rig.pass(1000);
    rig.sends((id(1), FcId::DIRECTORY), ELS, &[0x03, 0, 0, 0, 1], 2112);
    assert_eq!(
        told(&Reply::parse(Code::PLOGI, &rig.sent_one().payload).unwrap()),
        "LS_RJT 07/2d"
    );
    assert_eq!(rig.events().len(), 1);
    // Of broadcasts, and of who is not logged in, nothing is heard.
    rig.pass(1000);
    rig.sends((id(1), FcId::BROADCAST), ELS, &Els::Rtv.encode(), 2112);
    rig.sends((id(9), FcId::FABRIC_F), ELS, &Els::Rtv.encode(), 2112);
    assert!(rig.sent().is_empty() && rig.events().is_empty());
}

/// How many of so many requests of a port are accepted, and how many rejected.
fn flood(rig: &mut Rig, number: u32, count: usize) -> (usize, usize) {
    let mut replies = (0, 0);
    for _ in 0..count {
        match rig.els_or_silence(number, FcId::FABRIC_F, &Els::Rtv) {
            Some(Reply::Reject(LsRejectReason::BUSY)) => replies.1 += 1,
            Some(_) => replies.0 += 1,
            None => {}
        }
    }
    replies
}

/// A port that never stops is told that the service is busy, and then nothing; others are served.
#[test]
fn a_flood_is_bounded() {
    let mut rig = Rig::new([1, 2]);
    assert_eq!(flood(&mut rig, 1, 100_000), (8000, 2000));
    assert_eq!(told(&rig.els(2, FcId::FABRIC_F, &Els::Rtv)), "LS_ACC");
    rig.pass(1);
    assert_eq!(told(&rig.els(1, FcId::FABRIC_F, &Els::Rtv)), "LS_ACC");
}

/// An ENode with many ports may not ask more than one with one.
#[test]
fn further_ports_of_an_enode_share_its_budget() {
    let mut rig = Rig::new([]);
    for number in 1..=256 {
        let (port, enode) = (PortNumber(0), login(1).enode);
        let further = PortLogin {
            port,
            enode,
            ..login(number)
        };
        rig.servers.logged_in(rig.now, further);
    }
    let mut served = 0;
    for number in 1..=256 {
        served += flood(&mut rig, number, 100).0;
    }
    assert_eq!(served, 8000);
}

/// Whoever makes up ENodes behind a port of the switch takes from the others there only, and has
/// no more when they log in anew.
#[test]
fn enodes_behind_a_port_of_the_switch_have_a_budget_together() {
    let mut rig = Rig::new([33]);
    let mut served = 0;
    for number in (32..32 * 100).step_by(32) {
        for _ in 0..3 {
            rig.servers.logged_in(rig.now, login(number));
            served += flood(&mut rig, number, 500).0;
            rig.servers.logged_out(rig.now, id(number));
        }
    }
    assert_eq!(served, 64_000);
    assert_eq!(told(&rig.els(33, FcId::FABRIC_F, &Els::Rtv)), "LS_ACC");
}

/// The end of a login costs more than its answer.
#[test]
fn logouts_from_the_fabric_are_bounded() {
    let mut rig = Rig::new([1]);
    let logo = logo(1);
    for _ in 0..4096 {
        assert_eq!(told(&rig.els(1, FcId::FABRIC_F, &logo)), "LS_ACC");
        assert_eq!(rig.events(), [ServersEvent::LoggedOut(id(1))]);
    }
    assert_eq!(told(&rig.els(1, FcId::FABRIC_F, &logo)), "LS_RJT 05/29");
    assert_eq!(rig.events(), []);
    rig.pass(16);
    assert_eq!(told(&rig.els(1, FcId::FABRIC_F, &logo)), "LS_ACC");
}

/// What costs one frame is answered by as many as the budget has.
#[test]
fn aborts_are_answered_within_the_budget() {
    let mut rig = Rig::new([1]);
    let kind = (RCtl::ABTS, FrameType::BLS);
    let mut answers = 0;
    for _ in 0..10_000 {
        rig.sends((id(1), FcId::DIRECTORY), kind, &[], 2112);
        answers += rig.sent().len();
    }
    assert_eq!(answers, 8000);
}

/// Where the switch takes no frames, requests are dropped.
#[test]
fn answers_do_not_pile_up() {
    let mut rig = Rig::new([1]);
    for _ in 0..5000 {
        rig.sends((id(1), FcId::FABRIC_F), ELS, &Els::Rtv.encode(), 2112);
    }
    assert_eq!(rig.sent().len(), 1024);
}
