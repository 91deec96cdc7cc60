//! What the medium is: READ CAPACITY and READ DEFECT DATA (SBC-4 §5.20 to §5.23).

use super::unit;
use crate::commands::{Query, QueryResult};
use crate::task::CommandFailure;
use crate::unit::UnitState;
use crate::wire::cdb::byte;

/// READ CAPACITY(10). Beyond 32 bits it tells FFFFFFFFh: ask READ CAPACITY(16).
#[must_use]
pub fn read_capacity10(query: &Query<'_>) -> QueryResult {
    capacity10(query).into()
}

fn capacity10(query: &Query<'_>) -> Result<QueryResult, CommandFailure> {
    let unit = unit(query)?;
    unit.ready()?;
    let last = u32::try_from(unit.traits.blocks - 1).unwrap_or(u32::MAX);
    let data = [last.to_be_bytes(), unit.traits.block_size.to_be_bytes()];
    Ok(QueryResult::Data(data.concat()))
}

/// READ CAPACITY(16).
#[must_use]
pub fn read_capacity16(query: &Query<'_>) -> QueryResult {
    capacity16(query).into()
}

fn capacity16(query: &Query<'_>) -> Result<QueryResult, CommandFailure> {
    let unit = unit(query)?;
    unit.ready()?;
    let traits = &unit.traits;
    let mut data = vec![0; 32];
    data[..8].copy_from_slice(&(traits.blocks - 1).to_be_bytes());
    data[8..12].copy_from_slice(&traits.block_size.to_be_bytes());
    data[13] = traits.physical_exponent & 0x0f;
    if traits.unmap_granularity.is_some() {
        data[14] = LBPME | LBPRZ;
    }
    Ok(QueryResult::Data(data))
}

const LBPME: u8 = 0x80;
const LBPRZ: u8 = 0x40;

/// READ DEFECT DATA(10): there are no defects, in whichever format they are asked for.
#[must_use]
pub fn read_defect_data10(query: &Query<'_>) -> QueryResult {
    defects(query, vec![0, byte(query.cdb, 2), 0, 0])
}

/// READ DEFECT DATA(12), likewise.
#[must_use]
pub fn read_defect_data12(query: &Query<'_>) -> QueryResult {
    defects(query, vec![0, byte(query.cdb, 1), 0, 0, 0, 0, 0, 0])
}

/// PLISTV, GLISTV and the format stand in the header as their requests do in the CDB.
fn defects(query: &Query<'_>, header: Vec<u8>) -> QueryResult {
    match unit(query).and_then(UnitState::ready) {
        Ok(()) => QueryResult::Data(header),
        Err(failure) => QueryResult::Fail(failure),
    }
}
