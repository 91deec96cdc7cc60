//! How reservations are kept over a power loss.
//!
//! | bytes | what |
//! |---|---|
//! | 8 | `LUNAR-PR` |
//! | 2 | version of the format, 1 |
//! | 1 | 1: kept over a power loss (all that follows is empty where not) |
//! | 1 | type of the reservation, 0: none |
//! | 4 | number of registrations |
//! | 4 | which of them is the holder, counted from 0; FFFFFFFFh: none, or every one |
//! | | for each registration: |
//! | 8 | reservation key |
//! | 2 | relative target port identifier |
//! | 2 | length of the TransportID |
//! | … | TransportID |
//! | 4 | CRC-32C of everything before |
//!
//! Numbers are big-endian. What RESERVE made is not kept, nor is PRGENERATION, which begins at zero
//! at each power on (SPC-5 §5.14.2).

use std::cmp::Ordering;
use std::sync::Arc;

use super::{
    Holding, MAX_REGISTRATIONS, Registration, Reservation, ReservationType, Reservations, order,
};
use crate::nexus::NexusIdentity;

const MAGIC: &[u8; 8] = b"LUNAR-PR";
const VERSION: u16 = 1;
const NO_HOLDER: u32 = u32::MAX;

/// What is wrong with stored reservations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// Not a file of reservations.
    #[error("it is not a file of stored reservations")]
    Magic,
    /// Written by something newer.
    #[error("its format has version {0}, but only version {VERSION} is supported")]
    Version(u16),
    /// Cut off.
    #[error("it ends in the middle of {0}")]
    Truncated(&'static str),
    /// Bytes that were not written.
    #[error("{0} bytes follow its end")]
    Trailing(usize),
    /// Damaged.
    #[error("its checksum is {found:08x} instead of {expected:08x}")]
    Checksum {
        /// That of the bytes.
        expected: u32,
        /// The stored one.
        found: u32,
    },
    /// A field that no writer would have written so.
    #[error("its {0} is not valid")]
    Invalid(&'static str),
}

impl Reservations {
    /// What is to be kept over a power loss. Without [`Reservations::aptpl`] that is nothing, so
    /// that the bytes differ only when there is something to write down.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend(VERSION.to_be_bytes());
        if self.aptpl {
            self.put_body(&mut bytes);
        } else {
            Self::default().put_body(&mut bytes);
        }
        bytes.extend(checksum(&bytes).to_be_bytes());
        bytes
    }

    fn put_body(&self, bytes: &mut Vec<u8>) {
        let reservation = self.reservation();
        let holder = reservation.and_then(|one| self.position(one.holder.as_ref()?).ok());
        bytes.push(u8::from(self.aptpl));
        bytes.push(reservation.map_or(0, |one| one.kind.code()));
        bytes.extend((self.registrations.len() as u32).to_be_bytes());
        bytes.extend(holder.map_or(NO_HOLDER, |at| at as u32).to_be_bytes());
        for Registration { nexus, key } in &self.registrations {
            bytes.extend(key.to_be_bytes());
            bytes.extend(nexus.port.to_be_bytes());
            bytes.extend((nexus.initiator.len() as u16).to_be_bytes());
            bytes.extend(&nexus.initiator);
        }
    }

    /// Reads what [`Reservations::to_bytes`] wrote. The initiators need not be known.
    ///
    /// # Errors
    /// A [`StoreError`] that says what is wrong.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, StoreError> {
        let mut reader = StoreReader(bytes);
        if reader.take(MAGIC.len(), "its name")? != MAGIC {
            return Err(StoreError::Magic);
        }
        let version = reader.u16("the version")?;
        if version != VERSION {
            return Err(StoreError::Version(version));
        }
        let reservations = reader.body()?;
        let expected = checksum(&bytes[..bytes.len() - reader.0.len()]);
        let found = reader.u32("the checksum")?;
        if !reader.0.is_empty() {
            return Err(StoreError::Trailing(reader.0.len()));
        }
        if expected != found {
            return Err(StoreError::Checksum { expected, found });
        }
        Ok(reservations)
    }
}

struct StoreReader<'a>(&'a [u8]);

impl<'a> StoreReader<'a> {
    fn take(&mut self, len: usize, what: &'static str) -> Result<&'a [u8], StoreError> {
        let (taken, rest) = self
            .0
            .split_at_checked(len)
            .ok_or(StoreError::Truncated(what))?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], StoreError> {
        let (taken, rest) = self
            .0
            .split_first_chunk()
            .ok_or(StoreError::Truncated(what))?;
        self.0 = rest;
        Ok(*taken)
    }

    fn u16(&mut self, what: &'static str) -> Result<u16, StoreError> {
        self.array(what).map(u16::from_be_bytes)
    }

    fn u32(&mut self, what: &'static str) -> Result<u32, StoreError> {
        self.array(what).map(u32::from_be_bytes)
    }

    fn body(&mut self) -> Result<Reservations, StoreError> {
        let [aptpl, kind] = self.array("the flags")?;
        let count = self.u32("the number of registrations")?;
        let holder = self.u32("the holder")?;
        if aptpl > 1 {
            return Err(StoreError::Invalid("persistence flag"));
        }
        if count as usize > MAX_REGISTRATIONS {
            return Err(StoreError::Invalid("number of registrations"));
        }
        let registrations = self.registrations(count)?;
        Ok(Reservations {
            generation: 0,
            aptpl: aptpl == 1,
            hold: hold(&registrations, kind, holder)?,
            registrations,
        })
    }

    fn registrations(&mut self, count: u32) -> Result<Vec<Registration>, StoreError> {
        let mut all = Vec::<Registration>::new();
        for _ in 0..count {
            let one = self.registration()?;
            let before = all.last();
            if before.is_some_and(|last| order(&last.nexus, &one.nexus) != Ordering::Less) {
                return Err(StoreError::Invalid("order of registrations"));
            }
            all.push(one);
        }
        Ok(all)
    }

    fn registration(&mut self) -> Result<Registration, StoreError> {
        let key = u64::from_be_bytes(self.array("a reservation key")?);
        let port = self.u16("a port identifier")?;
        let len = self.u16("the length of a TransportID")?;
        let initiator = self.take(usize::from(len), "a TransportID")?.into();
        if key == 0 {
            return Err(StoreError::Invalid("reservation key"));
        }
        let nexus = Arc::new(NexusIdentity { initiator, port });
        Ok(Registration { nexus, key })
    }
}

fn hold(registrations: &[Registration], kind: u8, holder: u32) -> Result<Holding, StoreError> {
    if kind == 0 {
        return match holder {
            NO_HOLDER => Ok(Holding::Free),
            _ => Err(StoreError::Invalid("holder")),
        };
    }
    let kind = ReservationType::from_code(kind).ok_or(StoreError::Invalid("reservation type"))?;
    let named = registrations
        .get(holder as usize)
        .map(|one| one.nexus.clone());
    let whole = if kind.all_registrants() {
        holder == NO_HOLDER && !registrations.is_empty()
    } else {
        named.is_some()
    };
    if !whole {
        return Err(StoreError::Invalid("holder"));
    }
    Ok(Holding::Persistent(Reservation {
        kind,
        holder: named,
    }))
}

fn checksum(bytes: &[u8]) -> u32 {
    crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, bytes) as u32
}
