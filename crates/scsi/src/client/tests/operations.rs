//! Operations on a medium, as the commands that they become.

use std::time::Duration;

use super::super::{ClientCommand, Data, UnitRequest};
use super::unit::{BLOCK, Rig, Unit, flush, zeros};
use crate::medium::{
    Extent, HeapLease, Lease, MediumError, MediumOp, MediumOutcome, Provisioning, ReadMemory,
};
use crate::wire::lun::Lun;
use crate::wire::sense::{SenseKey, Status};

fn read(extent: Extent) -> MediumOp<HeapLease> {
    MediumOp::Read {
        extent,
        memory: ReadMemory::Lent,
    }
}

fn blocks(count: usize, byte: u8) -> Vec<u8> {
    vec![byte; count * BLOCK as usize]
}

#[test]
fn what_is_written_is_read() {
    let mut rig = Rig::default();
    rig.write(3, &blocks(2, 7), false).unwrap();
    let Ok(MediumOutcome::Lease(data)) = rig.go(read(Extent::new(4, 1))) else {
        panic!("no data")
    };
    let mut bytes = blocks(1, 0);
    data.copy_out(0, &mut bytes);
    assert_eq!(bytes, blocks(1, 7));
    rig.asks(["2a0000000003000002", "280000000004000001"]);
}

#[test]
fn a_read_that_got_less_lends_nothing() {
    let mut rig = Rig::default();
    rig.endings.push_back((Status::Good, None));
    assert_eq!(
        rig.go(read(Extent::new(0, 1))).unwrap_err(),
        MediumError::Read
    );
    for key in [SenseKey::RecoveredError, SenseKey::NoSense] {
        rig.ends(key, 0x1700);
        assert_eq!(
            rig.go(read(Extent::new(0, 1))).unwrap_err(),
            MediumError::Read
        );
    }
}

#[test]
fn a_write_of_which_less_was_taken_is_not_done() {
    let mut rig = Rig::default();
    for key in [
        SenseKey::RecoveredError,
        SenseKey::NoSense,
        SenseKey::Completed,
    ] {
        rig.ends(key, 0x1700);
        let result = rig.write(0, &blocks(1, 1), false);
        assert!(matches!(result, Err(MediumError::Write)), "{key:?}");
    }
    rig.unit.silent.extend([0x2a, 0x93]);
    let write = MediumOp::Write {
        extent: Extent::new(0, 2),
        data: Lease::from_bytes(blocks(2, 1)),
        fua: false,
        atomic: false,
    };
    let same = zeros(2);
    for (op, moved) in [(write, 1023), (same, 511)] {
        rig.submit(op);
        rig.run();
        let id = rig.unanswered.pop().unwrap();
        rig.answers(id, Status::Good, moved);
        assert_eq!(rig.error(), MediumError::Write);
    }
}

#[test]
fn far_blocks_need_the_long_form() {
    let mut rig = Rig::with(|unit| unit.blocks = 1 << 33);
    rig.submit(read(Extent::new(0xffff_fffe, 1)));
    rig.submit(read(Extent::new(0xffff_fffe, 2)));
    rig.run();
    rig.asks(["2800fffffffe000001", "880000000000fffffffe00000002"]);
}

#[test]
fn no_command_is_longer_than_the_unit_takes() {
    let mut rig = Rig::with(|unit| unit.max_transfer = 3);
    let data: Vec<u8> = (0..8 * BLOCK).map(|at| (at / 100) as u8).collect();
    rig.write(0, &data, false).unwrap();
    rig.asks([
        "2a0000000000000003",
        "2a0000000003000003",
        "2a0000000006000002",
    ]);
    let Ok(MediumOutcome::Lease(read)) = rig.go(read(Extent::new(0, 8))) else {
        panic!("no data")
    };
    let mut bytes = blocks(8, 0);
    read.copy_out(0, &mut bytes);
    assert_eq!(bytes, data);
}

#[test]
fn durable_writes_have_fua_or_are_flushed() {
    let mut rig = Rig::default();
    rig.write(1, &blocks(1, 1), true).unwrap();
    rig.asks(["2a0800000001000001"]);
    let mut unit = Unit::with(|unit| unit.dpofua = false);
    let mut rig = Rig::ready(unit.clone());
    rig.write(1, &blocks(1, 1), true).unwrap();
    rig.asks(["2a0000000001000001", "35"]);
    unit.write_cache = false;
    let mut rig = Rig::ready(unit);
    rig.write(1, &blocks(1, 1), true).unwrap();
    rig.asks(["2a0000000001000001"]);
}

