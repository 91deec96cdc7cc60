//! Cables: who has which end, and what a full one does.

use std::net::Shutdown;
use std::os::unix::net::UnixDatagram;

use super::super::EtherOpenError;
use super::*;

fn open(place: &Place) -> Result<EtherPort, EtherOpenError> {
    EtherPort::open(place, &EtherOptions::default())
}

#[test]
fn a_cable_has_two_ends_and_each_its_address() {
    let folder = Folder::new();
    let place = folder.cable();
    let a = open(&place).unwrap();
    let b = open(&place).unwrap();
    assert_ne!(a.mac(), b.mac());
    assert_eq!(a.mac()[0], 2, "locally administered, of one station");
    let taken = open(&place).unwrap_err();
    assert!(matches!(taken, EtherOpenError::Taken(_)), "{taken}");
    let (first, second) = (a.mac(), b.mac());
    drop(a);
    assert_eq!(open(&place).unwrap().mac(), first);
    drop(b);
    let _a = open(&place).unwrap();
    assert_eq!(open(&place).unwrap().mac(), second);
}

#[test]
fn an_end_whose_owner_was_killed_is_free() {
    let folder = Folder::new();
    // Its socket is closed, but its file is left.
    drop(UnixDatagram::bind(folder.0.join("x.sock")).unwrap());
    let a = open(&folder.cable()).unwrap();
    assert!(folder.0.join("x.sock").exists());
    assert!(!folder.0.join("x.sock.peer").exists());
    drop(a);
    assert!(!folder.0.join("x.sock").exists());
}

#[test]
fn only_its_owner_can_write_to_a_cable() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new();
    let _ends = [
        open(&folder.cable()).unwrap(),
        open(&folder.cable()).unwrap(),
    ];
    for end in ["x.sock", "x.sock.peer"] {
        let found = std::fs::metadata(folder.0.join(end)).unwrap();
        assert_eq!(found.permissions().mode() & 0o777, 0o600, "{end}");
    }
}

#[test]
fn a_path_that_is_too_long_for_a_socket_is_told_with_what_it_may_have() {
    let folder = Folder::new();
    let beside = folder.0.as_os_str().len() + 1;
    let place = |len: usize| Place::Cable(folder.0.join("x".repeat(len - beside)));
    let _ends = [open(&place(102)).unwrap(), open(&place(102)).unwrap()];
    let refused = open(&place(103)).unwrap_err().to_string();
    assert!(
        refused.contains("103 bytes, but the limit is 102"),
        "{refused}"
    );
}

#[test]
fn what_cannot_be_a_cable_is_refused() {
    let folder = Folder::new();
    let nowhere = Place::Cable(folder.0.join("nowhere/x.sock"));
    let error = open(&nowhere).unwrap_err().to_string();
    assert!(
        error.starts_with("cable:/") && error.contains("its directory does not exist"),
        "{error}"
    );
    let file = folder.0.join("file");
    std::fs::write(&file, "kept").unwrap();
    open(&Place::Cable(file.clone())).unwrap_err();
    assert_eq!(std::fs::read(&file).unwrap(), b"kept");
}

/// As QEMU is with `-netdev dgram`: then nobody else may send to it.
#[test]
fn an_end_that_is_connected_to_the_other_is_taken() {
    let folder = Folder::new();
    let (near, far) = (folder.0.join("x.sock"), folder.0.join("x.sock.peer"));
    let other = UnixDatagram::bind(&far).unwrap();
    let guest = UnixDatagram::bind(&near).unwrap();
    guest.connect(&far).unwrap();
    drop(other);
    std::fs::remove_file(&far).unwrap();
    let _port = open(&folder.cable()).unwrap();
    assert!(far.exists());
}

#[test]
fn a_virtual_machine_may_have_the_other_end() {
    let folder = Folder::new();
    let guest = UnixDatagram::bind(folder.0.join("x.sock.peer")).unwrap();
    let mut port = open(&folder.cable()).unwrap();
    let sent = frame([0x52, 0x54, 0, 0, 0, 1], FIP, 60);
    send(&mut port, &sent);
    let mut bytes = [0; 100];
    let len = guest.recv(&mut bytes).unwrap();
    assert_eq!(bytes[..len], sent);
    // It does not pad frames, and talks of other things as well.
    let short = frame(port.mac(), FIP, 46);
    for sent in [&frame(port.mac(), 0x0800, 60), &short, &Vec::new(), &short] {
        guest.send_to(sent, folder.0.join("x.sock")).unwrap();
    }
    assert_eq!(receive(&mut port, 2), vec![(short, None); 2]);
}

/// It takes as long to read what the port drops, so what is read is told.
#[test]
fn what_is_read_and_dropped_is_counted() {
    let folder = Folder::new();
    let guest = UnixDatagram::bind(folder.0.join("x.sock.peer")).unwrap();
    let mut port = open(&folder.cable()).unwrap();
    let (other, long) = ([2, 7, 7, 7, 7, 7], vec![0; 20_000]);
    for sent in [
        &frame(port.mac(), 0x0800, 60),
        &frame(other, FIP, 60),
        &long,
    ] {
        guest.send_to(sent, folder.0.join("x.sock")).unwrap();
    }
    let mut given = 0;
    assert_eq!(port.receive(|_, _| given += 1), 3);
    assert_eq!(given, 0);
}

