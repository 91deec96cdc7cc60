//! What the name server answers.

use super::{
    CtCode, CtError, CtHeader, Fc4Types, FeatureBits, PortEntry, PortType, SymbolicName, code, id,
    name, put_id, put_name,
};
use crate::wire::names::{FcId, Wwn};
use crate::wire::reader::{ByteReader, Truncated};

/// The payload of an accept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NameServerAccept {
    /// Of all that register or deregister: none.
    Empty,
    /// GA_NXT.
    Port(Box<PortEntry>),
    /// GID_PN.
    Id(FcId),
    /// GI_A, GID_NN, GID_FT, GID_PT, GID_FF.
    Ids(Vec<FcId>),
    /// GPN_ID, GNN_ID, GFPN_ID.
    Name(Wwn),
    /// GPN_FT, GNN_FT: addresses with port or node names.
    Names(Vec<(FcId, Wwn)>),
    /// GCS_ID: a bit for each class of service.
    Classes(u32),
    /// GFT_ID.
    Types(Fc4Types),
    /// GFF_ID.
    Features(Box<FeatureBits>),
    /// GPT_ID.
    PortType(PortType),
    /// GSPN_ID, GSNN_NN.
    SymbolicName(SymbolicName),
}

impl NameServerAccept {
    /// Reads what follows the header of an accept that answers a request of code `to`.
    ///
    /// # Errors
    /// It is shorter than its kind is, or a list has no end.
    pub fn parse(to: CtCode, payload: &[u8]) -> Result<Self, CtError> {
        let reader = &mut ByteReader(payload);
        Ok(match to {
            code::GA_NXT => Self::Port(Box::new(PortEntry::parse(reader)?)),
            code::GID_PN => Self::Id(id(reader)?),
            code::GI_A | code::GID_NN | code::GID_FT | code::GID_PT | code::GID_FF => Self::Ids(
                list(reader, |_| Ok(()))?
                    .into_iter()
                    .map(|it| it.0)
                    .collect(),
            ),
            code::GPN_ID | code::GNN_ID | code::GFPN_ID => Self::Name(name(reader)?),
            code::GPN_FT | code::GNN_FT => Self::Names(list(reader, |reader| {
                reader.skip(4)?;
                name(reader)
            })?),
            code::GCS_ID => Self::Classes(reader.u32()?),
            code::GFT_ID => Self::Types(Fc4Types(reader.array()?)),
            code::GFF_ID => Self::Features(Box::new(FeatureBits(reader.array()?))),
            code::GPT_ID => Self::PortType(PortType(reader.u8()?)),
            code::GSPN_ID | code::GSNN_NN => Self::SymbolicName(SymbolicName::parse(reader)?),
            _ => Self::Empty,
        })
    }

    /// Writes the whole CT_IU that answers `request`.
    ///
    /// Of a list that is longer than the request allows, the entries that fit are written, and the
    /// header tells how many words are left out. The last one that is written is marked as such, as
    /// that mark is all that some clients look at. `None` if something else does not fit.
    #[must_use]
    pub fn encode(&self, request: &CtHeader) -> Option<Vec<u8>> {
        let payload = self.payload();
        let room = match request.size {
            0 => usize::MAX,
            words => usize::from(words) * 4,
        };
        if payload.len() <= room {
            return Some([&request.accept(0).encode(), &payload[..]].concat());
        }
        let entry = self.entry_len()?;
        let kept = room / entry * entry;
        let residual = u16::try_from((payload.len() - kept) / 4).unwrap_or(u16::MAX);
        let mut bytes = [&request.accept(residual).encode(), &payload[..kept]].concat();
        if kept > 0 {
            let last = bytes.len() - entry;
            bytes[last] |= LAST;
        }
        Some(bytes)
    }

    /// Bytes of an entry, of a list.
    const fn entry_len(&self) -> Option<usize> {
        match self {
            Self::Ids(_) => Some(4),
            Self::Names(_) => Some(16),
            _ => None,
        }
    }

    fn payload(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let out = &mut bytes;
        match self {
            Self::Empty => {}
            Self::Port(port) => port.put(out),
            Self::Id(id) => put_id(out, 0, *id),
            Self::Ids(ids) => put_list(out, ids, |_, id| *id),
            Self::Name(name) => put_name(out, *name),
            Self::Names(names) => put_list(out, names, |rest, (id, name)| {
                rest.extend_from_slice(&[0; 4]);
                put_name(rest, *name);
                *id
            }),
            Self::Classes(classes) => out.extend_from_slice(&classes.to_be_bytes()),
            Self::Types(types) => out.extend_from_slice(&types.0),
            Self::Features(features) => out.extend_from_slice(&features.0),
            Self::PortType(kind) => out.extend_from_slice(&[kind.0, 0, 0, 0]),
            Self::SymbolicName(name) => name.put_field(out),
        }
        bytes
    }
}

/// The entries of a list: an address each, and what `rest` reads. One without any is empty.
fn list<T>(
    reader: &mut ByteReader<'_>,
    rest: impl Fn(&mut ByteReader<'_>) -> Result<T, Truncated>,
) -> Result<Vec<(FcId, T)>, CtError> {
    let mut entries = Vec::new();
    if reader.0.is_empty() {
        return Ok(entries);
    }
    loop {
        let (flags, id) = (reader.u8()?, FcId(reader.u24()?));
        entries.push((id, rest(reader)?));
        if flags & LAST != 0 {
            return Ok(entries);
        }
    }
}

/// Writes a list. `put` writes what follows the address of an entry, and gives the address.
fn put_list<T>(out: &mut Vec<u8>, entries: &[T], put: impl Fn(&mut Vec<u8>, &T) -> FcId) {
    for (at, entry) in entries.iter().enumerate() {
        let mut rest = Vec::new();
        let id = put(&mut rest, entry);
        let is_last = at + 1 == entries.len();
        put_id(out, if is_last { LAST } else { 0 }, id);
        out.append(&mut rest);
    }
}

/// Set in the first byte of the last entry of a list.
const LAST: u8 = 0x80;
