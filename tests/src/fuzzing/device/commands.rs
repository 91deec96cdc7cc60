//! Commands as their initiators and the transport see them.

use std::collections::BTreeMap;

use scsi::medium::{HeapLease, Lease};
use scsi::nexus::NexusId;
use scsi::task::{Command, Completed, Tag};
use scsi::wire::sense::Status;

/// Commands that have not ended.
#[derive(Debug, Default)]
pub(in crate::fuzzing) struct Commands {
    open: BTreeMap<(NexusId, Tag), Open>,
    /// What was lent to be filled.
    lent: Vec<(NexusId, Tag, u32, HeapLease)>,
    next: u32,
    /// How many ended well, and otherwise.
    pub(in crate::fuzzing) good: usize,
}

#[derive(Debug)]
struct Open {
    expected_out: u32,
    data: Vec<u8>,
    sent: u64,
    asked: u64,
}

impl Commands {
    /// Gives a command its tag.
    pub(super) fn begin(&mut self, command: &mut Command, data: &[u8]) {
        // Tags are used again soon, as a transport's slots are.
        let free = |tag: &u32| !self.open.contains_key(&(command.nexus, Tag(*tag)));
        command.tag = Tag((0..).find(free).unwrap_or(u32::MAX));
        self.next += 1;
        let open = Open {
            expected_out: command.expected_out,
            data: data.to_vec(),
            sent: 0,
            asked: 0,
        };
        self.open.insert((command.nexus, command.tag), open);
    }

    pub(super) fn sent(&mut self, nexus: NexusId, tag: Tag, offset: u32, len: usize) {
        let open = self.open.get_mut(&(nexus, tag));
        let open = open.expect("data of a command that is open");
        assert_eq!(u64::from(offset), open.sent, "Data-In is consecutive");
        open.sent += len as u64;
    }

    pub(super) fn asked(&mut self, nexus: NexusId, tag: Tag, offset: u32, into: HeapLease) {
        let open = self.open.get_mut(&(nexus, tag));
        let open = open.expect("data is asked for a command that is open");
        let end = u64::from(offset) + into.len() as u64;
        assert!(
            !into.is_empty() && end <= u64::from(open.expected_out),
            "{offset} to {end}"
        );
        open.asked += into.len() as u64;
        assert!(
            open.asked <= u64::from(open.expected_out),
            "more than is expected"
        );
        self.lent.push((nexus, tag, offset, into));
    }

    pub(super) fn lent(&self) -> usize {
        self.lent.len()
    }

    /// Fills what was lent.
    pub(super) fn fill(&mut self, at: usize) -> (NexusId, Tag, u32, HeapLease) {
        let (nexus, tag, offset, mut into) = self.lent.swap_remove(at);
        let data = self.open.get(&(nexus, tag)).map(|open| &open.data[..]);
        let data = data.and_then(|data| data.get(offset as usize..));
        let data = data.unwrap_or_default();
        into.copy_in(0, &data[..data.len().min(into.len())]);
        (nexus, tag, offset, into)
    }

    pub(super) fn completed(&mut self, nexus: NexusId, tag: Tag, completed: &Completed) {
        let open = self.close(nexus, tag);
        if completed.status == Status::TaskAborted {
            self.let_go(nexus, tag);
        }
        assert!(!self.holds(nexus, tag), "the end before the data");
        let sense = completed.sense.as_slice();
        let check = completed.status == Status::CheckCondition;
        assert_eq!(check, !sense.is_empty(), "{completed:?}");
        assert!(
            open.sent <= completed.length_in,
            "{} of {completed:?}",
            open.sent
        );
        self.good += usize::from(completed.status == Status::Good);
    }

    pub(super) fn aborted(&mut self, nexus: NexusId, tag: Tag) {
        self.close(nexus, tag);
        self.let_go(nexus, tag);
    }

    /// Data of an aborted command is dropped, whenever it comes.
    fn let_go(&mut self, nexus: NexusId, tag: Tag) {
        self.lent
            .retain(|(other, another, ..)| (*other, *another) != (nexus, tag));
    }

    fn close(&mut self, nexus: NexusId, tag: Tag) -> Open {
        let open = self.open.remove(&(nexus, tag));
        open.expect("no command ends twice")
    }

    fn holds(&self, nexus: NexusId, tag: Tag) -> bool {
        self.lent
            .iter()
            .any(|(other, another, ..)| (*other, *another) == (nexus, tag))
    }

    /// The connection is gone: no data comes any more.
    pub(super) fn stop_sending(&mut self, nexus: NexusId) {
        self.lent.retain(|(owner, ..)| *owner != nexus);
    }

    /// The tag of an open command.
    pub(in crate::fuzzing) fn tag(&self, nexus: NexusId, at: usize) -> Tag {
        let mut tags = self.open.keys().filter(|(owner, _)| *owner == nexus);
        tags.nth(at).map_or(Tag(at as u32), |(_, tag)| *tag)
    }

    pub(super) fn has(&self, nexus: NexusId) -> bool {
        self.open.keys().any(|(owner, _)| *owner == nexus)
    }

    pub(in crate::fuzzing) fn len(&self) -> usize {
        self.open.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }
}
