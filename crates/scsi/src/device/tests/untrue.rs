//! Addresses and lengths that are not true: the medium is asked for nothing, and no memory is taken
//! for them.

use super::rig::{Rig, traits};
use crate::commands::{CommandRow, Length, TABLE};
use crate::medium::{Lease, SEGMENT_BYTES};
use crate::nexus::NexusId;
use crate::task::{Attribute, Command, Tag};
use crate::wire::cdb::Field;
use crate::wire::lun::Lun;

const NEXUS: NexusId = NexusId(0);
const ILLEGAL_REQUEST: u8 = 0x5;

/// A CDB of the row with nothing set but what names it.
fn blank(row: &CommandRow) -> [u8; 32] {
    let mut cdb = [0; 32];
    cdb[0] = row.opcode;
    cdb[1] = row.service_action.unwrap_or(0) as u8;
    cdb
}

/// As large as the field can say, and no larger than `value`.
fn put(cdb: &mut [u8], field: Field, value: u64) {
    let most = u64::MAX >> (64 - 8 * u32::from(field.len));
    field.write(cdb, value.min(most));
}

/// SPDK before 19.07: an I/O request that was not valid ended the process.
#[test]
fn no_command_reaches_past_the_last_block() {
    let last = traits().blocks - 1;
    let untrue = [
        (last, 2),
        (last + 1, 1),
        (last + 2, 0),
        (last, u64::MAX),
        (u64::MAX, 1),
        (u64::MAX, u64::MAX),
    ];
    let mut rig = Rig::new().holding();
    let mut tried = 0;
    for row in TABLE {
        let (Some(lba), Length::Blocks(blocks)) = (row.lba, row.length) else {
            continue;
        };
        for (first, count) in untrue {
            let mut cdb = blank(row);
            put(&mut cdb, blocks, count);
            // READ(6) and WRITE(6) have their address in 21 bits.
            let first = if lba.len == 3 {
                first.min(0x1f_ffff)
            } else {
                first
            };
            put(&mut cdb, lba, first);
            let tag = rig.send(&cdb, (1 << 20, vec![0; 512]));
            assert_eq!(rig.sense(NEXUS, tag).0, ILLEGAL_REQUEST, "{}", row.name);
            assert!(rig.held.is_empty(), "{} of {first}+{count}", row.name);
            tried += 1;
        }
    }
    assert!(tried > 100, "the table was looked through: {tried}");
}

/// The same, where the address is in a parameter list.
#[test]
fn no_parameter_list_reaches_past_the_last_block() {
    let mut rig = Rig::new().holding();
    for (lba, blocks) in [(8191, 2), (8192, 1), (u64::MAX, 1), (u64::MAX, u32::MAX)] {
        let mut list = vec![0, 22, 0, 16, 0, 0, 0, 0];
        list.extend(lba.to_be_bytes());
        list.extend(blocks.to_be_bytes());
        list.extend([0; 4]);
        let unmap = [0x42, 0, 0, 0, 0, 0, 0, 0, 24, 0];
        rig.refuses(&unmap, list, (ILLEGAL_REQUEST, 0x2100));
        assert!(rig.held.is_empty());
    }
}

/// FreeBSD-SA-24:11.ctl: a parameter list as long as its CDB claims, 4 GiB, was made room for.
#[test]
fn no_memory_is_taken_for_a_parameter_list_before_it_is_known_to_be_bearable() {
    let lists = TABLE
        .iter()
        .filter(|row| matches!(row.length, Length::Parameters(_)));
    for (number, row) in (1000..).zip(lists) {
        let mut rig = Rig::new();
        rig.hold_data = true;
        let mut cdb = blank(row);
        if let Length::Parameters(field) = row.length {
            put(&mut cdb, field, u64::MAX);
        }
        let command = Command {
            nexus: NEXUS,
            tag: Tag(number),
            lun: Lun::from_index(0),
            cdb,
            cdb_len: 16,
            attribute: Attribute::Simple,
            priority: 0,
            expected_in: 0,
            expected_out: u32::MAX,
        };
        rig.server.execute(command);
        rig.run();
        let asked: usize = rig.asked_for.drain(..).map(|asked| asked.3.len()).sum();
        assert!(asked <= SEGMENT_BYTES as usize, "{}: {asked}", row.name);
        if asked == 0 {
            assert_eq!(rig.sense(NEXUS, Tag(number)).0, ILLEGAL_REQUEST);
        }
    }
}