#[test]
fn atomic_writes_are_as_durable_as_others() {
    let unit = |dpofua, write_cache| Unit {
        dpofua,
        write_cache,
        max_atomic: 8,
        ..Unit::default()
    };
    let asked = |unit, fua| {
        let mut rig = Rig::ready(unit);
        rig.go(MediumOp::Write {
            extent: Extent::new(1, 2),
            data: Lease::from_bytes(blocks(2, 7)),
            fua,
            atomic: true,
        })
        .unwrap();
        assert_eq!(rig.unit.bytes[512..1536], blocks(2, 7));
        rig.take_asked()
    };
    let [plain, fua] = [0x00, 0x08].map(|flags| format!("9c{flags:02x}{:020x}0002", 1 << 16));
    assert_eq!(asked(unit(true, true), true), [fua.as_str()]);
    assert_eq!(asked(unit(false, true), true), [plain.as_str(), "35"]);
    assert_eq!(asked(unit(true, false), true), [plain.as_str()]);
    assert_eq!(asked(unit(true, true), false), [plain.as_str()]);
}

#[test]
fn no_atomic_write_is_longer_than_one_command() {
    let most = |max_transfer| {
        let unit = Unit {
            max_transfer,
            max_atomic: 8,
            ..Unit::default()
        };
        let rig = Rig::ready(unit);
        let facts = rig.client.facts().unwrap();
        facts.traits.atomic.unwrap().max_blocks
    };
    assert_eq!([0, 3, 16].map(most), [8, 3, 8]);
}

#[test]
fn without_a_cache_there_is_nothing_to_flush() {
    let mut rig = Rig::default();
    rig.go(flush()).unwrap();
    rig.asks(["35"]);
    let mut rig = Rig::with(|unit| unit.write_cache = false);
    rig.go(flush()).unwrap();
    rig.asks([""; 0]);
}

#[test]
fn a_flush_that_was_not_done_is_repeated() {
    let mut rig = Rig::with(|unit| unit.dpofua = false);
    rig.ends(SenseKey::UnitAttention, 0x3f0e);
    rig.go(flush()).unwrap();
    rig.works(["35", "35"]);
    rig.endings.push_back((Status::Good, None));
    rig.endings.push_back((Status::TaskAborted, None));
    rig.write(1, &blocks(1, 1), true).unwrap();
    rig.asks(["2a0000000001000001", "35", "35"]);
}

#[test]
fn one_block_again_and_again() {
    let same = || zeros(600);
    let mut rig = Rig::default();
    rig.unit.bytes.fill(9);
    rig.go(same()).unwrap();
    rig.asks([
        "93000000000000000000000001",
        "93000000000000000100000001",
        "9300000000000000020000000058",
    ]);
    assert!(rig.unit.bytes[..600 * 512].iter().all(|byte| *byte == 0));
    assert_eq!(rig.unit.bytes[600 * 512], 9);
    // A unit that does not know it is written to in the ordinary way.
    rig.unit.unknown.push(0x93);
    rig.unit.bytes.fill(9);
    rig.go(same()).unwrap();
    assert_eq!(rig.take_asked().len(), 1 + 600_usize.div_ceil(128));
    assert!(rig.unit.bytes[..600 * 512].iter().all(|byte| *byte == 0));
    assert_eq!(rig.unit.bytes[600 * 512], 9);
}

fn unmap(extent: Extent) -> MediumOp<HeapLease> {
    let anchor = false;
    MediumOp::Unmap { extent, anchor }
}

/// Unmaps what is no whole number of granules, and checks that it reads as zeros. Returns what was
/// asked for it.
fn unmapped(unit: Unit) -> Vec<String> {
    let mut rig = Rig::ready(unit);
    rig.unit.bytes.fill(9);
    rig.go(unmap(Extent::new(3, 300))).unwrap();
    let size = BLOCK as usize;
    for (at, block) in rig.unit.bytes.chunks(size).enumerate() {
        let expected = if (3..303).contains(&at) { 0 } else { 9 };
        assert!(block.iter().all(|byte| *byte == expected), "block {at}");
    }
    rig.take_asked()
}

#[test]
fn what_is_unmapped_reads_as_zeros_where_a_granule_ends_inside_too() {
    assert_eq!(
        unmapped(Unit::default()),
        ["93090000000000000003000001", "930900000000000001030000002c"]
    );
    let asked = unmapped(Unit::with(|unit| unit.ndob = false));
    assert_eq!(asked[0], "93080000000000000003000001");
}

#[test]
fn what_cannot_be_unmapped_after_all_is_written_as_zeros() {
    let asked = unmapped(Unit::with(|unit| unit.unknown = vec![0x93]));
    assert_eq!(asked.len(), 1 + 300_usize.div_ceil(128));
}

#[test]
fn nothing_is_unmapped_that_might_not_read_as_zeros() {
    let unit = Unit::default();
    let hint = Unit::with(|unit| unit.write_same_unmaps = false);
    let garbage = Unit::with(|unit| unit.zeros = false);
    for unit in [hint, garbage] {
        let mut rig = Rig::ready(unit);
        assert_eq!(rig.client.facts().unwrap().traits.unmap_granularity, None);
        assert_eq!(
            rig.go(unmap(Extent::new(0, 8))).unwrap_err(),
            MediumError::Unsupported
        );
    }
    let result = Rig::ready(unit).go(MediumOp::Unmap {
        extent: Extent::new(0, 8),
        anchor: true,
    });
    assert!(matches!(result, Err(MediumError::Unsupported)));
}

