//! Somebody between a target and its initiator who makes the target answer wrongly, late, twice or
//! not at all. Without digests the initiator has only the rules to tell that by.
//!
//! Over iSER (`liar/iser.rs`) the CRCs are those of the lies, and there is more to lie about: what
//! moves data, STags, and the numbers of DDP.

mod iser;

use std::collections::VecDeque;
use std::time::Duration;

use sim::Rng;

use self::iser::{Fpdus, KnownStags};

/// What of the target's PDUs becomes of it.
pub(crate) struct Liar {
    rng: Rng,
    /// It may end commands in the target's place, which no initiator can tell from the truth.
    pub(crate) bold: bool,
    /// It says of the next command that it failed in the target, whatever became of it.
    pub(crate) fails: bool,
    /// PDUs to let pass before the first lie, and lies that are left then.
    honest: usize,
    lies: usize,
    /// Bytes of a PDU that is not whole.
    partial: Vec<u8>,
    /// The target's FPDUs, if it speaks iSER on this connection.
    fpdus: Option<Fpdus>,
    /// STags that it has seen, on any connection.
    stags: KnownStags,
    /// What the story has to do to the connection.
    pub(crate) asks: VecDeque<Ask>,
}

/// What only the network can do.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ask {
    /// Nothing more arrives for so long.
    Stall(Duration),
    /// The connection breaks.
    Cut,
}

const HEADER: usize = 48;

const LOGIN_RESPONSE: u8 = 0x23;
const SCSI_RESPONSE: u8 = 0x21;

/// A response by which a command may have been carried out, or be so later.
const TARGET_FAILURE: u8 = 0x01;

/// PDUs that nobody asked for: by opcode, byte 1, bytes 2 and 3, and byte 36.
const FORGED: [(u8, [u8; 3], u8); 17] = [
    (0x20, [0x80, 0, 0], 0),
    (0x21, [0x80, 0, 0], 0),
    (0x22, [0x80, 0, 0], 0),
    (0x23, [0x87, 0, 0], 0),
    (0x24, [0x80, 0, 0], 0),
    (0x25, [0x81, 0, 0], 0),
    (0x26, [0x80, 0, 0], 0),
    (0x31, [0x80, 0, 0], 0),
    (0x32, [0x80, 0, 0], 0),
    (0x32, [0x80, 0, 0], 1),
    (0x32, [0x80, 0, 0], 2),
    (0x32, [0x80, 0, 0], 3),
    (0x32, [0x80, 0, 0], 4),
    (0x32, [0x80, 0, 0], 5),
    (0x32, [0x80, 0, 0], 255),
    (0x3f, [0x80, 4, 0], 0),
    (0x3f, [0x80, 9, 0], 0),
];

/// Keys of a login that no target may answer with, or that an initiator need not put up with.
const TEXTS: [&[u8]; 16] = [
    b"",
    b"\0",
    b"=\0",
    b"no value\0",
    b"HeaderDigest=CRC32C",
    b"HeaderDigest=Perhaps\0",
    b"AuthMethod=CHAP\0",
    b"AuthMethod=Reject\0",
    b"CHAP_A=7\0CHAP_I=1\0CHAP_C=0x00\0",
    b"MaxBurstLength=0\0",
    b"MaxBurstLength=512\0MaxBurstLength=512\0",
    b"MaxRecvDataSegmentLength=16777216\0",
    b"FirstBurstLength=99999999999999999999\0",
    b"TargetPortalGroupTag=65536\0",
    b"TargetAddress=[::1]:3260,1\0",
    b"MaxOutstandingR2T=0\0ErrorRecoveryLevel=2\0InitialR2T=Maybe\0",
];

impl Liar {
    /// Tells some lies, the first after so many PDUs.
    pub(crate) fn new(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        Self {
            honest: rng.below(80),
            lies: 1 + rng.below(12),
            bold: false,
            fails: false,
            rng,
            partial: Vec::new(),
            fpdus: None,
            stags: KnownStags::default(),
            asks: VecDeque::new(),
        }
    }

    /// Tells none by itself.
    pub(crate) fn honest(seed: u64) -> Self {
        Self {
            lies: 0,
            ..Self::new(seed)
        }
    }

    /// There is a new connection.
    pub(crate) fn begins(&mut self) {
        self.partial.clear();
        self.fpdus = None;
    }

    /// Whether the newest connection is one of iSER.
    pub(crate) const fn hears_iser(&self) -> bool {
        self.fpdus.is_some()
    }

    /// What the initiator gets of these bytes.
    pub(crate) fn pass(&mut self, bytes: &[u8]) -> Vec<u8> {
        if let Some(mut fpdus) = self.fpdus.take() {
            let out = self.pass_fpdus(&mut fpdus, bytes);
            self.fpdus = Some(fpdus);
            return out;
        }
        self.partial.extend(bytes);
        if iser::is_startup(&self.partial) {
            return self.pass_startup();
        }
        let mut out = Vec::new();
        while let Some(len) = whole(&self.partial) {
            let rest = self.partial.split_off(len);
            let mut pdu = std::mem::replace(&mut self.partial, rest);
            self.fail(&mut pdu);
            if self.lies_now() {
                out.extend(self.lie(pdu).concat());
            } else {
                out.extend(pdu);
            }
        }
        out
    }

