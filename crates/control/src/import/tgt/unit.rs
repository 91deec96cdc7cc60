//! A LUN of tgtd: what it stores on, and its settings, its own and those of the target.

use address::{Address, FileAddress};

use crate::import::block::Node;
use crate::import::draft::{Draft, path_address, path_name};
use crate::import::row::{Identity, rbd};
use crate::import::words::flag;
use crate::tree::{Access, VolumeRow};

/// A LUN that has no number yet.
pub(super) struct Unit {
    pub(super) line: usize,
    /// As the list of what is left out shows it.
    pub(super) text: String,
    pub(super) name: String,
    pub(super) number: Option<u64>,
    pub(super) row: VolumeRow,
    pub(super) access: Access,
}

/// Whether a key is a setting of LUNs, which may stand at the target for all of them.
pub(super) fn is_setting(key: &str) -> bool {
    SETTINGS.contains(&key)
}

impl Unit {
    /// Reads a store with its own settings over those of the target.
    pub(super) fn read(draft: &mut Draft, node: &Node, common: &[&Node]) -> Option<Self> {
        let path = node.values();
        let own = |key: &str| node.inner.iter().any(|own| own.key() == key);
        let common = common.iter().copied().filter(|common| !own(common.key()));
        let settings: Vec<&Node> = node.inner.iter().chain(common).collect();
        let value = |key: &str| {
            let found = settings.iter().find(|setting| setting.key() == key);
            found.map_or("", |setting| setting.value())
        };
        let address = match address(&path, value("bs-type")) {
            Ok(address) => address,
            Err(why) => {
                draft.leave(node.line, node.shown(), why);
                return None;
            }
        };
        if !matches!(value("device-type"), "" | "disk") {
            draft.leave(node.line, node.shown(), "a LUN is a disk here");
            return None;
        }
        if node.key() == "direct-store" {
            let why = "vendor, product and serial number of the disk itself are not taken over, \
                       but its designator is";
            draft.leave(node.line, node.shown(), why);
        }
        let mut unit = Self {
            line: node.line,
            text: node.shown(),
            name: path_name(&path)
                .split('@')
                .next()
                .unwrap_or(&path)
                .to_owned(),
            number: None,
            row: VolumeRow::new(with_cache(address, &settings).to_string()),
            access: Access::ReadWrite,
        };
        for setting in settings {
            unit.set(draft, setting);
        }
        Some(unit)
    }

    fn set(&mut self, draft: &mut Draft, setting: &Node) {
        let value = setting.values();
        let value = value.trim();
        let done = match setting.key() {
            "lun" => {
                self.number = value.parse().ok();
                self.number.is_some()
            }
            "scsi_sn" => self.row.set_serial(value),
            "vendor_id" => self.row.set_vendor(value),
            "product_id" => self.row.set_product(value),
            "block-size" => self.row.set_block_size(value),
            "removable" => match flag(value) {
                Some(flag) => {
                    self.row.removable = flag;
                    true
                }
                None => false,
            },
            "readonly" => {
                if flag(value) == Some(true) {
                    self.access = Access::ReadOnly;
                }
                flag(value).is_some()
            }
            // Read before.
            "bs-type" | "device-type" => true,
            "write-cache" | "bsoflags" => self.row.address.starts_with("file:"),
            _ => false,
        };
        if !done {
            draft.leave(setting.line, setting.shown(), why(setting.key()));
        }
    }
}

fn why(key: &str) -> &'static str {
    match key {
        "lun" => crate::import::LUN_NUMBER,
        "scsi_sn" => "a serial number has up to 36 printable characters",
        "vendor_id" => "a vendor has up to 8 printable characters",
        "product_id" => "a product has up to 16 printable characters",
        "block-size" => "blocks have 512 or 4096 bytes here",
        "write-cache" | "bsoflags" => "only a file's write cache can be set",
        "scsi_id" => "the T10 designator follows from the serial number here",
        _ => "Lunar has no such setting",
    }
}

fn address(path: &str, store: &str) -> Result<Address, &'static str> {
    match store {
        "" | "rdwr" | "aio" | "sg" => {}
        "rbd" => return rbd(path).ok_or("an image of Ceph is POOL/IMAGE or POOL/IMAGE@SNAPSHOT"),
        _ => return Err("there is no such backing store here"),
    }
    match (path.starts_with('/'), store) {
        (false, _) => Err("a store is the path of a file or a device"),
        (true, "sg") => Ok(Address::Scsi(path.into())),
        (true, _) => Ok(path_address(path)),
    }
}

/// tgtd makes each write durable without a write cache, and opens with O_DIRECT for `aio`.
fn with_cache(address: Address, settings: &[&Node]) -> Address {
    let Address::File(file) = address else {
        return address;
    };
    let is = |key: &str, value: &str| {
        let found = settings.iter().find(|setting| setting.key() == key);
        found.is_some_and(|setting| setting.value().split('|').any(|one| one.trim() == value))
    };
    Address::File(FileAddress {
        sync: is("write-cache", "off") || is("bsoflags", "sync"),
        direct: is("bs-type", "aio") || is("bsoflags", "direct"),
        ..file
    })
}

const SETTINGS: &[&str] = &[
    "allow-in-use",
    "block-size",
    "bs-type",
    "bsoflags",
    "bsopts",
    "device-type",
    "la_lba",
    "lbppbe",
    "lun",
    "mode_page",
    "online",
    "optimal_xfer_gran",
    "optimal_xfer_len",
    "params",
    "path",
    "product_id",
    "product_rev",
    "readonly",
    "removable",
    "scsi_id",
    "scsi_sn",
    "sense_format",
    "vendor_id",
    "write-cache",
];
