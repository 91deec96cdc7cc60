//! Persistent reservations: parameter lists that may be anything, and what is kept of them over a
//! power loss.

use iscsi::wire::framer::crc32c;
use scsi::nexus::NexusId;
use scsi::reserve::{Holding, Reservations};
use scsi::wire::lun::Lun;

use super::cdb::{attentions, command};
use super::device::{HOSTS, World};
use super::script::Script;

/// See docs/fuzzing.md.
pub fn reserve(data: &[u8]) {
    let mut script = Script::new(data);
    match script.byte() {
        0 => stored(script.rest()),
        1 => {
            // With the checksum that belongs to it, so that what is behind it is reached.
            let bytes = script.rest();
            let sum = u32::from_le_bytes(crc32c(bytes));
            stored(&[bytes, &sum.to_be_bytes()].concat());
        }
        flags => commands(&mut script, flags),
    }
}

/// Bytes that are said to be stored reservations.
fn stored(bytes: &[u8]) {
    match Reservations::from_bytes(bytes) {
        Ok(reservations) => {
            consistent(&reservations);
            let again = Reservations::from_bytes(&reservations.to_bytes());
            let kept = if reservations.aptpl() {
                reservations
            } else {
                Reservations::default()
            };
            assert_eq!(again, Ok(kept));
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// PERSISTENT RESERVE OUT and IN, RESERVE and RELEASE of several hosts.
fn commands(script: &mut Script<'_>, flags: u8) {
    let mut world = World::new(flags | 16);
    attentions(&mut world);
    while !script.is_over() {
        let what = script.byte();
        match what & 7 {
            0 | 1 => {
                world.happen(script.byte(), what >> 5 & 1);
            }
            2 => send(&mut world, script, &[0x5e, what >> 3 & 3]),
            3 => send(
                &mut world,
                script,
                &[[0x16], [0x17]][usize::from(what >> 3 & 1)],
            ),
            _ => persist(&mut world, script),
        }
        looks_right(&world);
    }
    world.end();
    looks_right(&world);
}

fn send(world: &mut World, script: &mut Script<'_>, head: &[u8]) {
    let nexus = NexusId(script.below(HOSTS) as u32);
    let mut cdb = [0; 32];
    cdb[..head.len()].copy_from_slice(head);
    cdb[7] = if head[0] == 0x5e { 0x10 } else { 0 };
    world.execute(command(nexus, shared_unit(nexus), cdb), &[]);
}

fn persist(world: &mut World, script: &mut Script<'_>) {
    let nexus = NexusId(script.below(HOSTS) as u32);
    let mut cdb = [0; 32];
    cdb[0] = 0x5f;
    cdb[1] = script.byte() & 0x1f;
    cdb[2] = script.byte();
    let mut list = vec![0; 24];
    // Few keys, so that hosts meet.
    list[7] = script.byte() & 3;
    list[15] = script.byte() & 3;
    let [a, b, c, d] = script.array();
    list[17] = a & 3;
    list[19] = b & 3;
    list[20] = c;
    list[23] = d;
    list.extend_from_slice(script.take(usize::from(d)));
    let length = match script.byte() {
        0..=200 => list.len() as u32,
        _ => script.word(),
    };
    cdb[5..9].copy_from_slice(&length.to_be_bytes());
    let mut out = command(nexus, shared_unit(nexus), cdb);
    out.expected_out = length.min(1 << 20);
    world.execute(out, &list);
}

/// Unit 0, which all hosts see: one of them as LUN 1.
fn shared_unit(nexus: NexusId) -> Lun {
    Lun::from_index(u16::from(nexus.0 == 2))
}

fn looks_right(world: &World) {
    for owner in &world.owners {
        let reservations = &owner.state().reservations;
        consistent(reservations);
        let kept = Reservations::from_bytes(&reservations.to_bytes());
        assert!(kept.is_ok(), "{kept:?} of {reservations:?}");
    }
}

fn consistent(reservations: &Reservations) {
    let all = reservations.registrations();
    assert!(all.iter().all(|one| one.key != 0));
    let names = all.iter().map(|one| (one.nexus.port, &one.nexus.initiator));
    assert!(names.is_sorted_by(|a, b| a < b), "{all:?}");
    if let Holding::Persistent(held) = reservations.hold() {
        assert!(!all.is_empty(), "{held:?} without registrants");
        assert_eq!(held.holder.is_none(), held.kind.all_registrants());
        let holder = held.holder.as_ref();
        assert!(holder.is_none_or(|holder| reservations.is_registered(holder)));
    }
}
