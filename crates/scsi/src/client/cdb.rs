//! CDBs (SBC-4 §5).

use super::Data;
use crate::medium::Extent;
use crate::wire::cdb::{Field, opcode};

/// A CDB with its data.
pub(super) type CdbWithData<L> = ([u8; 16], Data<L>);

/// READ or WRITE, in the form of 10 bytes where that will do, as every unit knows it.
pub(super) fn transfer((short, form): (u8, u8), flags: u8, piece: Extent) -> [u8; 16] {
    let (Ok(lba), Ok(blocks)) = (u32::try_from(piece.end()), u16::try_from(piece.blocks)) else {
        return long(form, flags, piece);
    };
    let mut cdb = [0; 16];
    cdb[0] = short;
    cdb[1] = flags;
    cdb[2..6].copy_from_slice(&(lba - u32::from(blocks)).to_be_bytes());
    cdb[7..9].copy_from_slice(&blocks.to_be_bytes());
    cdb
}

/// A CDB of 16 bytes with an LBA at 2 and a length at 10.
fn long(code: u8, flags: u8, piece: Extent) -> [u8; 16] {
    let mut cdb = [0; 16];
    cdb[0] = code;
    cdb[1] = flags;
    LBA_16.write(&mut cdb, piece.lba);
    Field::new(10, 4).write(&mut cdb, piece.blocks);
    cdb
}

pub(super) fn write_atomic(flags: u8, piece: Extent) -> [u8; 16] {
    let mut cdb = [0; 16];
    cdb[0] = opcode::WRITE_ATOMIC_16;
    cdb[1] = flags;
    LBA_16.write(&mut cdb, piece.lba);
    Field::new(12, 2).write(&mut cdb, piece.blocks);
    cdb
}

/// WRITE SAME(16) of a block, or of zeros without any. With `unmap` it may take the storage away
/// from what reads the same without, and writes what it leaves.
pub(super) fn write_same<L>(piece: Extent, unmap: bool, block: Option<L>) -> CdbWithData<L> {
    let unmap = if unmap { WRITE_SAME_UNMAP } else { 0 };
    let ndob = if block.is_none() { NDOB } else { 0 };
    let cdb = long(opcode::WRITE_SAME_16, unmap | ndob, piece);
    (cdb, block.map_or(Data::None, Data::Out))
}

/// SYNCHRONIZE CACHE(10) of everything.
pub(super) fn flush() -> [u8; 16] {
    let mut cdb = [0; 16];
    cdb[0] = opcode::SYNCHRONIZE_CACHE_10;
    cdb
}

/// GET LBA STATUS, of one descriptor.
pub(super) fn status(extent: Extent) -> [u8; 16] {
    let blocks = STATUS_BYTES as u64;
    let mut cdb = long(opcode::SERVICE_ACTION_IN_16, GET_LBA_STATUS, extent);
    Field::new(10, 4).write(&mut cdb, blocks);
    cdb
}

/// REPORT SUPPORTED OPERATION CODES of WRITE SAME(16).
pub(super) fn about_write_same() -> [u8; 16] {
    let mut cdb = [0; 16];
    cdb[0] = opcode::MAINTENANCE_IN;
    cdb[1..4].copy_from_slice(&[REPORT_OPCODES, ONE_OPCODE, opcode::WRITE_SAME_16]);
    Field::new(6, 4).write(&mut cdb, OPCODE_BYTES as u64);
    cdb
}

pub(super) fn capacity() -> [u8; 16] {
    let mut cdb = [0; 16];
    cdb[0] = opcode::SERVICE_ACTION_IN_16;
    cdb[1] = READ_CAPACITY_16;
    Field::new(10, 4).write(&mut cdb, CAPACITY_BYTES as u64);
    cdb
}

pub(super) const READ: (u8, u8) = (opcode::READ_10, opcode::READ_16);
pub(super) const WRITE: (u8, u8) = (opcode::WRITE_10, opcode::WRITE_16);
const REPORT_OPCODES: u8 = 0x0c;
const ONE_OPCODE: u8 = 0x01;
const READ_CAPACITY_16: u8 = 0x10;
const GET_LBA_STATUS: u8 = 0x12;

pub(super) const FUA: u8 = 0x08;
const WRITE_SAME_UNMAP: u8 = 0x08;
pub(super) const NDOB: u8 = 0x01;
const LBA_16: Field = Field::new(2, 8);

/// A header and one LBA status descriptor.
pub(super) const STATUS_BYTES: usize = 24;

pub(super) const CAPACITY_BYTES: usize = 32;

/// A header and CDB USAGE DATA of 16 bytes.
pub(super) const OPCODE_BYTES: usize = 20;
