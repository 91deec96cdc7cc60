//! EXTENDED COPY(LID1) and RECEIVE COPY RESULTS.

use super::rig::{BLOCK, Rig, cdb10, nexus, pattern, swap_cdb, traits};
use crate::medium::{MediumOp, ReadMemory};
use crate::nexus::NexusId;
use crate::task::{Attribute, Tag};
use crate::wire::lun::Lun;
use crate::wire::sense::Status;

const A: NexusId = NexusId(0);
const B: NexusId = NexusId(1);

/// An identification CSCD descriptor of the rig's unit of this number.
fn device(unit: u8) -> [u8; 32] {
    let mut descriptor = [0; 32];
    descriptor[0] = 0xe4;
    descriptor[4..8].copy_from_slice(&[1, 3, 0, 8]);
    descriptor[8] = 0x30;
    descriptor[15] = unit;
    descriptor[30..].copy_from_slice(&(BLOCK as u16).to_be_bytes());
    descriptor
}

/// A segment descriptor from block device to block device.
fn segment(from: u16, to: u16, blocks: u16, source: u64, destination: u64) -> [u8; 28] {
    let mut descriptor = [0; 28];
    descriptor[0] = 0x02;
    descriptor[3] = 0x18;
    descriptor[4..6].copy_from_slice(&from.to_be_bytes());
    descriptor[6..8].copy_from_slice(&to.to_be_bytes());
    descriptor[10..12].copy_from_slice(&blocks.to_be_bytes());
    descriptor[12..20].copy_from_slice(&source.to_be_bytes());
    descriptor[20..].copy_from_slice(&destination.to_be_bytes());
    descriptor
}

fn list(id: u8, devices: &[[u8; 32]], segments: &[[u8; 28]]) -> Vec<u8> {
    let mut list = vec![0; 16];
    list[0] = id;
    list[2..4].copy_from_slice(&(devices.len() as u16 * 32).to_be_bytes());
    list[8..12].copy_from_slice(&(segments.len() as u32 * 28).to_be_bytes());
    list.extend(devices.concat());
    list.extend(segments.concat());
    list
}

fn copy(rig: &mut Rig, nexus: NexusId, list: Vec<u8>) -> Tag {
    let mut cdb = [0; 16];
    cdb[0] = 0x83;
    cdb[10..14].copy_from_slice(&(list.len() as u32).to_be_bytes());
    rig.send_by(nexus, &cdb, list)
}

fn results(rig: &mut Rig, action: u8, id: u8) -> Tag {
    let mut cdb = [0; 16];
    cdb[..3].copy_from_slice(&[0x84, action, id]);
    cdb[12] = 1;
    rig.send(&cdb, 256)
}

#[test]
fn blocks_go_from_one_unit_to_another() {
    let mut rig = Rig::with(1, 2, &traits());
    let data = pattern(1200, 1);
    rig.disks[0][..data.len()].copy_from_slice(&data);
    let segments = [segment(0, 1, 1200, 0, 100), segment(1, 0, 8, 100, 8000)];
    let tag = copy(&mut rig, A, list(1, &[device(0), device(1)], &segments));
    assert_eq!(rig.status(tag), Status::Good);
    assert_eq!(rig.disks[1][100 * BLOCK..1300 * BLOCK], data);
    assert_eq!(rig.disks[0][8000 * BLOCK..8008 * BLOCK], data[..8 * BLOCK]);
    let status = results(&mut rig, 0x00, 1);
    let told = rig.data(status);
    assert_eq!(told[..7], [0, 0, 0, 8, 1, 0, 2]);
    assert_eq!(told[8..], 604_u32.to_be_bytes(), "KiB");
}

