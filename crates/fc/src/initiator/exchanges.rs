//! The exchanges of an initiator, by their OX_IDs.

use scsi::medium::{Lease, Now};
use scsi::received::ReceivedBytes;
use scsi::residual::Residual;
use scsi::task::{Attribute, SenseBytes};
use scsi::wire::lun::Lun;
use slab::Slab;

use super::{ClientCommand, Data, FcpWhy};
use crate::exchange::FCP_OX_IDS;
use crate::exchange::Ids;
use crate::remote::RemoteId;
use crate::wire::fcp::XferRdy;
use crate::wire::frame::{FrameHeader, OxId, RxId};

/// A place in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct InitiatorSlot(u16);

/// A command that has not ended.
#[derive(Debug)]
pub(super) struct InitiatorExchange<L> {
    pub(super) id: u64,
    pub(super) remote: RemoteId,
    pub(super) ox_id: OxId,
    /// The target's name for it, once that is known.
    pub(super) rx_id: RxId,
    /// Its number among all commands, and its task retry identifier; never 0.
    pub(super) number: u32,
    pub(super) lun: Lun,
    pub(super) cdb: [u8; 16],
    pub(super) attribute: Attribute,
    pub(super) data: Data<L>,
    /// FCP_DL.
    pub(super) len: u32,
    pub(super) deadline: Now,
    pub(super) stage: CommandStage,
    /// When it last got on.
    pub(super) touched: Now,
    /// A REC or SRR for it has not been answered.
    pub(super) is_asking: bool,
    /// So often was something of it asked for again.
    pub(super) recoveries: u8,
    /// So often was its target asked about it since something of it came.
    pub(super) inquiries: u8,
    /// Data-In that has come.
    pub(super) cover: ReceivedBytes,
    /// Its response, if that came before its data.
    pub(super) ending: Option<FcpEnding>,
    /// Where Data-Out ends that has left.
    pub(super) sent: u32,
    /// The last FCP_XFER_RDY, to know a second copy of it.
    pub(super) asked: Option<(u8, XferRdy)>,
    pub(super) next_seq_id: u8,
}

/// How far a command has got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CommandStage {
    /// It has not left.
    Ready,
    /// It has.
    Open,
    /// ABTS has been sent so often.
    Aborting { why: FcpWhy, tries: u8 },
}

/// How a target ended a command.
#[derive(Clone, Debug)]
pub(super) struct FcpEnding {
    pub(super) status: u8,
    pub(super) residual: Residual,
    pub(super) sense: SenseBytes,
    pub(super) qualifier: u16,
    /// FCP_CONF is wanted.
    pub(super) confirm: bool,
}

impl<L> InitiatorExchange<L> {
    /// Whether these are its names, of which the target's may not be known yet.
    pub(super) fn is_named(&self, ox_id: OxId, rx_id: RxId) -> bool {
        let fits = self.rx_id == RxId::UNASSIGNED || self.rx_id == rx_id;
        self.ox_id == ox_id && fits
    }

    pub(super) const fn next_seq_id(&mut self) -> u8 {
        self.next_seq_id = self.next_seq_id.wrapping_add(1);
        self.next_seq_id
    }
}

/// Which commands there are.
#[derive(Debug)]
pub(super) struct InitiatorExchanges<L> {
    pub(super) ids: Ids,
    slots: Slab<InitiatorExchange<L>>,
    number: u32,
}

/// What an OX_ID names that is not a command's; above all slots.
pub(super) const OTHER: u16 = 0xf000;

impl<L> InitiatorExchanges<L> {
    /// None, with the numbers that others have left.
    pub(super) fn after<M>(others: InitiatorExchanges<M>) -> Self {
        Self {
            ids: others.ids,
            slots: Slab::new(),
            number: others.number,
        }
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }
}

impl<L: Lease> InitiatorExchanges<L> {
    pub(super) fn new() -> Self {
        Self {
            ids: Ids::new(FCP_OX_IDS),
            slots: Slab::new(),
            number: 0,
        }
    }

    /// The next number follows this one.
    pub(super) const fn number_from(&mut self, random: u32) {
        self.number = random;
    }

    /// The number of the next command, or of a task management function among them.
    pub(super) fn next_number(&mut self) -> u32 {
        self.number = self.number.checked_add(1).unwrap_or(1);
        self.number
    }

    /// Takes a command in; the caller has checked that there is room. Gives it back if there is no
    /// OX_ID.
    pub(super) fn insert(
        &mut self,
        remote: RemoteId,
        command: ClientCommand<L>,
        len: u32,
        deadline: Now,
    ) -> Result<InitiatorSlot, ClientCommand<L>> {
        let Some(ox_id) = self.ids.assign(self.slots.vacant_key() as u16) else {
            return Err(command);
        };
        let number = self.next_number();
        let slot = self.slots.insert(InitiatorExchange {
            id: command.id,
            remote,
            ox_id: OxId(ox_id),
            rx_id: RxId::UNASSIGNED,
            number,
            lun: command.lun,
            cdb: command.cdb,
            attribute: command.attribute,
            data: command.data,
            len,
            deadline,
            stage: CommandStage::Ready,
            touched: Now::ZERO,
            is_asking: false,
            recoveries: 0,
            inquiries: 0,
            cover: ReceivedBytes::default(),
            ending: None,
            sent: 0,
            asked: None,
            next_seq_id: 0,
        });
        Ok(InitiatorSlot(slot as u16))
    }

    pub(super) fn at(&mut self, slot: InitiatorSlot) -> Option<&mut InitiatorExchange<L>> {
        self.slots.get_mut(usize::from(slot.0))
    }

    /// The command with this OX_ID.
    pub(super) fn find(&self, remote: RemoteId, ox_id: OxId) -> Option<InitiatorSlot> {
        let slot = InitiatorSlot(self.ids.find(ox_id.0)?);
        let task = self.slots.get(usize::from(slot.0))?;
        (task.remote == remote).then_some(slot)
    }

    /// The command that a frame belongs to. The first frame tells the target's name for it; those
    /// that say another one afterwards are of another exchange, long gone.
    pub(super) fn open(
        &mut self,
        remote: RemoteId,
        header: &FrameHeader,
    ) -> Option<(InitiatorSlot, &mut InitiatorExchange<L>)> {
        let slot = self.find(remote, header.ox_id)?;
        let task = self.at(slot)?;
        if task.stage != CommandStage::Open {
            return None;
        }
        if task.rx_id == RxId::UNASSIGNED {
            task.rx_id = header.rx_id;
        }
        (task.rx_id == header.rx_id).then_some((slot, task))
    }

    /// Takes a command out. Its OX_ID is left to the caller.
    pub(super) fn remove(&mut self, slot: InitiatorSlot) -> Option<InitiatorExchange<L>> {
        self.slots.try_remove(usize::from(slot.0))
    }

    /// All places of commands, of which some may be empty.
    pub(super) fn places(&self) -> impl Iterator<Item = InitiatorSlot> + use<L> {
        (0..self.slots.capacity()).map(|at| InitiatorSlot(at as u16))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (InitiatorSlot, &InitiatorExchange<L>)> {
        let slots = self.slots.iter();
        slots.map(|(at, task)| (InitiatorSlot(at as u16), task))
    }
}
