//! Keys of the login (RFC 7143 §13) in other targets' files: what a tree has for them, and what
//! this program does anyway.
//!
//! | key | here |
//! |---|---|
//! | MaxRecvDataSegmentLength, FirstBurstLength, MaxBurstLength, MaxOutstandingR2T | the target's `login` |
//! | MaxSessions | the same; 0 means without a limit |
//! | InitialR2T=No, ImmediateData=Yes, MaxConnections=1, ErrorRecoveryLevel=0 | done anyway |
//! | HeaderDigest, DataDigest with both `None` and `CRC32C` | done anyway |
//! | DefaultTime2Wait=0, DefaultTime2Retain=0, no markers | done anyway |
//! | other values of these, other keys | left out |

use address::Size;

use super::draft::Draft;
use super::words;
use crate::tree::LoginRow;

/// A key and its value, and where they stand.
#[derive(Clone, Copy, Debug)]
pub(super) struct LoginKey<'a> {
    pub(super) line: usize,
    /// What the list of what is left out shows.
    pub(super) text: &'a str,
    pub(super) name: &'a str,
    pub(super) value: &'a str,
}

impl LoginKey<'_> {
    /// Takes the key over, or leaves it out; `false` if it is not a login key.
    pub(super) fn read(self, draft: &mut Draft, login: &mut LoginRow) -> bool {
        let known = KEYS
            .iter()
            .find(|key| key.name.eq_ignore_ascii_case(self.name));
        let Some(known) = known else {
            return false;
        };
        let taken = match known.rule {
            Rule::Kept(set) => number(self.value).is_some_and(|value| set(login, value)),
            Rule::Fixed(value) => self.value.eq_ignore_ascii_case(value),
            Rule::Either => is_either(self.value),
        };
        if !taken {
            draft.leave(self.line, self.text, known.why);
        }
        true
    }
}

/// What a key is here.
enum Rule {
    /// It is set by this function, if the value fits.
    Kept(fn(&mut LoginRow, u64) -> bool),
    /// This program has one value.
    Fixed(&'static str),
    /// `None` and `CRC32C`, and the initiator chooses.
    Either,
}

struct KnownKey {
    name: &'static str,
    rule: Rule,
    why: &'static str,
}

/// A number of bytes or things, which may have a letter.
fn number(text: &str) -> Option<u64> {
    words::size(text)
}

fn is_either(value: &str) -> bool {
    let has = |word: &str| {
        value
            .split(',')
            .any(|one| one.trim().eq_ignore_ascii_case(word))
    };
    has("None") && has("CRC32C")
}

fn segment(login: &mut LoginRow, value: u64) -> bool {
    in_bytes(&mut login.max_recv_data_segment_length, value)
}

fn first_burst(login: &mut LoginRow, value: u64) -> bool {
    in_bytes(&mut login.first_burst_length, value)
}

fn max_burst(login: &mut LoginRow, value: u64) -> bool {
    in_bytes(&mut login.max_burst_length, value)
}

fn in_bytes(place: &mut Option<Size>, value: u64) -> bool {
    let fits = BURST_BYTES.contains(&value);
    if fits {
        *place = Some(Size(value));
    }
    fits
}

fn outstanding(login: &mut LoginRow, value: u64) -> bool {
    let value = u16::try_from(value).ok().filter(|value| *value > 0);
    login.max_outstanding_r2t = value.or(login.max_outstanding_r2t);
    value.is_some()
}

fn sessions(login: &mut LoginRow, value: u64) -> bool {
    let value = u32::try_from(value);
    if let Ok(value) = value {
        login.max_sessions = (value > 0).then_some(value);
    }
    value.is_ok()
}

const fn kept(
    name: &'static str,
    set: fn(&mut LoginRow, u64) -> bool,
    why: &'static str,
) -> KnownKey {
    let rule = Rule::Kept(set);
    KnownKey { name, rule, why }
}

const fn fixed(name: &'static str, value: &'static str, why: &'static str) -> KnownKey {
    let rule = Rule::Fixed(value);
    KnownKey { name, rule, why }
}

const fn digest(name: &'static str) -> KnownKey {
    KnownKey {
        name,
        rule: Rule::Either,
        why: "whether there are digests is the initiator's choice here",
    }
}

const BYTES: &str = "a length is a number of bytes from 512 to 16777215 (RFC 7143 §13)";
const ORDER: &str = "the order of data is the initiator's choice here";
const TIME: &str = "a lost session can come back at once, and keeps nothing for it (0 here)";
const NOP: &str = "NOP-Ins are sent as --nop-interval says, the same for every target";
const QUEUE: &str = "how many commands a host may send follows from --connection-memory";
const MARKER: &str = "RFC 7143 §13.25 has no markers any more";

/// The lengths that RFC 7143 §13.12 to §13.14 have.
const BURST_BYTES: std::ops::RangeInclusive<u64> = 512..=0xff_ffff;

const KEYS: &[KnownKey] = &[
    kept("MaxRecvDataSegmentLength", segment, BYTES),
    kept("FirstBurstLength", first_burst, BYTES),
    kept("MaxBurstLength", max_burst, BYTES),
    kept(
        "MaxOutstandingR2T",
        outstanding,
        "a number from 1 to 65535 (RFC 7143 §13.17)",
    ),
    kept("MaxSessions", sessions, "a number of sessions"),
    fixed(
        "InitialR2T",
        "No",
        "unsolicited data is taken; an initiator that wants R2Ts asks (No here)",
    ),
    fixed(
        "ImmediateData",
        "Yes",
        "immediate data is taken where an initiator offers it (Yes here)",
    ),
    fixed(
        "MaxConnections",
        "1",
        "a session has one connection here: let the host use several sessions",
    ),
    fixed(
        "ErrorRecoveryLevel",
        "0",
        "a session that breaks a rule ends, and comes back (0 here)",
    ),
    fixed("DefaultTime2Wait", "0", TIME),
    fixed("DefaultTime2Retain", "0", TIME),
    fixed("IFMarker", "No", MARKER),
    fixed("OFMarker", "No", MARKER),
    fixed("IFMarkInt", "Reject", MARKER),
    fixed("OFMarkInt", "Reject", MARKER),
    fixed("DataPDUInOrder", "", ORDER),
    fixed("DataSequenceInOrder", "", ORDER),
    fixed(
        "MaxXmitDataSegmentLength",
        "",
        "how much is sent at once is what the initiator declares",
    ),
    fixed("NOPInterval", "", NOP),
    fixed("NOPTimeout", "", NOP),
    fixed("NopInInterval", "", NOP),
    fixed("NopInTimeout", "", NOP),
    fixed("QueuedCommands", "", QUEUE),
    fixed(
        "Wthreads",
        "",
        "as many threads serve as the machine has cores",
    ),
    digest("HeaderDigest"),
    digest("DataDigest"),
];
