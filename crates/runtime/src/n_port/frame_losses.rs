//! Frames that were lost at an Ethernet port, as users are told of them.

use ::io::ether::Drops;

/// Frames that were lost at an Ethernet port. What the interface itself drops on receipt is left
/// out: those are frames of protocols that are not spoken here, too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrameLosses(pub(super) Drops);

/// A place where frames are lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameLoss {
    /// Its name.
    pub place: &'static str,
    /// How many frames.
    pub frames: u64,
    /// Why they were lost.
    pub fate: &'static str,
}

impl FrameLosses {
    /// Each place, whether or not frames were lost there.
    #[must_use]
    pub fn places(&self) -> [FrameLoss; 6] {
        let Self(drops) = self;
        let unsent = "link down";
        [
            ("ring", drops.ring_full, "receive ring full"),
            ("nic", drops.missed, "no memory in the interface"),
            ("too_long", drops.too_long, "too long to receive"),
            ("oversize", drops.oversize, "too long to send"),
            ("link_down", drops.unsent, unsent),
            ("sending", drops.transmitted, "not sent by the interface"),
        ]
        .map(|(place, frames, fate)| FrameLoss {
            place,
            frames,
            fate,
        })
    }

    /// In words, if there are any.
    #[must_use]
    pub fn told(&self) -> Option<String> {
        self.told_since(&Self::default())
    }

    /// In words those that were lost since then, if any were.
    pub(super) fn told_since(&self, before: &Self) -> Option<String> {
        let places = self.places().into_iter().zip(before.places());
        let words: Vec<_> = places
            .filter(|(now, before)| now.frames > before.frames)
            .map(|(now, before)| format!("{} ({})", now.frames - before.frames, now.fate))
            .collect();
        (!words.is_empty()).then(|| words.join(", "))
    }
}
