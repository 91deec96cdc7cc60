//! A queue pair that completes what was posted late, or has little room, or keeps memory of reads
//! that were given up; and what the initiator has advertised by it.

use std::collections::{BTreeMap, VecDeque};

use iscsi::test_support;
use iscsi::wire::bhs::{Bhs, Opcode};
use iscsi::wire::iser::IserHeader;
use rdma::verbs::{Access, Completion, Limits, QueuePair, ReadId, Stag, Tag, Work};
use scsi::medium::{HeapLease, Lease as _};

use super::IS_READ;
use crate::fuzzing::script::Script;

/// A queue pair, and what the initiator has advertised by it.
pub(super) struct Pair {
    ord: u16,
    room: usize,
    can_invalidate: bool,
    /// Memory of a read that is given up comes back at once.
    gives_back: bool,
    /// Sends and writes that have not left.
    pub(super) posted: VecDeque<Work<HeapLease>>,
    reads: Vec<Reading>,
    pub(super) told: VecDeque<Completion<HeapLease>>,
    /// By STag.
    advertised: BTreeMap<u32, Advertised>,
    /// How many commands had no response yet, by ITT. The script may have several under one.
    pub(super) commands: BTreeMap<u32, usize>,
    next_stag: u32,
    /// Messages that were posted, as they would travel.
    pub(super) messages: Vec<Vec<u8>>,
}

/// A read that is outstanding.
struct Reading {
    id: ReadId,
    stag: u32,
    into: Option<HeapLease>,
    is_given_up: bool,
}

/// A buffer of the initiator.
struct Advertised {
    itt: u32,
    may: Access,
    base: u64,
    len: u64,
}

impl Pair {
    pub(super) fn new(script: &mut Script<'_>) -> Self {
        let flags = script.byte();
        Self {
            ord: script.pick(&[4, 1, 2, 8, 3, 16, 32, 0]),
            room: script.pick(&[16, 1, 2, 256]),
            can_invalidate: flags & 1 == 0,
            gives_back: flags & 2 == 0,
            posted: VecDeque::new(),
            reads: Vec::new(),
            told: VecDeque::new(),
            advertised: BTreeMap::new(),
            commands: BTreeMap::new(),
            next_stag: 1,
            messages: Vec::new(),
        }
    }

    pub(super) fn offer(&mut self, itt: u32, may: Access, base: u64, len: u64) -> Tag {
        let stag = self.next_stag;
        self.next_stag += 1;
        let buffer = Advertised {
            itt,
            may,
            base,
            len,
        };
        self.advertised.insert(stag, buffer);
        Tag {
            stag: Stag(stag),
            offset: base,
        }
    }

    /// Nothing is touched but what a command that is not answered has advertised for that.
    fn check(&self, tag: Tag, len: usize, may: Access) {
        let buffer = self.advertised.get(&tag.stag.0);
        let buffer = buffer.expect("an STag that is valid");
        let at = tag.offset.wrapping_sub(buffer.base);
        assert_eq!(buffer.may, may);
        assert!(
            at <= buffer.len && len as u64 <= buffer.len - at,
            "{at}+{len} of {}",
            buffer.len
        );
    }

    /// A response is the last that is heard of its command.
    fn answered(&mut self, itt: u32, invalidate: Option<Stag>) {
        let advertised = &self.advertised;
        let of_command = |stag: u32| advertised.get(&stag).is_some_and(|one| one.itt == itt);
        // The tag may be that of an aborted command, too, whose reads are not over.
        let is_read = |stag: Stag| self.reads.iter().any(|read| read.stag == stag.0);
        assert!(
            !invalidate.is_some_and(is_read),
            "an answer before the data has come"
        );
        assert!(invalidate.is_none_or(|stag| self.can_invalidate && of_command(stag.0)));
        let commands = self.commands.entry(itt).or_default();
        *commands = commands.saturating_sub(1);
        // With several under one ITT, nothing but an STag tells which of them was answered.
        match (*commands, invalidate) {
            (0, _) => self.advertised.retain(|_, one| one.itt != itt),
            (_, Some(stag)) => drop(self.advertised.remove(&stag.0)),
            (_, None) => {}
        }
    }

    /// One thing that was posted is over.
    pub(super) fn complete(&mut self, at: usize, fills: bool) {
        if at.is_multiple_of(2) || self.reads.is_empty() {
            let done = self.posted.pop_front().map(|work| match work {
                Work::Write { .. } => Completion::Written,
                _ => Completion::Sent,
            });
            return self.told.extend(done);
        }
        let read = self.reads.remove(at / 2 % self.reads.len());
        self.told.push_back(match read.into {
            Some(mut into) => {
                if fills && !into.is_empty() {
                    into.copy_in(0, &[0xda]);
                }
                Completion::Got { id: read.id, into }
            }
            None => Completion::Drained(read.id),
        });
    }

    pub(super) fn is_idle(&self) -> bool {
        self.posted.is_empty() && self.reads.is_empty() && self.told.is_empty()
    }
}

impl QueuePair<HeapLease> for Pair {
    fn limits(&self) -> Limits {
        Limits {
            ord: self.ord,
            ird: 0,
            room: self.room.saturating_sub(self.posted.len()),
            can_invalidate: self.can_invalidate,
            max_receive: 1 << 16,
        }
    }

    fn advertise(&mut self, _: &HeapLease, _: Access) -> Tag {
        panic!("a target advertises nothing");
    }

    fn withdraw(&mut self, _: Stag) -> Option<u32> {
        panic!("a target has nothing to withdraw");
    }

    fn post(&mut self, work: Work<HeapLease>) {
        assert!(self.limits().room > 0, "no room");
        match &work {
            Work::Read { id, from, into } => {
                self.check(*from, into.len(), Access::Read);
                assert!(!into.is_empty() && self.reads.iter().all(|read| read.id != *id));
                self.reads.push(Reading {
                    id: *id,
                    stag: from.stag.0,
                    into: Some(into.clone()),
                    is_given_up: false,
                });
                assert!(self.reads.len() <= usize::from(self.ord));
                return;
            }
            Work::Write { to, from } => self.check(*to, from.len(), Access::Write),
            Work::Send {
                header,
                data,
                invalidate,
            } => {
                let data = data.as_ref().map(test_support::bytes_of);
                let message = [header.as_slice(), &data.unwrap_or_default()].concat();
                if let (IserHeader::Control(_), rest) = IserHeader::split(&message).expect(IS_READ)
                {
                    let bhs = Bhs(*rest.first_chunk().expect(IS_READ));
                    match bhs.opcode() {
                        Opcode::ScsiResponse => self.answered(bhs.itt().0, *invalidate),
                        Opcode::TaskResponse | Opcode::LogoutResponse => {
                            assert_eq!(*invalidate, None);
                            let is_over = self.reads.iter().all(|read| !read.is_given_up);
                            assert!(is_over, "memory may be withdrawn that is read");
                        }
                        _ => assert_eq!(*invalidate, None),
                    }
                }
                self.messages.push(message);
            }
        }
        self.posted.push_back(work);
    }

    fn cancel(&mut self, read: ReadId) -> Option<HeapLease> {
        let known = self.reads.iter_mut().find(|one| one.id == read)?;
        assert!(
            !std::mem::replace(&mut known.is_given_up, true),
            "given up twice"
        );
        if self.gives_back {
            known.into.take()
        } else {
            None
        }
    }

    fn poll(&mut self) -> Option<Completion<HeapLease>> {
        self.told.pop_front()
    }

    fn recycle(&mut self, _: Vec<u8>) {}
}
