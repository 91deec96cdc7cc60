//! THE opcode table: it drives dispatch, the check of reserved bits, access under reservations,
//! ordering, and REPORT SUPPORTED OPERATION CODES.

mod table;
#[cfg(test)]
mod tests;

use crate::medium::{Extent, Now, SanitizeKind};
use crate::nexus::Nexus;
use crate::owner::UnitChange;
use crate::statistics::OperationClass;
use crate::task::CommandFailure;
use crate::unit::UnitState;
use crate::wire::asc;
use crate::wire::cdb::{Field, byte};
use crate::wire::lun::Lun;
use crate::wire::sense::{Sense, SenseKey};

pub use table::TABLE;

/// The row for a CDB, which is zero-padded to at least the length that its opcode asks for.
///
/// # Errors
/// INVALID COMMAND OPERATION CODE; INVALID FIELD IN CDB pointing at an unknown service action or at
/// the first bit that is set though the row's usage mask does not have it.
pub fn find(cdb: &[u8]) -> Result<&'static CommandRow, Sense> {
    let row = match table::rows(byte(cdb, 0)) {
        [] => return Err(INVALID_OPCODE),
        [row] if row.service_action.is_none() => row,
        rows => rows
            .iter()
            .find(|row| row.service_action == Some(service_action(cdb)))
            .ok_or(INVALID_SERVICE_ACTION)?,
    };
    row.check_reserved(cdb)?;
    Ok(row)
}

/// Rows of an opcode, those of its service actions; none where the opcode is unknown.
#[must_use]
pub fn rows_of(opcode: u8) -> &'static [CommandRow] {
    table::rows(opcode)
}

const INVALID_OPCODE: Sense = Sense::new(
    SenseKey::IllegalRequest,
    asc::INVALID_COMMAND_OPERATION_CODE,
);
const INVALID_SERVICE_ACTION: Sense = Sense::cdb_field(1, Some(4));

fn service_action(cdb: &[u8]) -> u16 {
    u16::from(byte(cdb, 1) & 0x1f)
}

/// One command: an opcode, or an opcode with a service action.
#[derive(Debug)]
pub struct CommandRow {
    /// OPERATION CODE.
    pub opcode: u8,
    /// SERVICE ACTION, where the opcode has them.
    pub service_action: Option<u16>,
    /// What the standards call it.
    pub name: &'static str,
    /// CDB USAGE DATA (SPC-5 §6.30.3): a one for each bit that is evaluated. Its length is that of
    /// the CDB. A set bit outside it is INVALID FIELD IN CDB.
    pub usage: &'static [u8],
    /// The bits of the first 16 bytes that are not in `usage`, as one big-endian number; bytes
    /// beyond the CDB are undefined.
    reserved: u128,
    /// What a reservation of another nexus does to it.
    pub access: Access,
    /// Which of the rare commands it may overtake.
    pub ordering: Ordering,
    /// Where it is answered without looking at unit attentions, and on absent units.
    pub always: ExemptCommand,
    /// What carries it out.
    pub handler: Handler,
    /// What it is counted as.
    pub class: OperationClass,
    /// LOGICAL BLOCK ADDRESS, where the CDB has one.
    pub lba: Option<Field>,
    /// How much is moved, and by what measure.
    pub length: Length,
    /// What the unit must be able to do for the command to be offered.
    pub needs: Needs,
    /// RECOMMENDED COMMAND TIMEOUT in seconds; 0 where none can be named (SPC-5 §6.30.4).
    pub timeout_s: u16,
}

impl CommandRow {
    /// The first logical block; 0 where the CDB names none.
    #[must_use]
    pub fn lba(&self, cdb: &[u8]) -> u64 {
        self.lba.map_or(0, |field| field.read(cdb))
    }

    /// TRANSFER LENGTH, VERIFICATION LENGTH or NUMBER OF BLOCKS; 0 where there is none.
    #[must_use]
    pub fn blocks(&self, cdb: &[u8]) -> u64 {
        match self.length {
            Length::Blocks(field) => match field.read(cdb) {
                // SBC-4 §5.12: in READ(6) and WRITE(6) zero stands for 256.
                0 if self.usage.len() == 6 => 256,
                blocks => blocks,
            },
            _ => 0,
        }
    }

