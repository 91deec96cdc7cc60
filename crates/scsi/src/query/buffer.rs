//! READ BUFFER and WRITE BUFFER (SPC-5 §6.20, §6.52): a data buffer that all nexuses share, and an
//! echo buffer for each.
//!
//! Offsets and lengths come from a peer: each is compared with the capacity before anything is
//! touched. (Reading past the end here was FreeBSD-SA-24:11.)

use super::unit;
use crate::commands::{Query, QueryResult};
use crate::owner::UnitChange;
use crate::task::CommandFailure;
use crate::unit_settings::{DATA_BUFFER_BYTES, ECHO_BUFFER_BYTES, SettingChange};
use crate::wire::asc;
use crate::wire::cdb::{be24, byte};
use crate::wire::sense::{Sense, SenseKey};

/// READ BUFFER(10).
#[must_use]
pub fn read_buffer(query: &Query<'_>) -> QueryResult {
    read(query).into()
}

fn read(query: &Query<'_>) -> Result<QueryResult, CommandFailure> {
    let settings = &unit(query)?.settings;
    match mode(query) {
        DATA => {
            let offset = data_offset(query)?;
            let mut data = settings.buffer.to_vec();
            data.resize(DATA_BUFFER_BYTES, 0);
            Ok(QueryResult::Data(data.split_off(offset)))
        }
        DESCRIPTOR if byte(query.cdb, 2) != 0 => Ok(QueryResult::Data(vec![0; 4])),
        DESCRIPTOR => {
            let capacity = (DATA_BUFFER_BYTES as u32).to_be_bytes();
            Ok(QueryResult::Data(vec![
                ANY_OFFSET,
                capacity[1],
                capacity[2],
                capacity[3],
            ]))
        }
        ECHO => {
            let echo = settings.echo(&query.nexus.identity).ok_or(NO_ECHO)?;
            Ok(QueryResult::Data(echo.to_vec()))
        }
        ECHO_DESCRIPTOR => {
            let [high, low] = (ECHO_BUFFER_BYTES as u16).to_be_bytes();
            Ok(QueryResult::Data(vec![EBOS, 0, high, low]))
        }
        _ => Err(UNKNOWN_MODE.into()),
    }
}

/// WRITE BUFFER.
#[must_use]
pub fn write_buffer(query: &Query<'_>) -> QueryResult {
    write(query).into()
}

fn write(query: &Query<'_>) -> Result<QueryResult, CommandFailure> {
    unit(query)?;
    let length = be24(query.cdb, 6);
    let setting = match mode(query) {
        DATA => {
            let offset = data_offset(query)?;
            if length as usize > DATA_BUFFER_BYTES - offset {
                return Err(TOO_LONG.into());
            }
            SettingChange::Buffer {
                offset,
                data: received(query, length)?.into(),
            }
        }
        ECHO if length as usize > ECHO_BUFFER_BYTES => return Err(TOO_LONG.into()),
        ECHO => SettingChange::Echo(received(query, length)?.into()),
        _ => return Err(UNKNOWN_MODE.into()),
    };
    Ok(QueryResult::Change(UnitChange::Setting(setting)))
}

fn mode(query: &Query<'_>) -> u8 {
    byte(query.cdb, 1) & 0x1f
}

/// BUFFER OFFSET into buffer 0; at most its capacity.
fn data_offset(query: &Query<'_>) -> Result<usize, Sense> {
    let offset = be24(query.cdb, 3) as usize;
    match byte(query.cdb, 2) {
        0 if offset <= DATA_BUFFER_BYTES => Ok(offset),
        0 => Err(Sense::cdb_field(3, None)),
        _ => Err(Sense::cdb_field(2, None)),
    }
}

/// The parameter list, if as much came as PARAMETER LIST LENGTH says.
fn received<'a>(query: &Query<'a>, length: u32) -> Result<&'a [u8], Sense> {
    let all = query.parameters.get(..length as usize);
    all.ok_or(Sense::parameter_length())
}

/// MODE.
const DATA: u8 = 0x02;
const DESCRIPTOR: u8 = 0x03;
const ECHO: u8 = 0x0a;
const ECHO_DESCRIPTOR: u8 = 0x0b;

/// OFFSET BOUNDARY: a multiple of 2 to the power of zero.
const ANY_OFFSET: u8 = 0;

/// Each nexus reads back what it wrote, whatever others write.
const EBOS: u8 = 0x01;

const UNKNOWN_MODE: Sense = Sense::cdb_field(1, Some(4));
const TOO_LONG: Sense = Sense::cdb_field(6, None);
const NO_ECHO: Sense = Sense::new(SenseKey::IllegalRequest, asc::COMMAND_SEQUENCE_ERROR);
