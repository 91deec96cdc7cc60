//! CDBs and parameter lists as an initiator makes them.

/// READ(16), SBC-4 §5.16.
#[must_use]
pub fn read(lba: u64, blocks: u32) -> [u8; 16] {
    transfer(0x88, 0, lba, blocks)
}

/// WRITE(16), SBC-4 §5.42; with FUA if so told.
#[must_use]
pub fn write(lba: u64, blocks: u32, fua: bool) -> [u8; 16] {
    transfer(0x8a, u8::from(fua) << 3, lba, blocks)
}

/// WRITE SAME(16), SBC-4 §5.52: of the one block in the Data-Out.
#[must_use]
pub fn write_same(lba: u64, blocks: u32) -> [u8; 16] {
    transfer(0x93, 0, lba, blocks)
}

/// SYNCHRONIZE CACHE(16) of everything, SBC-4 §5.34.
#[must_use]
pub fn flush() -> [u8; 16] {
    transfer(0x91, 0, 0, 0)
}

/// COMPARE AND WRITE, SBC-4 §5.3. The Data-Out is what to compare with, then what to write.
#[must_use]
pub fn compare_and_write(lba: u64, blocks: u8) -> [u8; 16] {
    let mut cdb = transfer(0x89, 0, lba, 0);
    cdb[13] = blocks;
    cdb
}

/// UNMAP, SBC-4 §5.38, and its parameter list with one descriptor.
#[must_use]
pub fn unmap(lba: u64, blocks: u32) -> ([u8; 10], [u8; 24]) {
    let mut list = [0; 24];
    list[..2].copy_from_slice(&22_u16.to_be_bytes());
    list[2..4].copy_from_slice(&16_u16.to_be_bytes());
    list[8..16].copy_from_slice(&lba.to_be_bytes());
    list[16..20].copy_from_slice(&blocks.to_be_bytes());
    ([0x42, 0, 0, 0, 0, 0, 0, 0, 24, 0], list)
}

/// Service actions of PERSISTENT RESERVE OUT, SPC-5 §6.17.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of the service actions")]
pub enum Reserve {
    Register = 0,
    Reserve = 1,
    Release = 2,
    Clear = 3,
    Preempt = 4,
    PreemptAndAbort = 5,
    RegisterAndIgnore = 6,
}

/// PERSISTENT RESERVE OUT, SPC-5 §6.17, and its basic parameter list. `kind` is the TYPE.
#[must_use]
pub fn reserve_out(action: Reserve, kind: u8, key: u64, action_key: u64) -> ([u8; 10], [u8; 24]) {
    let mut list = [0; 24];
    list[..8].copy_from_slice(&key.to_be_bytes());
    list[8..16].copy_from_slice(&action_key.to_be_bytes());
    ([0x5f, action as u8, kind, 0, 0, 0, 0, 0, 24, 0], list)
}

fn transfer(opcode: u8, flags: u8, lba: u64, blocks: u32) -> [u8; 16] {
    let mut cdb = [0; 16];
    cdb[0] = opcode;
    cdb[1] = flags;
    cdb[2..10].copy_from_slice(&lba.to_be_bytes());
    cdb[10..14].copy_from_slice(&blocks.to_be_bytes());
    cdb
}
