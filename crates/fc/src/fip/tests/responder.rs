//! VLAN discovery, answered for ports of VN2VN.

use scsi::medium::Now;

use crate::fip::responder::VlanResponder;
use crate::tests::HeapFrames;
use crate::wire::ethernet::{EthernetHeader, FIP, Mac};
use crate::wire::fip::{self, Descriptor, FipMessage, FipOperation, Flags};
use crate::wire::names::Wwn;

const OURS: Mac = Mac([2, 0, 0, 0, 0, 1]);
const ASKER: Mac = Mac([2, 0, 0, 0, 0, 9]);

fn responder(vid: u16) -> VlanResponder {
    VlanResponder::new(OURS, vid, [7; 8])
}

/// A request, and what is answered: to whom, and which VLAN.
fn asked(to: Mac, says: &[Descriptor<'_>]) -> Option<(Mac, u16)> {
    let mut responder = responder(152);
    let request = fip::encode(FipOperation::VlanRequest, Flags(0), says);
    let _ = responder.receive(Now::ZERO, &EthernetHeader::new(ASKER, to, FIP), &request);
    answer(&mut responder)
}

fn answer(responder: &mut VlanResponder) -> Option<(Mac, u16)> {
    let mut frames = HeapFrames::default();
    responder.transmit(&mut frames);
    let frame = frames.frames.pop()?;
    let (header, payload) = EthernetHeader::parse(&frame).unwrap();
    assert_eq!(
        (header.src, header.vlan, header.ethertype),
        (OURS, None, FIP)
    );
    let message = FipMessage::parse(payload).unwrap();
    assert_eq!(message.operation, FipOperation::Vn2vnVlanNotification);
    let told: Vec<_> = message.descriptors().map(Result::unwrap).collect();
    let [Descriptor::Mac(OURS), Descriptor::Vlan(vid)] = told[..] else {
        panic!("{told:?}");
    };
    Some((header.dst, vid))
}

#[test]
fn who_asks_all_or_us_is_told_our_vlan() {
    let says = [Descriptor::Mac(ASKER), Descriptor::Name(Wwn(5))];
    for to in [Mac::ALL_FCF, Mac::ALL_VN2VN_ENODE, OURS] {
        assert_eq!(asked(to, &says), Some((ASKER, 152)), "{to}");
    }
    assert_eq!(asked(Mac([2, 0, 0, 0, 0, 5]), &says), None);
}

#[test]
fn a_request_in_the_name_of_another_port_is_not_answered() {
    let other = Descriptor::Mac(Mac([2, 0, 0, 0, 0, 5]));
    let own = Descriptor::Mac(ASKER);
    for says in [&[][..], &[other], &[own, own], &[own, Descriptor::Vlan(7)]] {
        assert_eq!(asked(Mac::ALL_FCF, says), None, "{says:?}");
    }
}

#[test]
fn only_requests_are_answered() {
    let mut responder = responder(152);
    let says = [Descriptor::Mac(ASKER), Descriptor::Vlan(7)];
    for operation in [
        FipOperation::VlanNotification,
        FipOperation::Vn2vnVlanNotification,
    ] {
        let told = fip::encode(operation, Flags(0), &says);
        let header = EthernetHeader::new(ASKER, OURS, FIP);
        assert_eq!(responder.receive(Now::ZERO, &header, &told), Ok(()));
    }
    assert_eq!(answer(&mut responder), None);
}

#[test]
fn a_flood_of_requests_costs_no_more_than_512_answers() {
    let mut responder = responder(0);
    let request = fip::encode(
        FipOperation::VlanRequest,
        Flags(0),
        &[Descriptor::Mac(ASKER)],
    );
    let header = EthernetHeader::new(ASKER, Mac::ALL_FCF, FIP);
    let mut refused = 0;
    for _ in 0..1000 {
        let taken = responder.receive(Now::ZERO, &header, &request);
        refused += usize::from(taken.is_err());
        while let Some((_, vid)) = answer(&mut responder) {
            assert_eq!(vid, 0);
        }
    }
    let counts = responder.statistics();
    assert_eq!((counts.received, counts.sent, refused), (1000, 512, 1));
}
