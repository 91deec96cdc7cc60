//! The boundary between a session and what carries its PDUs and its data: the Datamover of
//! RFC 5047.
//!
//! Above it a [`Session`](crate::session::Session) owns tasks, CmdSN and the command window, and
//! speaks of control PDUs and of the data of tasks. Below it a datamover moves both in its own way.
//! It knows tasks by their [`TaskSlot`] alone, and tells by [`Notice`]s what has come. What counts
//! for one connection (StatSN, what ExpStatSN has not acknowledged, silence) is neither's: it
//! stands in `session/connection.rs`, between the two.
//!
//! | RFC 5047 | here | over TCP ([`tcp`]) | over RDMA ([`iser`]) |
//! |---|---|---|---|
//! | Send_Control | [`Datamover::send_control`], [`Datamover::send_response`] | a PDU; the status may go along with the last Data-In | a Send, with the STag to be invalidated |
//! | Put_Data | [`Datamover::put_data`] | Data-In PDUs, cut by MaxRecvDataSegmentLength and MaxBurstLength | an RDMA Write |
//! | Get_Data | [`Datamover::get_data`] | R2Ts of at most MaxBurstLength, MaxOutstandingR2T at a time | RDMA Reads of at most MaxBurstLength, ORD at a time |
//! | Allocate_, Deallocate_Task_Resources | [`Datamover::allocate`], [`Datamover::deallocate`] | DataSN and R2TSN begin; Data-Out that still comes is dropped | STags are noted; reads that are outstanding are given up |
//! | Notice_Key_Values | [`Datamover::notice_keys`] | | |
//! | Control_Notify | [`Notice::Header`], [`Notice::Data`] | any PDU but solicited Data-Out | a Send |
//! | Data_Completion_Notify | [`Notice::Solicited`] | the last Data-Out of an R2T | the last read of what was wanted |
//!
//! Unsolicited Data-Out is a control PDU, as in RFC 5047: the session checks it. How a
//! datamover is fed and emptied is its own: bytes over TCP, a queue pair over RDMA.

pub mod iser;
pub mod tcp;

use scsi::medium::Now;
use scsi::received::ReceivedBytes;
use scsi::residual::Residual;
use scsi::task::{SenseBytes, Tag};
use scsi::violation::Violation;
use scsi::wire::lun::Lun;
use scsi::wire::sense::Status;

use crate::parameters::Operational;
use crate::target::TargetLimits;
use crate::wire::bhs::{Bhs, Itt};
use crate::wire::serial::StatSn;

/// What a session asks of its datamover.
pub trait Datamover<L> {
    /// For a connection that begins its full-feature phase.
    fn new(keys: &Operational, limits: &TargetLimits) -> Self;

    /// *Notice_Key_Values*: what was agreed upon has changed.
    fn notice_keys(&mut self, keys: &Operational);

    /// A command has come that may have data to move.
    fn allocate(&mut self, task: TaskSlot, itt: Itt, lun: Lun);

    /// *Deallocate_Task_Resources*: the task was aborted. Nothing of it leaves any more, and data
    /// that still comes for it is dropped.
    fn deallocate(&mut self, task: TaskSlot);

    /// *Send_Control*, of a PDU that does not end a SCSI command.
    fn send_control(&mut self, pdu: ControlPdu);

    /// *Send_Control*, of the response to a SCSI command. `may_collapse`: the status may go along
    /// with the last data of the command (RFC 7143 §11.7.3).
    fn send_response(&mut self, task: TaskSlot, ending: TaskEnding, may_collapse: bool);

    /// *Put_Data*: `data` belongs at `offset` in the data of the command.
    fn put_data(&mut self, task: TaskSlot, offset: u32, data: L);

    /// *Get_Data*: fetches what is missing, to be given back by [`Notice::Solicited`].
    fn get_data(&mut self, now: Now, task: TaskSlot, wanted: WantedData<L>);

    /// Nothing more is asked for: what was asked for already is waited for (RFC 7143 §4.2.3.3).
    fn stop_asking(&mut self, task: TaskSlot);

    /// Gives the memory up that was lent for this task. Data that was asked for is still waited
    /// for, and dropped.
    fn drop_data(&mut self, task: TaskSlot);

    /// Whether data that was asked for is still to come.
    fn is_getting(&self, task: TaskSlot) -> bool;

    /// Since when data that was asked for is missing.
    fn oldest_get(&self) -> Option<Now>;

    /// Bytes of data that came or left since this was asked last.
    fn take_moved(&mut self) -> u32;

    /// Additional header segments of the last [`Notice::Header`].
    fn ahs(&self) -> &[u8];

    /// The data of [`Notice::Collected`], unless it was taken before. The memory is to be given
    /// back to [`Datamover::recycle`].
    fn take_collected(&mut self) -> Option<Vec<u8>>;

    /// Takes memory back, to be used again.
    fn recycle(&mut self, collected: Vec<u8>);

    /// Drops everything that waits to be sent for tasks that are not to be kept.
    fn retain(&mut self, keep: impl Fn(TaskSlot) -> bool);

    /// How many control PDUs, responses and runs of data wait to be sent.
    fn queued(&self) -> usize;

    /// Whether something waits to be sent that will tell the initiator how far the command window
    /// is open.
    fn tells_window(&self) -> bool {
        self.queued() > 0
    }

    /// Bytes of Data-In that wait to be sent: backpressure from a slow reader.
    fn data_in_queued(&self) -> usize;

    /// Whether so many control PDUs wait that nothing more should be taken.
    fn is_crowded(&self) -> bool;

    /// Gives back the memory that a busy connection needed. `has_tasks`: some are allocated.
    fn trim(&mut self, has_tasks: bool);
}

