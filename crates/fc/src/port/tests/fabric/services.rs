//! Services of the fabric that reject, that are silent, and that ask.

use super::rig::{INITIATOR, Rig, TARGET, in_fabric};
use crate::fip::enode::FabricNotice;
use crate::port::tests::rig::ms;
use crate::wire::ct::CtReject;
use crate::wire::ct::name_server::code;
use crate::wire::els::Els;
use crate::wire::names::FcId;

fn notices(rig: &Rig) -> Vec<String> {
    let told = rig.target.notices.iter();
    let told = told.filter(|notice| !matches!(notice, FabricNotice::LoggedIn { .. }));
    told.map(ToString::to_string).collect()
}

#[test]
fn a_name_that_is_rejected_is_told_and_passed_over() {
    for (code, name) in [
        (code::RNN_ID, "RNN_ID"),
        (code::RSNN_NN, "RSNN_NN"),
        (code::RSPN_ID, "RSPN_ID"),
    ] {
        let mut rig = Rig::new(&in_fabric(2), &in_fabric(1));
        rig.rejects.push((code, CtReject::new(9, 0x10)));
        rig.run(ms(1000));
        let told = format!("the name server rejects {name} (09h/10h)");
        assert_eq!(notices(&rig), [told]);
        assert_eq!(rig.entries[&TARGET].features, Some(1));
    }
}

#[test]
fn types_or_features_that_are_rejected_end_the_login() {
    for (code, name) in [(code::RFT_ID, "RFT_ID"), (code::RFF_ID, "RFF_ID")] {
        let mut rig = Rig::new(&in_fabric(2), &in_fabric(1));
        rig.rejects.push((code, CtReject::new(9, 0x10)));
        rig.run(ms(1000));
        assert_eq!(
            notices(&rig)[0],
            format!(
                "the name server rejects {name} (09h/10h), without which other ports do not find \
                 this one"
            )
        );
        assert_eq!(rig.target.told.last().unwrap(), "offline");
        let trace = rig.traced();
        assert!(
            trace.contains(&"  500 010100 FIP LOGO".to_owned()),
            "{trace:?}"
        );
        // It is tried again after a rest.
        rig.rejects.clear();
        rig.run(ms(12_000));
        assert_eq!(
            rig.target.told[rig.target.told.len() - 2..],
            ["online 010100", "up 0"]
        );
    }
}

#[test]
fn services_that_are_silent_are_asked_three_times() {
    let mut rig = Rig::new(&in_fabric(2), &in_fabric(1));
    rig.is_mute = true;
    rig.run(ms(12_600));
    let plogis = rig.traced();
    let plogis = plogis
        .iter()
        .filter(|line| line.ends_with("010100 > fffffc PLOGI"));
    assert_eq!(plogis.count(), 3);
    assert_eq!(
        notices(&rig)[0],
        "the fabric does not answer PLOGI to the name server"
    );
    assert_eq!(rig.target.told, ["online 010100", "offline"]);
}

#[test]
fn without_rscns_a_port_is_up_all_the_same() {
    let mut rig = Rig::new(&in_fabric(2), &in_fabric(1));
    rig.no_scr = true;
    rig.run(ms(1000));
    assert_eq!(
        notices(&rig),
        ["the fabric rejects SCR: not supported (LS_RJT 0bh/00h)"]
    );
    assert_eq!(rig.target.told, ["online 010100", "up 0"]);
    assert!(!rig.initiator.port.is_linking(rig.target.port.wwpn()));
}

/// Both lose three SCRs, and three more: they would hear of no change.
#[test]
fn an_scr_that_was_lost_is_sent_again_while_up() {
    let mut rig = Rig::new(&in_fabric(2), &in_fabric(1));
    rig.lost_scrs = 12;
    rig.run(ms(20_000));
    assert!(notices(&rig).contains(&"the fabric does not answer SCR".to_owned()));
    assert_eq!(rig.target.told, ["online 010100", "up 0"]);
    rig.run(ms(60_000));
    assert_eq!(rig.lost_scrs, 0);
    let sent = |rig: &mut Rig| {
        let lines = rig.traced();
        let of_target = lines.iter().filter(|line| line.contains("010100 > fffffd"));
        of_target.count()
    };
    assert_eq!(sent(&mut rig), 7, "the last one was answered");
    rig.run(ms(120_000));
    assert_eq!(sent(&mut rig), 0);
    assert_eq!(rig.target.told.len(), 2);
}

#[test]
fn a_busy_name_server_is_given_time() {
    let mut rig = Rig::new(&in_fabric(2), &in_fabric(1));
    rig.rejects.push((code::RFT_ID, CtReject::new(5, 0)));
    rig.run(ms(2000));
    assert_eq!(rig.target.told, ["online 010100"]);
    rig.rejects.clear();
    rig.run(ms(3000));
    assert_eq!(rig.entries[&TARGET].features, Some(1));
}

#[test]
fn a_name_server_without_features_lets_all_be_logged_in_to() {
    let mut rig = Rig::new(&in_fabric(2), &in_fabric(1));
    rig.rejects.push((code::GFF_ID, CtReject::new(0x0b, 0)));
    rig.run(ms(1000));
    rig.rscn(INITIATOR, &[(0, TARGET)]);
    rig.run(ms(2000));
    assert_eq!(rig.initiator.told, ["online 010101", "up 0"]);
}

#[test]
fn an_empty_fabric_is_no_mistake() {
    let mut rig = Rig::new(&in_fabric(2), &in_fabric(1));
    rig.rejects.push((code::GPN_FT, CtReject::new(9, 7)));
    rig.run(ms(1000));
    assert_eq!(rig.initiator.told, ["online 010101"]);
    assert!(!rig.initiator.port.is_linking(rig.target.port.wwpn()));
}

#[test]
fn what_services_ask_is_answered() {
    let mut rig = Rig::up();
    let asked = [
        (Els::Echo(vec![1, 2, 3, 4]), "LS_ACC"),
        (Els::Rnid(0xdf), "LS_ACC"),
        (Els::Rtv, "LS_ACC"),
        (Els::Rls(TARGET), "LS_ACC"),
        (Els::Scr(3), "LS_RJT 0b 00"),
    ];
    for (els, answer) in asked {
        rig.request(FcId::FABRIC_CONTROLLER, TARGET, &els);
        rig.pass(1);
        let trace = rig.traced();
        assert!(
            trace[0].ends_with(&format!("010100 > fffffd {answer}")),
            "{trace:?}"
        );
    }
}

#[test]
fn what_strangers_ask_is_answered_if_it_needs_no_login() {
    let mut rig = Rig::up();
    rig.add_entry(FcId(0x01_0300), 7, 2);
    let asked = [
        (Els::Echo(vec![1, 2, 3, 4]), "LS_ACC"),
        (Els::Rnid(0xdf), "LS_ACC"),
        (Els::Prli(Vec::new()), "LS_RJT 07 2d"),
        (
            Els::Rec(crate::wire::els::ExchangeName {
                originator: FcId(0x01_0300),
                ox_id: crate::wire::frame::OxId(1),
                rx_id: crate::wire::frame::RxId(1),
            }),
            "LS_RJT 09 1e",
        ),
    ];
    for (els, answer) in asked {
        rig.request(FcId(0x01_0300), TARGET, &els);
        rig.pass(1);
        let trace = rig.traced();
        assert!(
            trace[0].ends_with(&format!("010100 > 010300 {answer}")),
            "{trace:?}"
        );
    }
    assert!(rig.target.port.find(crate::wire::names::Wwn(7)).is_none());
}
