//! One target over several machines: where nexuses go, what comes for them, and what they may use.

use std::time::Duration;

use scsi::medium::HeapLease;

use crate::frames::SINGLE;
use crate::port::Fc4Layer;
use crate::remote::{FcpPeer, RemoteId};
use crate::target::branch::{EARLY_MAX, FcpBranch};
use crate::target::divided::{DividedTarget, FORWARDED_MAX};
use crate::target::{FcpLimits, FcpTargetEvent, LimitShare};
use crate::tests::pair::{all, peer, request};
use crate::tests::{cdb10, frame};
use crate::wire::ethernet::{EthernetHeader, FCOE, VlanTag};
use crate::wire::fcoe::{Eof, ReceivedFrame, Sof};
use crate::wire::frame::{FrameHeader, FrameType, RCtl};
use scsi::medium::Now;

type Target = DividedTarget<HeapLease>;

/// The target's own N_Port_ID.
const OWN: u32 = 0x01_0001;

/// The initiator of this number.
fn initiator(number: u32) -> FcpPeer {
    peer(OWN, 0x01_0100 + number, all())
}

/// A target with this many initiators and branches.
fn logged_in(initiators: u32, branches: usize) -> Target {
    let mut target = Target::new(FcpLimits::default(), branches);
    for number in 0..initiators {
        target.peer_up(RemoteId(number), initiator(number));
    }
    target
}

/// At which machine each of them is.
fn machines(target: &Target, initiators: u32) -> Vec<usize> {
    let machine = |number| {
        target
            .at_branch(RemoteId(number))
            .map_or(0, |nexus| nexus.branch)
    };
    (0..initiators).map(machine).collect()
}

/// A frame of FCP with this OX_ID.
fn fcp(ox_id: u16, payload: &[u8]) -> ReceivedFrame<'_> {
    ReceivedFrame {
        sof: Sof::I3,
        eof: Eof::T,
        header: request(RCtl::UNSOLICITED_COMMAND, FrameType::FCP, ox_id),
        payload,
    }
}

/// An FCP_CMND of TEST UNIT READY.
fn command() -> Vec<u8> {
    let mut bytes = vec![0; 32];
    bytes[12..22].copy_from_slice(&cdb10(0, 0, 0));
    bytes
}

/// What has come for branches: branch, initiator and OX_ID.
fn forwarded(target: &mut Target) -> Vec<(usize, u32, u16)> {
    let mut all = Vec::new();
    for (branch, frames) in target.take_forwarded() {
        let frames = frames.iter();
        all.extend(frames.map(|(id, frame)| (branch, id.0, frame.header.ox_id.0)));
    }
    all
}

#[test]
fn initiators_are_spread_evenly() {
    assert_eq!(machines(&logged_in(4, 1), 4), [0, 1, 0, 1]);
    assert_eq!(machines(&logged_in(4, 0), 4), [0; 4]);
}

#[test]
fn one_that_comes_again_goes_where_there_are_fewest() {
    let mut target = logged_in(4, 1);
    target.peer_down(RemoteId(0));
    target.peer_down(RemoteId(2));
    target.peer_up(RemoteId(1), initiator(1));
    assert_eq!(machines(&target, 4), [0, 0, 0, 1]);
}

#[test]
fn frames_of_branches_wait_in_order_and_others_are_carried_out() {
    let mut target = logged_in(2, 1);
    let command = command();
    for (number, ox_id) in [(1, 7), (0, 8), (1, 9)] {
        target.receive(Now::ZERO, RemoteId(number), &fcp(ox_id, &command));
    }
    assert!(target.has_forwarded());
    assert_eq!(forwarded(&mut target), [(1, 1, 7), (1, 1, 9)]);
    assert!(!target.has_forwarded());
    let here: Vec<_> = std::iter::from_fn(|| target.poll()).collect();
    let [FcpTargetEvent::Execute { remote, .. }] = &here[..] else {
        panic!("{here:?}")
    };
    assert_eq!(*remote, RemoteId(0));
}

/// Else they would be taken for the next nexus of the same number.
#[test]
fn what_waits_of_a_nexus_ends_with_it() {
    let mut target = logged_in(4, 1);
    for number in [1, 3] {
        target.receive(Now::ZERO, RemoteId(number), &fcp(7, &[]));
    }
    target.peer_down(RemoteId(1));
    assert_eq!(forwarded(&mut target), [(1, 3, 7)]);
}

#[test]
fn what_waits_is_bounded_until_it_is_dropped() {
    let mut target = logged_in(2, 1);
    let full = vec![0; 2048];
    let mut held = Vec::new();
    while target.dropped() == 0 {
        target.receive(Now::ZERO, RemoteId(1), &fcp(7, &full));
        held.extend(target.take_forwarded());
    }
    let bytes: usize = held.len() * full.len();
    assert!(
        (FORWARDED_MAX * 9 / 10..=FORWARDED_MAX).contains(&bytes),
        "{bytes}"
    );
    held.clear();
    target.receive(Now::ZERO, RemoteId(1), &fcp(8, &full));
    assert_eq!((forwarded(&mut target).len(), target.dropped()), (1, 1));
}

/// How many of four commands of an initiator a machine of a port takes that may have four.
fn carried_out(machine: &mut FcpBranch<HeapLease>, remote: RemoteId) -> usize {
    let command = command();
    for ox_id in 0..4 {
        machine.receive(Now::ZERO, remote, &fcp(ox_id, &command));
    }
    std::iter::from_fn(|| machine.target_mut().poll()).count()
}

