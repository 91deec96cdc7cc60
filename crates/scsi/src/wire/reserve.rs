//! SPC-5 §6.16, §6.17: parameter data of PERSISTENT RESERVE IN and parameter lists of PERSISTENT
//! RESERVE OUT.

use crate::reserve::{Registration, ReservationType, Reservations};
use crate::wire::cdb::{be16, be32, be64, bit};
use crate::wire::sense::Sense;
use crate::wire::transport_id::{self, TransportIdError};

/// Bytes of a parameter list without additional parameters.
const BASIC: usize = 24;

/// The basic parameter list (SPC-5 §6.17.3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct List {
    /// RESERVATION KEY.
    pub key: u64,
    /// SERVICE ACTION RESERVATION KEY.
    pub service_action_key: u64,
    /// ALL_TG_PT.
    pub all_ports: bool,
    /// APTPL.
    pub aptpl: bool,
    /// The TransportIDs that came with SPEC_I_PT, in their one form; `None` without SPEC_I_PT.
    pub initiators: Option<Vec<Box<[u8]>>>,
}

/// The parameter list of REGISTER AND MOVE (SPC-5 §6.17.4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MoveList {
    /// RESERVATION KEY.
    pub key: u64,
    /// SERVICE ACTION RESERVATION KEY.
    pub service_action_key: u64,
    /// UNREG.
    pub unregister: bool,
    /// APTPL.
    pub aptpl: bool,
    /// RELATIVE TARGET PORT IDENTIFIER.
    pub port: u16,
    /// The TransportID, in its one form.
    pub initiator: Box<[u8]>,
}

/// Reads a basic parameter list. TransportIDs must be of `protocol`.
///
/// # Errors
/// PARAMETER LIST LENGTH ERROR where it is not exactly as long as it says, INVALID FIELD IN
/// PARAMETER LIST with the byte for a TransportID.
pub fn list(bytes: &[u8], protocol: u8) -> Result<List, Sense> {
    if bytes.len() < BASIC {
        return Err(Sense::parameter_length());
    }
    let specified = bit(bytes, 20, 0x08);
    if !specified && bytes.len() != BASIC {
        return Err(Sense::parameter_length());
    }
    Ok(List {
        key: be64(bytes, 0),
        service_action_key: be64(bytes, 8),
        all_ports: bit(bytes, 20, 0x04),
        aptpl: bit(bytes, 20, 0x01),
        initiators: specified.then(|| initiators(bytes, protocol)).transpose()?,
    })
}

/// Reads the parameter list of REGISTER AND MOVE.
///
/// # Errors
/// As those of [`list`].
pub fn move_list(bytes: &[u8], protocol: u8) -> Result<MoveList, Sense> {
    let id = bytes.get(BASIC..).ok_or(Sense::parameter_length())?;
    if be32(bytes, 20) as usize != id.len() {
        return Err(Sense::parameter_length());
    }
    let (initiator, rest) = take(bytes, id, protocol)?;
    if !rest.is_empty() {
        return Err(Sense::parameter_length());
    }
    Ok(MoveList {
        key: be64(bytes, 0),
        service_action_key: be64(bytes, 8),
        unregister: bit(bytes, 17, 0x02),
        aptpl: bit(bytes, 17, 0x01),
        port: be16(bytes, 18),
        initiator,
    })
}

fn initiators(bytes: &[u8], protocol: u8) -> Result<Vec<Box<[u8]>>, Sense> {
    let mut rest = bytes.get(BASIC + 4..).ok_or(Sense::parameter_length())?;
    if be32(bytes, BASIC) as usize != rest.len() {
        return Err(Sense::parameter_length());
    }
    let mut all = Vec::new();
    while !rest.is_empty() {
        let (initiator, after) = take(bytes, rest, protocol)?;
        all.push(initiator);
        rest = after;
    }
    Ok(all)
}

