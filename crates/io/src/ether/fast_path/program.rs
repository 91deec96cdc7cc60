//! The instructions that look at each frame.
//!
//! | register | what is in it |
//! |---|---|
//! | r6 | where the frame begins |
//! | r7 | the same, 4 bytes further if there is a tag: offsets of FCoE count from there |
//! | r8 | the VLAN as it stands in the frame, 0 without a tag; in the end the egress |
//! | r9 | bytes of the frame |
//! | r0 | what a map was asked for; r1 to r5 are lost then |

use super::NUMBER_AT;
use super::route::{
    ARRIVING, EGRESS, FCOE_MAX, HAVE_LEFT, INGRESS, LEAVING, LEN_MAX, TCI, WENT_UP,
};
use crate::ether::bpf::{
    ADD, ADD_VALUE, AND_VALUE, CALL, EXIT, LOAD_BYTE, LOAD_DOUBLE, LOAD_HALF, LOAD_VALUE,
    LOAD_WORD, LOOK_UP, MOVE, MOVE_VALUE, REDIRECT_MAP, SKIP, SKIP_IF_EQUAL, SKIP_IF_GREATER,
    SKIP_IF_GREATER_VALUE, SKIP_IF_OTHER, SKIP_IF_OTHER_REGISTER, SKIP_IF_SAME, STORE_DOUBLE,
    STORE_HALF, STORE_WORD, SUBTRACT, XDP_PASS, instruction,
};

/// Descriptors of the maps.
pub(super) struct Maps {
    pub(super) pairs: i32,
    pub(super) routes: i32,
    pub(super) devices: i32,
    pub(super) counters: i32,
}

/// All of them. What is not forwarded passes, and is unchanged but for a number of the frame.
pub(super) fn instructions(maps: &Maps) -> Vec<u64> {
    let mut program = Program::default();
    program.find_header();
    program.check_frame();
    program.find_route(maps);
    program.check_route();
    program.keep_order();
    program.rewrite();
    program.count(maps);
    program.redirect(maps);
    program.end()
}

/// Instructions, and which of them leave when a frame is to pass.
#[derive(Default)]
struct Program {
    instructions: Vec<u64>,
    leaving: Vec<(usize, u8, (u8, u8), i32)>,
}

impl Program {
    fn push(&mut self, code: u8, registers: (u8, u8), offset: i16, value: i32) {
        let one = instruction(code, registers, offset, value);
        self.instructions.push(one);
    }

    /// Has the frame pass, if the comparison is so.
    fn pass_if(&mut self, code: u8, registers: (u8, u8), value: i32) {
        let at = self.instructions.len();
        self.leaving.push((at, code, registers, value));
        self.instructions.push(0);
    }

    /// The frame, its VLAN, and where FCoE begins.
    fn find_header(&mut self) {
        self.push(LOAD_WORD, (2, 1), 0, 0);
        self.push(LOAD_WORD, (3, 1), 4, 0);
        // The interface, for the key.
        self.push(LOAD_WORD, (4, 1), 12, 0);
        self.push(STORE_WORD, (10, 4), KEY, 0);
        self.push(MOVE, (9, 3), 0, 0);
        self.push(SUBTRACT, (9, 2), 0, 0);
        self.push(MOVE, (6, 2), 0, 0);
        self.push(MOVE, (7, 2), 0, 0);
        self.push(MOVE_VALUE, (8, 0), 0, 0);
        // The shortest frame has 60 bytes, and 4 of a tag.
        self.push(MOVE, (4, 2), 0, 0);
        self.push(ADD_VALUE, (4, 0), 0, 64);
        self.push(SKIP_IF_GREATER, (4, 3), 8, 0);
        self.push(LOAD_HALF, (5, 2), 12, 0);
        self.push(SKIP_IF_OTHER, (5, 0), 6, half(0x8100));
        self.push(LOAD_HALF, (8, 2), 14, 0);
        self.push(AND_VALUE, (8, 0), 0, half(0x0fff));
        self.pass_if(SKIP_IF_EQUAL, (8, 0), 0);
        self.push(LOAD_HALF, (5, 2), 16, 0);
        self.push(ADD_VALUE, (7, 0), 0, 4);
        self.push(SKIP, (0, 0), 4, 0);
        // Without a tag, and perhaps of the least length.
        self.push(MOVE, (4, 2), 0, 0);
        self.push(ADD_VALUE, (4, 0), 0, 60);
        self.pass_if(SKIP_IF_GREATER, (4, 3), 0);
        self.push(LOAD_HALF, (5, 2), 12, 0);
        self.pass_if(SKIP_IF_OTHER, (5, 0), half(0x8906));
    }

