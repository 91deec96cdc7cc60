//! Which command may be carried out before an older one of its task set has ended (SAM-5 §8).
//!
//! Task attributes come first; among SIMPLE commands the classes of the opcode table decide.
//! Reads and writes are never compared with each other: an initiator that cares waits for the
//! status of the first, or uses ORDERED.

use crate::commands::Ordering;
use crate::task::Attribute;

/// What two commands are compared by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderKey {
    /// Task attribute.
    pub attribute: Attribute,
    /// Class of the command.
    pub class: Ordering,
}

/// Rows: the newer command. Columns: the older one, in the order Free, Read, Write, Flush,
/// Exclusive. `true`: the newer one waits.
///
/// Nothing waits for an `Exclusive` command, as it is to be told NOT READY by it.
static WAITS: [[bool; 5]; 5] = [
    [false, false, false, false, false],
    [false, false, false, false, false],
    [false, false, false, false, false],
    [false, false, true, false, false],
    [false, true, true, true, false],
];

const fn index(class: Ordering) -> usize {
    match class {
        Ordering::Free => 0,
        Ordering::Read => 1,
        Ordering::Write => 2,
        Ordering::Flush => 3,
        Ordering::Exclusive => 4,
    }
}

impl OrderKey {
    /// Whether it, having come later, waits until `older` has ended.
    #[must_use]
    pub fn waits_for(self, older: Self) -> bool {
        match (self.attribute, older.attribute) {
            (Attribute::HeadOfQueue, _) => false,
            (Attribute::Ordered, _) | (_, Attribute::HeadOfQueue | Attribute::Ordered) => true,
            (Attribute::Simple | Attribute::Aca, Attribute::Simple | Attribute::Aca) => {
                WAITS[index(self.class)][index(older.class)]
            }
        }
    }

    /// Whether commands that do not look at each other's class must look at this one: ORDERED and
    /// HEAD OF QUEUE.
    #[must_use]
    pub fn is_barrier(self) -> bool {
        matches!(self.attribute, Attribute::Ordered | Attribute::HeadOfQueue)
    }

    /// Whether it may have to wait for a SIMPLE command.
    #[must_use]
    pub fn looks_back(self) -> bool {
        self.attribute == Attribute::Ordered
            || (self.attribute != Attribute::HeadOfQueue
                && WAITS[index(self.class)].contains(&true))
    }
}

/// What stands before a command in its task set, all at once.
#[derive(Clone, Copy, Debug, Default)]
pub struct EarlierTasks {
    any: bool,
    barrier: bool,
    classes: [bool; 5],
}

impl EarlierTasks {
    /// Another one stands before.
    pub fn add(&mut self, older: OrderKey) {
        self.any = true;
        self.barrier |= older.is_barrier();
        self.classes[index(older.class)] = true;
    }

    /// Whether `newer` waits for any of them.
    #[must_use]
    pub fn holds_back(&self, newer: OrderKey) -> bool {
        match newer.attribute {
            Attribute::HeadOfQueue => false,
            Attribute::Ordered => self.any,
            Attribute::Simple | Attribute::Aca => {
                let waits = WAITS[index(newer.class)].iter();
                self.barrier
                    || waits
                        .zip(self.classes)
                        .any(|(waits, there)| *waits && there)
            }
        }
    }
}

#[cfg(test)]
mod tests;
