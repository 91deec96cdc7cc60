//! Commands over two ports that found each other.

use insta::assert_snapshot;

use super::rig::Rig;
use crate::initiator::{Data, FcpInitiatorEvent};
use crate::tests::pair::lease;
use crate::tests::{bytes, cdb10};
use scsi::medium::HeapLease;

fn done(rig: &mut Rig) -> Data<HeapLease> {
    match rig.done.pop() {
        Some(FcpInitiatorEvent::Done(done)) if done.status == 0 => done.data,
        other => panic!("{other:?}"),
    }
}

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at / 7) as u8).collect()
}

#[test]
fn inquiry() {
    let mut rig = Rig::up();
    rig.inquire();
    assert_snapshot!(rig.traced());
    done(&mut rig);
}

#[test]
fn a_read_of_several_frames() {
    let mut rig = Rig::up();
    rig.disk.bytes[..5120].copy_from_slice(&pattern(5120));
    rig.execute(&cdb10(0x28, 0, 10), Data::In(lease(vec![0; 5120])));
    assert_snapshot!(rig.traced());
    let Data::In(into) = done(&mut rig) else {
        panic!("not what was sent")
    };
    assert!(bytes(&into) == pattern(5120));
}

#[test]
fn a_write_of_several_frames() {
    let mut rig = Rig::up();
    rig.execute(&cdb10(0x2a, 0, 10), Data::Out(lease(pattern(5120))));
    assert_snapshot!(rig.traced());
    done(&mut rig);
    assert!(rig.disk.bytes[..5120] == pattern(5120));
}
