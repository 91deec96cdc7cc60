//! What is set and waited for at a network card.

use std::os::unix::fs::symlink;

use std::sync::atomic::AtomicU8;

use ::io::ether::dcb::NotADcbUse;
use fc::wire::ethernet::{EthernetHeader, LLDP, Mac};

use super::*;
use crate::lldp::{DcbSettings, LldpConfig, LldpMode};

fn card(enabled: u8) -> InterfaceDcb {
    InterfaceDcb {
        dcbx: InterfaceDcb::HOST | InterfaceDcb::IEEE,
        pfc: Some(DcbPfc {
            classes_max: 8,
            enabled,
            ..DcbPfc::default()
        }),
        ..InterfaceDcb::default()
    }
}

#[test]
fn pfc_of_another_priority_is_kept_and_not_enough() {
    assert!(!has_pfc(&InterfaceDcb::default()));
    assert!(!has_pfc(&card(0x10)));
    assert!(has_pfc(&card(0x18)));
    let wanted = wanted(&card(0x10));
    assert_eq!(wanted.pfc.map(|pfc| pfc.enabled), Some(0x18));
    let apps: Vec<_> = wanted
        .apps
        .iter()
        .map(|app| (app.selector, app.priority, app.protocol))
        .collect();
    assert_eq!(apps, [(1, 3, 0x8906), (1, 3, 0x8914)]);
    assert_eq!(wanted.ets, None);
}

/// The loopback interface has no dcbnl, as most network cards have none.
#[test]
fn an_interface_without_dcb_is_told() {
    let place = Place::Interface("lo".to_owned());
    for what in [DcbUse::Required, DcbUse::Apply] {
        let refused = make_use(&place, what).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "lo: this NIC has no DCB, or its driver does not show it (see dcb pfc show dev lo)"
        );
    }
    assert!(make_use(&place, DcbUse::Off).unwrap().is_none());
    let missing = Place::Interface("no-such-if".to_owned());
    let refused = make_use(&missing, DcbUse::Required).unwrap_err();
    assert!(matches!(refused, DcbError::Missing(_)), "{refused:?}");
}

#[test]
fn a_vlan_has_the_card_of_the_interface_below() {
    let sysfs = tempfile::tempdir().unwrap();
    let net = sysfs.path().join("class/net");
    for (name, uevent) in [("eth0", "INTERFACE=eth0\n"), ("fcoe", "DEVTYPE=vlan\n")] {
        fs::create_dir_all(net.join(name)).unwrap();
        fs::write(net.join(name).join("uevent"), uevent).unwrap();
    }
    symlink(net.join("eth0"), net.join("fcoe/lower_eth0")).unwrap();
    assert_eq!(carrier(sysfs.path(), "fcoe"), "eth0");
    assert_eq!(carrier(sysfs.path(), "eth0"), "eth0");
}

#[test]
fn what_is_to_be_made_of_it_is_one_of_three_words() {
    assert_eq!("required".parse(), Ok(DcbUse::Required));
    assert_eq!("on".parse::<DcbUse>(), Err(NotADcbUse));
}

/// What the card of the test below has of PFC.
static ENABLED: AtomicU8 = AtomicU8::new(0);

#[test]
fn a_port_goes_on_once_its_card_has_pfc() {
    let read: ReadCard = |_| Ok(card(ENABLED.load(Relaxed)));
    let gate = DcbGate::begin("no-such-if".to_owned(), read).unwrap();
    thread::sleep(POLL / 10);
    assert!(!gate.is_open());
    ENABLED.store(FCOE_BIT, Relaxed);
    while !gate.is_open() {
        thread::sleep(POLL / 10);
    }
}

/// An agent of the interface that waits, which has heard LLDPDUs of as many others. None of them
/// tells anything of DCB.
fn agent(neighbours: u8) -> Lldp {
    let config = LldpConfig {
        mode: LldpMode::Listen,
        mac: Mac([2, 0, 0, 0, 0, 1]),
        port_id: "eth0".to_owned(),
        port_description: String::new(),
        system_name: String::new(),
        system_description: String::new(),
        dcb: Some(DcbSettings::fcoe(3, true)),
    };
    let mut agent = Lldp::new(config, Duration::ZERO);
    agent.link(Duration::ZERO, true);
    for number in (2..).take(neighbours.into()) {
        let header = EthernetHeader::new(Mac([2, 0, 0, 0, 0, number]), Mac::NEAREST_BRIDGE, LLDP);
        let port = [4, 3, 5, b'p', b'0' + number];
        let chassis = [2, 7, 4, 2, 0, 0, 0, 0, number];
        let payload = [&chassis[..], &port, &[6, 2, 0, 120, 0, 0]].concat();
        agent.receive(Duration::ZERO, &header, &payload).unwrap();
    }
    agent
}

#[test]
fn what_is_missing_is_told_with_the_neighbours_that_were_heard() {
    let told = |neighbours| missing(&agent(neighbours)).unwrap();
    assert_eq!(
        told(0),
        "no LLDP neighbor is heard: enable LLDP and DCBX at the other end of the link"
    );
    assert_eq!(
        told(1),
        "02:00:00:00:00:02 p2: the neighbor tells nothing of DCB: enable DCBX at the other end of \
         the link"
    );
    assert_eq!(
        told(2),
        "02:00:00:00:00:02 p2 and 02:00:00:00:00:03 p3: several LLDP neighbors are heard, so DCBX \
         is off: leave one at this link"
    );
}

/// All ports of an ENode wait for the same, and the last of them ends the waiting.
#[test]
fn a_gate_waits_until_the_last_port_is_gone() {
    let owner = GateOwner::default();
    let state = Arc::clone(&owner.0);
    let enode = DcbGate(Arc::new(owner));
    let further = enode.clone();
    drop(enode);
    assert!(!state.is_over.load(Relaxed) && !further.is_open());
    state.is_open.store(true, Relaxed);
    assert!(further.is_open());
    drop(further);
    assert!(state.is_over.load(Relaxed));
}
