//! Hosts that come over iSER by RDMA devices, whose libraries are pretended: what they do, and how
//! their sessions end.

mod locked;
mod rig;

use std::net::SocketAddr;
use std::time::Duration;

use ::io::rdma::RdmaError;
use block::file::UndoLog;
use iscsi::initiator::config::InitiatorConfig;
use iscsi::initiator::error::SessionEnd;
use iscsi::initiator::{Data, InitiatorEvent, Tmf};
use iscsi::parameters::Transport;
use pretend_verbs::{Count, OpenedWorld, Order};
use scsi::medium::Lease as _;
use scsi::wire::lun::Lun;

use self::rig::{
    Lab, TARGET, WRITE_16, config, config_of, inventory, inventory_at, open, pattern, within,
};
use super::super::{RdmaSource, Server};
use crate::serve::options::ServeError;

/// Numbers of `enum ibv_event_type`.
const IBV_EVENT_PORT_ACTIVE: i64 = 9;
const IBV_EVENT_PORT_ERR: i64 = 10;

#[test]
fn discovery_then_io_of_all_lengths_then_a_logout() {
    let lab = Lab::new();
    let portal = lab.portal().to_string();
    let discovery = InitiatorConfig::discovery("iqn.2026-11.org.example:host1", [0x80; 6]);
    let mut host = lab.begun(discovery);
    host.until(|event| matches!(event, InitiatorEvent::LoggedIn).then_some(()));
    let (now, initiator) = host.initiator();
    initiator.send_targets(now, "All").unwrap();
    let targets = host.until(|event| match event {
        InitiatorEvent::Targets(targets) => Some(targets),
        _ => None,
    });
    assert_eq!(targets[0].name, TARGET);
    assert_eq!(targets[0].portals[0].to_string(), portal);
    log_out(&mut host);

    let mut host = lab.host(1);
    for (lba, len) in [(0, 512), (8, 4096), (100, 256 << 10), (1000, 1 << 20)] {
        host.write(lba, pattern(len, lba as u8));
        assert_eq!(host.read(lba, len), pattern(len, lba as u8), "{len} bytes");
    }
    log_out(&mut host);
    lab.until_sessions(0);
}

fn log_out(host: &mut rig::Host) {
    let (now, initiator) = host.initiator();
    initiator.logout(now).unwrap();
    assert!(matches!(host.end(), SessionEnd::LoggedOut));
}

#[test]
fn sessions_live_on_both_cores_and_see_each_others_data() {
    let lab = Lab::new();
    let mut hosts = [lab.host(1), lab.host(2)];
    let sessions = lab.server.sessions();
    let over = Transport::Iser { data_segment: 8192 };
    assert!(sessions.iter().all(|one| one.transport == over));
    assert!(sessions.iter().all(|one| one.device.is_some()));
    assert_ne!(sessions[0].core, sessions[1].core);
    hosts[0].write(0, pattern(64 << 10, 3));
    assert_eq!(hosts[1].read(0, 64 << 10), pattern(64 << 10, 3));
}

/// Nearly as many commands as our initiator gives at once.
const AT_ONCE: u64 = 110;

/// More commands at once than there are receives at first, so that both grow. Their data is held
/// back, as otherwise each might be answered before the next one comes.
#[test]
fn a_window_that_is_used_up_gets_wider_with_its_receives() {
    let lab = Lab::new();
    let mut host = lab.host(1);
    let before = lab.world.count(Count::Receives);
    within(|| {
        lab.order(Order::Hold, 2);
        for number in 0..AT_ONCE {
            let bytes = pattern(16 << 10, number as u8);
            let lease = block::lease::BlockLease::from_bytes(bytes);
            host.give(WRITE_16, number * 32, Data::Out(lease));
        }
        std::thread::sleep(Duration::from_millis(5));
        lab.order(Order::Hold, 0);
        for number in 0..AT_ONCE {
            assert_eq!(host.done().status, 0, "command {number}");
        }
        (lab.world.count(Count::Receives) > before + 50).then_some(())
    });
    for number in 0..AT_ONCE {
        let bytes = pattern(16 << 10, number as u8);
        assert_eq!(host.read(number * 32, 16 << 10), bytes);
    }
}

#[test]
fn an_abort_is_answered_when_the_read_of_its_data_is_over() {
    let lab = Lab::new();
    let mut host = lab.host(1);
    host.write(0, pattern(256 << 10, 1));
    lab.order(Order::Hold, 2);
    let requests = lab.world.count(Count::Requests);
    let lease = block::lease::BlockLease::from_bytes(pattern(256 << 10, 9));
    let command = host.give(WRITE_16, 0, Data::Out(lease));
    // The command, and the read that it leads to.
    within(|| (lab.world.count(Count::Requests) >= requests + 2).then_some(()));
    let (now, initiator) = host.initiator();
    let abort = Tmf::AbortTask(command);
    initiator.manage(now, 1, Lun::from_index(0), abort).unwrap();
    for _ in 0..50 {
        assert!(!host.is_told(), "the device may still read");
        std::thread::sleep(Duration::from_millis(1));
    }
    lab.order(Order::Hold, 0);
    let response = host.until(|event| match event {
        InitiatorEvent::Managed { response, .. } => Some(response),
        _ => None,
    });
    assert_eq!(response, Some(0));
    assert_eq!(host.read(0, 256 << 10), pattern(256 << 10, 1));
}