/// Numbers a task among those of its session; also its [`Tag`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskSlot(pub(crate) u16);

impl TaskSlot {
    pub(crate) fn tag(self) -> Tag {
        Tag(u32::from(self.0))
    }

    pub(crate) fn of(tag: Tag) -> Option<Self> {
        u16::try_from(tag.0).ok().map(Self)
    }

    pub(crate) fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// A PDU that is whole but for its numbers.
#[derive(Debug)]
pub struct ControlPdu {
    /// The header.
    pub bhs: Bhs,
    /// The data segment.
    pub data: Vec<u8>,
    /// It uses up a StatSN.
    pub numbered: bool,
    /// With it the place of its request in the command window becomes free.
    pub releases: bool,
}

/// How a command ended.
#[derive(Clone, Debug)]
pub struct TaskEnding {
    /// SAM status.
    pub status: Status,
    /// Status qualifier (RFC 7144 §5.2); 0 where that was not agreed upon.
    pub qualifier: u16,
    /// Of the only direction, or of Data-Out.
    pub residual: Residual,
    /// Of Data-In, for a bidirectional command.
    pub read_residual: Residual,
    /// Sense data.
    pub sense: SenseBytes,
}

impl TaskEnding {
    /// Whether a Data-In PDU can carry it (RFC 7143 §11.7.3).
    #[must_use]
    pub fn is_plain(&self) -> bool {
        matches!(self.status, Status::Good | Status::ConditionMet)
            && self.sense.as_slice().is_empty()
            && self.qualifier == 0
    }
}

/// Memory that the device server lent, to be filled with a part of the data of a command.
#[derive(Debug)]
pub struct WantedData<L> {
    /// Where the memory belongs in the data of the command, in bytes.
    pub offset: u32,
    /// This many bytes from its beginning are there already.
    pub filled: u32,
    /// The memory.
    pub into: L,
}

impl<L: scsi::medium::Lease> WantedData<L> {
    /// Whether nothing is missing.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.filled as usize >= self.into.len()
    }

    /// Puts bytes where they belong, which is inside.
    pub(crate) fn fill(&mut self, offset: u32, bytes: &[u8]) {
        self.into.copy_in((offset - self.offset) as usize, bytes);
        self.filled += bytes.len() as u32;
    }

    /// Where in the data of the command it ends.
    #[must_use]
    pub fn end(&self) -> u32 {
        self.offset + self.into.len() as u32
    }
}

/// What a datamover tells of what came.
#[derive(Debug)]
pub enum Notice<'a, L> {
    /// *Control_Notify*: a header. Where its DataSegmentLength is not 0, `Data` or `Collected`
    /// follows.
    Header(Bhs),
    /// Bytes of that data segment, next to those before.
    Data {
        /// The bytes, without padding; there may be none when `end` is set.
        bytes: &'a [u8],
        /// The segment ends with them.
        end: bool,
    },
    /// That data segment as a whole, to be taken by [`Datamover::take_collected`].
    Collected,
    /// *Data_Completion_Notify*, or news of less than that.
    Solicited(Solicited<L>),
    /// A PDU whose data was damaged on its way; its header was not told.
    BadData(Bhs, Option<Solicited<L>>),
    /// Data that belongs to no task, or was not asked for.
    Stray(Bhs),
    /// The connection cannot go on. The PDU is rejected, if there is one.
    Broken(Option<Bhs>, Violation),
}

/// What came of data that was asked for.
#[derive(Debug)]
pub struct Solicited<L> {
    /// Of which task.
    pub task: TaskSlot,
    /// ExpStatSN of the PDU that brought it.
    pub exp_stat_sn: StatSn,
    /// Memory that is full.
    pub got: Option<WantedData<L>>,
    /// Data is missing that will not come.
    pub fault: Option<SolicitedFault>,
    /// All of what one request asked for is here, or lost.
    pub closed: bool,
}

/// How data that was asked for came to be missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SolicitedFault {
    /// A hole in the DataSN, or a data digest error.
    Lost,
    /// More, less, or other data than was asked for.
    Incorrect,
}

/// A part of the data of a command of which bytes come in PDUs: DataSN, order and completeness
/// (RFC 7143 §11.7.4, §11.7.5, §13.18).
#[derive(Debug)]
pub(crate) struct DataOutRange<'t> {
    pub(crate) next_sn: &'t mut u32,
    pub(crate) start: u32,
    pub(crate) len: u32,
    pub(crate) received: &'t mut ReceivedBytes,
}

impl DataOutRange<'_> {
    /// Takes the next Data-Out of `len` bytes at `offset` in. Where its data is not `wanted` any
    /// more, only its number counts.
    pub(crate) fn take(
        &mut self,
        pdu: &crate::wire::data::DataOut,
        len: u32,
        wanted: bool,
        in_order: bool,
    ) -> Result<(), SolicitedFault> {
        let expected_sn = *self.next_sn;
        *self.next_sn = expected_sn.wrapping_add(1);
        if !wanted {
            return Ok(());
        }
        if pdu.data_sn.0 != expected_sn {
            return Err(SolicitedFault::Lost);
        }
        let at = pdu.offset.checked_sub(self.start);
        let at = at.filter(|at| at.checked_add(len).is_some_and(|end| end <= self.len));
        let is_new = |at: u32| {
            let fits = !in_order || at == self.received.next();
            fits && !self.received.overlaps(at, at + len) && self.received.add(at, at + len)
        };
        if at.is_some_and(is_new) {
            Ok(())
        } else {
            Err(SolicitedFault::Incorrect)
        }
    }
}
