//! MODE SELECT: reads a mode parameter list, and refuses it with a pointer to the first field that
//! is wrong.

use super::pages::{ModePage, PAGES};
use super::{Form, block_descriptor, unit};
use crate::commands::{Query, QueryResult};
use crate::owner::UnitChange;
use crate::task::CommandFailure;
use crate::unit::UnitState;
use crate::unit_settings::{ModeChange, ModeParameter, SettingChange};
use crate::wire::cdb::{Field, be16, bit, byte};
use crate::wire::sense::Sense;

/// MODE SELECT(6).
#[must_use]
pub fn select6(query: &Query<'_>) -> QueryResult {
    select(query, Form::Six, Field::new(4, 1)).into()
}

/// MODE SELECT(10).
#[must_use]
pub fn select10(query: &Query<'_>) -> QueryResult {
    select(query, Form::Ten, Field::new(7, 2)).into()
}

fn select(query: &Query<'_>, form: Form, length: Field) -> Result<QueryResult, CommandFailure> {
    let unit = unit(query)?;
    if bit(query.cdb, 1, SP) {
        return Err(Sense::cdb_field(1, Some(0)).into());
    }
    let length = length.read(query.cdb) as usize;
    if length == 0 {
        return Ok(QueryResult::Good);
    }
    if !bit(query.cdb, 1, PF) {
        return Err(Sense::cdb_field(1, Some(4)).into());
    }
    let list = query.parameters.get(..length);
    let change = read(unit, list.ok_or(Sense::parameter_length())?, form)?;
    let answer = UnitChange::Setting(SettingChange::Mode(change));
    let cache_off = unit.caches_writes() && change.value(ModeParameter::Wce) == Some(false);
    Ok(if cache_off {
        QueryResult::ChangeAndFlush(answer)
    } else {
        QueryResult::Change(answer)
    })
}

fn read(unit: &UnitState, list: &[u8], form: Form) -> Result<ModeChange, Sense> {
    let (long, descriptor_len) = header(list, form)?;
    let mut at = form.header_len();
    let descriptor = list.get(at..at + descriptor_len);
    let descriptor = descriptor.ok_or(Sense::parameter_length())?;
    check_descriptor(unit, descriptor, long, at)?;
    at += descriptor_len;
    let mut change = ModeChange::default();
    while at < list.len() {
        at += read_page(unit, list, at, &mut change)?;
    }
    Ok(change)
}

/// LONGLBA and BLOCK DESCRIPTOR LENGTH. MODE DATA LENGTH and the device-specific parameter are
/// reserved here, and tools send back what they got.
fn header(list: &[u8], form: Form) -> Result<(bool, usize), Sense> {
    if list.len() < form.header_len() {
        return Err(Sense::parameter_length());
    }
    let (medium_type, long, length_at, length) = match form {
        Form::Six => (1, false, 3, u16::from(byte(list, 3))),
        Form::Ten => (2, bit(list, 4, LONGLBA), 6, be16(list, 6)),
    };
    if byte(list, medium_type) != 0 {
        return Err(Sense::parameter_field(medium_type as u16, None));
    }
    let one = if long { 16 } else { 8 };
    match usize::from(length) {
        0 => Ok((long, 0)),
        length if length == one => Ok((long, length)),
        _ => Err(Sense::parameter_field(length_at, None)),
    }
}

/// Neither the number of blocks nor their length can be changed; zero blocks means as many as there
/// are (SBC-4 §6.5.2).
fn check_descriptor(unit: &UnitState, found: &[u8], long: bool, at: usize) -> Result<(), Sense> {
    let is = block_descriptor(&unit.traits, long);
    let blocks = if long { 8 } else { 4 };
    let same_blocks = found.iter().zip(&is).take(blocks).all(|(a, b)| a == b);
    let zero_blocks = found.iter().take(blocks).all(|&byte| byte == 0);
    if !same_blocks && !zero_blocks {
        return Err(Sense::parameter_field(at as u16, None));
    }
    let rest = found.iter().zip(&is).skip(blocks);
    match rest.enumerate().find(|(_, (a, b))| a != b) {
        None => Ok(()),
        Some((offset, _)) => Err(Sense::parameter_field((at + blocks + offset) as u16, None)),
    }
}

/// Reads the page at `at` into `change`, and tells how long it is.
fn read_page(
    unit: &UnitState,
    list: &[u8],
    at: usize,
    change: &mut ModeChange,
) -> Result<usize, Sense> {
    let page = page_at(list, at)?;
    let bytes = list
        .get(at..at + page.len())
        .ok_or(Sense::parameter_length())?;
    let current = page.values(unit.settings.mode);
    let changeable = page.changeable(&unit.traits);
    for offset in page.header_len()..page.len() {
        let wrong = (bytes[offset] ^ current[offset]) & !changeable[offset];
        if wrong != 0 {
            let bit = wrong.ilog2() as u8;
            return Err(Sense::parameter_field((at + offset) as u16, Some(bit)));
        }
    }
    for &(parameter, byte, mask) in page.parameters {
        change.set(parameter, bytes[byte] & mask != 0);
    }
    Ok(page.len())
}

/// The page that a page header names, if the header gives its true length. PS is reserved here, and
/// ignored like other leftovers of MODE SENSE.
fn page_at(list: &[u8], at: usize) -> Result<&'static ModePage, Sense> {
    let (code, has_subpage) = (byte(list, at) & 0x3f, bit(list, at, SPF));
    let (subpage, length_at, length) = if has_subpage {
        (
            byte(list, at + 1),
            at + 2,
            usize::from(be16(list, at + 2)) + 4,
        )
    } else {
        (0, at + 1, usize::from(byte(list, at + 1)) + 2)
    };
    let page = PAGES
        .iter()
        .find(|page| page.code == code && page.subpage == subpage);
    let page = page.filter(|page| (page.subpage != 0) == has_subpage);
    let page = page.ok_or(Sense::parameter_field(at as u16, Some(5)))?;
    if list.len() < at + page.header_len() {
        return Err(Sense::parameter_length());
    }
    if length == page.len() {
        Ok(page)
    } else {
        Err(Sense::parameter_field(length_at as u16, None))
    }
}

const PF: u8 = 0x10;
const SP: u8 = 0x01;
const LONGLBA: u8 = 0x01;
const SPF: u8 = 0x40;
