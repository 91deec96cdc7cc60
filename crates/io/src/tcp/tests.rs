use std::net::{TcpListener, TcpStream};

use super::*;

fn any(host: &str) -> SocketAddr {
    format!("{host}:0").parse().unwrap()
}

#[test]
fn a_portal_of_either_protocol_is_listened_on() {
    for host in ["127.0.0.1", "[::1]"] {
        let listener = listen(any(host), &TcpOptions::default()).unwrap();
        let portal = local_address(&listener).unwrap();
        assert_ne!(portal.port(), 0);
        let peer = TcpStream::connect(portal).unwrap();
        let (ours, _) = TcpListener::from(listener).accept().unwrap();
        assert_eq!(local_address(&ours).unwrap(), portal);
        assert_eq!(peer_address(&ours).unwrap(), peer.local_addr().unwrap());
    }
}

#[test]
fn both_wildcards_share_a_port() {
    let v4 = listen(any("0.0.0.0"), &TcpOptions::default()).unwrap();
    let mut portal = any("[::]");
    portal.set_port(local_address(&v4).unwrap().port());
    listen(portal, &TcpOptions::default()).unwrap();
}

#[test]
fn one_address_is_listened_on_beside_all_of_them_and_all_beside_one() {
    let listen = |portal| listen(portal, &TcpOptions::default());
    let beside = |portal| listen_beside(portal, &TcpOptions::default());
    let all = listen(any("0.0.0.0")).unwrap();
    let port = local_address(&all).unwrap().port();
    let one = SocketAddr::from(([127, 0, 0, 1], port));
    let taken = listen(one).unwrap_err();
    assert_eq!(taken.kind(), io::ErrorKind::AddrInUse);
    let own = beside(one).unwrap();
    drop(all);
    let all = beside(([0, 0, 0, 0], port).into()).unwrap();
    TcpStream::connect(one).unwrap();
    drop((own, all));
    // Other programs do not share their ports.
    let other = TcpListener::bind(one).unwrap();
    let taken = beside(([0, 0, 0, 0], port).into()).unwrap_err();
    assert_eq!(taken.kind(), io::ErrorKind::AddrInUse);
    drop(other);
}

#[test]
fn accepted_connections_inherit_the_options() {
    let options = TcpOptions {
        congestion: Some("reno".into()),
        keepalive: Some(Duration::from_secs(30)),
        user_timeout: Some(Duration::from_secs(20)),
    };
    let listener = listen(any("127.0.0.1"), &options).unwrap();
    let _peer = TcpStream::connect(local_address(&listener).unwrap()).unwrap();
    let (ours, _) = TcpListener::from(listener).accept().unwrap();
    let ours = SockRef::from(&ours);
    assert!(ours.tcp_nodelay().unwrap() && ours.keepalive().unwrap());
    assert!(ours.tcp_congestion().unwrap().starts_with(b"reno"));
    assert_eq!(ours.tcp_keepalive_time().unwrap(), Duration::from_secs(30));
    assert_eq!(
        ours.tcp_keepalive_interval().unwrap(),
        Duration::from_secs(10)
    );
    assert_eq!(ours.tcp_user_timeout().unwrap(), options.user_timeout);
}

#[test]
fn keepalive_times_that_the_kernel_has_not_are_brought_into_its_range() {
    for (given, taken) in [(1, 1), (600_000, 32767)] {
        let options = TcpOptions {
            keepalive: Some(Duration::from_secs(given)),
            ..TcpOptions::default()
        };
        let listener = listen(any("127.0.0.1"), &options).unwrap();
        let time = SockRef::from(&listener).tcp_keepalive_time().unwrap();
        assert_eq!(time, Duration::from_secs(taken));
    }
}

#[test]
fn an_unknown_congestion_control_is_refused() {
    let options = TcpOptions {
        congestion: Some("no-such".into()),
        ..TcpOptions::default()
    };
    assert!(listen(any("127.0.0.1"), &options).is_err());
}

#[test]
fn a_portal_in_use_is_tried_again() {
    let first = listen(any("127.0.0.1"), &TcpOptions::default()).unwrap();
    let portal = local_address(&first).unwrap();
    let thread = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(150));
        drop(first);
    });
    listen(portal, &TcpOptions::default()).unwrap();
    thread.join().unwrap();
}

#[test]
fn a_portal_that_stays_in_use_is_given_up() {
    let first = listen(any("127.0.0.1"), &TcpOptions::default()).unwrap();
    let error = listen(local_address(&first).unwrap(), &TcpOptions::default()).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
}

#[test]
fn an_address_that_is_not_ours_is_refused() {
    let error = listen(any("192.0.2.1"), &TcpOptions::default()).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::AddrNotAvailable);
}

/// Over loopback the CPU of who sends takes the packet.
#[test]
fn a_connection_tells_on_which_cpu_it_comes_in() {
    let listener = listen(any("127.0.0.1"), &TcpOptions::default()).unwrap();
    let portal = local_address(&listener).unwrap();
    let listener = TcpListener::from(listener);
    for cpu in crate::cpu::allowed().unwrap() {
        let peer = std::thread::spawn(move || {
            crate::cpu::pin(cpu).unwrap();
            TcpStream::connect(portal).unwrap()
        });
        let _peer = peer.join().unwrap();
        let (ours, _) = listener.accept().unwrap();
        assert_eq!(incoming_cpu(&ours), Some(cpu));
    }
}
