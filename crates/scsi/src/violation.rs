//! What a peer did wrong, for the log.

/// A rule that a peer broke, or another reason to refuse it or to end its connection: what the log
/// says, with where the rule is to be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Violation {
    /// In a few words: `a SCSI command before login`.
    pub rule: &'static str,
    /// The clause of a standard, as in `RFC 7143 §6.3`, or the option that sets a limit of ours.
    pub clause: &'static str,
}

impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({})", self.rule, self.clause)
    }
}