#[test]
fn each_machine_may_use_what_its_initiators_are_of_all() {
    let limits = FcpLimits {
        commands: 4,
        ..FcpLimits::default()
    };
    let share = LimitShare::of(limits);
    let other = |share: &LimitShare| FcpBranch::<HeapLease>::new(share.another(u64::MAX));
    let (mut first, mut second) = (other(&share), other(&share));
    first.up(Now::ZERO, RemoteId(1), &initiator(1));
    assert_eq!(carried_out(&mut first, RemoteId(1)), 4, "it is alone");
    second.up(Now::ZERO, RemoteId(2), &initiator(2));
    assert_eq!(carried_out(&mut second, RemoteId(2)), 2, "half are its own");
    first.down(RemoteId(1));
    second.down(RemoteId(2));
    second.up(Now::ZERO, RemoteId(2), &initiator(2));
    assert_eq!(carried_out(&mut second, RemoteId(2)), 4, "it is alone");
}

#[test]
fn no_window_is_larger_than_what_receives_it() {
    let mut whole = LimitShare::of(FcpLimits::default());
    let mut other = whole.another(2 << 20);
    other.nexus_up();
    assert_eq!(other.window(), 2 << 20);
    whole.nexus_up();
    assert_eq!((whole.window(), other.window()), (4 << 20, 2 << 20));
    for _ in 0..6 {
        whole.nexus_up();
    }
    assert_eq!((whole.window(), other.window()), (7 << 20, 1 << 20));
    assert_eq!(
        (whole.unconfirmed(), other.unconfirmed()),
        (14 << 20, 2 << 20)
    );
}

/// A command of an initiator as it is on the Ethernet.
fn on_ethernet(
    from: &FcpPeer,
    change: impl FnOnce(&mut EthernetHeader, &mut FrameHeader),
) -> Vec<u8> {
    let mut ethernet = EthernetHeader::new(from.address.mac, from.own.mac, FCOE);
    let mut header = FrameHeader {
        s_id: from.address.fc_id,
        d_id: from.own.fc_id,
        ..request(RCtl::UNSOLICITED_COMMAND, FrameType::FCP, 7)
    };
    change(&mut ethernet, &mut header);
    frame(&ethernet, SINGLE, &header, &command())
}

/// Commands that a part with initiator 1 takes of the frames, and frames that it does not.
fn taken(frames: &[Vec<u8>]) -> (usize, u64) {
    let mut branch = FcpBranch::<HeapLease>::new(LimitShare::of(FcpLimits::default()));
    branch.up(Now::ZERO, RemoteId(1), &initiator(1));
    for frame in frames {
        branch.receive_ethernet(Now::ZERO, frame, None);
    }
    let commands = std::iter::from_fn(|| branch.target_mut().poll()).count();
    (commands, branch.take_unknown())
}

#[test]
fn a_part_takes_what_its_own_initiators_send() {
    let (own, other) = (initiator(1), initiator(2));
    assert_eq!(taken(&[on_ethernet(&own, |_, _| ())]), (1, 0));
    assert_eq!(taken(&[on_ethernet(&other, |_, _| ())]), (0, 0));
}

/// Its command was read before the port told of the nexus.
#[test]
fn a_command_that_is_ahead_of_its_nexus_is_carried_out_once() {
    let mut branch = FcpBranch::<HeapLease>::new(LimitShare::of(FcpLimits::default()));
    let mut commands = |now, number, told: bool| {
        if told {
            branch.up(now, RemoteId(number), &initiator(number));
        } else {
            let frame = on_ethernet(&initiator(number), |_, _| ());
            branch.receive_ethernet(now, &frame, None);
        }
        std::iter::from_fn(|| branch.target_mut().poll()).count()
    };
    let late = Duration::from_secs(2);
    assert_eq!(commands(Now::ZERO, 1, false), 0);
    assert_eq!(commands(Now::ZERO, 2, true), 0, "it is of another one");
    assert_eq!(commands(Now::ZERO, 1, true), 1);
    assert_eq!(commands(Now::ZERO, 1, true), 0, "it was taken");
    assert_eq!(commands(Now::ZERO, 3, false), 0);
    assert_eq!(commands(late, 3, true), 0, "it is too old");
}

#[test]
fn what_is_kept_before_there_is_a_nexus_is_bounded() {
    let mut branch = FcpBranch::<HeapLease>::new(LimitShare::of(FcpLimits::default()));
    let frame = on_ethernet(&initiator(1), |_, _| ());
    for _ in 0..EARLY_MAX + 3 {
        branch.receive_ethernet(Now::ZERO, &frame, None);
    }
    assert_eq!(branch.take_unknown(), 3);
}

#[test]
fn a_part_takes_nothing_that_a_port_would_not_take() {
    let own = initiator(1);
    let mut spoiled = on_ethernet(&own, |_, _| ());
    spoiled[40] ^= 1;
    let tag = VlanTag {
        vid: 7,
        priority: 0,
        dei: false,
    };
    let frames = [
        spoiled,
        on_ethernet(&own, |ethernet, _| ethernet.src.0[5] ^= 1),
        on_ethernet(&own, |ethernet, _| ethernet.dst.0[5] ^= 1),
        on_ethernet(&own, |ethernet, _| ethernet.vlan = Some(tag)),
        on_ethernet(&own, |_, header| header.d_id.0 ^= 1),
        vec![0; 20],
    ];
    assert_eq!(taken(&frames), (0, frames.len() as u64));
}
