//! Each kind of PDU is damaged once on its way, in its header and in its data, while our own
//! initiator uses our own target with both digests. No operation fails, nothing wrong is stored or
//! read, and the session is back at once.
//!
//! Logins have no digests, and `remote_units` damages them; Text requests are of discovery alone.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use scsi::medium::Extent;
use sim::SimWire;

use super::remote_units::{PATIENCE, Use};
use crate::seeds::with_seeds;

/// Which way a PDU travels.
#[derive(Clone, Copy, Debug)]
enum To {
    Target,
    Initiator,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Part {
    Header,
    Data,
}

/// Opcodes (RFC 7143 §11.2.1.2) of what a session sends while it does I/O.
const BUSY: [(To, u8, Part); 8] = [
    (To::Target, 0x01, Part::Header),
    (To::Target, 0x01, Part::Data),
    (To::Target, 0x05, Part::Header),
    (To::Target, 0x05, Part::Data),
    (To::Initiator, 0x21, Part::Header),
    (To::Initiator, 0x25, Part::Header),
    (To::Initiator, 0x25, Part::Data),
    (To::Initiator, 0x31, Part::Header),
];

/// And while it has nothing to do.
const IDLE: [(To, u8, Part); 2] = [
    (To::Target, 0x00, Part::Header),
    (To::Initiator, 0x20, Part::Header),
];

/// And when it ends.
const LEAVING: [(To, u8, Part); 2] = [
    (To::Target, 0x06, Part::Header),
    (To::Initiator, 0x26, Part::Header),
];

/// Follows the PDUs of one direction and damages the first of a kind.
struct Spoiler {
    opcode: u8,
    part: Part,
    /// How far the PDU has come, and how long it is: its header tells.
    at: usize,
    len: usize,
    header: [u8; 8],
    done: Rc<Cell<bool>>,
}

impl Spoiler {
    const BHS: usize = 48;
    const DIGEST: usize = 4;

    fn pass(&mut self, bytes: &[u8]) -> Vec<u8> {
        bytes.iter().map(|byte| self.byte(*byte)).collect()
    }

    fn byte(&mut self, byte: u8) -> u8 {
        if let Some(place) = self.header.get_mut(self.at) {
            *place = byte;
        }
        let at = self.at;
        self.at += 1;
        if at + 1 == self.header.len() {
            self.len = self.whole();
        }
        if at >= self.header.len() && self.at == self.len {
            self.at = 0;
        }
        if self.hits(at) && !self.done.replace(true) {
            byte ^ 0x10
        } else {
            byte
        }
    }

    fn data_len(&self) -> usize {
        let [.., high, middle, low] = self.header;
        usize::from(high) << 16 | usize::from(middle) << 8 | usize::from(low)
    }

    fn whole(&self) -> usize {
        let data = self.data_len().next_multiple_of(4);
        let digests = match self.header[0] & 0x1f {
            // Login Request and Response.
            0x03 => 0,
            _ => Self::DIGEST + Self::DIGEST * usize::from(data > 0),
        };
        Self::BHS + data + digests
    }

    /// Whether the byte there is the one to be damaged: in the Initiator Task Tag, or the first
    /// one of the data.
    fn hits(&self, at: usize) -> bool {
        let place = match self.part {
            Part::Header => 17,
            Part::Data => Self::BHS + Self::DIGEST,
        };
        let is_there = at == place && (self.part == Part::Header || self.data_len() > 0);
        is_there && self.header[0] & 0x3f == self.opcode
    }
}

/// Damages the first such PDU of a connection. Returns whether that has been done.
fn spoil(wire: &SimWire, (to, opcode, part): (To, u8, Part)) -> Rc<Cell<bool>> {
    let done = Rc::new(Cell::new(false));
    let mut spoiler = Spoiler {
        opcode,
        part,
        at: 0,
        len: 0,
        header: [0; 8],
        done: Rc::clone(&done),
    };
    let between = move |bytes: &[u8]| spoiler.pass(bytes);
    match to {
        To::Target => wire.to_target_through(between),
        To::Initiator => wire.through(between),
    }
    done
}

/// A user whose first connection damages something.
fn begin(seed: u64, what: (To, u8, Part)) -> (Use, Rc<Cell<bool>>) {
    let mut story = Use::of(seed, 1, PATIENCE);
    story.ask_write(Extent::new(0, 1));
    for _ in 0..10_000 {
        if let Some(wire) = story.wires().first() {
            let done = spoil(wire, what);
            return (story, done);
        }
        story.pass();
    }
    panic!("the user does not connect");
}

#[test]
fn what_is_damaged_while_it_is_used_costs_nothing_but_a_session() {
    for what in BUSY {
        let hits = Cell::new(0);
        with_seeds("damaged PDUs", 20, |seed| {
            let (mut story, done) = begin(seed, what);
            for _ in 0..40 {
                story.run(50, 1000, |_, _| {});
                if done.get() {
                    break;
                }
            }
            let then = story.now();
            story.finish();
            let away = story.now() - then;
            assert!(away < Duration::from_secs(2), "{what:?}: {away:?}");
            hits.set(hits.get() + usize::from(done.get()));
        });
        // Some sessions have no R2T, others no immediate data.
        assert!(hits.get() > 0, "{what:?} was never there");
    }
}

#[test]
fn what_is_damaged_while_it_is_idle_is_noticed() {
    for what in IDLE {
        with_seeds("damaged pings", 5, |seed| {
            let (mut story, done) = begin(seed, what);
            for _ in 0..100_000 {
                if done.get() {
                    break;
                }
                story.pass();
            }
            assert!(done.get(), "{what:?} was never there");
            story.run(500, 1000, |_, _| {});
            story.finish();
        });
    }
}

#[test]
fn what_is_damaged_while_it_ends_does_not_keep_it() {
    for what in LEAVING {
        with_seeds("damaged logouts", 5, |seed| {
            let (mut story, done) = begin(seed, what);
            story.run(500, 1000, |_, _| {});
            story.finish();
            assert!(done.get(), "{what:?} was never there");
        });
    }
}
