//! The frames of the floor. They look like FCoE's but for a version that FCoE does not have, so
//! that any other port drops them. Fields are big-endian:
//!
//! ```text
//! byte 14      15   16    17       18  22     30    38      46       52   payload       CRC rest
//!       version|kind|flags|reserved|run|number|count|process|reserved|data ...          |4  |4
//! ```

use std::fs;

use ::io::ether::EtherMac;

use crate::floor::number;
use crate::load::mix;
use crate::outcome::DataDirection;

/// To all listeners: All-VN2VN-ENode-MACs (FC-BB-6).
pub(super) const GROUP: EtherMac = [0x01, 0x10, 0x18, 0x01, 0x00, 0x04];

/// Bytes before the payload, as many as with Fibre Channel: Ethernet's, FCoE's and its own header.
pub(super) const HEAD: usize = 14 + 14 + 24;

/// Bytes behind it: CRC, EOF and what is reserved.
pub(super) const TAIL: usize = 8;

/// The most that a frame of Fibre Channel carries.
pub(super) const PAYLOAD_MAX: usize = 2112;

/// FCoE's EtherType.
const ETHERTYPE: [u8; 2] = [0x89, 0x06];

/// A version that it does not have.
const VERSION: u8 = 0xf0;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FloorFrameKind {
    /// Which ports are there?
    Hello,
    /// I am.
    Here,
    Data,
    /// How far data has come.
    Credit,
    /// It is over.
    Bye,
}

const KINDS: [FloorFrameKind; 5] = [
    FloorFrameKind::Hello,
    FloorFrameKind::Here,
    FloorFrameKind::Data,
    FloorFrameKind::Credit,
    FloorFrameKind::Bye,
];

/// One measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    number: u32,
    pub(super) direction: DataDirection,
    pub(super) crc: bool,
}

impl Run {
    /// A run with a number of its own.
    pub(super) fn new(direction: DataDirection, crc: bool) -> Self {
        Self {
            number: fastrand::u32(..),
            direction,
            crc,
        }
    }

    fn flags(self) -> u8 {
        let direction = match self.direction {
            DataDirection::Read => READ,
            DataDirection::Write => WRITE,
            DataDirection::Mixed => READ | WRITE,
        };
        direction | if self.crc { CRC } else { 0 }
    }

    fn parse(flags: u8, number: u32) -> Option<Self> {
        let direction = match flags & (READ | WRITE) {
            READ => DataDirection::Read,
            WRITE => DataDirection::Write,
            0 => return None,
            _ => DataDirection::Mixed,
        };
        Some(Self {
            number,
            direction,
            crc: flags & CRC != 0,
        })
    }
}

const READ: u8 = 1;
const WRITE: u8 = 2;
const CRC: u8 = 4;

/// What a frame says but for its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FloorMessage {
    pub(super) kind: FloorFrameKind,
    pub(super) run: Run,
    /// Of data its number; of a credit the number that is expected next; of an answer what tells
    /// one machine from others.
    pub(super) number: u64,
    /// Of a credit, the frames that came whole.
    pub(super) count: u64,
    /// The sender of an answer.
    pub(super) process: u64,
}

impl FloorMessage {
    pub(super) fn of(kind: FloorFrameKind, run: Run) -> Self {
        Self {
            kind,
            run,
            number: 0,
            count: 0,
            process: 0,
        }
    }

    /// Writes all that stands before the payload.
    pub(super) fn encode(&self, (to, from): (EtherMac, EtherMac), slot: &mut [u8]) {
        slot[..HEAD].fill(0);
        slot[..6].copy_from_slice(&to);
        slot[6..12].copy_from_slice(&from);
        slot[12..14].copy_from_slice(&ETHERTYPE);
        slot[14..17].copy_from_slice(&[VERSION, self.kind as u8, self.run.flags()]);
        slot[18..22].copy_from_slice(&self.run.number.to_be_bytes());
        slot[22..30].copy_from_slice(&self.number.to_be_bytes());
        slot[30..38].copy_from_slice(&self.count.to_be_bytes());
        slot[38..46].copy_from_slice(&self.process.to_be_bytes());
    }

    /// Its sender, what it says, and its payload with what follows that.
    pub(super) fn parse(frame: &[u8]) -> Option<(EtherMac, Self, &[u8])> {
        let (head, rest) = frame.split_first_chunk::<HEAD>()?;
        let number = |at: usize| number(&head[at..at + 8]);
        if head[12..14] != ETHERTYPE || head[14] != VERSION {
            return None;
        }
        let message = Self {
            kind: *KINDS.get(usize::from(head[15]))?,
            run: Run::parse(head[16], number(14) as u32)?,
            number: number(22),
            count: number(30),
            process: number(38),
        };
        Some((*head[6..].first_chunk()?, message, rest))
    }
}

/// What tells this machine, as it runs now, from others.
pub(super) fn machine() -> u64 {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    boot.bytes().fold(0, |sum, byte| mix(sum ^ u64::from(byte)))
}
