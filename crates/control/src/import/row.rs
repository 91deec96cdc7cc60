//! Parts of a volume's row that several formats have.

use address::{Address, RbdAddress};

use crate::tree::VolumeRow;

/// Sets what hosts know a volume by, where the value fits; the answer is whether it did.
pub(super) trait Identity {
    /// UNIT SERIAL NUMBER.
    fn set_serial(&mut self, text: &str) -> bool;
    /// T10 VENDOR IDENTIFICATION.
    fn set_vendor(&mut self, text: &str) -> bool;
    /// PRODUCT IDENTIFICATION.
    fn set_product(&mut self, text: &str) -> bool;
    /// The NAA designator, with or without `0x`.
    fn set_naa(&mut self, text: &str) -> bool;
    /// Bytes in a block; 512 needs no word.
    fn set_block_size(&mut self, text: &str) -> bool;
}

impl Identity for VolumeRow {
    fn set_serial(&mut self, text: &str) -> bool {
        fitting(&mut self.serial, text, 36)
    }

    fn set_vendor(&mut self, text: &str) -> bool {
        fitting(&mut self.vendor, text, 8)
    }

    fn set_product(&mut self, text: &str) -> bool {
        fitting(&mut self.product, text, 16)
    }

    fn set_naa(&mut self, text: &str) -> bool {
        let digits = text.strip_prefix("0x").unwrap_or(text).to_ascii_lowercase();
        let is_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        let first = digits.chars().next();
        // The formats of NAA that a unit may have (SPC-5 §7.8.6.6).
        let fits = match digits.len() {
            16 => is_hex && matches!(first, Some('2' | '3' | '5')),
            32 => is_hex && first == Some('6'),
            _ => false,
        };
        if fits {
            self.naa = Some(digits);
        }
        fits
    }

    fn set_block_size(&mut self, text: &str) -> bool {
        match super::words::size(text) {
            Some(512) => true,
            Some(4096) => {
                self.block_size = Some(4096);
                true
            }
            _ => false,
        }
    }
}

fn fitting(place: &mut Option<String>, text: &str, most: usize) -> bool {
    let text = text.trim();
    let is_printable = text.bytes().all(|byte| (0x20..0x7f).contains(&byte));
    let fits = !text.is_empty() && text.len() <= most && is_printable;
    if fits {
        *place = Some(text.to_owned());
    }
    fits
}

/// `POOL/IMAGE`, `POOL/IMAGE@SNAPSHOT`.
pub(super) fn rbd(text: &str) -> Option<Address> {
    let (pool, image) = text.split_once('/')?;
    let (image, snapshot) = match image.split_once('@') {
        Some((image, snapshot)) => (image, Some(snapshot)),
        None => (image, None),
    };
    let parts = [Some(pool), Some(image), snapshot];
    let is_wrong = |part: &&str| part.is_empty() || part.contains(['/', '@', '\0']);
    if parts.into_iter().flatten().any(|part| is_wrong(&part)) {
        return None;
    }
    Some(Address::Rbd(RbdAddress {
        pool: pool.to_owned(),
        image: image.to_owned(),
        snapshot: snapshot.map(str::to_owned),
    }))
}
