//! More ports on the Ethernet than may log in.

use super::rig::{config, ms};
use crate::fip::{Neighbour, UnlinkReason};
use crate::port::{Port, PortConfig, PortEvent};
use crate::remote::{Partners, RemoteState};
use crate::target::{FcpLimits, FcpTarget};
use crate::wire::ethernet::Mac;
use crate::wire::names::{FcId, Wwn};
use scsi::medium::HeapLease;

/// A target with places for `places`.
fn target(places: usize, partners: Partners) -> Port<FcpTarget<HeapLease>> {
    let mut config = PortConfig {
        partners,
        ..config(1)
    };
    config.limits.remotes = places;
    Port::new(&config, FcpTarget::new(FcpLimits::default()), ms(0), [7; 8])
}

/// The port of the N_Port_ID and WWPN `number`, which says whether it is an initiator.
fn neighbour(number: u32, initiator: bool) -> Neighbour {
    Neighbour {
        fc_id: FcId(number),
        mac: Mac::of_port(Mac::VN2VN_FC_MAP, FcId(number)),
        enode: Mac([2, 0, 0, 0, 0, number as u8]),
        wwpn: Wwn(number.into()),
        wwnn: Wwn(number.into()),
        payload_max: 2112,
        target: Some(!initiator),
        initiator: Some(initiator),
    }
}

fn state(port: &Port<FcpTarget<HeapLease>>, number: u64) -> RemoteState {
    port.find(Wwn(number)).unwrap().state()
}

fn remarks(port: &mut Port<FcpTarget<HeapLease>>) -> Vec<String> {
    std::iter::from_fn(|| port.poll())
        .filter_map(|event| match event {
            PortEvent::Remark { violation, .. } => Some(violation.to_string()),
            _ => None,
        })
        .collect()
}

#[test]
fn who_may_not_log_in_takes_no_place() {
    let mut port = target(1, Partners::Only([Wwn(9)].into()));
    for number in 2..9 {
        port.found(neighbour(number, true));
    }
    port.found(neighbour(9, true));
    assert_eq!(state(&port, 9), RemoteState::Plogi);
    assert_eq!(state(&port, 8), RemoteState::Idle);
}

#[test]
fn another_port_of_our_name_is_told_of() {
    let mut port = target(1, Partners::Any);
    let ours = port.wwpn();
    port.found(Neighbour {
        wwpn: ours,
        ..neighbour(2, false)
    });
    let [remark] = &remarks(&mut port)[..] else {
        panic!("one remark")
    };
    assert!(remark.contains("has the WWPN of this port"), "{remark}");
}

#[test]
fn another_target_takes_no_place() {
    let mut port = target(1, Partners::Any);
    port.found(neighbour(2, false));
    port.found(neighbour(3, true));
    assert_eq!(state(&port, 3), RemoteState::Plogi);
    assert!(remarks(&mut port).is_empty());
}

#[test]
fn who_finds_no_place_begins_when_another_one_goes() {
    let mut port = target(2, Partners::Any);
    for number in [2, 3, 4, 5] {
        port.found(neighbour(number, true));
    }
    assert_eq!(
        [3, 4, 5].map(|number| state(&port, number)),
        [RemoteState::Plogi, RemoteState::Idle, RemoteState::Idle]
    );
    assert_eq!(remarks(&mut port).len(), 2);
    port.lost(FcId(3), UnlinkReason::Silent);
    assert_eq!(
        [4, 5].map(|number| state(&port, number)),
        [RemoteState::Plogi, RemoteState::Idle]
    );
    // One that waits may go too.
    port.lost(FcId(5), UnlinkReason::Silent);
    port.lost(FcId(4), UnlinkReason::Silent);
    port.found(neighbour(6, true));
    assert_eq!(state(&port, 6), RemoteState::Plogi);
}

/// Whatever happens to ports, those that have a place are those that are counted.
#[test]
fn places_are_counted_right_through_a_long_history() {
    let mut port = target(5, Partners::Only((2..20).step_by(2).map(Wwn).collect()));
    let mut random = 1_u32;
    for step in 0..20_000_u64 {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let number = 2 + (random >> 16) % 20;
        match random >> 28 {
            0..8 => port.found(neighbour(number, !number.is_multiple_of(3))),
            8..14 => port.lost(FcId(number), UnlinkReason::Silent),
            14 if step > 10_000 => port.admit(ms(step), Wwn(number.into())),
            _ => port.expire(ms(step)),
        }
        remarks(&mut port);
        let remotes = port.remotes.iter();
        let placed = remotes.filter(|remote| remote.has_place(&port.local));
        assert_eq!(port.remotes.places(), placed.count(), "at step {step}");
    }
}
