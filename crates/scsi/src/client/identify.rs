//! Asking a unit what it is.

use std::collections::VecDeque;
use std::time::Duration;

use super::answer::{AnswerAction, CommandStatus};
use super::cdb::{CAPACITY_BYTES, CdbWithData, OPCODE_BYTES, about_write_same, capacity};
use super::facts::{Facts, ParameterData, widened};
use super::wishes::{self, CAPABILITIES_BYTES, PS, UnitWishes, WCE};
use super::{Data, TRIES, pause};
use crate::medium::Lease;
use crate::wire::cdb::{Field, be16, bit, byte, opcode};

/// Why a unit cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnitRefusal {
    /// There is none under this number.
    #[error("no such LUN: `lunar ls` lists the LUNs of the target")]
    NoUnit,
    /// It is something else than a disk; the peripheral device type.
    #[error("it is not a disk but a device of type {0:#04x}")]
    NoDisk(u8),
    /// It stays not ready, busy, or answers nothing that makes sense.
    #[error("it does not become ready: check the target")]
    NotReady,
    /// The logical block size is neither 512 nor 4096.
    #[error("its blocks have {0} bytes; 512 and 4096 are supported")]
    BlockSize(u32),
    /// The capacity cannot be.
    #[error("it does not report its capacity")]
    NoCapacity,
    /// Its bytes do not fit in 64 bits.
    #[error("it reports {0} blocks, more than a unit can have")]
    TooLarge(u64),
    /// Another unit stands where it was.
    #[error("a different unit answers at this address now")]
    Another,
    /// The logical block size has changed.
    #[error("its blocks have {now} bytes, and had {before}")]
    OtherBlocks {
        /// What it was.
        before: u32,
        /// What it is.
        now: u32,
    },
    /// A reservation keeps us out.
    #[error(
        "it is reserved by another initiator: register with a key of its registrants, as in \
         ?key=1f00d, or have it release the reservation"
    )]
    Reserved,
    /// It takes no registration.
    #[error(
        "it refuses to register a key: omit \"key\", or check that the target supports persistent \
         reservations and has room for another registration"
    )]
    Unregistered,
    /// WCE cannot be changed.
    #[error(
        "the target refuses to switch its write cache {}: omit \"write-cache\", or switch it at \
         the target",
        if *.0 { "on" } else { "off" }
    )]
    CacheStays(bool),
    /// The capacity has become less.
    #[error("it has {now} blocks, and had {before}")]
    Shrunk {
        /// What it was.
        before: u64,
        /// What it is.
        now: u64,
    },
}

impl UnitRefusal {
    /// Whether the unit may be there again later, as the same one.
    pub(super) fn may_pass(&self) -> bool {
        matches!(
            self,
            Self::NoUnit
                | Self::NotReady
                | Self::NoCapacity
                | Self::Reserved
                | Self::Unregistered
                | Self::CacheStays(_)
        )
    }
}

/// The questions, one after the other.
#[derive(Debug)]
pub(super) struct Identify<L> {
    question: Question,
    /// Pages that the unit has and that are still to be asked for.
    pages: VecDeque<u8>,
    told: ParameterData,
    into: Option<L>,
    tries: u8,
    /// Something has changed since the first question.
    doubtful: bool,
    wishes: UnitWishes,
    /// Registrations persist through power loss.
    persists: bool,
    /// We are registered, and whether that persists.
    registered: Option<bool>,
    /// WCE was changed.
    selected: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Question {
    Ready,
    Inquiry,
    Pages,
    Page(u8),
    Capabilities,
    Register,
    Capacity16,
    Capacity10,
    Caching,
    Select { save: bool },
    WriteSame,
}

/// What comes after an answer.
pub(super) enum IdentifyStep<L> {
    Ask(CdbWithData<L>),
    /// Ask the first question again after a while.
    Later(Duration),
    Is(Box<Facts>),
    Refused(UnitRefusal),
}

impl<L: Lease> Identify<L> {
    /// Asks what a unit is, and for what is wanted of it, where we may be registered already.
    pub(super) fn new(wishes: UnitWishes, registered: Option<bool>) -> Self {
        Self {
            question: Question::Ready,
            pages: VecDeque::new(),
            told: ParameterData::default(),
            into: None,
            tries: 0,
            doubtful: false,
            wishes,
            persists: false,
            registered,
            selected: false,
        }
    }

    /// The first question: what is waiting to be told, is told in answer to it.
    pub(super) fn first(&mut self) -> CdbWithData<L> {
        self.told = ParameterData::default();
        (self.doubtful, self.selected) = (false, false);
        self.question(Question::Ready)
    }

    /// What was answered may be so no more; after a reset this is wanted.
    pub(super) fn doubt(&mut self, wishes: Option<UnitWishes>) {
        self.doubtful = true;
        self.wishes = wishes.unwrap_or(self.wishes);
    }

