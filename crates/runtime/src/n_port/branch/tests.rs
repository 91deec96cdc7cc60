//! Where the kernel hands frames, and what a branch counts of those that come in.

use ::io::ether::EtherOptions;
use fc::target::{FcpLimits, LimitShare};
use fc::wire::ethernet::{EthernetHeader, FCOE, MIN_LEN, Mac};
use scsi::medium::HeapLease;

use super::*;

const A: FcId = FcId(0x01_0100);
/// Of another domain, with the same low bits.
const B: FcId = FcId(0x02_0100);
const C: FcId = FcId(0x02_0200);

#[test]
fn frames_go_to_the_branch_of_the_nexus() {
    let mut steered = SteeredPorts::default();
    assert_eq!(steered.note(A, Some(1)), 1);
    assert_eq!(steered.note(C, Some(2)), 2);
    assert_eq!(steered.note(A, None), 0);
    assert_eq!(steered.note(A, Some(2)), 2);
}

#[test]
fn ports_that_the_kernel_cannot_tell_apart_are_not_steered() {
    let mut steered = SteeredPorts::default();
    assert_eq!(steered.note(A, Some(1)), 1);
    assert_eq!(steered.note(B, Some(0)), 0);
    assert_eq!(
        steered.note(B, None),
        0,
        "frames of A may wait for the port"
    );
    assert_eq!(steered.note(A, None), 0);
    assert!(steered.0.is_empty());
    assert_eq!(steered.note(A, Some(1)), 1);
}

#[test]
fn frames_of_no_nexus_are_counted_for_the_port() {
    let folder = tempfile::tempdir().unwrap();
    let place = Place::Cable(folder.path().join("cable"));
    let open = || EtherPort::open(&place, &EtherOptions::default()).unwrap();
    let (ours, mut theirs) = (open(), open());
    let header = EthernetHeader::new(Mac(theirs.mac()), Mac(ours.mac()), FCOE);
    header.put(theirs.slot(MIN_LEN).unwrap()).fill(0);
    theirs.commit(MIN_LEN);
    assert!(theirs.flush().unwrap());

    let mut branch = PortBranch::new(place.clone(), ours, Some(RING_MIN));
    let share = LimitShare::of(FcpLimits::default());
    branch.receive(Now::ZERO, &mut FcpBranch::<HeapLease>::new(share));
    let BranchCounts {
        rx_frames,
        rx_bytes,
        unknown,
        ..
    } = &*branch.counts;
    let counted = [rx_frames, rx_bytes, unknown].map(|count| count.load(Relaxed));
    assert_eq!(counted, [1, MIN_LEN as u64, 1]);
}