/// Takes a TransportID off `rest`, the last bytes of `bytes`.
fn take<'a>(bytes: &[u8], rest: &'a [u8], protocol: u8) -> Result<(Box<[u8]>, &'a [u8]), Sense> {
    transport_id::take(rest, protocol).map_err(|error| match error {
        TransportIdError::Truncated => Sense::parameter_length(),
        TransportIdError::Byte(byte) => {
            let at = bytes.len() - rest.len() + usize::from(byte);
            Sense::parameter_field(u16::try_from(at).unwrap_or(u16::MAX), None)
        }
    })
}

/// Parameter data of READ KEYS (SPC-5 §6.16.2).
#[must_use]
pub fn keys(reservations: &Reservations) -> Vec<u8> {
    let keys = reservations.registrations().iter();
    let keys = keys.flat_map(|one| one.key.to_be_bytes()).collect();
    counted(reservations, keys)
}

/// Parameter data of READ RESERVATION (SPC-5 §6.16.3).
#[must_use]
pub fn reservation(reservations: &Reservations) -> Vec<u8> {
    let Some(held) = reservations.reservation() else {
        return counted(reservations, Vec::new());
    };
    let holder = held.holder.as_ref();
    let key = holder
        .and_then(|holder| reservations.key(holder))
        .unwrap_or(0);
    let mut body = key.to_be_bytes().to_vec();
    body.extend([0, 0, 0, 0, 0, held.kind.code(), 0, 0]);
    counted(reservations, body)
}

/// Parameter data of READ FULL STATUS (SPC-5 §6.16.5). ALL_TG_PT is never set in it, as each target
/// port has a registration of its own.
#[must_use]
pub fn full_status(reservations: &Reservations) -> Vec<u8> {
    let mut body = Vec::new();
    for one in reservations.registrations() {
        put_status(&mut body, reservations, one);
    }
    counted(reservations, body)
}

fn put_status(body: &mut Vec<u8>, reservations: &Reservations, one: &Registration) {
    let held = reservations.reservation();
    let held = held.filter(|_| reservations.is_holder(&one.nexus));
    body.extend(one.key.to_be_bytes());
    body.extend([0; 4]);
    body.push(u8::from(held.is_some()));
    body.push(held.map_or(0, |held| held.kind.code()));
    body.extend([0; 4]);
    body.extend(one.nexus.port.to_be_bytes());
    body.extend((one.nexus.initiator.len() as u32).to_be_bytes());
    body.extend(&one.nexus.initiator);
}

fn counted(reservations: &Reservations, body: Vec<u8>) -> Vec<u8> {
    let mut data = reservations.generation().to_be_bytes().to_vec();
    data.extend((body.len() as u32).to_be_bytes());
    data.extend(body);
    data
}

/// Parameter data of REPORT CAPABILITIES (SPC-5 §6.16.4): CRH, SIP_C, ATP_C, PTPL_C if
/// `persistence`; TMV, ALLOW COMMANDS 011b (TEST UNIT READY passes every type, and MODE SENSE, READ
/// BUFFER, READ DEFECT DATA and the reports pass Write Exclusive ones), PTPL_A; all types.
#[must_use]
pub fn capabilities(reservations: &Reservations, persistence: bool) -> Vec<u8> {
    let [high, low] = TYPE_MASK.to_be_bytes();
    let able = 0x1c | u8::from(persistence);
    let active = 0xb0 | u8::from(reservations.aptpl());
    vec![0, 8, able, active, high, low, 0, 0]
}

/// PERSISTENT RESERVATION TYPE MASK: bit 8 + n of the word for the type with code n, and bit 0 for
/// code 8.
pub(super) const TYPE_MASK: u16 = mask(ReservationType::ALL);

const fn mask(types: [ReservationType; 6]) -> u16 {
    let mut mask = 0;
    let mut at = 0;
    while at < types.len() {
        mask |= 1 << ((types[at].code() + 8) % 16);
        at += 1;
    }
    mask
}
