//! The mode pages.

use crate::medium::Traits;
use crate::unit_settings::{ModeParameter, ModeParameters};

/// A mode page.
#[derive(Debug)]
pub(super) struct ModePage {
    /// PAGE CODE.
    pub(super) code: u8,
    /// SUBPAGE CODE.
    pub(super) subpage: u8,
    /// The page with its header, and zeros where its parameters are.
    bytes: &'static [u8],
    /// What can be changed in it.
    pub(super) parameters: &'static [ParameterPosition],
}

/// Where in a page a parameter stands: the byte and the bit's mask.
type ParameterPosition = (ModeParameter, usize, u8);

impl ModePage {
    /// The page with these values.
    pub(super) fn values(&self, values: ModeParameters) -> Vec<u8> {
        self.with(self.bytes.to_vec(), |parameter| values.is_set(parameter))
    }

    /// The page with a one for each bit that can be changed on such a volume.
    pub(super) fn changeable(&self, traits: &Traits) -> Vec<u8> {
        let mut mask = vec![0; self.bytes.len()];
        let header = self.header_len();
        mask[..header].copy_from_slice(&self.bytes[..header]);
        self.with(mask, |parameter| parameter.is_changeable(traits))
    }

    fn with(&self, mut bytes: Vec<u8>, is_set: impl Fn(ModeParameter) -> bool) -> Vec<u8> {
        for &(parameter, at, mask) in self.parameters {
            if is_set(parameter) {
                bytes[at] |= mask;
            }
        }
        bytes
    }

    /// Bytes before the parameters: subpages have a longer header (SPC-5 §7.5.7).
    pub(super) const fn header_len(&self) -> usize {
        if self.subpage == 0 { 2 } else { 4 }
    }

    pub(super) const fn len(&self) -> usize {
        self.bytes.len()
    }
}

/// All there are, in the order in which they are returned.
pub(super) const PAGES: &[ModePage] = &[
    // Read-write error recovery: nothing is reallocated or corrected, and retries are not counted.
    fixed(0x01, 0, &[0x01, 0x0a, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
    // Disconnect-reconnect: no limits beyond those of the transport.
    fixed(
        0x02,
        0,
        &[0x02, 0x0e, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
    ),
    // Caching.
    ModePage {
        code: 0x08,
        subpage: 0,
        bytes: &[
            0x08, 0x12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        ],
        parameters: &[(ModeParameter::Wce, 2, 0x04)],
    },
    // Control: a task set for each nexus (TST = 001b); SIMPLE tasks are reordered without
    // restriction (QUEUE ALGORITHM MODIFIER = 1h); log parameters are not saved (GLTSD = 1).
    ModePage {
        code: 0x0a,
        subpage: 0,
        bytes: &[0x0a, 0x0a, 0x22, 0x10, 0, 0, 0, 0, 0, 0, 0, 0],
        parameters: &[
            (ModeParameter::DSense, 2, 0x04),
            (ModeParameter::Swp, 4, 0x08),
            (ModeParameter::Tas, 5, 0x40),
        ],
    },
    // Control extension: SET TIMESTAMP has precedence (SCSIP = 1).
    fixed(0x0a, 0x01, &CONTROL_EXTENSION),
    // Informational exceptions: none are predicted (DEXCPT = 1).
    fixed(0x1c, 0, &[0x1c, 0x0a, 0x08, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
];

const CONTROL_EXTENSION: [u8; 32] = {
    let mut bytes = [0; 32];
    bytes[0] = 0x4a;
    bytes[1] = 0x01;
    bytes[3] = 0x1c;
    bytes[4] = 0x02;
    bytes
};

/// A page in which nothing can be changed.
const fn fixed(code: u8, subpage: u8, bytes: &'static [u8]) -> ModePage {
    ModePage {
        code,
        subpage,
        bytes,
        parameters: &[],
    }
}
