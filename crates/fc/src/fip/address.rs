//! Which N_Port_ID to try, and lots.

use std::time::Duration;

use crate::wire::ethernet::Mac;
use crate::wire::names::FcId;

/// The N_Port_IDs that VN2VN ports may have: 16 bits, neither all zero nor all one.
pub(super) const fn is_local(fc_id: FcId) -> bool {
    0 < fc_id.0 && fc_id.0 < 0xffff
}

/// What is tried first: the lower half of the address of the ENode, as Linux does, so that a port
/// is found under the same N_Port_ID again.
pub(super) fn preferred(mac: Mac) -> FcId {
    let [.., high, low] = mac.0;
    local(u16::from_be_bytes([high, low]))
}

fn local(number: u16) -> FcId {
    FcId(u32::from(number).clamp(1, 0xfffe))
}

/// Lots: the generator SplitMix64, which is enough for ports not to draw the same.
#[derive(Debug)]
pub(super) struct SplitMix(u64);

impl SplitMix {
    pub(super) const fn new(seed: [u8; 8]) -> Self {
        Self(u64::from_be_bytes(seed))
    }

    const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A time of whole microseconds below `end`.
    pub(super) const fn up_to(&mut self, end: Duration) -> Duration {
        Duration::from_micros(self.next() % end.as_micros() as u64)
    }

    /// An N_Port_ID, whether or not another port has it.
    pub(super) fn fc_id(&mut self) -> FcId {
        local(self.next() as u16)
    }
}
