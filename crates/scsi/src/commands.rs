//! THE opcode table: it drives dispatch, the check of reserved bits, access under reservations,
//! ordering, and REPORT SUPPORTED OPERATION CODES.

use crate::medium::Now;
use crate::nexus::Nexus;
use crate::owner::Change;
use crate::task::Failure;
use crate::unit::UnitState;
use crate::wire::lun::Lun;

/// One command: an opcode, or an opcode with a service action.
#[derive(Debug)]
pub struct Row {
    /// OPERATION CODE.
    pub opcode: u8,
    /// SERVICE ACTION, where the opcode has them.
    pub service_action: Option<u16>,
    /// CDB USAGE DATA (SPC-5 §6.30.3): a one for each bit that is evaluated. Its length is that of
    /// the CDB. A set bit outside it is INVALID FIELD IN CDB.
    pub usage: &'static [u8],
    /// What a reservation of another nexus does to it.
    pub access: Access,
    /// Which of the rare commands it may overtake.
    pub ordering: Ordering,
    /// Where it is answered without looking at unit attentions, and on absent units.
    pub always: Always,
    /// What carries it out.
    pub handler: Handler,
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
pub enum Always {
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
    Query(fn(&Query<'_>) -> Answer),
    /// Takes a parameter list of the length that the function reads from the CDB, then answers.
    Parameters(fn(&[u8]) -> u32, fn(&Query<'_>) -> Answer),
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
}

/// What a command of the first kind may look at.
#[derive(Debug)]
pub struct Query<'a> {
    /// The CDB, as long as its row says.
    pub cdb: &'a [u8],
    /// The parameter list that was received; empty for [`Handler::Query`].
    pub parameters: &'a [u8],
    /// The unit; `None` where the LUN names none (only [`Always::Answered`] commands get there).
    pub unit: Option<&'a UnitState>,
    /// Who asks.
    pub nexus: &'a Nexus,
    /// Which LUN it named.
    pub lun: Lun,
    /// When.
    pub now: Now,
    /// What the core itself knows beyond the snapshot.
    pub local: &'a Local,
}

/// Per-nexus and per-core facts that some answers need.
#[derive(Clone, Debug, Default)]
pub struct Local {
    /// The unit attention (0xAAQQ) that REQUEST SENSE would report and clear.
    pub attention: Option<u16>,
}

/// What a command of the first kind answers.
#[derive(Debug)]
pub enum Answer {
    /// GOOD.
    Good,
    /// Parameter data, whole; what is sent is cut to ALLOCATION LENGTH by the device server,
    /// which reads it from the CDB by the row's opcode. GOOD.
    Data(Vec<u8>),
    /// Not GOOD.
    Fail(Failure),
    /// GOOD once the owner of the unit has agreed.
    Change(Change),
}

/// Every command there is.
pub static TABLE: &[Row] = &[];
