//! What a peer did wrong, for the log.

/// A rule that a peer broke, or another reason to refuse it: what the log says, with where the rule
/// is to be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FcViolation {
    /// In a few words: `a login by another port name than FIP told`.
    pub rule: &'static str,
    /// The clause of a standard, as in `FC-LS-2`, or the option that sets a limit of ours.
    pub clause: &'static str,
}

impl std::fmt::Display for FcViolation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({})", self.rule, self.clause)
    }
}
