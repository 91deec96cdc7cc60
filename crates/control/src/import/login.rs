//! Keys of the login (RFC 7143 §13) in other targets' files: what a tree has for them, and what
//! this program does anyway.
//!
//! | key | here |
//! |---|---|
//! | those of [`login_keys`] | the target's `login` |
//! | MaxSessions | the same; 0 means without a limit |
//! | HeaderDigest, DataDigest with both `None` and `CRC32C` | no row: the initiator chooses |
//! | those of them that have one value here, and no markers | done anyway, so no row |
//! | other values of these, other keys | left out |

use super::draft::Draft;
use super::words;
use crate::login_keys;
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
        let is_it = |name: &str| name.eq_ignore_ascii_case(self.name);
        if let Some((_, value, why)) = FIXED.iter().find(|(name, ..)| is_it(name)) {
            if !self.value.eq_ignore_ascii_case(value) {
                draft.leave(self.line, self.text, *why);
            }
            return true;
        }
        let Some(key) = login_keys::find(self.name) else {
            return false;
        };
        let mut unsaid = LoginRow::default();
        let row = if key.is_fixed() { &mut unsaid } else { login };
        if let Err(misfit) = key.set(row, &self.written(key.name)) {
            let why = format!("{} is {}: {}", key.name, misfit.values, misfit.why);
            draft.leave(self.line, self.text, why);
        }
        true
    }

    /// The value as a tree has it: lengths have letters of their own in some formats, 0 sessions
    /// are no limit, and a key without a value is a mistake.
    fn written(&self, name: &str) -> String {
        match words::size(self.value) {
            Some(0) if name == "MaxSessions" => String::new(),
            Some(number) => number.to_string(),
            None if self.value.is_empty() => "nothing".to_owned(),
            None => self.value.to_owned(),
        }
    }
}

const NOP: &str = "NOP-Ins are sent as --nop-interval says, the same for every target";
const QUEUE: &str = "how many commands a host may send follows from --connection-memory";
const MARKER: &str = "RFC 7143 §13.25 has no markers any more";

/// Keys that no target of ours says, what comes to the same here, and why.
const FIXED: &[(&str, &str, &str)] = &[
    ("IFMarker", "No", MARKER),
    ("OFMarker", "No", MARKER),
    ("IFMarkInt", "Reject", MARKER),
    ("OFMarkInt", "Reject", MARKER),
    (
        "MaxXmitDataSegmentLength",
        "",
        "how much is sent at once is what the initiator declares",
    ),
    ("NOPInterval", "", NOP),
    ("NOPTimeout", "", NOP),
    ("NopInInterval", "", NOP),
    ("NopInTimeout", "", NOP),
    ("QueuedCommands", "", QUEUE),
    (
        "Wthreads",
        "",
        "as many threads serve as the machine has cores",
    ),
];
