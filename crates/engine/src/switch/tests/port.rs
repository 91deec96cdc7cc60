//! What a port tells of the interface that it is at, and what it does not send any more.

use std::time::Duration;

use ::io::ether::{Drops, EtherOptions, EtherPort, Place};
use fc::fabric::{Forwarding, PortNumber, Switch};
use fc::frames::FrameSink as _;
use fc::wire::els::LinkErrors;
use fc::wire::ethernet::{self, EthernetHeader, Mac};
use fc::wire::names::FcId;
use runtime::n_port::FcfAttachment;
use scsi::medium::Now;
use tempfile::TempDir;

use super::super::backlog::QueuedFrame;
use super::super::port::{Egress, PassingFrame, Sent, SwitchPort, carrier_errors};

/// Of a switch at that time, which may have something to say.
struct TestEgress {
    now: Now,
    says: Option<[u8; LEN]>,
}

impl Egress for TestEgress {
    fn now(&self) -> Now {
        self.now
    }

    fn may_leave(&mut self, _: &QueuedFrame) -> bool {
        true
    }

    fn say(&mut self, out: &mut SwitchPort) {
        let slot = self.says.and_then(|_| out.slot(LEN));
        if let Some(slot) = slot
            && let Some(says) = self.says.take()
        {
            slot.copy_from_slice(&says);
            out.commit(LEN);
        }
    }
}

const LEN: usize = 60;

/// A port, and the station at the other end of its cable.
struct Rig {
    _folder: TempDir,
    port: SwitchPort,
    station: EtherPort,
    egress: TestEgress,
}

impl Rig {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let place = Place::Cable(folder.path().join("cable"));
        Self {
            port: SwitchPort::new(FcfAttachment::open(&place, None).unwrap()),
            station: EtherPort::open(&place, &EtherOptions::default()).unwrap(),
            _folder: folder,
            egress: TestEgress {
                now: BEGUN,
                says: None,
            },
        }
    }

    fn header(&self) -> EthernetHeader {
        EthernetHeader::new(Mac([2; 6]), Mac(self.station.mac()), ethernet::FCOE)
    }

    /// A frame of another port, which comes in.
    fn pass(&mut self) -> Sent {
        let way = Forwarding {
            egress: PortNumber(0),
            s_id: FcId(1),
            d_id: FcId(2),
            header: self.header(),
            start: self.header().len(),
        };
        self.port.send(&PassingFrame {
            way,
            since: BEGUN,
            ingress: PortNumber(1),
            bytes: &[PASSED; LEN],
        })
    }

    fn flush_at(&mut self, now: Now) {
        self.egress.now = now;
        self.port.resume(now);
        self.port.flush(&mut self.egress);
    }

    /// The last byte of each frame that the station takes now.
    fn taken(&mut self) -> Vec<u8> {
        let mut taken = Vec::new();
        while self.station.receive(|frame, _| taken.push(frame[LEN - 1])) > 0 {}
        taken
    }
}

const BEGUN: Now = Duration::from_secs(1);

/// The last byte of a frame of another port.
const PASSED: u8 = 1;

/// A station that takes nothing gets no frames afterwards that are older.
#[test]
fn what_is_not_taken_for_e_d_tov_is_given_up() {
    let mut rig = Rig::new();
    let mut sent = 0;
    while !rig.port.has_more() {
        rig.pass();
        rig.port.flush(&mut rig.egress);
        sent += 1;
    }
    let unsent_at = |rig: &mut Rig, now| {
        rig.flush_at(now);
        rig.port.drops().unwrap().refused
    };
    assert_eq!(unsent_at(&mut rig, BEGUN + Switch::E_D_TOV), 0);
    let late = BEGUN + Switch::E_D_TOV + Duration::from_millis(1);
    assert_eq!(unsent_at(&mut rig, late), 1);
    assert_eq!(rig.taken().len(), sent - 1);
    assert_eq!(unsent_at(&mut rig, late), 1);
    assert!(rig.taken().is_empty());
}

/// Frames may wait for as long as others send: the station has to hear of the switch meanwhile.
#[test]
fn what_the_switch_says_does_not_wait_for_frames_that_wait() {
    let mut rig = Rig::new();
    while rig.port.queued() < 100 * LEN {
        assert_eq!(rig.pass(), Sent::Queued);
    }
    let mut says = [0; LEN];
    let header = rig.header();
    header.put(&mut says);
    rig.egress.says = Some(says);
    let mut taken = Vec::new();
    while rig.port.has_more() {
        taken.extend(rig.taken());
        rig.flush_at(BEGUN);
    }
    taken.extend(rig.taken());
    let at = taken.iter().position(|last| *last != PASSED);
    let behind = taken.len() - at.expect("what it says");
    assert!(behind > 90, "{behind} frames");
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
