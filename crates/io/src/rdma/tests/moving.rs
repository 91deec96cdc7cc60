//! Pairs that move to another core.

use super::rig::{Ends, message, pattern, read, told, write};
use crate::memory::Buffer;
use crate::rdma::{RdmaMemory, RemoteAccess};

#[test]
fn a_pair_goes_on_at_another_core() {
    let Ends {
        target,
        mut initiator,
        memory,
        pool,
        world,
    } = Ends::new();
    initiator.post(message(b"before"));
    initiator.flush();
    let moving = target.release().unwrap();
    let sink = Buffer::from_vec(vec![0; 5000]);
    let place = initiator.advertise(&sink, RemoteAccess::Write).unwrap();
    let other = std::thread::spawn(move || {
        let memory = RdmaMemory::new();
        let mut target = moving.attach(&memory);
        let received = told(&mut target);
        target.post(write(place, Buffer::from_vec(pattern(5000))));
        target.post(message(b"after"));
        target.flush();
        let sent = told(&mut target);
        (received, sent, target.release().unwrap())
    });
    let (received, sent, moving) = other.join().unwrap();
    assert_eq!(received, ["received before"]);
    assert_eq!(sent, ["written", "sent"]);
    assert_eq!(told(&mut initiator), ["sent", "received after"]);
    initiator.withdraw(place.key);
    assert_eq!(super::rig::bytes_of(&sink), pattern(5000));
    // Nobody has to take it.
    drop(moving);
    initiator.wake();
    assert_eq!(told(&mut initiator), ["ended: the peer disconnected"]);
    drop((initiator, memory, pool, world));
}

#[test]
fn a_pair_with_data_under_way_stays() {
    let mut ends = Ends::new();
    let source = Buffer::from_vec(pattern(512));
    let place = ends
        .initiator
        .advertise(&source, RemoteAccess::Read)
        .unwrap();
    ends.target
        .post(read(1, place, Buffer::from_vec(vec![0; 512])));
    let Ends {
        target,
        initiator,
        memory,
        pool,
        world,
    } = ends;
    let mut target = target.release().unwrap_err();
    target.flush();
    let mut target = target.release().unwrap_err();
    assert_eq!(told(&mut target), ["got 1, 512 bytes"]);
    let moving = target.release().unwrap();
    let initiator = initiator.release().unwrap_err();
    drop((moving, initiator, memory, pool, world));
}
