//! Commands over two ports that found each other.

use insta::assert_snapshot;
use scsi::medium::{HeapLease, Lease};

use super::rig::{Rig, config, ms};
use crate::initiator::{Data, FcpInitiatorEvent};

fn up() -> Rig {
    let mut rig = Rig::new(&config(2), &config(1));
    rig.run(ms(1900));
    rig.traced();
    rig
}

fn done(rig: &mut Rig) -> Data<HeapLease> {
    match rig.done.pop() {
        Some(FcpInitiatorEvent::Done(done)) if done.status == 0 => done.data,
        other => panic!("{other:?}"),
    }
}

fn bytes(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at / 7) as u8).collect()
}

#[test]
fn inquiry() {
    let mut rig = up();
    let into = HeapLease::from_bytes(vec![0; 36]);
    rig.execute(&[0x12, 0, 0, 0, 36, 0], Data::In(into));
    assert_snapshot!(rig.traced());
    done(&mut rig);
}

#[test]
fn a_read_of_several_frames() {
    let mut rig = up();
    rig.disk[..5120].copy_from_slice(&bytes(5120));
    let into = HeapLease::from_bytes(vec![0; 5120]);
    rig.execute(&[0x28, 0, 0, 0, 0, 0, 0, 0, 10, 0], Data::In(into));
    assert_snapshot!(rig.traced());
    let Data::In(into) = done(&mut rig) else {
        panic!("not what was sent")
    };
    let mut read = vec![0; 5120];
    into.copy_out(0, &mut read);
    assert!(read == bytes(5120));
}

#[test]
fn a_write_of_several_frames() {
    let mut rig = up();
    let from = HeapLease::from_bytes(bytes(5120));
    rig.execute(&[0x2a, 0, 0, 0, 0, 0, 0, 0, 10, 0], Data::Out(from));
    assert_snapshot!(rig.traced());
    done(&mut rig);
    assert!(rig.disk[..5120] == bytes(5120));
}
