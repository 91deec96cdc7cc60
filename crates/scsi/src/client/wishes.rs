//! What is wanted of a unit, on every nexus (SPC-5 §5.13, §6.11, §6.17; SBC-4 §6.5.6).
//!
//! It is asked for when a nexus begins and after every reset, as either may have undone it, but not
//! when another initiator changes it: two who want different things would change it for ever. Who
//! took our registration back meant to keep us out (PREEMPT): it is not made again.

use super::cdb::CdbWithData;
use super::{Client, ClientOutput, CommandStatus, DEPARTURE, Data, TRIES, UnitRequest};
use crate::medium::Lease;
use crate::wire::cdb::{Field, byte, opcode};

/// What is wanted of a unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnitWishes {
    /// To be registered by this key, which is not 0, so that a reservation for registrants lets
    /// every nexus in.
    pub key: Option<u64>,
    /// That it caches writes, or that it does not (WCE).
    pub write_cache: Option<bool>,
}

impl<L: Lease> Client<L> {
    /// The same client of a unit of which more is wanted.
    #[must_use]
    pub fn wishing(mut self, wishes: UnitWishes) -> Self {
        self.wishes = wishes;
        self
    }

    /// Takes our registration back, as nothing more is wanted of the unit: else each nexus that
    /// there ever was would leave one. Returns whether there is any; then
    /// [`ClientOutput::Departed`] tells when that is over.
    pub fn depart(&mut self) -> bool {
        let Some(persists) = self.registered else {
            return false;
        };
        let (cdb, data) = register(0, persists);
        let id = DEPARTURE;
        self.outputs
            .push_back(ClientOutput::Execute(UnitRequest { id, cdb, data }));
        true
    }

    /// A registration was taken back, or what was announced came first.
    pub(super) fn departed(&mut self, answer: &CommandStatus<'_>) {
        self.departures += 1;
        if answer.attention().is_none() || self.departures >= TRIES || !self.depart() {
            self.registered = None;
            self.outputs.push_back(ClientOutput::Departed);
        }
    }

    /// What is wanted on a new nexus, or after a reset.
    pub(super) fn wishes(&self) -> UnitWishes {
        if self.book.is_fenced() {
            UnitWishes {
                key: None,
                ..self.wishes
            }
        } else {
            self.wishes
        }
    }
}

/// PERSISTENT RESERVE OUT, REGISTER AND IGNORE EXISTING KEY, on this nexus; 0 takes its
/// registration back. To be done twice is the same as once, so it may be repeated when its outcome
/// is not known.
pub(super) fn register<L: Lease>(key: u64, persists: bool) -> CdbWithData<L> {
    let mut list = vec![0; 24];
    Field::new(8, 8).write(&mut list, key);
    list[20] = u8::from(persists);
    let mut cdb = [0; 16];
    cdb[..2].copy_from_slice(&[opcode::PERSISTENT_RESERVE_OUT, REGISTER_AND_IGNORE]);
    Field::new(5, 4).write(&mut cdb, list.len() as u64);
    (cdb, Data::Out(L::from_bytes(list)))
}

/// PERSISTENT RESERVE IN, REPORT CAPABILITIES: whether registrations persist through power loss
/// (PTPL_A). Each registration decides that for all, so it is asked how they have it.
pub(super) fn capabilities() -> [u8; 16] {
    let mut cdb = [0; 16];
    cdb[..2].copy_from_slice(&[opcode::PERSISTENT_RESERVE_IN, REPORT_CAPABILITIES]);
    Field::new(7, 2).write(&mut cdb, CAPABILITIES_BYTES as u64);
    cdb
}

/// MODE SELECT(6) of a caching page as it was told, with WCE as wanted.
pub(super) fn select<L: Lease>(page: &[u8], caches: bool, save: bool) -> CdbWithData<L> {
    let mut list = vec![0; 4];
    list.extend_from_slice(page.get(..2 + usize::from(byte(page, 1))).unwrap_or(page));
    if let [_, _, _, _, code, _, flags, ..] = &mut list[..] {
        *code &= !PS;
        *flags = *flags & !WCE | if caches { WCE } else { 0 };
    }
    let save = if save { SP } else { 0 };
    let mut cdb = [0; 16];
    cdb[..2].copy_from_slice(&[opcode::MODE_SELECT_6, PF | save]);
    cdb[4] = list.len() as u8;
    (cdb, Data::Out(L::from_bytes(list)))
}

pub(super) const CAPABILITIES_BYTES: usize = 8;

/// Of the caching page: it can be saved; the unit caches writes.
pub(super) const PS: u8 = 0x80;
pub(super) const WCE: u8 = 0x04;

const PF: u8 = 0x10;
const SP: u8 = 0x01;
const REPORT_CAPABILITIES: u8 = 0x02;
const REGISTER_AND_IGNORE: u8 = 0x06;