    /// The unit was reset, and this is wanted of it.
    pub(super) fn want(&mut self, wishes: UnitWishes) {
        self.wishes = wishes;
    }

    /// A question took too long, which counts as this many tries more.
    pub(super) fn late(&mut self, tries: u8) {
        self.tries += tries;
    }

    /// Our registration was taken back.
    pub(super) fn fence(&mut self) {
        (self.wishes.key, self.registered) = (None, None);
    }

    /// Whether we are registered on this nexus, and that persists.
    pub(super) fn registered(&self) -> Option<bool> {
        self.registered
    }

    pub(super) fn answered(&mut self, answer: &CommandStatus<'_>) -> IdentifyStep<L> {
        match answer.verdict() {
            AnswerAction::Good => self.good(answer.moved),
            AnswerAction::Again => {
                let question = self.question;
                self.once_more(|this| this.next(question))
            }
            AnswerAction::Attention(_) => self.start_over(),
            AnswerAction::Later(_) => {
                let pause = pause(self.tries);
                self.once_more(|_| IdentifyStep::Later(pause))
            }
            AnswerAction::Refused => self.refused(),
            AnswerAction::Conflict => IdentifyStep::Refused(UnitRefusal::Reserved),
            // A unit without a medium, or one that is not there, still answers INQUIRY.
            AnswerAction::Failed(_) | AnswerAction::Protected | AnswerAction::Unable => {
                match self.question {
                    Question::Ready => self.next(Question::Inquiry),
                    Question::Inquiry => IdentifyStep::Refused(UnitRefusal::NoUnit),
                    _ => IdentifyStep::Refused(UnitRefusal::NotReady),
                }
            }
        }
    }

    fn once_more(&mut self, act: impl FnOnce(&mut Self) -> IdentifyStep<L>) -> IdentifyStep<L> {
        self.tries += 1;
        if self.tries >= TRIES {
            return IdentifyStep::Refused(UnitRefusal::NotReady);
        }
        act(self)
    }

    fn start_over(&mut self) -> IdentifyStep<L> {
        self.once_more(|this| IdentifyStep::Ask(this.first()))
    }

    fn good(&mut self, received: usize) -> IdentifyStep<L> {
        let bytes = self.bytes(received);
        match self.question {
            Question::Ready => self.next(Question::Inquiry),
            Question::Inquiry => self.inquired(bytes),
            Question::Pages => {
                let listed = bytes.get(4..4 + usize::from(be16(&bytes, 2)));
                let listed = listed.unwrap_or_default();
                self.pages = PAGES
                    .into_iter()
                    .filter(|page| listed.contains(page))
                    .collect();
                self.next_page()
            }
            Question::Page(page) => {
                self.keep(page, bytes);
                self.next_page()
            }
            Question::Capacity16 => {
                self.told.capacity = bytes;
                self.next(Question::Caching)
            }
            Question::Capacity10 => {
                self.told.capacity = widened(&bytes);
                self.next(Question::Caching)
            }
            Question::Caching => {
                self.told.mode = bytes;
                self.check_cache()
            }
            Question::Capabilities => {
                self.persists = bit(&bytes, 3, PTPL_A);
                self.next(Question::Register)
            }
            Question::Register => {
                self.registered = Some(self.persists);
                self.next(Question::Capacity16)
            }
            Question::Select { .. } => {
                self.selected = true;
                self.next(Question::Caching)
            }
            Question::WriteSame => {
                self.told.write_same = bytes;
                self.finish()
            }
        }
    }

    fn inquired(&mut self, bytes: Vec<u8>) -> IdentifyStep<L> {
        let (qualifier, kind) = (byte(&bytes, 0) >> 5, byte(&bytes, 0) & 0x1f);
        match (qualifier, kind) {
            _ if bytes.is_empty() => IdentifyStep::Refused(UnitRefusal::NotReady),
            (0, DISK) => {
                self.told.inquiry = bytes;
                self.next(Question::Pages)
            }
            (0, other) => IdentifyStep::Refused(UnitRefusal::NoDisk(other)),
            _ => IdentifyStep::Refused(UnitRefusal::NoUnit),
        }
    }

    fn keep(&mut self, page: u8, bytes: Vec<u8>) {
        // Some units answer another page than they were asked for.
        if byte(&bytes, 1) != page {
            return;
        }
        let told = &mut self.told;
        match page {
            0x80 => told.serial = bytes,
            0x83 => told.designators = bytes,
            0xb0 => told.limits = bytes,
            0xb1 => told.characteristics = bytes,
            _ => told.provisioning = bytes,
        }
    }

