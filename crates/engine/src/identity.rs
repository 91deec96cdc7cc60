//! What units call themselves: serial number and designator.
//!
//! Both derive from the machine, the target's name, the LUN and the volume's address, so that they
//! are the same after a restart and differ between machines. A volume that comes back empty gets
//! a random part as well: nobody shall go on with stale caches.

use sha2::{Digest, Sha256};

/// What an identity is made of.
#[derive(Clone, Copy, Debug)]
pub struct Origin<'a> {
    /// `/etc/machine-id`.
    pub machine: &'a str,
    /// The target's name.
    pub target: &'a str,
    /// The LUN.
    pub lun: u16,
    /// The volume's address.
    pub volume: &'a str,
    /// Random octets, for a volume that is empty after a restart.
    pub random: Option<[u8; 16]>,
    /// `--serial`, which then decides alone.
    pub serial: Option<&'a str>,
}

/// Serial number and NAA designator of a unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Designation {
    /// For VPD 80h.
    pub serial: String,
    /// Locally assigned, NAA 3h (SPC-5 §7.7.6.6.3): 8 octets. A registered one would take an
    /// OUI, which this project does not have.
    pub naa: [u8; 8],
}

impl Origin<'_> {
    /// The identity that follows.
    #[must_use]
    pub fn designation(&self) -> Designation {
        let digest = self.digest();
        let mut naa = [0; 8];
        naa.copy_from_slice(&digest[..8]);
        naa[0] = 0x30 | naa[0] & 0x0f;
        let serial = match self.serial {
            Some(serial) => serial.to_owned(),
            None => digest[8..16]
                .iter()
                .map(|octet| format!("{octet:02x}"))
                .collect(),
        };
        Designation { serial, naa }
    }

    fn digest(&self) -> [u8; 32] {
        let mut hash = Sha256::new();
        let mut part = |octets: &[u8]| {
            hash.update((octets.len() as u64).to_be_bytes());
            hash.update(octets);
        };
        if let Some(serial) = self.serial {
            part(b"serial");
            part(serial.as_bytes());
        } else {
            part(b"place");
            part(self.machine.as_bytes());
            part(self.target.as_bytes());
            part(&self.lun.to_be_bytes());
            part(self.volume.as_bytes());
            part(&self.random.unwrap_or_default());
        }
        hash.finalize().into()
    }
}

#[cfg(test)]
mod tests;