/// As if all of the source had been read before any of it was overwritten.
#[test]
fn blocks_may_go_to_where_they_overlap_with_themselves() {
    for (from, to) in [(0, 8), (0, 512), (0, 700), (8, 0), (600, 0), (5, 5)] {
        let mut rig = Rig::new();
        let data = pattern(1300, 1);
        rig.disks[0][from * BLOCK..][..data.len()].copy_from_slice(&data);
        let segment = segment(0, 0, 1300, from as u64, to as u64);
        let tag = copy(&mut rig, A, list(1, &[device(0)], &[segment]));
        assert_eq!(rig.status(tag), Status::Good);
        let came = &rig.disks[0][to * BLOCK..][..data.len()];
        assert!(came == data, "from {from} to {to}");
    }
}

#[test]
fn a_piece_that_overlaps_with_itself_is_read_by_copying() {
    let mut rig = Rig::new().holding();
    for (id, source, copied) in [(1, 0, true), (2, 200, false)] {
        copy(
            &mut rig,
            A,
            list(id, &[device(0)], &[segment(0, 0, 8, source, 4)]),
        );
        let (_, _, op) = &rig.held[0];
        assert!(
            matches!(op, MediumOp::Read { memory, .. }
                if (*memory == ReadMemory::Private) == copied),
            "{op:?}"
        );
        rig.answer(0);
        rig.answer(0);
    }
}

#[test]
fn results_of_a_copy_that_never_was_are_refused() {
    let mut rig = Rig::new();
    let tag = results(&mut rig, 0x00, 7);
    assert_eq!(rig.sense(A, tag), (0x5, 0x2400));
    let tag = results(&mut rig, 0x01, 7);
    assert_eq!(rig.sense(A, tag), (0x5, 0x2400));
}

#[test]
fn operating_parameters_name_what_is_implemented() {
    let mut rig = Rig::new();
    let tag = results(&mut rig, 0x03, 0);
    let told = rig.data(tag);
    assert_eq!(told[..4], (told.len() as u32 - 4).to_be_bytes());
    assert_eq!(told[43..], [2, 0x02, 0xe4]);
}

#[test]
fn a_copy_in_progress_can_be_asked_for() {
    let mut rig = Rig::new().holding();
    let list = list(9, &[device(0)], &[segment(0, 0, 8, 0, 100)]);
    copy(&mut rig, A, list.clone());
    let status = results(&mut rig, 0x00, 9);
    assert_eq!(rig.data(status)[4], 0);
    let again = copy(&mut rig, A, list);
    assert_eq!(rig.sense(A, again), (0x5, 0x0016));
    rig.answer(0);
    rig.answer(0);
    let status = results(&mut rig, 0x00, 9);
    assert_eq!(rig.data(status)[4], 1);
}

#[test]
fn what_another_target_exports_is_out_of_reach() {
    // CVE-2020-28374: whoever knew a designator could copy from any backstore.
    let mut rig = Rig::with(1, 2, &traits());
    rig.server.nexus_up(B, nexus(B, 1));
    rig.send_by(B, &[0; 6], ());
    for (from, to) in [(0, 1), (1, 0)] {
        let segment = segment(from, to, 8, 0, 0);
        let tag = copy(&mut rig, B, list(1, &[device(0), device(1)], &[segment]));
        assert_eq!(rig.sense(B, tag), (0xa, 0x0804));
    }
}

#[test]
fn a_reservation_keeps_a_copy_out_of_either_side() {
    let mut rig = Rig::with(2, 2, &traits());
    let reserve = rig.send_to(B, 1, &[0x16, 0, 0, 0, 0, 0], Attribute::Simple, ());
    assert_eq!(rig.completed(B, reserve).status, Status::Good);
    for (from, to) in [(0, 1), (1, 0)] {
        let segment = segment(from, to, 8, 0, 0);
        let tag = copy(&mut rig, A, list(1, &[device(0), device(1)], &[segment]));
        assert_eq!(rig.status(tag), Status::ReservationConflict);
    }
}

