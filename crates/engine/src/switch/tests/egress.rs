//! Frames that have waited at their egress are checked again before they leave.

use std::sync::Arc;
use std::time::Duration;

use fc::fabric::zones::Zones;
use fc::fabric::{
    DropReason, PortNumber, Switch, SwitchConfig, SwitchPortConfig, UndeliveredFrame,
};
use fc::tests::EnodeFrames;
use fc::wire::ethernet::Mac;
use fc::wire::names::FcId;

use super::super::backlog::QueuedFrame;
use super::super::egress::{EgressOf, Logouts};
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
    let mut switch = Switch::new(&config, Duration::ZERO, [1; 8]);
    for port in 0..2 {
        let number = switch.add_port(SwitchPortConfig {
            place: format!("eth{port}").into(),
            mac: Mac([2, 0, 0, 0, 0xfc, port]),
            mtu: 2500,
            tag: None,
            hears_partner: false,
        });
        switch.link(Duration::ZERO, number, true);
        let (host, fcf) = (Mac([2, 0, 0, 0, 0, port]), Mac([2, 0, 0, 0, 0xfc, port]));
        switch.receive(SECOND, number, &EnodeFrames::new(host, fcf).flogi(1));
    }
    let ids: Vec<_> = switch.logins().map(|login| login.fc_id).collect();
    (switch, ids.try_into().unwrap())
}

/// Whether a frame of 2 s may leave at port 1.
fn leaves(switch: &mut Switch, logouts: &Logouts, now: Duration, ids: [FcId; 2]) -> bool {
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
        switch,
        lldp: &mut lldp,
        logouts,
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
    let none = Logouts::default();
    assert!(leaves(&mut switch, &none, 4 * SECOND, ids));
    let later = 4 * SECOND + Duration::from_millis(1);
    assert!(!leaves(&mut switch, &none, later, ids));
    assert_eq!(dropped(&switch, DropReason::Aged), 1);
}

#[test]
fn a_frame_does_not_outlive_its_zone() {
    let (mut switch, ids) = switch();
    switch.set_zones(2 * SECOND, Arc::new(Zones::closed()));
    assert!(!leaves(&mut switch, &Logouts::default(), 2 * SECOND, ids));
    assert_eq!(dropped(&switch, DropReason::Zoned), 1);
}

/// A port that logs in again has the same N_Port_ID, but knows nothing of the frames before.
#[test]
fn a_frame_does_not_outlive_a_login_at_either_end() {
    let (mut switch, ids) = switch();
    for gone in ids {
        let mut logouts = Logouts::default();
        logouts.insert(2 * SECOND - Duration::from_millis(1), gone);
        assert!(
            leaves(&mut switch, &logouts, 3 * SECOND, ids),
            "it came since"
        );
        logouts.insert(3 * SECOND, gone);
        assert!(!leaves(&mut switch, &logouts, 3 * SECOND, ids));
        logouts.sweep(6 * SECOND);
        assert!(leaves(&mut switch, &logouts, 3 * SECOND, ids), "forgotten");
    }
    assert_eq!(dropped(&switch, DropReason::NotLoggedIn), 2);
}
