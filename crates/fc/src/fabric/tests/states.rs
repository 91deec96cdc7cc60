//! Each message in each role, from an ENode with a login and from one without.

use std::fmt::Write;

use super::rig::{Host, ask, fcf, host, ms, open, quiet, switch_of, told};
use crate::fabric::{Switch, SwitchConfig};
use crate::wire::fip::{Descriptor, FipOperation, Flags};
use crate::wire::names::FcId;

const FIRST: FcId = FcId(0x01_0100);

fn in_role(role: &str, logged_in: bool) -> Switch {
    let config = SwitchConfig {
        standby: role == "standby",
        ..open()
    };
    let mut switch = quiet(switch_of(1, &config, 2));
    if logged_in && role == "active" {
        host(0, 1).log_in(&mut switch, 1);
    }
    if role == "ended" {
        switch.shut_down(ms(1));
        super::rig::sent(&mut switch, 0);
        told(&mut switch);
    }
    switch
}

fn messages() -> Vec<(&'static str, Vec<u8>)> {
    let host: Host = host(0, 1);
    let clear = [Descriptor::Mac(host.mac), Descriptor::Name(host.wwnn())];
    let clear = (
        FipOperation::ClearVirtualLinks,
        Flags::default(),
        &clear[..],
    );
    vec![
        ("VLAN Request", host.vlan_request()),
        ("Solicitation", host.solicitation(2500)),
        ("FLOGI", host.flogi(5)),
        ("FLOGI of another WWPN", host.named(9).flogi(5)),
        ("FDISC", host.named(9).fdisc(5)),
        ("FDISC of its own WWPN", host.fdisc(5)),
        ("LOGO", host.logo(FIRST, 5)),
        ("LOGO of another", host.logo(FcId(0x01_0107), 5)),
        ("ENode keep alive", host.keep_alive()),
        ("VN_Port keep alive", host.port_keep_alive(FIRST)),
        ("Clear Virtual Links", host.frame(fcf(1, 0), clear)),
    ]
}

#[test]
fn each_role_and_message() {
    let mut table = String::new();
    let rows = [
        ("active", false),
        ("active", true),
        ("standby", false),
        ("ended", false),
    ];
    for (what, frame) in messages() {
        for (role, logged_in) in rows {
            let mut switch = in_role(role, logged_in);
            let mut done = ask(&mut switch, 5_000, 0, &frame);
            done.extend(told(&mut switch));
            if done.is_empty() {
                done.push("nothing".into());
            }
            let login = if logged_in { ", logged in" } else { "" };
            writeln!(table, "{what}, {role}{login}: {}", done.join("; ")).unwrap();
        }
    }
    insta::assert_snapshot!(table);
}
