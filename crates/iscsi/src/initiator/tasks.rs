//! The commands of a session that have not ended, by their tags.

use scsi::medium::{Lease, Now};
use scsi::task::Attribute;
use scsi::wire::lun::Lun;

use super::{ClientCommand, Data};
use crate::wire::bhs::Itt;
use crate::wire::serial::CmdSn;

/// A place in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InitiatorTaskSlot(pub(super) u16);

/// A command that has not ended.
#[derive(Debug)]
pub(super) struct InitiatorTask<L, T> {
    pub(super) id: u64,
    pub(super) itt: Itt,
    pub(super) lun: Lun,
    pub(super) cdb: [u8; 16],
    pub(super) attribute: Attribute,
    pub(super) data: Data<L>,
    /// Expected Data Transfer Length.
    pub(super) len: u32,
    pub(super) deadline: Now,
    /// `None`: it waits for its place in the window.
    pub(super) sent: Option<CmdSn>,
    /// Bytes that came, or that were put into a batch.
    pub(super) moved: u32,
    /// What its mover knows of it.
    pub(super) transfer: T,
}

/// Which commands there are.
#[derive(Debug)]
pub(super) struct InitiatorTasks<L, T> {
    slots: Vec<Option<InitiatorTask<L, T>>>,
    free: Vec<InitiatorTaskSlot>,
    tag: u16,
}

impl<L: Lease, T: Default> InitiatorTasks<L, T> {
    pub(super) const fn new() -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            tag: 0,
        }
    }

    /// With tags that follow one that was given out.
    pub(super) fn after(tag: u16) -> Self {
        Self { tag, ..Self::new() }
    }

    pub(super) const fn last_tag(&self) -> u16 {
        self.tag
    }

    /// How many there are.
    pub(super) const fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// A tag for something that is not a command. Each differs from those before in its upper half,
    /// so that an answer that comes twice is known.
    pub(super) const fn tag(&mut self, kind: u16) -> Itt {
        self.tag = self.tag.wrapping_add(1);
        Itt((self.tag as u32) << 16 | kind as u32)
    }

    /// Takes a command in; the caller has checked that there is room.
    pub(super) fn insert(
        &mut self,
        command: ClientCommand<L>,
        len: u32,
        deadline: Now,
    ) -> InitiatorTaskSlot {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            InitiatorTaskSlot((self.slots.len() - 1) as u16)
        });
        let itt = self.tag(slot.0);
        self.slots[usize::from(slot.0)] = Some(InitiatorTask {
            id: command.id,
            itt,
            lun: command.lun,
            cdb: command.cdb,
            attribute: command.attribute,
            data: command.data,
            len,
            deadline,
            sent: None,
            moved: 0,
            transfer: T::default(),
        });
        slot
    }

    pub(super) fn at(&mut self, slot: InitiatorTaskSlot) -> Option<&mut InitiatorTask<L, T>> {
        self.slots.get_mut(usize::from(slot.0))?.as_mut()
    }

    /// The command that was sent with this tag.
    pub(super) fn sent(
        &mut self,
        itt: Itt,
    ) -> Option<(InitiatorTaskSlot, &mut InitiatorTask<L, T>)> {
        let slot = InitiatorTaskSlot(itt.0 as u16);
        let task = self.slots.get_mut(usize::from(slot.0))?.as_mut()?;
        (task.itt == itt && task.sent.is_some()).then_some((slot, task))
    }

    pub(super) fn remove(&mut self, slot: InitiatorTaskSlot) -> Option<InitiatorTask<L, T>> {
        let task = self.slots.get_mut(usize::from(slot.0))?.take()?;
        self.free.push(slot);
        Some(task)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (InitiatorTaskSlot, &InitiatorTask<L, T>)> {
        let slots = self.slots.iter().enumerate();
        slots.filter_map(|(at, task)| Some((InitiatorTaskSlot(at as u16), task.as_ref()?)))
    }

    /// Gives back the memory that a busy session needed, when there are none.
    pub(super) fn trim(&mut self) {
        if self.len() == 0 {
            self.slots = Vec::new();
            self.free = Vec::new();
        }
    }
}

/// The lower halves of tags that are no command's; those are below [`super::config::MAX_TASKS`].
pub(super) mod kind {
    /// Ping.
    pub(in super::super) const PING: u16 = 0xfff1;
    /// Text.
    pub(in super::super) const TEXT: u16 = 0xfff2;
    /// Logout.
    pub(in super::super) const LOGOUT: u16 = 0xfff3;
    /// Task management.
    pub(in super::super) const FUNCTION: u16 = 0xfff4;
}

/// The tag of a login.
pub(super) const LOGIN_ITT: Itt = Itt(0xfff0);
