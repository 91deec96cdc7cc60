//! What tests of N_Ports and switches have in common: an Ethernet that loses frames, stations at
//! it, the frames of ENodes, and a device behind a target.
//!
//! The feature `testing` opens the Ethernet and its stations to the packages that test ports; no
//! binary is built with it.

#[cfg(test)]
pub(crate) mod disk;
mod enode;
mod ethernet;
#[cfg(test)]
pub(crate) mod pair;
mod station;
#[cfg(test)]
pub(crate) mod trace;

use scsi::medium::{HeapLease, Lease};
use scsi::task::{Attribute, Completed, SenseBytes};
use scsi::wire::lun::Lun;
use scsi::wire::sense::Status;

pub use self::enode::{EnodeFrames, FipParts, fcf_mac, fip_frame, login, switch_of, switch_port};
pub use self::ethernet::{Bytes, Ethernet, Fate, Faults, Link};
pub use self::station::{FipView, Machine, Station, sent};
use crate::frames::FrameSink;
use crate::initiator::{ClientCommand, Data};
use crate::port::PortConfig;
use crate::wire::ethernet::{EthernetHeader, Mac};
use crate::wire::fcoe::{self, Eof, Sof};
use crate::wire::frame::FrameHeader;

/// Frames on the heap.
#[derive(Clone, Debug)]
pub struct HeapFrames {
    /// What was committed and not yet taken, oldest first.
    pub frames: Vec<Vec<u8>>,
    /// How many fit.
    room: usize,
    open: Vec<u8>,
}

impl Default for HeapFrames {
    fn default() -> Self {
        Self::of(usize::MAX)
    }
}

impl HeapFrames {
    /// Room for so many.
    #[must_use]
    pub const fn of(room: usize) -> Self {
        Self {
            frames: Vec::new(),
            room,
            open: Vec::new(),
        }
    }
}

impl FrameSink for HeapFrames {
    fn slot(&mut self, len: usize) -> Option<&mut [u8]> {
        if self.frames.len() == self.room {
            return None;
        }
        self.open.clear();
        // Not zero, so that bytes which were never written are seen.
        self.open.resize(len, 0xa5);
        Some(&mut self.open)
    }

    fn commit(&mut self, len: usize) {
        self.open.truncate(len);
        self.frames.push(std::mem::take(&mut self.open));
    }
}

/// A port on the ENode 02:00:00:00:`low`, so with the N_Port_ID `low`.
#[must_use]
pub fn config(low: u16) -> PortConfig {
    let [a, b] = low.to_be_bytes();
    PortConfig::new(Mac([2, 0, 0, 0, a, b]), 2500)
}

/// A command to LUN 0 without a deadline of its own.
#[must_use]
pub fn command<L>(id: u64, cdb: &[u8], data: Data<L>) -> ClientCommand<L> {
    let mut padded = [0; 16];
    padded[..cdb.len()].copy_from_slice(cdb);
    ClientCommand {
        id,
        lun: Lun::from_index(0),
        cdb: padded,
        attribute: Attribute::Simple,
        data,
        deadline: None,
    }
}

/// READ(10), WRITE(10), or another CDB that has its fields.
#[must_use]
pub fn cdb10(opcode: u8, block: u32, blocks: u16) -> [u8; 10] {
    let ([a, b, c, d], [e, f]) = (block.to_be_bytes(), blocks.to_be_bytes());
    [opcode, 0, a, b, c, d, 0, e, f, 0]
}

/// GOOD, after so many bytes went to the initiator and came from it.
#[must_use]
pub const fn good(length_in: u64, length_out: u64) -> Completed {
    Completed {
        status: Status::Good,
        sense: SenseBytes::EMPTY,
        qualifier: 0,
        length_in,
        length_out,
    }
}

/// The bytes of a lease.
#[must_use]
pub fn bytes(lease: &HeapLease) -> Vec<u8> {
    let mut bytes = vec![0; lease.len()];
    lease.copy_out(0, &mut bytes);
    bytes
}

/// A whole Ethernet frame, as a port sends one.
#[must_use]
pub fn frame(
    ethernet: &EthernetHeader,
    delimiters: (Sof, Eof),
    header: &FrameHeader,
    payload: &[u8],
) -> Vec<u8> {
    let mut slot = vec![0xa5; fcoe::frame_len(ethernet, payload.len())];
    let write = |to: &mut [u8]| to.copy_from_slice(payload);
    let len = fcoe::encode(
        &mut slot,
        ethernet,
        delimiters,
        header,
        payload.len(),
        write,
    );
    slot.truncate(len);
    slot
}
