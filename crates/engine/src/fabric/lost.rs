//! Frames that were lost at an Ethernet port, as users are told of them.

use ::io::ether::Drops;

/// Frames that were lost at an Ethernet port. What the interface itself drops on receipt is left
/// out: those are frames of protocols that nobody here speaks, too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lost(pub(super) Drops);

impl Lost {
    /// How many in each place, and what befell them.
    const fn places(&self) -> [(u64, &'static str); 6] {
        let Self(drops) = self;
        [
            (drops.ring_full, "came while our ring was full"),
            (drops.missed, "came while the interface had no memory"),
            (drops.too_long, "came in too long"),
            (drops.oversize, "were too long to be sent"),
            (drops.unsent, "were to be sent while the link was down"),
            (drops.transmitted, "were not sent by the interface"),
        ]
    }

    /// In words, if there are any.
    pub(crate) fn told(&self) -> Option<String> {
        self.told_since(&Self::default())
    }

    /// In words those that were lost since then, if any were.
    pub(super) fn told_since(&self, before: &Self) -> Option<String> {
        let places = self.places().into_iter().zip(before.places());
        let words: Vec<_> = places
            .filter(|((now, _), (before, _))| now > before)
            .map(|((now, what), (before, _))| format!("{} {what}", now - before))
            .collect();
        (!words.is_empty()).then(|| words.join(", "))
    }
}