    /// The next response says that its command failed, if it is to.
    fn fail(&mut self, pdu: &mut [u8]) {
        if pdu[0] & 0x3f == SCSI_RESPONSE && std::mem::take(&mut self.fails) {
            pdu[2] = TARGET_FAILURE;
        }
    }

    fn lies_now(&mut self) -> bool {
        if self.honest > 0 || self.lies == 0 {
            self.honest = self.honest.saturating_sub(1);
            return false;
        }
        self.lies -= 1;
        self.honest = self.rng.below(4);
        true
    }

    /// The PDUs that come in the place of one.
    fn lie(&mut self, mut pdu: Vec<u8>) -> Vec<Vec<u8>> {
        let login = pdu[0] & 0x3f == LOGIN_RESPONSE;
        match self.rng.below(12) {
            0 => return Vec::new(),
            1 => return vec![pdu.clone(), pdu],
            2 => self.asks.push_back(Ask::Cut),
            3 => {
                let time = Duration::from_secs(1 + self.rng.below(90) as u64);
                self.asks.push_back(Ask::Stall(time));
            }
            4 | 5 => return vec![self.forged(&pdu), pdu],
            6 => self.resize(&mut pdu),
            7 if login => self.text(&mut pdu),
            7 | 8 if login => {
                (pdu[36], pdu[37]) = (self.rng.below(5) as u8, self.rng.below(12) as u8);
            }
            7..10 => self.byte(&mut pdu, usize::from(!login && !self.bold)),
            _ => self.word(&mut pdu),
        }
        vec![pdu]
    }

    /// An opcode, a flag, a version, a response or a status.
    fn byte(&mut self, pdu: &mut [u8], first: usize) {
        let at = first + self.rng.below(4 - first);
        pdu[at] = match self.rng.below(3) {
            0 => pdu[at] ^ (1 << self.rng.below(8)),
            1 => 0xff,
            _ => self.rng.bits() as u8,
        };
    }

    /// A tag, a number, an offset or a residual.
    fn word(&mut self, pdu: &mut [u8]) {
        let at = 4 * (2 + self.rng.below(10));
        let field = &mut pdu[at..at + 4];
        let word = u32::from_be_bytes(field.try_into().expect("four bytes"));
        let word = match self.rng.below(5) {
            0 => word.wrapping_add(1),
            1 => word.wrapping_sub(1),
            2 => u32::MAX,
            3 => self.rng.below(4096) as u32,
            _ => self.rng.bits() as u32,
        };
        field.copy_from_slice(&word.to_be_bytes());
    }

    /// The data segment is shorter or longer, or only said to be.
    fn resize(&mut self, pdu: &mut Vec<u8>) {
        let len = match self.rng.below(4) {
            0 => self.rng.below(64),
            1 => self.rng.below(1 << 24),
            _ => data_len(pdu) / 2,
        };
        pdu[5..8].copy_from_slice(&(len as u32).to_be_bytes()[1..]);
        if len < 1 << 16 && self.rng.one_in(2) {
            pdu.resize(HEADER + len.next_multiple_of(4), 0);
        }
    }

    fn text(&mut self, pdu: &mut Vec<u8>) {
        let text = *self.rng.pick(&TEXTS);
        pdu[4] = 0;
        pdu[5..8].copy_from_slice(&(text.len() as u32).to_be_bytes()[1..]);
        pdu.truncate(HEADER);
        pdu.extend(text);
        pdu.resize(HEADER + text.len().next_multiple_of(4), 0);
    }

    /// A PDU that nobody asked for, with the numbers of the one that comes.
    fn forged(&mut self, of: &[u8]) -> Vec<u8> {
        let (opcode, flags, event) = *self.rng.pick(&FORGED);
        let mut pdu = of[..HEADER].to_vec();
        pdu[0] = opcode;
        pdu[1..4].copy_from_slice(&flags);
        pdu[4..8].fill(0);
        if !self.bold || self.rng.one_in(2) {
            // A tag that names nothing, or none.
            let tag = *self.rng.pick(&[0xff, 0x7e]);
            pdu[16..24].fill(tag);
        }
        pdu[36..].fill(0);
        pdu[36] = event;
        pdu[41] = self.rng.below(3) as u8;
        pdu
    }
}

/// The length of the first PDU, once all of it is there.
fn whole(bytes: &[u8]) -> Option<usize> {
    let header = bytes.get(..HEADER)?;
    let ahs = usize::from(header[4]) * 4;
    let len = HEADER + ahs + data_len(header).next_multiple_of(4);
    (bytes.len() >= len).then_some(len)
}

fn data_len(header: &[u8]) -> usize {
    let [_, _, _, _, _, a, b, c, ..] = *header else {
        return 0;
    };
    u32::from_be_bytes([0, a, b, c]) as usize
}
