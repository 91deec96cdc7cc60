//! What a port tells of the interface that it is at.

use ::io::ether::{Drops, Place};
use fc::wire::els::LinkErrors;
use runtime::n_port::FcfAttachment;

use super::super::port::{SwitchPort, carrier_errors};

#[test]
fn errors_of_the_card_are_those_of_the_link_error_status_block() {
    let drops = Drops {
        fcs: 7,
        framing: 1 << 40,
        ring_full: 5,
        received: 9,
        ..Drops::default()
    };
    let expected = LinkErrors {
        invalid_crcs: 7,
        invalid_words: u32::MAX,
        ..LinkErrors::default()
    };
    assert_eq!(carrier_errors(&drops), expected);
}

#[test]
fn frames_that_found_no_room_at_their_egress_are_told_once() {
    let folder = tempfile::tempdir().unwrap();
    let place = Place::Cable(folder.path().join("cable"));
    let mut port = SwitchPort::new(FcfAttachment::open(&place).unwrap());
    assert_eq!(port.congestion(0), None);
    let line = |frames| {
        format!(
            "{place}: {frames} frames from here were dropped: the port that they go to is too slow"
        )
    };
    assert_eq!(port.congestion(5), Some(line(5)));
    assert_eq!(port.congestion(5), None);
    assert_eq!(port.congestion(7), Some(line(2)));
}