    /// A question that the unit does not know is left out where it can be.
    fn refused(&mut self) -> IdentifyStep<L> {
        match self.question {
            Question::Ready => self.next(Question::Inquiry),
            Question::Pages | Question::Page(_) => self.next_page(),
            Question::Capacity16 => self.next(Question::Capacity10),
            Question::Caching => self.check_cache(),
            Question::Capabilities => self.next(Question::Register),
            Question::Register => IdentifyStep::Refused(UnitRefusal::Unregistered),
            Question::Select { save: true } => self.next(Question::Select { save: false }),
            Question::Select { save: false } => self.cache_stays(),
            Question::WriteSame => self.finish(),
            Question::Inquiry => IdentifyStep::Refused(UnitRefusal::NoUnit),
            Question::Capacity10 => IdentifyStep::Refused(UnitRefusal::NoCapacity),
        }
    }

    /// Goes on once the cache is as wanted.
    fn check_cache(&mut self) -> IdentifyStep<L> {
        let page = self.told.caching_page();
        match self.wishes.write_cache {
            Some(wanted) if page.is_empty() || bit(page, 2, WCE) != wanted => {
                if page.is_empty() || self.selected {
                    return self.cache_stays();
                }
                let save = bit(page, 0, PS);
                self.next(Question::Select { save })
            }
            _ => self.ask_about_write_same(),
        }
    }

    fn cache_stays(&self) -> IdentifyStep<L> {
        IdentifyStep::Refused(UnitRefusal::CacheStays(
            self.wishes.write_cache == Some(true),
        ))
    }

    /// Only of those is it asked that have something to tell: some units take a command that they
    /// do not know badly.
    fn ask_about_write_same(&mut self) -> IdentifyStep<L> {
        if self.told.write_same_unmaps() {
            self.next(Question::WriteSame)
        } else {
            self.finish()
        }
    }

    fn finish(&mut self) -> IdentifyStep<L> {
        if self.doubtful {
            return self.start_over();
        }
        match self.told.facts() {
            Ok(facts) => IdentifyStep::Is(Box::new(facts)),
            Err(refusal) => IdentifyStep::Refused(refusal),
        }
    }

    fn next_page(&mut self) -> IdentifyStep<L> {
        let page = self.pages.pop_front();
        // Some of what follows is kept from those who are not registered.
        let then = match self.wishes.key {
            Some(_) => Question::Capabilities,
            None => Question::Capacity16,
        };
        self.next(page.map_or(then, Question::Page))
    }

    fn next(&mut self, question: Question) -> IdentifyStep<L> {
        IdentifyStep::Ask(self.question(question))
    }

    fn question(&mut self, question: Question) -> CdbWithData<L> {
        self.question = question;
        let UnitWishes { key, write_cache } = self.wishes;
        let (cdb, len) = match question {
            Question::Ready => ([0; 16], 0),
            Question::Inquiry => (inquiry(0, None), PAGE_BYTES),
            Question::Pages => (inquiry(EVPD, Some(0)), PAGE_BYTES),
            Question::Page(page) => (inquiry(EVPD, Some(page)), PAGE_BYTES),
            Question::Capabilities => (wishes::capabilities(), CAPABILITIES_BYTES),
            Question::Register => return wishes::register(key.unwrap_or(0), self.persists),
            Question::Select { save } => {
                let page = self.told.caching_page();
                return wishes::select(page, write_cache == Some(true), save);
            }
            Question::Capacity16 => (capacity(), CAPACITY_BYTES),
            Question::Capacity10 => (short(opcode::READ_CAPACITY_10, [0; 4]), 8),
            Question::Caching => (short(opcode::MODE_SENSE_6, [0, 0x08, 0, 0xff]), PAGE_BYTES),
            Question::WriteSame => (about_write_same(), OPCODE_BYTES),
        };
        self.into = (len > 0).then(|| L::from_bytes(vec![0; len]));
        let data = self.into.clone().map_or(Data::None, Data::In);
        (cdb, data)
    }

    fn bytes(&mut self, received: usize) -> Vec<u8> {
        let Some(into) = self.into.take() else {
            return Vec::new();
        };
        let mut bytes = vec![0; received.min(into.len())];
        into.copy_out(0, &mut bytes);
        bytes
    }
}

fn inquiry(flags: u8, page: Option<u8>) -> [u8; 16] {
    let mut cdb = short(opcode::INQUIRY, [flags, page.unwrap_or(0), 0, 0]);
    Field::new(3, 2).write(&mut cdb, PAGE_BYTES as u64);
    cdb
}

fn short(opcode: u8, rest: [u8; 4]) -> [u8; 16] {
    let mut cdb = [0; 16];
    cdb[0] = opcode;
    cdb[1..5].copy_from_slice(&rest);
    cdb
}

/// VPD pages that say something that is used.
const PAGES: [u8; 5] = [0x80, 0x83, 0xb0, 0xb1, 0xb2];

/// What every answer fits in, and what MODE SENSE(6) can ask for.
const PAGE_BYTES: usize = 255;

const DISK: u8 = 0x00;
const PTPL_A: u8 = 0x01;
const EVPD: u8 = 0x01;
