//! Commands of any kind from several hosts to device servers on two cores, with task management
//! and the loss of hosts in between.

use scsi::commands::TABLE;
use scsi::nexus::NexusId;
use scsi::task::{Attribute, Command, Function, Tag};
use scsi::unit::UnitId;
use scsi::wire::lun::Lun;

use super::device::{HOSTS, World};
use super::script::Script;

/// Commands that may be open at once; more would only make a run slow.
const OPEN: usize = 64;

/// See docs/fuzzing.md.
pub fn cdb(data: &[u8]) {
    let mut script = Script::new(data);
    let mut world = World::new(script.byte());
    // Unit attentions of the power on would otherwise hide the first commands.
    if script.flag() {
        attentions(&mut world);
    }
    while !script.is_over() {
        act(&mut world, &mut script);
    }
    world.end();
}

/// Each host fetches the unit attention of each unit.
pub(super) fn attentions(world: &mut World) {
    for host in 0..HOSTS {
        for lun in 0..3 {
            let test_unit_ready = command(NexusId(host as u32), Lun::from_index(lun), [0; 32]);
            world.execute(test_unit_ready, &[]);
        }
    }
}

fn act(world: &mut World, script: &mut Script<'_>) {
    let what = script.byte();
    match what & 15 {
        0..=6 => {
            let choice = script.byte();
            world.happen(choice, if what & 0x80 == 0 { 0 } else { what >> 4 & 7 });
        }
        7 => manage(world, script),
        8 if what & 0x70 == 0 => {
            if let Some(nexus) = world.host(script) {
                world.lose(nexus);
            }
        }
        8 if what & 0x70 == 0x70 => {
            if let Some(nexus) = world.host(script) {
                world.remap(nexus, script.byte());
            }
        }
        8 => world.grow(
            UnitId::first(u32::from(what >> 4 & 3)),
            script.byte().into(),
        ),
        kind => execute(world, script, kind == 9),
    }
}

fn manage(world: &mut World, script: &mut Script<'_>) {
    let Some(nexus) = world.host(script) else {
        return;
    };
    let lun = lun(script);
    let tag = world.commands.tag(nexus, script.below(16));
    let function = script.pick(&[
        Function::AbortTask(tag),
        Function::AbortTaskSet,
        Function::ClearAca,
        Function::ClearTaskSet,
        Function::LogicalUnitReset,
        Function::TargetReset,
        Function::NexusReset,
        Function::QueryTask(tag),
        Function::QueryTaskSet,
        Function::QueryAsynchronousEvent,
    ]);
    world.manage(nexus, lun, function);
}

fn lun(script: &mut Script<'_>) -> Lun {
    match script.byte() {
        number @ 0..=250 => Lun::from_index(u16::from(number) % 3),
        251 => Lun([0xc1, 1, 0, 0, 0, 0, 0, 0]),
        _ => Lun(script.array()),
    }
}

fn execute(world: &mut World, script: &mut Script<'_>, anything: bool) {
    let Some(nexus) = world.host(script) else {
        return;
    };
    let lun = lun(script);
    let cdb = if anything {
        script.array()
    } else {
        of_table(script)
    };
    let attribute = script.byte();
    let lengths = script.byte();
    let data_len = if lengths & 1 == 0 { 0 } else { script.half() };
    let data = script.take(data_len.into());
    if world.commands.len() >= OPEN {
        return;
    }
    let any = Command {
        attribute: match attribute & 7 {
            1 => Attribute::Ordered,
            2 => Attribute::HeadOfQueue,
            3 => Attribute::Aca,
            _ => Attribute::Simple,
        },
        expected_in: expected(script, lengths >> 1 & 3, 65_536),
        expected_out: expected(script, lengths >> 3 & 3, data_len.into()),
        ..command(nexus, lun, cdb)
    };
    world.execute(any, data);
}

fn expected(script: &mut Script<'_>, how: u8, usual: u32) -> u32 {
    match how {
        0 => usual,
        1 => script.word(),
        2 => script.half().into(),
        _ => 1 << 24,
    }
}

pub(super) fn command(nexus: NexusId, lun: Lun, cdb: [u8; 32]) -> Command {
    Command {
        nexus,
        tag: Tag(0),
        lun,
        cdb,
        cdb_len: 16,
        attribute: Attribute::Simple,
        priority: 0,
        expected_in: 65_536,
        expected_out: 0,
    }
}

/// A CDB that the table has: bytes of the script where its fields are.
fn of_table(script: &mut Script<'_>) -> [u8; 32] {
    let row = &TABLE[script.below(TABLE.len())];
    let mut cdb = [0; 32];
    for (byte, mask) in cdb.iter_mut().zip(row.usage) {
        *byte = if *mask == 0 { 0 } else { script.byte() & mask };
    }
    cdb[0] = row.opcode;
    if let Some(action) = row.service_action {
        cdb[1] = cdb[1] & 0xe0 | action as u8;
    }
    cdb
}