    /// Version, SOF, length, EOF: as a switch in user space would drop it otherwise.
    fn check_frame(&mut self) {
        self.push(LOAD_BYTE, (4, 7), FCOE, 0);
        self.push(AND_VALUE, (4, 0), 0, 0xf0);
        self.pass_if(SKIP_IF_OTHER, (4, 0), 0);
        self.push(LOAD_BYTE, (4, 7), FCOE + 13, 0);
        self.push(SKIP_IF_EQUAL, (4, 0), 1, SOF_I3);
        self.pass_if(SKIP_IF_OTHER, (4, 0), SOF_N3);
        // Header and tag, FCoE and its frame together are words.
        self.push(MOVE, (4, 9), 0, 0);
        self.push(AND_VALUE, (4, 0), 0, 3);
        self.pass_if(SKIP_IF_OTHER, (4, 0), 0);
        self.push(MOVE, (4, 9), 0, 0);
        self.push(ADD_VALUE, (4, 0), 0, -4);
        self.pass_if(SKIP_IF_GREATER_VALUE, (4, 0), 18 + FCOE_MAX as i32 - 4);
        self.push(ADD, (4, 6), 0, 0);
        self.push(MOVE, (5, 4), 0, 0);
        self.push(ADD_VALUE, (5, 0), 0, 1);
        self.pass_if(SKIP_IF_GREATER, (5, 3), 0);
        self.push(LOAD_BYTE, (4, 4), 0, 0);
        self.push(SKIP_IF_EQUAL, (4, 0), 1, EOF_N);
        self.pass_if(SKIP_IF_OTHER, (4, 0), EOF_T);
    }

    /// The route of the pair, into r0.
    fn find_route(&mut self, maps: &Maps) {
        self.push(STORE_WORD, (10, 8), KEY + 4, 0);
        // R_CTL and CS_CTL stand before the N_Port_IDs.
        for (at, key) in [(FCOE + 14, KEY + 8), (FCOE + 18, KEY + 12)] {
            self.push(LOAD_WORD, (4, 7), at, 0);
            self.push(AND_VALUE, (4, 0), 0, ID_MASK);
            self.push(STORE_WORD, (10, 4), key, 0);
        }
        self.look_up(maps.pairs, KEY);
        self.push(LOAD_WORD, (4, 0), 0, 0);
        self.push(STORE_WORD, (10, 4), NUMBER, 0);
        self.look_up(maps.routes, NUMBER);
    }

    /// Both addresses, and the length.
    fn check_route(&mut self) {
        for at in [0, 4, 8] {
            self.push(LOAD_WORD, (1, 6), at, 0);
            self.push(LOAD_WORD, (2, 0), ARRIVING as i16 + at, 0);
            self.pass_if(SKIP_IF_OTHER_REGISTER, (1, 2), 0);
        }
        self.push(LOAD_WORD, (1, 0), LEN_MAX as i16, 0);
        self.pass_if(SKIP_IF_GREATER, (9, 1), 0);
    }

    /// If frames that went up have not left yet, this one goes up behind them, with its number.
    fn keep_order(&mut self) {
        self.push(LOAD_WORD, (1, 0), WENT_UP as i16, 0);
        self.push(LOAD_WORD, (2, 0), HAVE_LEFT as i16, 0);
        self.push(SKIP_IF_SAME, (1, 2), 5, 0);
        self.push(ADD_VALUE, (1, 0), 0, 1);
        self.push(STORE_WORD, (0, 1), WENT_UP as i16, 0);
        self.push(STORE_WORD, (7, 1), FCOE + NUMBER_AT as i16, 0);
        self.push(MOVE_VALUE, (0, 0), 0, XDP_PASS);
        self.push(EXIT, (0, 0), 0, 0);
    }