#[test]
fn a_copy_waits_for_a_lock_on_either_side() {
    let mut rig = Rig::with(2, 2, &traits()).holding();
    let both = [vec![0; BLOCK], vec![5; BLOCK]].concat();
    rig.send_to(B, 1, &swap_cdb(4, 1), Attribute::Simple, both);
    rig.answer(0);
    let list = list(1, &[device(0), device(1)], &[segment(1, 0, 8, 0, 0)]);
    let tag = copy(&mut rig, A, list);
    assert_eq!(rig.held.len(), 1, "only the read of COMPARE AND WRITE");
    rig.answer_all();
    assert_eq!(rig.status(tag), Status::Good);
    assert_eq!(rig.disks[0][4 * BLOCK..5 * BLOCK], [5; BLOCK]);
}

#[test]
fn a_reset_of_the_destination_ends_a_copy() {
    let mut rig = Rig::with(2, 2, &traits()).holding();
    let list = list(1, &[device(0), device(1)], &[segment(0, 1, 2048, 0, 0)]);
    let tag = copy(&mut rig, A, list);
    rig.answer(0);
    assert!(matches!(rig.held[0].2, MediumOp::Write { .. }));
    let lun = Lun::from_index(1);
    rig.server
        .manage(B, 77, lun, crate::task::Function::LogicalUnitReset);
    rig.run();
    assert_eq!(rig.answer_to(77), None, "the write is under way");
    rig.answer(0);
    assert!(rig.answer_to(77).is_some());
    assert!(rig.held.is_empty());
    assert_eq!(rig.completed(A, tag).status, Status::TaskAborted);
}

#[test]
fn lists_that_are_wrong_in_every_way() {
    let mut rig = Rig::new();
    let good = list(1, &[device(0)], &[segment(0, 0, 8, 0, 100)]);
    let change = |at: usize, byte: u8| {
        let mut list = good.clone();
        list[at] = byte;
        list
    };
    let cases = [
        (good[..15].to_vec(), (0x5, 0x1a00), "no whole header"),
        (good[..70].to_vec(), (0x5, 0x1a00), "cut segment"),
        (change(1, 0x08), (0x5, 0x2600), "reserved LIST ID USAGE"),
        (
            change(1, 0x18),
            (0x5, 0x2600),
            "an identifier that does not count",
        ),
        (change(15, 1), (0x5, 0x260b), "inline data"),
        (change(16, 0xe0), (0x5, 0x2607), "N_Port name"),
        (change(17, 0x05), (0x5, 0x2600), "not a block device"),
        (change(23, 30), (0x5, 0x2600), "long designator"),
        (change(24, 0x31), (0xa, 0x0804), "nobody's designator"),
        (change(46, 0x10), (0x5, 0x2600), "another block size"),
        (change(48, 0x03), (0x5, 0x2609), "stream to stream"),
        (change(51, 0x10), (0x5, 0x2600), "segment length"),
        (change(53, 1), (0xa, 0x0804), "no such CSCD"),
        (change(64, 1), (0xa, 0x0000), "source past the end"),
        (change(68, 1), (0xa, 0x0000), "destination past the end"),
        (list(1, &[device(0); 17], &[]), (0x5, 0x2606), "CSCDs"),
        (
            list(1, &[], &[segment(0, 0, 0, 0, 0); 65]),
            (0x5, 0x2608),
            "segments",
        ),
    ];
    for (list, sense, why) in cases {
        let tag = copy(&mut rig, A, list);
        assert_eq!(rig.sense(A, tag), sense, "{why}");
    }
    let nothing = copy(&mut rig, A, Vec::new());
    assert_eq!(rig.status(nothing), Status::Good);
    assert!(rig.disks[0].iter().all(|byte| *byte == 0));
}

#[test]
fn every_byte_of_a_list_may_be_anything() {
    let mut rig = Rig::new();
    let good = list(1, &[device(0)], &[segment(0, 0, 8, 0, 100)]);
    for at in 0..good.len() {
        for byte in [0x00, 0x01, 0x7f, 0x80, 0xff] {
            let mut list = good.clone();
            list[at] = byte;
            let tag = copy(&mut rig, A, list);
            rig.completed(A, tag);
        }
    }
    rig.good(&cdb10(0x28, 0, 0, 1), 512);
}
