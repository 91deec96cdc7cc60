//! LOG SENSE (SPC-5 §6.8) and its pages (SPC-5 §7.3, SBC-4 §6.4).

use super::unit;
use crate::commands::{Query, QueryResult};
use crate::limits::threshold_exponent;
use crate::statistics::SpaceUsage;
use crate::task::CommandFailure;
use crate::unit::UnitState;
use crate::wire::cdb::{be16, byte};
use crate::wire::sense::Sense;

/// LOG SENSE. Counters have no thresholds and are never set, so that threshold values (PC = 00b)
/// are answered like the current cumulative ones (01b), and default values are refused.
#[must_use]
pub fn log_sense(query: &Query<'_>) -> QueryResult {
    page(query).into()
}

fn page(query: &Query<'_>) -> Result<QueryResult, CommandFailure> {
    let unit = unit(query)?;
    let (control, code) = (byte(query.cdb, 2) >> 6, byte(query.cdb, 2) & 0x3f);
    if control > CUMULATIVE {
        return Err(Sense::cdb_field(2, Some(7)).into());
    }
    let subpage = byte(query.cdb, 3);
    let body = match (code, subpage) {
        (SUPPORTED, 0) => supported(unit).collect(),
        (SUPPORTED, ALL_SUBPAGES) => with_subpages(unit),
        (_, 0) => {
            let page = PAGES.iter().find(|page| page.0 == code);
            let parameters = page.and_then(|(_, parameters)| parameters(unit));
            encode(
                &parameters.ok_or(Sense::cdb_field(2, Some(5)))?,
                be16(query.cdb, 5),
            )?
        }
        _ => return Err(Sense::cdb_field(3, None).into()),
    };
    let spf = if subpage == 0 { 0 } else { SPF };
    let [high, low] = (body.len() as u16).to_be_bytes();
    let mut page = vec![DS | spf | code, subpage, high, low];
    page.extend(body);
    Ok(QueryResult::Data(page))
}

/// Page codes of what this unit can tell, without subpages.
fn supported(unit: &UnitState) -> impl Iterator<Item = u8> {
    let told = PAGES.iter().filter(|page| page.1(unit).is_some());
    [SUPPORTED].into_iter().chain(told.map(|page| page.0))
}

fn with_subpages(unit: &UnitState) -> Vec<u8> {
    let mut pages: Vec<_> = supported(unit).flat_map(|code| [code, 0]).collect();
    pages.splice(2..2, [SUPPORTED, ALL_SUBPAGES]);
    pages
}

/// A log parameter: its code and value.
type Parameter = (u16, Vec<u8>);

/// The parameters of a page, by code; `None` where the unit has nothing to tell.
type LogPage = fn(&UnitState) -> Option<Vec<Parameter>>;

/// Pages beside the list of them, in the order of their codes.
const PAGES: &[(u8, LogPage)] = &[
    (0x0c, provisioning),
    (0x0d, |_| Some(temperature())),
    (0x0e, |unit| Some(start_stop(unit))),
    (0x19, |unit| Some(statistics(unit))),
];

/// The parameters from PARAMETER POINTER on.
fn encode(parameters: &[Parameter], pointer: u16) -> Result<Vec<u8>, Sense> {
    let from = parameters.iter().position(|(code, _)| *code >= pointer);
    let from = from.ok_or(Sense::cdb_field(5, None))?;
    let encode = |(code, value): &Parameter| {
        let [high, low] = code.to_be_bytes();
        [&[high, low, BINARY_LIST, value.len() as u8][..], value].concat()
    };
    Ok(parameters[from..].iter().flat_map(encode).collect())
}

/// SBC-4 §6.4.5: available and used storage, each for this unit alone.
fn provisioning(unit: &UnitState) -> Option<Vec<Parameter>> {
    let SpaceUsage { used, available } = unit.statistics.usage()?;
    let count = |blocks: u64| {
        let sets = blocks >> threshold_exponent(&unit.traits);
        let sets = u32::try_from(sets).unwrap_or(u32::MAX);
        [&sets.to_be_bytes()[..], &[SCOPE_UNIT, 0, 0, 0]].concat()
    };
    Some(vec![(0x0001, count(available)), (0x0002, count(used))])
}

const SCOPE_UNIT: u8 = 0x01;

/// There is no sensor, and no reference either.
fn temperature() -> Vec<Parameter> {
    vec![(0x0000, vec![0, UNKNOWN]), (0x0001, vec![0, UNKNOWN])]
}

const UNKNOWN: u8 = 0xff;

/// Without dates and without limits, neither of which a volume has.
fn start_stop(unit: &UnitState) -> Vec<Parameter> {
    let settings = &unit.settings;
    vec![
        (0x0004, settings.stops.to_be_bytes().to_vec()),
        (0x0006, settings.ejects.to_be_bytes().to_vec()),
    ]
}

/// Commands and blocks are counted; time is not, neither of processing nor of idling, so that those
/// fields stay zero. They are there, with the interval of 1 ms that they would count, because
/// sg_logs decodes the page with all three parameters only.
fn statistics(unit: &UnitState) -> Vec<Parameter> {
    let totals = unit.statistics.totals();
    let counted = [
        totals.reads,
        totals.writes,
        totals.blocks_written,
        totals.blocks_read,
    ];
    let mut value: Vec<u8> = counted.into_iter().flat_map(u64::to_be_bytes).collect();
    value.resize(64, 0);
    let millisecond = [3u32.to_be_bytes(), 1u32.to_be_bytes()].concat();
    vec![(0x0001, value), (0x0002, vec![0; 8]), (0x0003, millisecond)]
}

const SUPPORTED: u8 = 0x00;
const ALL_SUBPAGES: u8 = 0xff;
const CUMULATIVE: u8 = 0b01;

/// Nothing of the page is saved (DS = 1).
const DS: u8 = 0x80;
const SPF: u8 = 0x40;

/// Control byte of a parameter: FORMAT AND LINKING of a binary list.
const BINARY_LIST: u8 = 0x03;