#[test]
fn holes_are_asked_for_where_they_can_be() {
    let status = || MediumOp::Status {
        extent: Extent::new(5, 100),
    };
    let told = |rig: &mut Rig| match rig.go(status()) {
        Ok(MediumOutcome::Provisioning { blocks, state }) => (blocks, state),
        other => panic!("{other:?}"),
    };
    let mut rig = Rig::default();
    assert_eq!(told(&mut rig), (8, Provisioning::Deallocated));
    rig.unit.unknown.push(0x9e);
    assert_eq!(told(&mut rig), (100, Provisioning::Mapped));
    let mut rig = Rig::with(|unit| unit.unmaps = false);
    assert_eq!(told(&mut rig), (100, Provisioning::Mapped));
    rig.asks([""; 0]);
}

#[test]
fn a_protected_unit_is_not_written() {
    let mut rig = Rig::with(|unit| unit.write_protected = true);
    assert_eq!(
        rig.write(0, &blocks(1, 1), false).unwrap_err(),
        MediumError::ReadOnly
    );
    rig.asks([""; 0]);
}

#[test]
fn errors_are_told_as_what_they_are() {
    let mut rig = Rig::default();
    for (key, code, error) in [
        (SenseKey::MediumError, 0x1100, MediumError::Read),
        (SenseKey::MediumError, 0x0c00, MediumError::Write),
        (SenseKey::DataProtect, 0x2707, MediumError::NoSpace),
        (SenseKey::DataProtect, 0x2700, MediumError::ReadOnly),
        (SenseKey::NotReady, 0x3a00, MediumError::Gone),
        (SenseKey::IllegalRequest, 0x2500, MediumError::Gone),
    ] {
        rig.ends(key, code);
        assert_eq!(rig.write(0, &blocks(1, 1), false).unwrap_err(), error);
    }
    rig.endings.push_back((Status::ReservationConflict, None));
    let result = rig.write(0, &blocks(1, 1), false);
    assert_eq!(result.unwrap_err(), MediumError::ReadOnly);
}

#[test]
fn a_busy_unit_is_asked_again_later_and_not_for_ever() {
    let mut rig = Rig::default();
    rig.endings.push_back((Status::TaskSetFull, None));
    let id = rig.submit(read(Extent::new(0, 1)));
    rig.run();
    assert!(rig.results.is_empty());
    rig.wait();
    assert!(matches!(rig.results.pop(), Some((done, Ok(_))) if done == id));
    for _ in 0..100 {
        rig.endings.push_back((Status::Busy, None));
    }
    rig.submit(read(Extent::new(0, 1)));
    rig.run();
    let since = rig.now;
    while let Some(at) = rig.client.next_deadline() {
        rig.now = at;
        rig.client.expire(at);
        rig.run();
    }
    assert_eq!(rig.error(), MediumError::Busy);
    let waited = (rig.now - since).as_secs();
    assert!(
        (120..123).contains(&waited),
        "{waited} s, a failover takes a minute"
    );
}

#[test]
fn a_flush_may_take_twice_as_long_as_a_read_and_write_same_four_times() {
    let lasts = |opcode| {
        let mut cdb = [0; 16];
        cdb[0] = opcode;
        let data = Data::<HeapLease>::None;
        let command = ClientCommand::of(UnitRequest { id: 1, cdb, data }, Lun::from_index(0));
        let (now, usual) = (Duration::from_secs(7), Duration::from_secs(30));
        (command.ends_by(now, usual) - now).as_secs()
    };
    assert_eq!(
        [0x28, 0x2a, 0x35, 0x91, 0x41, 0x93, 0x42].map(lasts),
        [30, 30, 60, 60, 120, 120, 120]
    );
}

#[test]
fn a_unit_that_is_not_ready_for_now_is_asked_again_later() {
    let mut rig = Rig::default();
    for code in [0x0401, 0x0404, 0x0407, 0x0409, 0x040a, 0x0414] {
        rig.ends(SenseKey::NotReady, code);
        rig.submit(read(Extent::new(0, 1)));
        rig.run();
        assert!(rig.results.is_empty(), "{code:#06x}");
        rig.wait();
        assert!(matches!(rig.results.pop(), Some((_, Ok(_)))));
    }
}

#[test]
fn what_says_nothing_of_reading_or_writing_is_told_as_what_was_asked() {
    let mut rig = Rig::default();
    rig.ends(SenseKey::HardwareError, 0x4400);
    let result = rig.go(read(Extent::new(0, 1)));
    assert_eq!(result.unwrap_err(), MediumError::Read);
    rig.ends(SenseKey::HardwareError, 0x4400);
    let result = rig.write(0, &blocks(1, 1), false);
    assert_eq!(result.unwrap_err(), MediumError::Write);
}

#[test]
fn memory_that_is_not_there_is_not_waited_for() {
    let mut rig = Rig::default();
    rig.client.submit(1, read(Extent::new(0, 1)), &mut |_| None);
    rig.run();
    assert!(matches!(
        rig.results.pop(),
        Some((1, Err(MediumError::Busy)))
    ));
}
