//! The parameter list of EXTENDED COPY(LID1) (SPC-4 §6.4).

use crate::limits;
use crate::medium::Extent;
use crate::nexus::Nexus;
use crate::unit::{UnitId, UnitState};
use crate::wire::asc;
use crate::wire::cdb::{be16, be32, be64, bit, byte};
use crate::wire::sense::{Sense, SenseKey, SenseSpecific};

const MAX_DEVICES: usize = limits::COPY_CSCDS as usize;
const MAX_SEGMENTS: usize = limits::COPY_SEGMENTS as usize;

/// Descriptor type of a CSCD named by a designator.
pub(super) const IDENTIFICATION: u8 = 0xe4;
/// Descriptor type of a segment from block device to block device.
pub(super) const BLOCK_TO_BLOCK: u8 = 0x02;

const HEADER_BYTES: usize = 16;
const DEVICE_BYTES: usize = 32;
const SEGMENT_BYTES: usize = 28;

/// What is to be copied.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct CopyList {
    /// LIST IDENTIFIER; `None` where the initiator will not ask for results.
    pub(super) id: Option<u8>,
    pub(super) segments: Vec<Segment>,
}

/// One copy, of as many bytes on both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    pub(super) from: (UnitId, Extent),
    pub(super) to: (UnitId, Extent),
}

impl Segment {
    /// Whether it is copied to where it comes from.
    pub(super) fn overlaps(&self) -> bool {
        self.from.0 == self.to.0 && self.from.1.overlaps(self.to.1)
    }
}

/// A copy source or destination.
#[derive(Clone, Copy, Debug)]
enum CopyDevice {
    Unit(UnitId),
    /// None that this nexus sees. It is an error only where a segment needs it.
    Unreachable,
}

impl CopyList {
    /// Reads a parameter list. Only units that the nexus sees in its own target device can be
    /// named: what another target exports is out of reach, whoever knows its designator.
    ///
    /// # Errors
    /// What SPC-4 §6.4 has for each wrong field.
    pub(super) fn parse<'a>(
        list: &[u8],
        nexus: &Nexus,
        state: impl Fn(UnitId) -> &'a UnitState,
    ) -> Result<Self, Sense> {
        let (devices, segments) = split(list)?;
        let reach = |descriptor: &[u8]| device(descriptor, nexus, &state);
        let mut units = Vec::with_capacity(devices.len() / DEVICE_BYTES);
        for (number, descriptor) in devices.chunks_exact(DEVICE_BYTES).enumerate() {
            let at = (HEADER_BYTES + number * DEVICE_BYTES) as u16;
            units.push(reach(descriptor).map_err(|error| error.at(at))?);
        }
        let first = HEADER_BYTES + devices.len();
        let mut copies = Vec::with_capacity(segments.len() / SEGMENT_BYTES);
        for (number, descriptor) in segments.chunks_exact(SEGMENT_BYTES).enumerate() {
            let at = (first + number * SEGMENT_BYTES) as u16;
            copies.push(segment(descriptor, &units, &state).map_err(|error| error.at(at))?);
        }
        Ok(Self {
            id: identifier(list)?,
            segments: copies,
        })
    }
}

/// What is wrong with a descriptor; the byte counts from its beginning.
enum DescriptorError {
    Field(u16, Option<u8>),
    Sense(Sense),
}

impl DescriptorError {
    fn at(self, start: u16) -> Sense {
        match self {
            Self::Field(byte, bit) => Sense::parameter_field(start + byte, bit),
            Self::Sense(sense) => sense,
        }
    }
}

/// The two descriptor lists.
fn split(list: &[u8]) -> Result<(&[u8], &[u8]), Sense> {
    if list.len() < HEADER_BYTES {
        return Err(Sense::parameter_length());
    }
    let devices = usize::from(be16(list, 2));
    let segments = be32(list, 8) as usize;
    let inline = be32(list, 12);
    if devices.saturating_add(segments) > limits::COPY_LIST_BYTES as usize {
        return Err(Sense::parameter_length());
    }
    if devices > MAX_DEVICES * DEVICE_BYTES {
        return Err(Sense::new(
            SenseKey::IllegalRequest,
            asc::TOO_MANY_TARGET_DESCRIPTORS,
        ));
    }
    if inline > 0 {
        return Err(Sense::new(
            SenseKey::IllegalRequest,
            asc::INLINE_DATA_LENGTH_EXCEEDED,
        ));
    }
    let body = list.get(HEADER_BYTES..HEADER_BYTES + devices + segments);
    let (devices, segments) = body.ok_or(Sense::parameter_length())?.split_at(devices);
    if !devices.len().is_multiple_of(DEVICE_BYTES) {
        return Err(Sense::parameter_field(2, None));
    }
    check_segments(segments)?;
    Ok((devices, segments))
}