#[test]
fn who_sends_learns_whether_anything_has_the_other_end() {
    let folder = Folder::new();
    let mut a = open(&folder.cable()).unwrap();
    assert!(!a.is_alone(), "nothing was sent");
    send(&mut a, &frame([1; 6], FIP, 60));
    assert!(a.is_alone());
    let b = open(&folder.cable()).unwrap();
    send(&mut a, &frame([1; 6], FIP, 60));
    assert!(!a.is_alone());
    drop(b);
    send(&mut a, &frame([1; 6], FIP, 60));
    assert!(a.is_alone());
}

#[test]
fn a_tag_stays_in_the_frame() {
    let mut pair = Pair::cable();
    let plain = frame(pair.b.mac(), FCOE, 100);
    let tagged = [&plain[..12], &[0x81, 0, 0x60, 5], &plain[12..]].concat();
    send(&mut pair.a, &tagged);
    assert_eq!(receive(&mut pair.b, 1), [(tagged, None)]);
}

#[test]
fn frames_to_nobody_are_counted_and_the_next_go_to_who_comes() {
    let folder = Folder::new();
    let place = folder.cable();
    let mut a = open(&place).unwrap();
    let sent = frame([1, 0x10, 0x18, 1, 0, 4], FIP, 60);
    for round in 1..4 {
        for _ in 0..3 {
            send(&mut a, &sent);
            assert_eq!(a.drops().unwrap().unsent, round, "the first one alone");
        }
        let mut b = open(&place).unwrap();
        b.join([1, 0x10, 0x18, 1, 0, 4]).unwrap();
        for _ in 0..2 {
            send(&mut a, &sent);
            assert_eq!(receive(&mut b, 1), [(sent.clone(), None)]);
        }
    }
}

#[test]
fn a_full_cable_makes_its_sender_wait_and_loses_nothing() {
    let mut pair = Pair::cable();
    let sent = frame(pair.b.mac(), FCOE, 2172);
    let mut count = 0;
    while let Some(slot) = pair.a.slot(sent.len()) {
        slot.copy_from_slice(&sent);
        pair.a.commit(sent.len());
        pair.a.flush().unwrap();
        count += 1;
    }
    let mut left = pair.a.flush().unwrap();
    assert!(!left && !ready(&pair.a, SHORT), "there is no room");
    let mut taken = 0;
    while taken < count {
        assert!(ready(&pair.b, LONG));
        pair.b.receive(|frame, _| {
            assert_eq!(frame, sent);
            taken += 1;
        });
        if !left {
            assert!(ready(&pair.a, LONG), "there is room");
            left = pair.a.flush().unwrap();
        }
    }
    assert!(!ready(&pair.a, SHORT), "there is nothing to wait for");
    assert_eq!(pair.a.drops().unwrap(), Default::default());
}

#[test]
fn who_goes_while_his_socket_is_full_holds_nobody_up() {
    let mut pair = Pair::cable();
    let sent = frame(pair.b.mac(), FCOE, 2172);
    let mut left = true;
    while left {
        put(&mut pair.a, &sent);
        left = pair.a.flush().unwrap();
    }
    drop(pair.b);
    assert!(ready(&pair.a, LONG));
    assert!(pair.a.flush().unwrap());
    assert_eq!(pair.a.drops().unwrap().unsent, 1);
}

#[test]
fn who_is_there_but_reads_no_more_holds_nobody_up() {
    let folder = Folder::new();
    let guest = UnixDatagram::bind(folder.0.join("x.sock.peer")).unwrap();
    let mut port = open(&folder.cable()).unwrap();
    guest.shutdown(Shutdown::Read).unwrap();
    for _ in 0..3 {
        put(&mut port, &frame([2; 6], FCOE, 100));
    }
    assert!(port.flush().unwrap());
    assert_eq!(port.drops().unwrap().unsent, 3);
}

#[test]
fn a_frame_that_is_too_long_is_counted() {
    let folder = Folder::new();
    let guest = UnixDatagram::unbound().unwrap();
    let mut port = open(&folder.cable()).unwrap();
    let to = port.mac();
    for len in [2519, 2518] {
        guest
            .send_to(&frame(to, FCOE, len), folder.0.join("x.sock"))
            .unwrap();
    }
    assert_eq!(receive(&mut port, 1), [(frame(to, FCOE, 2518), None)]);
    assert_eq!(port.drops().unwrap().too_long, 1);
}

#[test]
fn a_place_is_written_as_it_is_read() {
    for (text, interface) in [
        ("eth0", Some("eth0")),
        ("eth0.100", Some("eth0.100")),
        ("xdp:eth0", Some("eth0")),
        ("cable:/run/x.sock", None),
        ("cable:x", None),
    ] {
        let place: Place = text.parse().unwrap();
        assert_eq!(place.to_string(), text);
        assert_eq!(place.interface(), interface);
    }
}
