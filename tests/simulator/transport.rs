//! What carries the hosts of a story: TCP alone, iSER over software iWARP, or both in one world.

use iscsi::target::IserPortals;
use sim::Rng;
use tests::iser_end::IserSettings;

/// What carries them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transport {
    /// All come by TCP alone.
    Tcp,
    /// All come by iSER, each in a way of its own.
    Iser,
    /// Each comes by either.
    Mixed,
}

/// The bit of a seed from which on it tells the transport.
const PLACE: u32 = 32;

impl Transport {
    pub(crate) const ALL: [Self; 3] = [Self::Tcp, Self::Iser, Self::Mixed];

    /// A seed of a story that is told over this transport.
    pub(crate) const fn seed(self, seed: u64) -> u64 {
        seed | (self as u64) << PLACE
    }

    /// What a seed says.
    pub(crate) const fn of(seed: u64) -> Self {
        match seed >> PLACE {
            0 => Self::Tcp,
            1 => Self::Iser,
            _ => Self::Mixed,
        }
    }

    /// How the next host comes; `None` by TCP alone.
    pub(crate) fn pick(self, rng: &mut Rng) -> Option<IserSettings> {
        self.is_iser(rng).then(|| any_settings(rng))
    }

    /// Whether the next host, or user of our own initiator, comes by iSER.
    pub(crate) fn is_iser(self, rng: &mut Rng) -> bool {
        match self {
            Self::Tcp => false,
            Self::Iser => true,
            Self::Mixed => rng.one_in(2),
        }
    }
}

fn any_settings(rng: &mut Rng) -> IserSettings {
    IserSettings {
        crc: rng.one_in(2),
        long_fpdus: rng.one_in(2),
        can_invalidate: !rng.one_in(4),
        reads: *rng.pick(&[1, 2, 4, 32]),
        solicited_only: *rng.pick(&[None, Some(true), Some(false)]),
        hello: rng.one_in(4),
        data_segment: *rng.pick(&[512, 1024, 8192, 65_536]),
        immediate_data: true,
    }
}

/// The usual portal takes iSER.
pub(crate) fn portals(without_crc: bool) -> IserPortals {
    IserPortals {
        portals: vec![([127, 0, 0, 1], 3260).into()],
        devices: Vec::new(),
        without_crc,
    }
}
