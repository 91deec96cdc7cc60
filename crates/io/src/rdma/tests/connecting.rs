//! Making connections, and what keeps them from being made.

use std::net::SocketAddr;
use std::os::fd::AsFd;

use pretend_verbs::{Count, Order};
use rustix::event::{PollFd, PollFlags, poll};

use super::rig::{DEVICE, World, asked, connect, connect_options, pair_options, pretend_file};
use crate::rdma::sys::cm::event;
use crate::rdma::{RdmaConnector, RdmaError, RdmaLibrary, RdmaListener, RdmaMemory, RdmaTransport};

/// Whether a descriptor is readable.
fn is_ready(fd: impl AsFd) -> bool {
    let now = rustix::time::Timespec::default();
    poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&now)).unwrap() == 1
}

#[test]
fn private_data_and_reads_are_agreed_upon() {
    let world = World::new();
    let mut listener = world.listener();
    assert!(!is_ready(listener.descriptor()));
    let mut connector = world.connector(listener.portal());
    assert!(is_ready(connector.descriptor()));
    assert!(connector.poll().is_none());
    assert!(is_ready(listener.descriptor()) && !is_ready(connector.descriptor()));
    let request = asked(&mut listener);
    assert_eq!(request.private_data()[..4], [0xc0, 0, 0, 0]);
    assert_eq!(request.local(), DEVICE.parse().unwrap());
    let memory = RdmaMemory::new();
    let target = request
        .accept(&memory, &pair_options(), &[0x80, 0, 0, 1])
        .unwrap();
    let connected = connector.poll().unwrap().unwrap();
    assert_eq!(connected.private_data[..4], [0x80, 0, 0, 1]);
    // The device does 16 of either.
    assert_eq!((target.limits().ord, connected.pair.limits().ord), (16, 16));
    assert_eq!((target.limits().ird, connected.pair.limits().ird), (16, 16));
    assert!(connector.poll().is_none(), "nothing follows");
}

#[test]
fn a_request_that_is_dropped_is_refused() {
    let world = World::new();
    let mut listener = world.listener();
    let mut connector = world.connector(listener.portal());
    assert!(connector.poll().is_none());
    drop(asked(&mut listener));
    let error = connector.poll().unwrap().unwrap_err();
    assert_eq!(
        error.to_string(),
        "no RDMA connection to 127.0.0.1:3260: the peer refuses it; check that it serves iSER on \
         this port (reason 28)"
    );
}

#[test]
fn a_peer_that_has_given_up_is_no_connection() {
    let world = World::new();
    let mut listener = world.listener();
    let mut connector = world.connector(listener.portal());
    assert!(connector.poll().is_none());
    let request = asked(&mut listener);
    drop(connector);
    let refused = request.accept(&RdmaMemory::new(), &pair_options(), &[]);
    let error = refused.unwrap_err().to_string();
    assert!(
        error.starts_with("rdma_accept of RDMA device pretend0 failed"),
        "{error}"
    );
}

#[test]
fn each_failure_on_the_way_has_its_words() {
    let rows = [
        (
            event::ADDR_ERROR,
            -libc::ENODEV,
            "no RDMA device leads there",
        ),
        (
            event::ROUTE_ERROR,
            -libc::ETIMEDOUT,
            "the fabric has no route there",
        ),
        (
            event::CONNECT_ERROR,
            0,
            "the connection failed while it was made",
        ),
        (
            event::UNREACHABLE,
            -libc::ETIMEDOUT,
            "the peer does not answer",
        ),
        (event::REJECTED, 28, "the peer refuses it"),
    ];
    for (kind, status, words) in rows {
        let world = World::new();
        let _listener = world.listener();
        world.order(Order::CmStatus, i64::from(status));
        world.order(Order::CmEvent, i64::from(kind));
        let error = world.refusal().to_string();
        assert!(error.contains(words), "{error}");
        assert!(error.ends_with(')') != (status == 0), "{error}");
    }
}

#[test]
fn where_nothing_listens_the_peer_refuses() {
    let error = World::new().refusal().to_string();
    assert!(error.contains("the peer refuses it"), "{error}");
}

#[test]
fn a_way_by_another_device_is_named() {
    let world = World::new();
    let mut options = connect_options();
    options.device = Some("mlx5_0".to_owned());
    let to = DEVICE.parse().unwrap();
    let mut connector = RdmaConnector::start(&world.library, to, options).unwrap();
    let error = connector.poll().unwrap().unwrap_err().to_string();
    let words = "the way to 127.0.0.1:3260 is by the RDMA device pretend0, not by mlx5_0";
    assert!(error.starts_with(words), "{error}");
}