    /// The blocks that the CDB names.
    #[must_use]
    pub fn extent(&self, cdb: &[u8]) -> Extent {
        Extent::new(self.lba(cdb), self.blocks(cdb))
    }

    /// ALLOCATION LENGTH in bytes; 0 where there is none.
    #[must_use]
    pub fn allocation_length(&self, cdb: &[u8]) -> u32 {
        match self.length {
            Length::Allocation(field) => field.read(cdb) as u32,
            _ => 0,
        }
    }

    /// PARAMETER LIST LENGTH in bytes; 0 where there is none.
    #[must_use]
    pub fn parameter_length(&self, cdb: &[u8]) -> u32 {
        match self.length {
            Length::Parameters(field) => field.read(cdb) as u32,
            _ => 0,
        }
    }

    /// What a reservation of another nexus does to this very CDB: starting a unit and allowing
    /// removal are harmless where stopping and preventing are not (SBC-4 table 13).
    #[must_use]
    pub fn access_for(&self, cdb: &[u8]) -> Access {
        match self.opcode {
            START_STOP_UNIT if byte(cdb, 4) & 0xf1 == 0x01 => Access::Any,
            PREVENT_ALLOW_MEDIUM_REMOVAL if byte(cdb, 4) & 0x01 == 0 => Access::Any,
            _ => self.access,
        }
    }

    /// Whether the unit can do it. What it cannot do is not reported by REPORT SUPPORTED OPERATION
    /// CODES either.
    ///
    /// # Errors
    /// As those of [`find`] for a command that is not in the table.
    pub fn check_offered(&self, unit: &UnitState) -> Result<(), Sense> {
        if self.needs.met_by(unit) {
            return Ok(());
        }
        let siblings = table::rows(self.opcode);
        Err(if siblings.iter().any(|row| row.needs.met_by(unit)) {
            INVALID_SERVICE_ACTION
        } else {
            INVALID_OPCODE
        })
    }

    fn check_reserved(&self, cdb: &[u8]) -> Result<(), Sense> {
        // Every command comes by here, and hardly one has a stray bit: sixteen bytes at once.
        if let Some(bytes) = cdb.first_chunk()
            && u128::from_be_bytes(*bytes) & self.reserved == 0
        {
            return Ok(());
        }
        let stray = |(byte, mask): (&u8, &u8)| byte & !mask;
        match cdb.iter().zip(self.usage).position(|pair| stray(pair) != 0) {
            None => Ok(()),
            Some(at) => {
                let bits = byte(cdb, at) & !byte(self.usage, at);
                Err(Sense::cdb_field(at as u16, Some(bits.ilog2() as u8)))
            }
        }
    }
}

const START_STOP_UNIT: u8 = 0x1b;
const PREVENT_ALLOW_MEDIUM_REMOVAL: u8 = 0x1e;

/// The field of a CDB that says how much is moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// None: nothing is moved.
    None,
    /// ALLOCATION LENGTH: the most parameter data, in bytes, that the initiator takes.
    Allocation(Field),
    /// PARAMETER LIST LENGTH: what the initiator sends, in bytes.
    Parameters(Field),
    /// A number of logical blocks.
    Blocks(Field),
}

/// What a command asks of the unit's volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// Nothing beyond what every volume has.
    Nothing,
    /// [`crate::medium::Traits::unmap_granularity`].
    Unmap,
    /// [`crate::medium::Traits::atomic`].
    Atomic,
    /// This method in [`crate::medium::Traits::sanitize`].
    Sanitize(SanitizeKind),
    /// Any method there.
    AnySanitize,
    /// A medium that can be removed.
    Removable,
    /// Nothing else uses the medium past this server: not [`crate::medium::Traits::shared`].
    Alone,
}

impl Needs {
    fn met_by(self, unit: &UnitState) -> bool {
        let traits = &unit.traits;
        match self {
            Self::Nothing => true,
            Self::Unmap => traits.unmap_granularity.is_some(),
            Self::Atomic => traits.atomic.is_some(),
            Self::Sanitize(kind) => traits.sanitize.contains(&kind),
            Self::AnySanitize => !traits.sanitize.is_empty(),
            Self::Removable => unit.identity.removable,
            Self::Alone => !traits.shared,
        }
    }
}

