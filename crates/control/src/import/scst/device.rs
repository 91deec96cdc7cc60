//! Devices of SCST become volumes.

use std::collections::HashMap;

use address::{Address, FileAddress, Size};

use crate::import::block::Node;
use crate::import::draft::{Draft, null_address, path_address};
use crate::import::row::Identity;
use crate::import::words::{flag, size};
use crate::tree::VolumeRow;

/// The names of volumes by those of devices.
pub(super) type Devices = HashMap<String, String>;

/// Adds the devices of all handlers.
pub(super) fn read<'a>(draft: &mut Draft, handlers: impl Iterator<Item = &'a Node>) -> Devices {
    let mut devices = Devices::new();
    for handler in handlers {
        for node in &handler.inner {
            if node.key() != "DEVICE" {
                draft.leave(node.line, node.shown(), "Lunar has no such setting");
                continue;
            }
            let Some(row) = device(draft, handler.value(), node) else {
                continue;
            };
            let volume = draft.volume(node.line, node.value(), row);
            if devices.insert(node.value().to_owned(), volume).is_some() {
                let why = "a device of this name is there already: its LUNs show this one";
                draft.leave(node.line, node.shown(), why);
            }
        }
    }
    devices
}

fn device(draft: &mut Draft, handler: &str, node: &Node) -> Option<VolumeRow> {
    let address = match address(handler, node) {
        Ok(address) => address,
        Err(why) => {
            draft.leave(node.line, format!("{handler}: {}", node.shown()), why);
            return None;
        }
    };
    let mut row = VolumeRow::new(address.to_string());
    for one in &node.inner {
        if !set(&mut row, &address, one) {
            draft.leave(one.line, one.shown(), why(one.key()));
        }
    }
    Some(row)
}

/// The value of an attribute; empty if there is none.
fn value<'a>(node: &'a Node, key: &str) -> &'a str {
    let found = node.inner.iter().find(|one| one.key() == key);
    found.map_or("", Node::value)
}

fn address(handler: &str, node: &Node) -> Result<Address, &'static str> {
    let path = value(node, "filename");
    let is = |key: &str| flag(value(node, key)) == Some(true);
    match handler {
        "vdisk_fileio" | "vdisk_blockio" if path.starts_with('/') => {
            let Address::File(file) = path_address(path) else {
                return Ok(path_address(path));
            };
            Ok(Address::File(FileAddress {
                size: bytes(node).filter(|bytes| *bytes >= 512).map(Size),
                sparse: bytes(node).is_some_and(|bytes| bytes >= 512),
                sync: is("write_through"),
                direct: is("o_direct") || handler == "vdisk_blockio",
                ..file
            }))
        }
        "vdisk_fileio" | "vdisk_blockio" => Err("such a device has a filename, from the root on"),
        "vdisk_nullio" if is("dummy") => Err("a LUN without a medium has no counterpart"),
        "vdisk_nullio" => {
            let why = "such a device has a size here: add size or size_mb";
            bytes(node).and_then(null_address).ok_or(why)
        }
        "vcdrom" => Err("a LUN is a disk here: serve the image as a read-only one"),
        _ => Err("a SCSI device is named by its node in /dev here: add it as scsi:/dev/sg3"),
    }
}

fn bytes(node: &Node) -> Option<u64> {
    let whole = size(value(node, "size"));
    let in_mib = || size(value(node, "size_mb"))?.checked_mul(1 << 20);
    whole.or_else(in_mib)
}

/// Takes an attribute over; the answer is whether there is nothing left of it.
fn set(row: &mut VolumeRow, address: &Address, node: &Node) -> bool {
    let value = node.value();
    let is_file = matches!(address, Address::File(_));
    match node.key() {
        "filename" | "o_direct" => true,
        "size" | "size_mb" => !matches!(address, Address::Block(_)),
        "write_through" => is_file || flag(value) == Some(false),
        "nv_cache" | "cluster_mode" => flag(value) == Some(false),
        "blocksize" => row.set_block_size(value),
        "usn" => row.set_serial(value),
        "t10_vend_id" => row.set_vendor(value),
        "prod_id" => row.set_product(value),
        "naa_id" => row.set_naa(value),
        "read_only" => flag(value).map(|flag| row.readonly = flag).is_some(),
        "removable" => flag(value).map(|flag| row.removable = flag).is_some(),
        _ => false,
    }
}

fn why(key: &str) -> &'static str {
    match key {
        "size" | "size_mb" => "a block device has its own size",
        "write_through" => "a block device has its own write cache",
        "nv_cache" => "flushes are never left out",
        "cluster_mode" => "reservations are not shared with other machines",
        "blocksize" => "blocks have 512 or 4096 bytes here",
        "usn" => "a serial number has up to 36 printable characters",
        "t10_vend_id" => "a vendor has up to 8 printable characters",
        "prod_id" => "a product has up to 16 printable characters",
        "naa_id" => {
            "an NAA designator has 16 hexadecimal digits from 2, 3 or 5 on, or 32 from 6 on"
        }
        "t10_dev_id" => "the T10 designator follows from the serial number here",
        "thin_provisioned" | "rotational" => "the volume itself says this",
        _ => "Lunar has no such setting",
    }
}
