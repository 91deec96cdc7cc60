//! Frames that have waited at their egress are checked again before they leave.

use std::sync::Arc;
use std::time::Duration;

use fc::fabric::zones::Zones;
use fc::fabric::{DropReason, PortNumber, Switch, SwitchConfig, UndeliveredFrame};
use fc::tests::{EnodeFrames, fcf_mac, switch_of};
use fc::wire::ethernet::Mac;
use fc::wire::names::FcId;

use super::super::backlog::QueuedFrame;
use super::super::egress::{EgressOf, EgressSide};
use super::super::lldp::LldpAgents;
use super::super::options::LldpMode;
use super::super::port::Egress;

const SECOND: Duration = Duration::from_secs(1);

/// A switch with a host at each of two ports, which logged in at 1 s.
fn switch() -> (Switch, [FcId; 2]) {
    let config = SwitchConfig {
        zones: Arc::new(Zones::open()),
        ..SwitchConfig::default()
    };
    let mut switch = switch_of(&config, 2);
    (0..2).for_each(|port| log_in(&mut switch, SECOND, port));
    let ids: Vec<_> = switch.logins().map(|login| login.fc_id).collect();
    (switch, ids.try_into().unwrap())
}

/// The host at a port logs in, perhaps again.
fn log_in(switch: &mut Switch, now: Duration, port: u8) {
    let host = EnodeFrames::new(Mac([2, 0, 0, 0, 0, port]), fcf_mac(port));
    switch.receive(now, PortNumber(port.into()), &host.flogi(1));
}

/// Whether a frame of 2 s may leave at port 1.
fn leaves(switch: &mut Switch, now: Duration, ids: [FcId; 2]) -> bool {
    let queued = QueuedFrame {
        since: 2 * SECOND,
        frame: UndeliveredFrame {
            ingress: PortNumber(0),
            s_id: ids[0],
            d_id: ids[1],
            bytes: 100,
        },
    };
    let mut lldp = LldpAgents::start(LldpMode::Off, &mut []).unwrap();
    let mut egress = EgressOf {
        side: EgressSide::Machine(switch, &mut lldp),
        now,
        number: PortNumber(1),
    };
    egress.may_leave(&queued)
}

fn dropped(switch: &Switch, reason: DropReason) -> u64 {
    let (_, _, counters) = switch.counters().next().unwrap();
    counters.dropped(reason)
}

#[test]
fn a_frame_is_dropped_after_e_d_tov() {
    let (mut switch, ids) = switch();
    assert!(leaves(&mut switch, 4 * SECOND, ids));
    let later = 4 * SECOND + Duration::from_millis(1);
    assert!(!leaves(&mut switch, later, ids));
    assert_eq!(dropped(&switch, DropReason::Aged), 1);
}

#[test]
fn a_frame_does_not_outlive_its_zone() {
    let (mut switch, ids) = switch();
    switch.set_zones(2 * SECOND, Arc::new(Zones::closed()));
    assert!(!leaves(&mut switch, 2 * SECOND, ids));
    assert_eq!(dropped(&switch, DropReason::Zoned), 1);
}

/// A port that logs in again has the same N_Port_ID, but knows nothing of the frames before.
#[test]
fn a_frame_does_not_outlive_a_login_at_either_end() {
    let (mut switch, ids) = switch();
    assert!(leaves(&mut switch, 3 * SECOND, ids), "it came since");
    for port in 0..2 {
        log_in(&mut switch, 3 * SECOND, port);
        assert!(!leaves(&mut switch, 3 * SECOND, ids), "{port}");
    }
    assert_eq!(dropped(&switch, DropReason::NotLoggedIn), 2);
}