/// SPC-5 table 62 and SBC-4 table 13: allowed in the presence of persistent reservations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Allowed under any.
    Any,
    /// Allowed under Write Exclusive types, conflict under Exclusive Access types (reads).
    Read,
    /// Conflict under any unless the nexus has access (writes).
    Write,
}

/// Classes for the ordering matrix of `order.rs`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ordering {
    /// Touches no medium.
    Free,
    /// Reads the medium.
    Read,
    /// Writes the medium.
    Write,
    /// Waits for earlier writes (SYNCHRONIZE CACHE).
    Flush,
    /// Has the whole unit for itself (FORMAT UNIT, SANITIZE).
    Exclusive,
}

/// Commands that SAM-5 §5.14 and SPC-5 §6.6.1, §6.33, §6.39 except from the usual checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExemptCommand {
    /// Pending unit attentions are reported instead; needs a unit.
    No,
    /// Goes on in spite of unit attentions (INQUIRY, REPORT LUNS, REQUEST SENSE), and is answered
    /// where there is no unit as SPC asks.
    Answered,
}

/// What carries a command out.
#[derive(Clone, Copy)]
pub enum Handler {
    /// Answers at once from what is known.
    Query(fn(&Query<'_>) -> QueryResult),
    /// Takes a parameter list of the length that the function reads from the CDB, then answers.
    Parameters(fn(&[u8]) -> u32, fn(&Query<'_>) -> QueryResult),
    /// Moves data between initiator and medium; see `device`.
    Medium(Medium),
}

impl std::fmt::Debug for Handler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Query(_) => "Query",
            Self::Parameters(..) => "Parameters",
            Self::Medium(_) => "Medium",
        })
    }
}

/// The commands of the second kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of the commands")]
pub enum Medium {
    Read,
    Write,
    WriteAtomic,
    Verify,
    WriteAndVerify,
    OrWrite,
    Prefetch,
    SynchronizeCache,
    Unmap,
    WriteSame,
    CompareAndWrite,
    LbaStatus,
    FormatUnit,
    Sanitize,
    ExtendedCopy,
    ReceiveCopyResults,
}

/// What a command of the first kind may look at.
#[derive(Debug)]
pub struct Query<'a> {
    /// The CDB, as long as its row says.
    pub cdb: &'a [u8],
    /// The parameter list that was received; empty for [`Handler::Query`].
    pub parameters: &'a [u8],
    /// The unit; `None` where the LUN names none (only [`ExemptCommand::Answered`] commands get
    /// there).
    pub unit: Option<&'a UnitState>,
    /// The nexus that asks.
    pub nexus: &'a Nexus,
    /// Which LUN it named.
    pub lun: Lun,
    /// The time of the query.
    pub now: Now,
    /// What the core itself knows beyond the snapshot.
    pub local: &'a LocalFacts,
}

/// Per-nexus and per-core facts that some answers need.
#[derive(Clone, Debug, Default)]
pub struct LocalFacts {
    /// The unit attention (0xAAQQ) that REQUEST SENSE would report and clear.
    pub attention: Option<u16>,
    /// Whether the nexus can only read the unit through this LUN.
    pub is_read_only: bool,
}

/// What a command of the first kind answers.
#[derive(Debug)]
pub enum QueryResult {
    /// GOOD.
    Good,
    /// Parameter data, whole; what is sent is cut to ALLOCATION LENGTH by the device server,
    /// which reads it from the CDB by the row's opcode. GOOD.
    Data(Vec<u8>),
    /// Not GOOD.
    Fail(CommandFailure),
    /// GOOD once the owner of the unit has agreed.
    Change(UnitChange),
    /// GOOD once the owner of the unit has agreed and, after that, everything that was written is
    /// on stable storage: a stopped, ejected or no longer cached unit has nothing left to lose. A
    /// flush that fails is the status of the command.
    ChangeAndFlush(UnitChange),
}

impl From<Sense> for QueryResult {
    fn from(sense: Sense) -> Self {
        Self::Fail(sense.into())
    }
}

impl From<Result<Self, CommandFailure>> for QueryResult {
    fn from(result: Result<Self, CommandFailure>) -> Self {
        result.unwrap_or_else(Self::Fail)
    }
}
