//! How it ends: by the FCF, by the services, by us.

use super::rig::{FCF, INITIATOR, Rig, SWITCH};
use crate::port::tests::rig::ms;
use crate::wire::els::{Els, Logo};
use crate::wire::fip::{self, Descriptor, FipOperation, Flags};
use crate::wire::names::FcId;

fn paired() -> Rig {
    let mut rig = Rig::up();
    rig.run(ms(4000));
    assert_eq!(rig.initiator.told, ["online 010101", "up 0"]);
    rig.traced();
    rig
}

fn clear(rig: &mut Rig) {
    let says = [Descriptor::Mac(FCF), Descriptor::Name(SWITCH)];
    let bytes = fip::encode(FipOperation::ClearVirtualLinks, Flags::F_PORT, &says);
    rig.send_fip(crate::tests::config(1).mac, &bytes, None);
}

#[test]
fn cleared_links_end_the_nexus_and_come_back() {
    let mut rig = paired();
    clear(&mut rig);
    rig.pass(1000);
    assert_eq!(
        rig.initiator.told[2..],
        ["down 0: Lost(Cleared)", "offline", "online 010101", "up 0"]
    );
    // It has logged in anew with the target, which was told nothing of it.
    assert_eq!(rig.target.told[2..], ["down 0: Replaced", "up 0"]);
}

#[test]
fn a_logo_of_the_f_port_does_so_too() {
    let mut rig = paired();
    let logo = Els::Logo(Logo {
        fc_id: INITIATOR,
        wwpn: rig.initiator.port.wwpn(),
    });
    rig.request(FcId::FABRIC_F, INITIATOR, &logo);
    rig.pass(1000);
    assert_eq!(
        rig.initiator.told[2..],
        [
            "down 0: Lost(LoggedOut)",
            "offline",
            "online 010101",
            "up 0"
        ]
    );
}

#[test]
fn an_fcf_that_falls_silent_ends_it() {
    let mut rig = paired();
    rig.run(ms(226_000));
    let told = &rig.initiator.told;
    assert_eq!(told[2..4], ["down 0: Lost(Silent)", "offline"]);
}

#[test]
fn a_name_server_that_logs_us_out_is_registered_with_again_and_remote_ports_stay() {
    let mut rig = paired();
    let logo = Els::Logo(Logo {
        fc_id: FcId::DIRECTORY,
        wwpn: SWITCH,
    });
    rig.request(FcId::DIRECTORY, INITIATOR, &logo);
    rig.pass(2000);
    let trace = rig.traced();
    assert_eq!(trace[0], " 4000 010101 > fffffc LS_ACC");
    assert_eq!(trace[1], " 4500 010101 > fffffc PLOGI");
    assert!(trace.contains(&" 4500 010101 > fffffc CT 021f".to_owned()));
    assert_eq!(rig.initiator.told.len(), 2);
}

#[test]
fn logging_out_tells_every_port_and_the_fabric_last() {
    let mut rig = paired();
    rig.target.port.log_out(ms(4000));
    rig.pass(10);
    assert_eq!(
        rig.traced()[..2],
        [" 4000 010100 > 010101 LOGO", " 4000 010100 FIP LOGO"]
    );
    assert_eq!(rig.target.told[2..], ["down 0: ByUs"]);
    rig.target.port.link(ms(4010), false);
    rig.pass(1);
    assert_eq!(rig.target.told[3..], ["offline"]);
    assert_eq!(rig.initiator.told[2..], ["down 0: LoggedOut"]);
}

#[test]
fn an_initiator_that_comes_back_finds_the_target_again() {
    let mut rig = paired();
    rig.initiator.port.log_out(ms(4000));
    rig.pass(10);
    rig.initiator.port.link(ms(4010), false);
    rig.pass(1000);
    rig.initiator.port.link(ms(5010), true);
    rig.pass(1000);
    assert_eq!(rig.target.told[2..], ["down 0: LoggedOut", "up 0"]);
}

/// A late copy of an answer to the login before is none to a request of this one.
#[test]
fn requests_to_services_are_numbered_on_after_a_login() {
    let mut rig = paired();
    let next = |rig: &Rig| {
        let client = rig.initiator.port.name_client.as_ref();
        client.expect("a login").next_ox_id()
    };
    let before = next(&rig);
    rig.initiator.port.link(ms(4010), false);
    rig.pass(1000);
    rig.initiator.port.link(ms(5010), true);
    rig.pass(1000);
    assert!(next(&rig) > before + 4, "it has registered anew");
}

#[test]
fn a_target_does_not_log_in_to_whoever_has_logged_out() {
    let mut rig = paired();
    rig.initiator.port.log_out(ms(4000));
    rig.pass(10);
    rig.initiator.port.link(ms(4010), false);
    rig.pass(60_000);
    let trace = rig.traced();
    assert!(
        !trace.iter().any(|line| line.ends_with("PLOGI")),
        "{trace:?}"
    );
}
