//! RFC 7143 §11.2.2: Additional Header Segments.

/// AHSType of an extended CDB.
pub const EXTENDED_CDB: u8 = 1;

/// AHSType of the expected length of a bidirectional command's read.
pub const BIDIRECTIONAL_READ: u8 = 2;

/// One Additional Header Segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ahs<'a> {
    /// The bytes of a CDB from the 17th on.
    ExtendedCdb(&'a [u8]),
    /// Bidirectional Read Expected Data Transfer Length, in bytes.
    BidirectionalRead(u32),
    /// Any other AHSType.
    Other(u8),
}

/// An AHS whose length does not fit what surrounds it, or its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an additional header segment of the wrong length")]
pub struct MalformedAhs;

/// Splits the AHS part of a PDU.
pub fn segments(bytes: &[u8]) -> impl Iterator<Item = Result<Ahs<'_>, MalformedAhs>> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let first = split(&mut rest);
        if first.is_err() {
            rest = &[];
        }
        Some(first)
    })
}

fn split<'a>(rest: &mut &'a [u8]) -> Result<Ahs<'a>, MalformedAhs> {
    let (&[high, low, kind], body) = rest.split_first_chunk::<3>().ok_or(MalformedAhs)?;
    let len = usize::from(u16::from_be_bytes([high, low]));
    let value = body.get(..len).ok_or(MalformedAhs)?;
    *rest = rest
        .get((3 + len).next_multiple_of(4)..)
        .ok_or(MalformedAhs)?;
    match (kind & 0x3f, value) {
        (EXTENDED_CDB, [_reserved, cdb @ ..]) if !cdb.is_empty() => Ok(Ahs::ExtendedCdb(cdb)),
        (BIDIRECTIONAL_READ, &[_reserved, a, b, c, d]) => {
            Ok(Ahs::BidirectionalRead(u32::from_be_bytes([a, b, c, d])))
        }
        (EXTENDED_CDB | BIDIRECTIONAL_READ, _) => Err(MalformedAhs),
        (other, _) => Ok(Ahs::Other(other)),
    }
}

/// Appends an extended CDB segment with the bytes of the CDB from the 17th on, at most 1,016.
pub fn put_extended_cdb(out: &mut Vec<u8>, spillover: &[u8]) {
    put(out, EXTENDED_CDB, spillover);
}

/// Appends a segment with the expected length of a bidirectional command's read.
pub fn put_bidirectional_read(out: &mut Vec<u8>, expected: u32) {
    put(out, BIDIRECTIONAL_READ, &expected.to_be_bytes());
}

fn put(out: &mut Vec<u8>, kind: u8, value: &[u8]) {
    let len = value.len() as u16 + 1;
    out.extend_from_slice(&len.to_be_bytes());
    out.extend_from_slice(&[kind, 0]);
    out.extend_from_slice(value);
    out.resize(out.len().next_multiple_of(4), 0);
}