#[test]
fn a_missing_library_names_its_package() {
    let missing = "/nowhere/libibverbs.so.1".as_ref();
    let error = RdmaLibrary::open_at(missing, missing)
        .unwrap_err()
        .to_string();
    assert!(error.contains("install the package libibverbs1"), "{error}");
    let error = RdmaLibrary::open_at(pretend_file().as_os_str(), missing);
    let error = error.unwrap_err().to_string();
    assert!(error.contains("install the package librdmacm1"), "{error}");
    assert!(!error.contains('\n'), "{error}");
}

#[test]
fn without_a_device_that_is_said() {
    let world = World::new();
    world.order(Order::Devices, 0);
    let portal: SocketAddr = DEVICE.parse().unwrap();
    let listening = RdmaListener::listen(&world.library, portal).map(drop);
    let connecting = RdmaConnector::start(&world.library, portal, connect_options()).map(drop);
    for result in [listening, connecting] {
        assert!(matches!(result, Err(RdmaError::NoDevice)), "{result:?}");
    }
}

#[test]
fn a_port_in_use_has_a_way_out() {
    let world = World::new();
    let _listener = world.listener();
    let portal = DEVICE.parse().unwrap();
    let error = RdmaListener::listen(&world.library, portal)
        .unwrap_err()
        .to_string();
    let way_out = "another RDMA target has this port: targetcli ls shows Linux's own target, rdma \
                   resource show cm_id any other; stop it, or take another port";
    assert!(error.ends_with(way_out), "{error}");
}

#[test]
fn an_address_of_no_device_has_a_way_out() {
    let world = World::new();
    let portal = "127.9.9.9:3260".parse().unwrap();
    let error = RdmaListener::listen(&world.library, portal)
        .unwrap_err()
        .to_string();
    assert!(error.contains("no RDMA device has this address"), "{error}");
}

#[test]
fn iwarp_devices_are_not_listened_on() {
    let world = World::new();
    world.order(Order::Devices, 3);
    let devices = world.library.devices().unwrap();
    assert_eq!(devices[1].transport, RdmaTransport::Iwarp);
    let of_iwarp = "127.0.1.1:3260".parse().unwrap();
    let error = RdmaListener::listen(&world.library, of_iwarp).unwrap_err();
    let words = "127.0.1.1:3260 is of the iWARP device pretendw0";
    assert!(error.to_string().starts_with(words), "{error}");
    // All addresses are those of the other device, one by one.
    let any = "0.0.0.0:0".parse().unwrap();
    let listener = RdmaListener::listen(&world.library, any).unwrap();
    let mut connector = world.connector(SocketAddr::new("127.0.1.1".parse().unwrap(), 3260));
    assert!(connector.poll().unwrap().is_err());
    let port = listener.portal().port();
    let mut connector = world.connector(SocketAddr::new("127.0.0.1".parse().unwrap(), port));
    assert!(connector.poll().is_none(), "it is heard");
}

#[test]
fn iwarp_devices_alone_are_none() {
    let world = World::new();
    world.order(Order::Devices, 2);
    let listening = RdmaListener::listen(&world.library, "0.0.0.0:0".parse().unwrap());
    assert!(matches!(listening, Err(RdmaError::NoDevice)));
}

#[test]
fn targets_share_a_domain_and_initiators_do_not() {
    let world = World::new();
    let memory = RdmaMemory::new();
    let (first, second) = (connect(&world, &memory), connect(&world, &memory));
    let same = |a: &crate::rdma::RdmaPair, b: &crate::rdma::RdmaPair| {
        std::sync::Arc::ptr_eq(a.domain(), b.domain())
    };
    assert!(same(&first.0, &second.0));
    assert!(!same(&first.1, &second.1));
    assert!(!same(&first.0, &first.1));
}

#[test]
fn all_that_was_made_goes() {
    let world = World::new();
    let memory = RdmaMemory::new();
    let pairs = connect(&world, &memory);
    assert!(world.count(Count::Objects) > 10);
    drop((pairs, memory));
    assert_eq!(world.count(Count::Objects), 0);
    assert_eq!(world.count(Count::Pinned), 0);
}
