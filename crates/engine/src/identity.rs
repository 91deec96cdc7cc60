//! What units call themselves: serial number and designator.
//!
//! Both follow from the identity of the volume ([`block::identity::Details::identity`]) and
//! from nothing else: not from its address, its LUN, its target or the machine's state directory.
//! The designator follows from the serial number, so `--serial` with the serial number of before
//! gives back both. A volume that comes back empty, and one that nothing tells from others, gets a
//! new serial number each time it is opened: initiators must not go on with stale caches.

use block::identity::{digest, hex, serial};

/// Serial number and NAA designator of a unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Designation {
    /// For VPD 80h.
    pub serial: String,
    /// Locally assigned, NAA 3h (SPC-5 §7.7.6.6.3): 8 bytes. A registered one would take an
    /// OUI, which this project does not have.
    pub naa: [u8; 8],
    /// Whether the unit is known by it again when it is served the next time.
    pub lasts: bool,
}

impl Designation {
    /// Of a volume with this identity.
    #[must_use]
    pub fn of_volume(identity: &str) -> Self {
        Self::of_serial(serial(identity))
    }

    /// Of a unit with this serial number.
    #[must_use]
    pub fn of_serial(serial: String) -> Self {
        let mut naa = [0; 8];
        naa.copy_from_slice(&digest(&[b"designator of", serial.as_bytes()])[..8]);
        naa[0] = 0x30 | naa[0] & 0x0f;
        Self {
            serial,
            naa,
            lasts: true,
        }
    }

    /// Of a volume that is another one each time; `random` bytes make its serial number.
    #[must_use]
    pub fn passing(random: [u8; 8]) -> Self {
        Self {
            lasts: false,
            ..Self::of_serial(hex(&random))
        }
    }
}

#[cfg(test)]
mod tests;