    /// Addresses and tag. The FC frame stays as it is.
    fn rewrite(&mut self) {
        for at in [0, 4, 8] {
            self.push(LOAD_WORD, (1, 0), LEAVING as i16 + at, 0);
            self.push(STORE_WORD, (6, 1), at, 0);
        }
        self.push(SKIP_IF_EQUAL, (8, 0), 2, 0);
        self.push(LOAD_WORD, (1, 0), TCI as i16, 0);
        self.push(STORE_HALF, (6, 1), 14, 0);
    }

    /// One frame more of the ingress, at this CPU.
    fn count(&mut self, maps: &Maps) {
        self.push(LOAD_WORD, (8, 0), EGRESS as i16, 0);
        self.push(LOAD_WORD, (4, 0), INGRESS as i16, 0);
        self.push(STORE_WORD, (10, 4), NUMBER, 0);
        self.look_up(maps.counters, NUMBER);
        self.push(LOAD_DOUBLE, (1, 0), 0, 0);
        self.push(ADD_VALUE, (1, 0), 0, 1);
        self.push(STORE_DOUBLE, (0, 1), 0, 0);
        self.push(LOAD_DOUBLE, (1, 0), 8, 0);
        self.push(ADD, (1, 9), 0, 0);
        self.push(STORE_DOUBLE, (0, 1), 8, 0);
    }

    /// Out at the egress. If that is gone the frame passes with addresses that no port has.
    fn redirect(&mut self, maps: &Maps) {
        self.map(maps.devices);
        self.push(MOVE, (2, 8), 0, 0);
        self.push(MOVE_VALUE, (3, 0), 0, XDP_PASS);
        self.push(CALL, (0, 0), 0, REDIRECT_MAP);
        self.push(EXIT, (0, 0), 0, 0);
    }

    /// What a map has for the key at this place of the stack, into r0. Without one the frame
    /// passes.
    fn look_up(&mut self, map: i32, key: i16) {
        self.map(map);
        self.push(MOVE, (2, 10), 0, 0);
        self.push(ADD_VALUE, (2, 0), 0, key.into());
        self.push(CALL, (0, 0), 0, LOOK_UP);
        self.pass_if(SKIP_IF_EQUAL, (0, 0), 0);
    }

    /// A map, into r1: a load of 64 bits takes the room of two; source 1 makes a descriptor a map.
    fn map(&mut self, map: i32) {
        self.push(LOAD_VALUE, (1, 1), 0, map);
        self.instructions.push(0);
    }

    /// The end, where frames pass.
    fn end(mut self) -> Vec<u64> {
        let end = self.instructions.len();
        for (at, code, registers, value) in std::mem::take(&mut self.leaving) {
            let offset = (end - at - 1) as i16;
            self.instructions[at] = instruction(code, registers, offset, value);
        }
        self.push(MOVE_VALUE, (0, 0), 0, XDP_PASS);
        self.push(EXIT, (0, 0), 0, 0);
        self.instructions
    }
}

/// Two bytes as they are read from a frame.
fn half(value: u16) -> i32 {
    i32::from(value.to_be())
}

/// From r7 on, FCoE begins here.
const FCOE: i16 = 14;

/// The lower three bytes of a word of a frame.
const ID_MASK: i32 = i32::from_ne_bytes([0, 0xff, 0xff, 0xff]);

/// Where keys lie on the stack.
const KEY: i16 = -16;
const NUMBER: i16 = -24;

/// Delimiters of class 3 (FC-BB-6, encoded SOF and EOF).
const SOF_I3: i32 = 0x2e;
const SOF_N3: i32 = 0x36;
const EOF_N: i32 = 0x41;
const EOF_T: i32 = 0x42;
