//! Whose MAC address a VN_Port has: the fabric provides one (FPMA), or it is the ENode's (SPMA).

use super::rig::{ENODE, Rig, Says, fcf, ms};
use crate::fip::UnlinkReason;
use crate::fip::enode::FabricConfig;
use crate::fip::tests::rig::frames;
use crate::wire::ethernet::{EthernetHeader, Mac};
use crate::wire::fip::{Descriptor, FipMessage, FipOperation, Flags};
use crate::wire::frame::OxId;
use crate::wire::names::FcId;

/// An FCF whose Advertisements offer these kinds of addresses.
fn offering(kinds: Flags) -> Says {
    Says {
        flags: kinds.with(Flags::AVAILABLE).with(Flags::F_PORT),
        ..fcf(1)
    }
}

/// The kinds of addresses that the next frame names, and the address in it.
fn next(rig: &mut Rig) -> (FipOperation, Flags, Vec<Mac>, Mac) {
    let frame = frames(&mut rig.enode).pop().unwrap();
    let (header, payload) = EthernetHeader::parse(&frame).unwrap();
    let message = FipMessage::parse(payload).unwrap();
    let kinds = Flags(message.flags.0 & Flags::FPMA.with(Flags::SPMA).0);
    let macs = message.descriptors().filter_map(|one| match one.unwrap() {
        Descriptor::Mac(mac) | Descriptor::VxPort { mac, .. } => Some(mac),
        _ => None,
    });
    let macs = macs.collect();
    (message.operation, kinds, macs, header.src)
}

/// Its FLOGI is due.
fn asking(kinds: Flags) -> Rig {
    let mut rig = Rig::new(FabricConfig::default());
    rig.sent();
    rig.hear(&offering(kinds).solicited().advertisement());
    rig.now = ms(500);
    rig.enode.expire(rig.now);
    rig
}

/// Logged in with the address of the ENode.
fn up() -> Rig {
    let mut rig = asking(Flags::SPMA);
    let says = offering(Flags::SPMA);
    frames(&mut rig.enode);
    rig.hear(&says.accepts_with(0x01_0100, OxId(0), Some(ENODE), &says.parameters()));
    rig
}

#[test]
fn solicitations_take_either_kind() {
    let mut rig = Rig::new(FabricConfig::default());
    let (operation, kinds, ..) = next(&mut rig);
    assert_eq!(operation, FipOperation::Solicitation);
    assert_eq!(kinds, Flags::FPMA.with(Flags::SPMA));
}

#[test]
fn an_fcf_that_offers_both_is_to_provide_the_address() {
    let mut rig = asking(Flags::FPMA.with(Flags::SPMA));
    let zero = Mac::default();
    assert_eq!(
        next(&mut rig),
        (FipOperation::ElsRequest, Flags::FPMA, vec![zero], ENODE)
    );
}

#[test]
fn one_that_provides_none_is_asked_for_that_of_the_enode() {
    let mut rig = asking(Flags::SPMA);
    assert_eq!(
        next(&mut rig),
        (FipOperation::ElsRequest, Flags::SPMA, vec![ENODE], ENODE)
    );
    let rig = up();
    let login = rig.enode.login().unwrap();
    assert_eq!((login.fc_id, login.mac), (FcId(0x01_0100), ENODE));
}

#[test]
fn keep_alives_and_the_logo_come_from_that_address_too() {
    let mut rig = up();
    let mut seen = None;
    while rig.now < ms(91_000) {
        rig.hear(&offering(Flags::SPMA).advertisement());
        rig.now += ms(500);
        rig.enode.expire(rig.now);
        if rig.now >= ms(90_500) && seen.is_none() {
            seen = Some(next(&mut rig));
        }
        frames(&mut rig.enode);
    }
    let both = vec![ENODE, ENODE];
    let keep_alive = (FipOperation::KeepAlive, Flags::SPMA, both, ENODE);
    assert_eq!(seen, Some(keep_alive));
    rig.enode.give_up(rig.now);
    let logo = frames(&mut rig.enode).swap_remove(0);
    let (_, payload) = EthernetHeader::parse(&logo).unwrap();
    let message = FipMessage::parse(payload).unwrap();
    assert_eq!(message.operation, FipOperation::ElsRequest);
    assert!(message.flags.has(Flags::SPMA) && !message.flags.has(Flags::FPMA));
}

#[test]
fn another_address_than_that_of_the_enode_is_not_used() {
    let mut rig = asking(Flags::SPMA);
    let says = offering(Flags::SPMA);
    frames(&mut rig.enode);
    rig.hear(&says.accepts(0x01_0100, OxId(0)));
    assert!(rig.enode.login().is_none());
    assert_eq!(
        rig.notices(),
        [
            "FCF 02:ff:00:00:00:01 grants N_Port_ID 0x010100 with the MAC address \
             0e:fc:00:01:01:00 instead of 02:00:00:00:00:01; the login is not used"
        ]
    );
}

#[test]
fn an_fcf_that_changes_the_kind_is_logged_in_to_anew() {
    let mut rig = up();
    rig.told();
    rig.hear(&offering(Flags::FPMA).solicited().advertisement());
    assert!(rig.enode.login().is_none());
    let lost = format!("lost fffffe, {:?}", UnlinkReason::Restarted);
    assert_eq!(rig.told(), [lost.as_str(), "released 010100"]);
}
