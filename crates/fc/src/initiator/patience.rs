//! How long a target may be silent before it is asked how far it has got.
//!
//! FCP-4 has REC sent after REC_TOV, 3 s by default, as a REC that overtakes its command would end
//! it. Where commands carry task retry identifiers that harms nothing: both ends tell copies apart,
//! and a command that is given up is aborted, which bars its OX_ID, before it is repeated. So a
//! target of that kind is asked after a few round trips, and then after pauses that double up to
//! REC_TOV, for the one that is busy and not silent.
//!
//! The round trip is that of a link service, which the target answers without its medium.

use std::time::Duration;

use crate::remote::FcpPeer;

/// When a target is asked what has become of a command.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    /// The smoothed round trip; zero while none was measured.
    round_trip: Duration,
    /// The first pause.
    first: Duration,
    rec_tov: Duration,
    is_quick: bool,
}

/// Round trips before a target counts as silent.
const ROUND_TRIPS: u32 = 8;

/// The shortest first pause: longer than most commands take at a disk, and than a loaded machine
/// keeps a core from its work.
const SHORTEST: Duration = Duration::from_millis(20);

/// Pauses that may be shorter than REC_TOV: 20 ms reaches 3 s after eight doublings.
const DOUBLINGS: u8 = 8;

impl FcpPeer {
    /// Whether the other end can be asked at once for what seems lost, as it knows a second copy of
    /// anything for what it is.
    pub(super) fn is_quick(&self) -> bool {
        self.fcp.retry && self.fcp.retry_identifier
    }
}

impl Patience {
    pub(super) fn of(peer: &FcpPeer) -> Self {
        let mut patience = Self {
            round_trip: Duration::ZERO,
            first: Duration::ZERO,
            rec_tov: peer.rec_tov(),
            is_quick: peer.is_quick() && peer.fcp.rec,
        };
        patience.set(Duration::ZERO);
        patience
    }

    /// The pause before a command of which nothing is heard is asked after.
    pub(super) const fn first(&self) -> Duration {
        self.first
    }

    /// The pause after so many questions.
    pub(super) fn after(&self, asked: u8) -> Duration {
        let doubled = self.first.saturating_mul(1 << asked.min(DOUBLINGS));
        doubled.min(self.rec_tov)
    }

    /// How often something may be asked that others may be asked `times` times, each after REC_TOV:
    /// together the pauses are no shorter.
    pub(super) const fn tries(&self, times: u8) -> u8 {
        if self.is_quick {
            times + DOUBLINGS
        } else {
            times
        }
    }

    /// A link service was answered after so long.
    pub(super) fn measured(&mut self, took: Duration) {
        match self.round_trip {
            Duration::ZERO => self.set(took),
            before => self.set((before * 7 + took) / 8),
        }
    }

    /// The target answered something else after so long, which is a round trip at the least.
    pub(super) fn is_at_most(&mut self, took: Duration) {
        if took < self.round_trip {
            self.measured(took);
        }
    }

    /// How long an answer is awaited for its time alone, if that is of use.
    pub(super) fn limit(&self) -> Option<Duration> {
        self.is_quick.then_some(self.rec_tov)
    }

    fn set(&mut self, round_trip: Duration) {
        self.round_trip = round_trip;
        let few_round_trips = round_trip.saturating_mul(ROUND_TRIPS).max(SHORTEST);
        self.first = if self.is_quick {
            few_round_trips.min(self.rec_tov)
        } else {
            self.rec_tov
        };
    }
}