#[test]
fn a_host_that_disconnects_is_gone_and_may_come_back() {
    let lab = Lab::new();
    let mut host = lab.host(1);
    host.write(0, pattern(512, 1));
    drop(host);
    lab.until_sessions(0);
    // One that does not even log in, too.
    drop(lab.connect().unwrap());
    let mut host = lab.host(1);
    assert_eq!(host.read(0, 512), pattern(512, 1));
}

#[test]
fn a_request_that_fails_ends_its_session_alone() {
    let lab = Lab::new();
    let (mut host, mut other) = (lab.host(1), lab.host(2));
    other.write(0, pattern(512, 1));
    // The command comes; the response does not leave: IBV_WC_RETRY_EXC_ERR.
    lab.order(Order::FailStatus, 12);
    lab.order(Order::FailAfter, 1);
    let lease = block::lease::BlockLease::from_bytes(vec![0; 512]);
    host.give(WRITE_16, 0, Data::Out(lease));
    host.end();
    lab.until_sessions(1);
    assert_eq!(other.read(8, 512), [0; 512]);
    lab.host(1);
}

#[test]
fn a_device_that_is_taken_away_ends_its_sessions() {
    let lab = Lab::new();
    let mut host = lab.host(1);
    lab.order(Order::Remove, 0);
    host.end();
    lab.until_sessions(0);
    let cause = within(|| lab.server.missing_portals().pop()).1;
    assert!(cause.contains("the RDMA device was taken away"), "{cause}");
}

/// Whose port lost its link, which is for the log alone.
#[test]
fn what_a_device_tells_of_itself_is_heard() {
    let lab = Lab::new();
    let mut host = lab.host(1);
    for event in [IBV_EVENT_PORT_ERR, IBV_EVENT_PORT_ACTIVE] {
        lab.order(Order::AsyncEvent, event);
        within(|| (lab.world.count(Count::Events) == 0).then_some(()));
    }
    host.write(0, pattern(512, 1));
}

#[test]
fn without_memory_to_pin_connections_are_refused_and_logins_end() {
    let lab = Lab::new();
    let mut other = lab.host(1);
    let mut host = lab.begun(config_of(2));
    let pinned = i64::try_from(lab.world.count(Count::Pinned)).unwrap();
    lab.order(Order::PinnedLimit, pinned);
    let end = host.end().to_string();
    assert!(end.contains("0302"), "{end}");
    let refused = lab.connect().unwrap_err();
    assert!(matches!(
        refused,
        RdmaError::Connect { .. } | RdmaError::NoLockedMemory { .. }
    ));
    other.write(0, pattern(8192, 5));
    lab.order(Order::PinnedLimit, i64::MAX);
    assert_eq!(lab.host(2).read(0, 8192), pattern(8192, 5));
}

#[test]
fn a_portal_is_taken_by_devices_and_given_up_while_it_serves() {
    let lab = Lab::new();
    let mut host = lab.host(1);
    lab.server.apply(inventory(false)).unwrap();
    assert!(
        lab.server
            .luns("disk")
            .iter()
            .all(|lun| lun.address.starts_with("iscsi://"))
    );
    // A session stays, and its data too.
    host.write(0, pattern(512, 2));
    lab.server.apply(inventory(true)).unwrap();
    let mut other = lab.host(2);
    assert_eq!(other.read(0, 512), pattern(512, 2));
}

/// Both cannot be listened on at a time.
#[test]
fn a_portal_moves_between_an_address_and_the_wildcard_by_another_try() {
    let lab = Lab::new();
    let mut host = lab.host(1);
    let address = lab.portal();
    let wildcard = SocketAddr::from(([0, 0, 0, 0], address.port()));
    for portal in [wildcard, address] {
        lab.server.apply(inventory_at(portal)).unwrap();
        let [(_, cause)] = &lab.server.missing_portals()[..] else {
            panic!("one portal is missing");
        };
        assert!(cause.contains("is closed"), "{cause}");
        lab.server.try_portals();
        assert_eq!(lab.server.missing_portals(), []);
    }
    // Its session came by an address that both have.
    host.write(0, pattern(512, 1));
    assert_eq!(lab.host(2).read(0, 512), pattern(512, 1));
}

#[test]
fn a_portal_without_a_device_is_an_error_or_waits_for_one() {
    let world = OpenedWorld::new();
    world.order(Order::Devices, 0);
    let mut config = config(RdmaSource::of(open(&world)));
    let started = Server::start(config.clone(), inventory(true), &UndoLog::default());
    let error = started.err().unwrap();
    assert!(
        matches!(error, ServeError::Rdma(RdmaError::NoDevice)),
        "{error}"
    );
    config.portals_may_be_missing = true;
    let server = Server::start(config, inventory(true), &UndoLog::default()).unwrap();
    let [(_, cause)] = &server.missing_portals()[..] else {
        panic!("one portal is missing");
    };
    assert!(
        cause.contains("(this machine has no RDMA device"),
        "{cause}"
    );
    server.apply(inventory(true)).unwrap();
    world.order(Order::Devices, 1);
    server.try_portals();
    assert_eq!(server.missing_portals(), []);
    server.stop();
    server.wait().unwrap();
}
