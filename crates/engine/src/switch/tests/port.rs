//! What a port tells of the interface that it is at, and what it does not send any more.

use std::time::Duration;

use ::io::ether::{Drops, EtherOptions, EtherPort, Place};
use fc::fabric::Switch;
use fc::frames::FrameSink as _;
use fc::wire::els::LinkErrors;
use runtime::n_port::FcfAttachment;
use scsi::medium::Now;

use super::super::backlog::QueuedFrame;
use super::super::port::{Egress, SwitchPort, carrier_errors};

/// Of a switch that says nothing, at that time.
struct SilentEgress(Now);

impl Egress for SilentEgress {
    fn now(&self) -> Now {
        self.0
    }

    fn may_leave(&mut self, _: &QueuedFrame) -> bool {
        true
    }

    fn say(&mut self, _: &mut SwitchPort) {}
}

/// A station that takes nothing gets no frames afterwards that are older.
#[test]
fn what_is_not_taken_for_e_d_tov_is_given_up() {
    let folder = tempfile::tempdir().unwrap();
    let place = Place::Cable(folder.path().join("cable"));
    let mut port = SwitchPort::new(FcfAttachment::open(&place, None).unwrap());
    let mut station = EtherPort::open(&place, &EtherOptions::default()).unwrap();
    let mut frame = [0; 60];
    frame[..6].copy_from_slice(&station.mac());
    frame[12..14].copy_from_slice(&[0x89, 0x06]);
    let begun = Duration::from_secs(1);
    let mut sent = 0;
    while !port.has_more() {
        while let Some(slot) = port.slot(frame.len()) {
            slot.copy_from_slice(&frame);
            port.commit(frame.len());
            sent += 1;
        }
        port.flush(&mut SilentEgress(begun));
    }
    let mut unsent_at = |now| {
        port.resume(now);
        port.flush(&mut SilentEgress(now));
        port.drops().unwrap().unsent
    };
    assert_eq!(unsent_at(begun + Switch::E_D_TOV), 0);
    let late = begun + Switch::E_D_TOV + Duration::from_millis(1);
    let unsent = unsent_at(late);
    assert!((1..=64).contains(&unsent), "{unsent}");
    let mut taken = 0;
    while station.receive(|_, _| taken += 1) > 0 {}
    assert_eq!(unsent_at(late), unsent);
    assert_eq!(taken, sent - unsent);
    assert_eq!(station.receive(|_, _| ()), 0);
}

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
