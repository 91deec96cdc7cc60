//! MODE SENSE and MODE SELECT (SPC-5 §6.11 to §6.14, §7.5; SBC-4 §6.5).

mod pages;
mod select;

use super::unit;
use crate::commands::{Query, QueryResult};
use crate::medium::Traits;
use crate::task::CommandFailure;
use crate::unit_settings::ModeParameters;
use crate::wire::asc;
use crate::wire::cdb::{bit, byte};
use crate::wire::sense::{Sense, SenseKey};
use pages::{ModePage, PAGES};

pub use select::{select6, select10};

/// MODE SENSE(6).
#[must_use]
pub fn sense6(query: &Query<'_>) -> QueryResult {
    sense(query, Form::Six).into()
}

/// MODE SENSE(10).
#[must_use]
pub fn sense10(query: &Query<'_>) -> QueryResult {
    sense(query, Form::Ten).into()
}

/// The two forms of mode parameter headers (SPC-5 §7.5.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Six,
    Ten,
}

impl Form {
    const fn header_len(self) -> usize {
        match self {
            Self::Six => 4,
            Self::Ten => 8,
        }
    }
}

fn sense(query: &Query<'_>, form: Form) -> Result<QueryResult, CommandFailure> {
    let unit = unit(query)?;
    let control = byte(query.cdb, 2) >> 6;
    if control == SAVED {
        return Err(NOT_SAVED.into());
    }
    let pages = selected(byte(query.cdb, 2) & 0x3f, byte(query.cdb, 3))?;
    let long = bit(query.cdb, 1, LLBAA);
    let descriptor = if bit(query.cdb, 1, DBD) {
        Vec::new()
    } else {
        block_descriptor(&unit.traits, long)
    };
    let values = |page: &ModePage| match control {
        CHANGEABLE => page.changeable(&unit.traits),
        DEFAULT => page.values(ModeParameters::new(&unit.traits)),
        _ => page.values(unit.settings.mode),
    };
    let pages: Vec<u8> = pages.into_iter().flat_map(values).collect();
    let is_protected = query.local.is_read_only || unit.writable().is_err();
    let mut data = header(form, is_protected, (long, descriptor.len()), pages.len());
    data.extend(descriptor);
    data.extend(pages);
    Ok(QueryResult::Data(data))
}

/// The pages that PAGE CODE and SUBPAGE CODE name.
fn selected(code: u8, subpage: u8) -> Result<Vec<&'static ModePage>, Sense> {
    let named = |page: &&ModePage| {
        let by_code = code == ALL_PAGES || code == page.code;
        by_code && (subpage == ALL_SUBPAGES || subpage == page.subpage)
    };
    let pages: Vec<_> = PAGES.iter().filter(named).collect();
    if !pages.is_empty() {
        return Ok(pages);
    }
    let known = code == ALL_PAGES || PAGES.iter().any(|page| page.code == code);
    Err(if known {
        Sense::cdb_field(3, None)
    } else {
        Sense::cdb_field(2, Some(5))
    })
}

/// MODE DATA LENGTH counts what follows itself.
fn header(
    form: Form,
    is_protected: bool,
    (long, descriptor): (bool, usize),
    pages: usize,
) -> Vec<u8> {
    let length = form.header_len() + descriptor + pages;
    let wp = if is_protected { WP } else { 0 };
    let specific = wp | DPOFUA;
    let descriptor = descriptor as u8;
    match form {
        Form::Six => vec![(length - 1) as u8, 0, specific, descriptor],
        Form::Ten => {
            let [high, low] = ((length - 2) as u16).to_be_bytes();
            vec![high, low, 0, specific, u8::from(long), 0, 0, descriptor]
        }
    }
}

/// SBC-4 §6.5.2: how many blocks, and how long they are.
fn block_descriptor(traits: &Traits, long: bool) -> Vec<u8> {
    let size = traits.block_size.to_be_bytes();
    if long {
        return [&traits.blocks.to_be_bytes()[..], &[0; 4], &size].concat();
    }
    let blocks = u32::try_from(traits.blocks).unwrap_or(u32::MAX);
    [blocks.to_be_bytes(), size].concat()
}

const LLBAA: u8 = 0x10;
const DBD: u8 = 0x08;

/// PAGE CONTROL.
const CHANGEABLE: u8 = 0b01;
const DEFAULT: u8 = 0b10;
const SAVED: u8 = 0b11;

const ALL_PAGES: u8 = 0x3f;
const ALL_SUBPAGES: u8 = 0xff;

/// DEVICE-SPECIFIC PARAMETER (SBC-4 §6.5.1).
const WP: u8 = 0x80;
const DPOFUA: u8 = 0x10;

const NOT_SAVED: Sense = Sense::new(
    SenseKey::IllegalRequest,
    asc::SAVING_PARAMETERS_NOT_SUPPORTED,
);
