//! The device server of one core: commands in, SAM's protocol services and medium operations out.
//!
//! Each core has one, with its own nexuses and task sets (TST = 001b: a task set per I_T nexus),
//! so that ORDERED and HEAD OF QUEUE never cross cores.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::medium::{Lease, MediumOp, MediumResult, Now};
use crate::nexus::{Nexus, NexusId};
use crate::owner::{Publication, Request};
use crate::task::{Command, Completed, Failure, Function, FunctionResult, Tag};
use crate::unit::{CoreId, UnitId, UnitState};
use crate::wire::lun::Lun;

/// Names a medium operation until its result is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OpId(pub u64);

/// What the device server wants done.
#[derive(Debug)]
pub enum Output<L> {
    /// Carry this out on the unit's volume and tell [`DeviceServer::medium_done`].
    Medium {
        /// Which.
        id: OpId,
        /// Whose.
        unit: UnitId,
        /// What.
        op: MediumOp<L>,
    },
    /// *Send Data-In*: the transport may slice and send it, in the order given.
    SendDataIn {
        /// The nexus of the command.
        nexus: NexusId,
        /// The command.
        tag: Tag,
        /// Where in the data of the command it belongs; consecutive.
        offset: u32,
        /// The data.
        data: L,
    },
    /// *Receive Data-Out*: fill `into` with that part of the data of the command, then call
    /// [`DeviceServer::data_out`]. Never more than `expected_out` in all.
    ReceiveDataOut {
        /// The nexus of the command.
        nexus: NexusId,
        /// The command.
        tag: Tag,
        /// Where in the data of the command it begins.
        offset: u32,
        /// What to fill, whole.
        into: L,
    },
    /// *Send Command Complete*.
    Complete {
        /// The nexus of the command.
        nexus: NexusId,
        /// The command; the tag may be used again.
        tag: Tag,
        /// With what.
        completed: Completed,
    },
    /// The task was aborted: nothing is sent for it, what was lent to receive into is let go, and
    /// data that still comes is dropped.
    Aborted {
        /// The nexus of the command.
        nexus: NexusId,
        /// The command; the tag may be used again.
        tag: Tag,
    },
    /// A task management function has ended.
    Managed {
        /// Whose.
        nexus: NexusId,
        /// As given to [`DeviceServer::manage`].
        id: u32,
        /// How.
        result: FunctionResult,
    },
    /// Everything of a lost nexus has ended at the medium; its number may be used again.
    NexusGone(NexusId),
    /// A unit attention became pending (for QUERY ASYNCHRONOUS EVENT and SCSI async messages).
    Attention {
        /// For whom.
        nexus: NexusId,
        /// On which LUN.
        lun: Lun,
        /// 0xAAQQ.
        code: u16,
    },
    /// Hand this to the unit's owner; the answer comes by [`DeviceServer::replied`].
    Ask {
        /// Which unit's.
        unit: UnitId,
        /// What.
        request: Request,
    },
    /// Tell the unit's owner that this core works by the version.
    Acknowledge {
        /// Which unit's.
        unit: UnitId,
        /// Which version.
        version: u64,
    },
}

/// The device server of one core.
#[derive(Debug)]
pub struct DeviceServer<L> {
    core: CoreId,
    outputs: VecDeque<Output<L>>,
}

impl<L: Lease> DeviceServer<L> {
    /// A device server with these units, all of the process, indexed by [`UnitId`].
    #[must_use]
    pub fn new(core: CoreId, _units: Vec<Arc<UnitState>>) -> Self {
        Self {
            core,
            outputs: VecDeque::new(),
        }
    }

    /// The core it serves.
    #[must_use]
    pub fn core(&self) -> CoreId {
        self.core
    }

    /// An I_T nexus came to be. Its units have POWER ON unit attentions for it where SPC asks.
    pub fn nexus_up(&mut self, _id: NexusId, _nexus: Nexus) {}

    /// *Nexus Loss* (SAM-5 §6.3.4): every task of it is aborted; [`Output::NexusGone`] follows.
    pub fn nexus_lost(&mut self, _id: NexusId) {}

    /// *Execute Command*. What is wrong with it comes back as its status.
    pub fn execute(&mut self, _now: Now, _command: Command) {}

    /// Data-Out that [`Output::ReceiveDataOut`] asked for is there.
    pub fn data_out(&mut self, _nexus: NexusId, _tag: Tag, _offset: u32, _data: L) {}

    /// A task management function; [`Output::Managed`] follows with the same `id`.
    pub fn manage(&mut self, _nexus: NexusId, _id: u32, _lun: Lun, _function: Function) {}

    /// The result of a medium operation.
    pub fn medium_done(&mut self, _id: OpId, _result: MediumResult<L>) {}

    /// The owner of a unit published a new state.
    pub fn publish(&mut self, _unit: UnitId, _publication: Publication) {}

    /// The owner of a unit answered [`Output::Ask`].
    pub fn replied(&mut self, _unit: UnitId, _id: u64, _result: Result<(), Failure>) {}

    /// What to do next; call until `None` after each call of another function.
    pub fn poll(&mut self) -> Option<Output<L>> {
        self.outputs.pop_front()
    }
}
