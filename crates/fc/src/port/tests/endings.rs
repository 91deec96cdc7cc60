//! How a nexus ends, and comes back.

use super::rig::{Rig, config, ms};
use crate::initiator::{Fate, FcpInitiatorEvent};
use crate::port::config::PortConfig;
use crate::remote::{Partners, RemotePort};
use crate::wire::names::Wwn;

#[test]
fn a_link_that_goes_down_fails_what_is_under_way() {
    let mut rig = Rig::up();
    rig.lose.push("i: CMND");
    rig.inquire();
    rig.initiator.port.link(rig.now, false);
    rig.run(ms(2000));
    let failed = rig.done.iter().filter(
        |event| matches!(event, FcpInitiatorEvent::Failed(failed) if failed.fate == Fate::Unknown),
    );
    assert_eq!(failed.count(), 1);
}

#[test]
fn a_port_that_logs_out_is_gone_at_once() {
    let mut rig = Rig::up();
    rig.initiator.port.log_out(rig.now);
    rig.run(ms(1901));
    assert_eq!(rig.target.told.last().unwrap(), "down 0: Lost(LoggedOut)");
    assert_eq!(rig.initiator.told.last().unwrap(), "down 0: ByUs");
    assert_eq!(rig.target.port.remotes().count(), 0);
}

/// Whenever the target's next Beacon comes: while the initiator lingers, to tell who logs in again
/// that it leaves.
#[test]
fn a_port_that_has_logged_out_does_not_log_in_again() {
    for step in 0..92 {
        let mut rig = Rig::up();
        rig.run(ms(3000 + 90 * step));
        rig.initiator.port.log_out(rig.now);
        rig.pass(100);
        assert_eq!(rig.initiator.told.last().unwrap(), "down 0: ByUs", "{step}");
        let down = "down 0: Lost(LoggedOut)";
        assert_eq!(rig.target.told.last().unwrap(), down, "{step}");
    }
}

#[test]
fn any_one_frame_of_a_login_may_be_lost() {
    let login = ["t: PLOGI", "i: LS_ACC", "i: PRLI", "t: LS_ACC"];
    for lost in login.into_iter().chain(["i: FIP ElsRequest"]) {
        let mut rig = Rig::new(&config(2), &config(1));
        rig.lose.push(lost);
        rig.run(ms(20_000));
        assert!(rig.lose.is_empty(), "{lost} was never sent");
        let up = rig.initiator.port.remotes().all(RemotePort::is_up);
        assert!(up && rig.initiator.told.last().unwrap() == "up 0", "{lost}");
        assert_eq!(rig.target.told.last().unwrap(), "up 0", "{lost}");
    }
}

#[test]
fn an_initiator_that_is_not_allowed_gets_nowhere() {
    for (target, initiator) in [(1, 2), (2, 1)] {
        let closed = PortConfig {
            partners: Partners::Only([].into()),
            ..config(target)
        };
        let mut rig = Rig::new(&closed, &config(initiator));
        rig.run(ms(20_000));
        assert!(!rig.initiator.told.iter().any(|line| line.starts_with("up")));
        let told = &rig.target.told[1];
        assert!(told.ends_with("(--allow)"), "{told}");
    }
}

#[test]
fn an_initiator_whose_name_is_revoked_is_logged_out_until_it_may_come_again() {
    for (target, initiator) in [(1, 2), (2, 1)] {
        let mut rig = Rig::new(&config(target), &config(initiator));
        rig.run(ms(3000));
        let name = rig.initiator.port.wwpn();
        let port = &mut rig.target.port;
        port.set_partners(rig.now, Partners::Only([name].into()));
        rig.pass(100);
        assert_eq!(rig.target.told.last().unwrap(), "up 0", "it is still there");
        let others = Partners::Only([Wwn(77)].into());
        rig.target.port.set_partners(rig.now, others);
        rig.pass(20_000);
        assert!(rig.target.told.iter().any(|line| line == "down 0: ByUs"));
        let out = |line: &String| line == "down 0: LoggedOut";
        assert!(
            rig.initiator.told.iter().any(out),
            "{:?}",
            rig.initiator.told
        );
        assert!(!rig.target.told.last().unwrap().starts_with("up"));
        rig.target.port.set_partners(rig.now, Partners::Any);
        rig.pass(100);
        assert_eq!(rig.initiator.told.last().unwrap(), "up 0");
        assert_eq!(rig.target.told.last().unwrap(), "up 0");
    }
}

#[test]
fn a_link_that_comes_back_brings_a_new_nexus() {
    let mut rig = Rig::up();
    rig.initiator.port.link(rig.now, false);
    rig.initiator.port.link(rig.now, true);
    rig.pass(3000);
    assert_eq!(
        rig.initiator.told,
        [
            "online 000001",
            "up 0",
            "down 0: Lost(LinkDown)",
            "offline",
            "online 000001",
            "up 0"
        ]
    );
    assert_eq!(
        rig.target.told,
        ["online 000002", "up 0", "down 0: Lost(Restarted)", "up 0"]
    );
}