fn check_segments(segments: &[u8]) -> Result<(), Sense> {
    // A segment of an unknown type may have any length, so the type is looked at first.
    if !segments.is_empty() && byte(segments, 0) != BLOCK_TO_BLOCK {
        return Err(Sense::new(
            SenseKey::IllegalRequest,
            asc::UNSUPPORTED_SEGMENT_DESCRIPTOR,
        ));
    }
    if segments.len() > MAX_SEGMENTS * SEGMENT_BYTES {
        return Err(Sense::new(
            SenseKey::IllegalRequest,
            asc::TOO_MANY_SEGMENT_DESCRIPTORS,
        ));
    }
    if !segments.len().is_multiple_of(SEGMENT_BYTES) {
        return Err(Sense::parameter_field(8, None));
    }
    Ok(())
}

/// LIST ID USAGE says whether LIST IDENTIFIER counts.
fn identifier(list: &[u8]) -> Result<Option<u8>, Sense> {
    let id = byte(list, 0);
    match byte(list, 1) >> 3 & 0b11 {
        0b00 | 0b10 => Ok(Some(id)),
        0b11 if id == 0 => Ok(None),
        0b11 => Err(Sense::parameter_field(0, None)),
        _ => Err(Sense::parameter_field(1, Some(4))),
    }
}

/// SPC-4 §6.4.5.4: the identification CSCD descriptor. LU ID TYPE does not count for it, and NUL is
/// obsolete.
fn device<'a>(
    descriptor: &[u8],
    nexus: &Nexus,
    state: impl Fn(UnitId) -> &'a UnitState,
) -> Result<CopyDevice, DescriptorError> {
    if byte(descriptor, 0) != IDENTIFICATION {
        let code = asc::UNSUPPORTED_TARGET_DESCRIPTOR;
        return Err(DescriptorError::Sense(Sense::new(
            SenseKey::IllegalRequest,
            code,
        )));
    }
    if byte(descriptor, 1) & 0x1f != 0 {
        return Err(DescriptorError::Field(1, Some(4)));
    }
    let length = usize::from(byte(descriptor, 7));
    let designator = descriptor.get(8..8 + length).filter(|_| length <= 20);
    let designator = designator.ok_or(DescriptorError::Field(7, None))?;
    let is_naa = byte(descriptor, 4) & 0x0f == BINARY && byte(descriptor, 5) & 0x3f == NAA;
    let mut units = nexus.target.luns.iter().map(|entry| entry.1);
    let found = units.find(|unit| is_naa && state(*unit).identity.naa == designator);
    let Some(unit) = found else {
        return Ok(CopyDevice::Unreachable);
    };
    match be32(descriptor, 28) & 0x00ff_ffff {
        0 => Ok(CopyDevice::Unit(unit)),
        size if size == state(unit).traits.block_size => Ok(CopyDevice::Unit(unit)),
        _ => Err(DescriptorError::Field(29, None)),
    }
}

/// SPC-4 §6.4.6.4: the block device to block device segment descriptor.
fn segment<'a>(
    descriptor: &[u8],
    devices: &[CopyDevice],
    state: impl Fn(UnitId) -> &'a UnitState,
) -> Result<Segment, DescriptorError> {
    if byte(descriptor, 0) != BLOCK_TO_BLOCK {
        let code = asc::UNSUPPORTED_SEGMENT_DESCRIPTOR;
        return Err(DescriptorError::Sense(Sense::new(
            SenseKey::IllegalRequest,
            code,
        )));
    }
    if usize::from(be16(descriptor, 2)) != SEGMENT_BYTES - 4 {
        return Err(DescriptorError::Field(2, None));
    }
    let from = reachable(devices, be16(descriptor, 4), 4)?;
    let to = reachable(devices, be16(descriptor, 6), 6)?;
    let size = |unit| u64::from(state(unit).traits.block_size);
    let counts = if bit(descriptor, 1, DC) { to } else { from };
    let bytes = u64::from(be16(descriptor, 10)) * size(counts);
    let whole = bytes.is_multiple_of(size(from)) && bytes.is_multiple_of(size(to));
    if bytes > u64::from(limits::COPY_SEGMENT_BYTES) || !whole {
        return Err(DescriptorError::Field(10, None));
    }
    let from = (from, Extent::new(be64(descriptor, 12), bytes / size(from)));
    let to = (to, Extent::new(be64(descriptor, 20), bytes / size(to)));
    for ((unit, extent), byte) in [(from, 12), (to, 20)] {
        let capacity = state(unit).traits.blocks;
        if extent.lba > capacity || extent.blocks > capacity - extent.lba {
            return Err(DescriptorError::Sense(aborted(asc::NONE, byte)));
        }
    }
    Ok(Segment { from, to })
}

fn reachable(devices: &[CopyDevice], index: u16, byte: u16) -> Result<UnitId, DescriptorError> {
    match devices.get(usize::from(index)) {
        Some(CopyDevice::Unit(unit)) => Ok(*unit),
        Some(CopyDevice::Unreachable) | None => Err(DescriptorError::Sense(aborted(
            asc::UNREACHABLE_COPY_TARGET,
            byte,
        ))),
    }
}

/// COPY ABORTED, pointing into the segment descriptor.
const fn aborted(code: u16, byte: u16) -> Sense {
    let mut sense = Sense::new(SenseKey::CopyAborted, code);
    sense.specific = Some(SenseSpecific::Segment {
        in_segments: true,
        byte,
        bit: None,
    });
    sense
}

const DC: u8 = 0x02;
const BINARY: u8 = 1;
const NAA: u8 = 3;
