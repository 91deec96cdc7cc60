//! The table of the module, cell by cell.

use std::fmt::Write;

use super::rig::{ENODE, Rig, Says, WWPN, fcf, ms};
use crate::fip::enode::{EnodeState, FabricConfig};
use crate::wire::els::LsRejectReason;
use crate::wire::fip::{Descriptor, FipOperation, Flags};

const STATES: [&str; 7] = [
    "vlan",
    "soliciting",
    "login",
    "resting",
    "up",
    "up beside FCF 2",
    "left",
];

/// An ENode in a state, that has heard FCF 1.
fn in_state(name: &str) -> Rig {
    let mut rig = match name {
        "vlan" => Rig::new(FabricConfig {
            discovers_vlan: true,
            ..FabricConfig::default()
        }),
        "soliciting" => Rig::new(FabricConfig::default()),
        "up" => Rig::up(),
        "up beside FCF 2" => {
            let mut rig = Rig::up();
            rig.hear(&fcf(2).solicited().advertisement());
            rig
        }
        "left" => {
            let mut rig = Rig::new(FabricConfig::default());
            rig.enode.log_out(ms(0));
            rig
        }
        _ => {
            let mut rig = Rig::new(FabricConfig::default());
            rig.hear(&fcf(1).solicited().advertisement());
            rig.run(ms(500));
            if name == "resting" {
                rig.hear(&fcf(1).rejects(rig.ox_id, LsRejectReason::new(9, 0)));
            }
            rig
        }
    };
    rig.sent();
    rig.notices();
    rig
}

const fn state(rig: &Rig) -> &'static str {
    match rig.enode.state {
        EnodeState::Down => "down",
        EnodeState::Vlan { .. } => "vlan",
        EnodeState::Soliciting { choose_at, .. } => match choose_at {
            Some(_) => "soliciting, to choose",
            None => "soliciting",
        },
        EnodeState::Login { .. } => "login",
        EnodeState::Resting { .. } => "resting",
        EnodeState::Up { .. } => "up",
        EnodeState::Left { .. } => "left",
    }
}

fn messages(rig: &Rig) -> Vec<(&'static str, Vec<u8>)> {
    let vlans = [Descriptor::Mac(fcf(1).mac), Descriptor::Vlan(152)];
    let flags = Flags::FPMA.with(Flags::F_PORT);
    let closed = Says {
        flags: Flags(0x8000 | 2 | 1),
        ..fcf(1)
    };
    vec![
        (
            "VLAN Notification",
            fcf(1).message(ENODE, FipOperation::VlanNotification, flags, &vlans),
        ),
        ("Advertisement", fcf(1).advertisement()),
        ("solicited", fcf(1).solicited().advertisement()),
        ("solicited, A clear", closed.advertisement()),
        ("solicited of FCF 2", fcf(2).solicited().advertisement()),
        ("LS_ACC", fcf(1).accepts(0x01_0100, rig.ox_id)),
        (
            "LS_RJT",
            fcf(1).rejects(rig.ox_id, LsRejectReason::new(9, 0)),
        ),
        ("CVL of all", fcf(1).clears(&[])),
        ("CVL of ours", fcf(1).clears(&[(0x01_0100, WWPN)])),
        ("CVL of another", fcf(1).clears(&[(0x01_0200, WWPN)])),
        ("CVL of FCF 2", fcf(2).clears(&[])),
    ]
}

#[test]
fn each_state_and_message() {
    let mut table = String::new();
    for number in 0..messages(&in_state("soliciting")).len() {
        for name in STATES {
            let mut rig = in_state(name);
            let (message, frame) = messages(&rig).remove(number);
            let before = state(&rig);
            rig.hear(&frame);
            let mut done = rig.sent();
            done.extend(rig.told());
            let now = state(&rig);
            if now != before {
                done.push(format!("now {now}"));
            }
            if done.is_empty() {
                done.push("nothing".into());
            }
            let done = done.join("; ");
            writeln!(table, "{message}, {name}: {}", done.trim()).unwrap();
        }
    }
    insta::assert_snapshot!(table);
}

#[test]
fn the_link_going_down_ends_every_state() {
    for name in STATES {
        let mut rig = in_state(name);
        rig.enode.link(ms(5000), false);
        assert_eq!(rig.enode.next_deadline(), None, "{name}");
        assert_eq!(rig.enode.fc_id(), None, "{name}");
        rig.hear(&fcf(1).solicited().advertisement());
        assert_eq!(rig.sent().len(), 0, "{name}");
    }
}
