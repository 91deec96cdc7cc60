//! Connections that die while the data of a WRITE is coming: each block is old or new.

use ::io::ring::RingKind;
use iscsi::target::TargetLimits;

use super::super::BLOCK;
use super::super::rig::{Host, Rig};
use crate::cdb;
use crate::initiator::{Data, Reply};

/// Blocks of each WRITE. Its data goes with the command.
const BLOCKS: u32 = 8;
const LEN: usize = (BLOCKS * BLOCK) as usize;

/// Bytes of its PDU before the data.
const HEADER: usize = 48;

/// How much of the data has come when the connection dies.
const CUTS: [usize; 8] = [0, 1, 100, 512, 700, 1023, 2048, 4095];

#[test]
fn a_block_of_which_a_part_has_come_stays_as_it_was() {
    for kind in [RingKind::Uring, RingKind::Epoll] {
        let Some(mut rig) = hosts(kind, 1 + CUTS.len() as u32) else {
            continue;
        };
        for cut in CUTS {
            write(&mut rig.hosts[0], 1);
            assert!(is_good(&rig.answers()));
            let mut host = rig.hosts.pop().unwrap();
            write(&mut host, 2);
            host.say_at_most(HEADER + cut);
            turns(&mut rig);
            drop(host);
            turns(&mut rig);
            let whole = cut / BLOCK as usize * BLOCK as usize;
            let read = read(&mut rig);
            let old = read.iter().position(|byte| *byte == 1);
            assert_eq!(old, Some(whole), "{kind:?}: {cut} bytes have come");
            let mut rest = read[whole..].iter();
            assert!(rest.all(|byte| *byte == 1), "{kind:?}: {cut}");
        }
    }
}

#[test]
fn a_write_that_comes_by_parts_is_read_whole() {
    for kind in [RingKind::Uring, RingKind::Epoll] {
        let Some(mut rig) = hosts(kind, 1) else {
            continue;
        };
        for (number, part) in (1..).zip([1, 7, 511, 513, 1000, 4095]) {
            write(&mut rig.hosts[0], number);
            while rig.hosts[0].has_more() {
                rig.hosts[0].say_at_most(part);
                rig.wait();
                rig.turn();
            }
            assert!(is_good(&rig.answers()));
            assert_eq!(read(&mut rig), [number; LEN], "{kind:?}, by {part} bytes");
        }
    }
}

/// Hosts whose unit attentions of a new nexus are over; `None` where the kernel does not have the
/// ring.
fn hosts(kind: RingKind, hosts: u32) -> Option<Rig> {
    let mut rig = Rig::new(kind, hosts, 1 << 20, TargetLimits::default())?;
    for _ in 0..4 {
        for host in &mut rig.hosts {
            host.command(&[0; 6], Data::None);
        }
        rig.answers();
    }
    Some(rig)
}

fn write(host: &mut Host, byte: u8) {
    let data = Data::Out(vec![byte; LEN].into());
    host.command(&cdb::write(0, BLOCKS, false), data);
}

/// What the first host reads.
fn read(rig: &mut Rig) -> Vec<u8> {
    rig.hosts[0].command(&cdb::read(0, BLOCKS), Data::In(LEN as u32));
    match rig.answers().pop() {
        Some(Reply::Done {
            status: 0, data, ..
        }) => data,
        other => panic!("{other:?}"),
    }
}

fn is_good(answers: &[Reply]) -> bool {
    matches!(answers, [Reply::Done { status: 0, .. }])
}

/// Enough turns for what was said last to have come.
fn turns(rig: &mut Rig) {
    for _ in 0..10 {
        rig.wait();
        rig.turn();
    }
}
