//! A `lun` of ctld becomes a volume.

use address::{Address, FileAddress, Size};

use crate::import::block::Node;
use crate::import::draft::{Draft, null_address, path_address, path_name};
use crate::import::row::Identity;
use crate::import::words::{flag, size};
use crate::tree::{Access, VolumeRow};

/// Adds the volume of a `lun` block, and tells its name and how the LUN may be used.
pub(super) fn read(draft: &mut Draft, wish: &str, node: &Node) -> Option<(String, Access)> {
    let address = match address(node) {
        Ok(address) => address,
        Err(why) => {
            draft.leave(node.line, node.shown(), why);
            return None;
        }
    };
    let mut row = VolumeRow::new(address.to_string());
    let mut access = Access::ReadWrite;
    for one in &node.inner {
        let why = match one.key() {
            "backend" | "path" => continue,
            "size" if matches!(address, Address::Block(_)) => "a block device has its own size",
            "size" if bytes(one).is_some() => continue,
            "size" => "a size is a number of bytes, or one with k, m, g, t",
            "blocksize" if row.set_block_size(one.value()) => continue,
            "blocksize" => "blocks have 512 or 4096 bytes here",
            "serial" if row.set_serial(one.value()) => continue,
            "serial" => "a serial number has up to 36 printable characters",
            "device-id" => "the T10 designator follows from the serial number here",
            "device-type" if ["0", "disk", "direct"].contains(&one.value()) => continue,
            "device-type" => "a LUN is a disk here",
            "option" | "options" => {
                options(draft, &mut row, &mut access, one);
                continue;
            }
            _ => "Lunar has no such setting",
        };
        draft.leave(one.line, one.shown(), why);
    }
    let name = match value(node, "path") {
        "" => wish,
        path => path_name(path),
    };
    Some((draft.volume(node.line, name, row), access))
}

fn value<'a>(node: &'a Node, key: &str) -> &'a str {
    let found = node.inner.iter().find(|one| one.key() == key);
    found.map_or("", Node::value)
}

/// A size. UCL counts by 1000 where a number without quotes has no `b` behind its letter.
fn bytes(node: &Node) -> Option<u64> {
    let text = node.value();
    let bytes = size(text)?;
    let letter = text.chars().last().filter(|_| node.is_bare_value);
    let power = match letter.map(|c| c.to_ascii_lowercase()) {
        Some('k') => 1,
        Some('m') => 2,
        Some('g') => 3,
        Some('t') => 4,
        Some('p') => 5,
        _ => return Some(bytes),
    };
    Some((bytes >> (10 * power)) * 1000_u64.pow(power))
}

fn address(node: &Node) -> Result<Address, &'static str> {
    let bytes = node
        .inner
        .iter()
        .find(|one| one.key() == "size")
        .and_then(bytes);
    let bytes = bytes.filter(|bytes| *bytes >= 512);
    let path = value(node, "path");
    match value(node, "backend") {
        "ramdisk" => {
            let null = bytes
                .and_then(null_address)
                .ok_or("a RAM disk has a size")?;
            Ok(match (has_capacity(node), bytes) {
                (true, Some(bytes)) => Address::Ram(Size(bytes).into()),
                _ => null,
            })
        }
        "block" | "" if path.starts_with('/') => Ok(match path_address(path) {
            Address::File(file) => Address::File(FileAddress {
                size: bytes.map(Size),
                sparse: bytes.is_some(),
                ..file
            }),
            other => other,
        }),
        "block" | "" => Err("a LUN has a path, from the root on"),
        _ => Err("a backend is block or ramdisk"),
    }
}

/// The options of a LUN: `option NAME VALUE`, or a block of them.
fn all_options(node: &Node) -> impl Iterator<Item = (usize, &str, &str)> {
    let single = (!node.has_block).then(|| (node.line, node.value(), node.word(2)));
    let block = node
        .inner
        .iter()
        .map(|one| (one.line, one.key(), one.value()));
    single.into_iter().chain(block)
}

/// Without a capacity a RAM disk of CTL stores nothing (ctladm(8)).
fn has_capacity(node: &Node) -> bool {
    let options = node
        .inner
        .iter()
        .filter(|one| ["option", "options"].contains(&one.key()));
    let mut all = options.flat_map(all_options);
    all.any(|(_, name, value)| name == "capacity" && size(value).is_some_and(|size| size > 0))
}

fn options(draft: &mut Draft, row: &mut VolumeRow, access: &mut Access, node: &Node) {
    for (line, name, value) in all_options(node) {
        let why = match name {
            "vendor" if row.set_vendor(value) => continue,
            "product" if row.set_product(value) => continue,
            "naa" if row.set_naa(value) => continue,
            "vendor" => "a vendor has up to 8 printable characters",
            "product" => "a product has up to 16 printable characters",
            "naa" => {
                "an NAA designator has 16 hexadecimal digits from 2, 3 or 5 on, or 32 from 6 on"
            }
            "readonly" => match flag(value) {
                Some(true) => {
                    *access = Access::ReadOnly;
                    continue;
                }
                Some(false) => continue,
                None => "this is neither on nor off",
            },
            "removable" => match flag(value) {
                Some(flag) => {
                    row.removable = flag;
                    continue;
                }
                None => "this is neither on nor off",
            },
            "capacity" if row.address.starts_with("ram:") => continue,
            "unmap" | "rpm" | "formfactor" | "pblocksize" | "pblockoffset" | "writecache" => {
                "the volume itself says this"
            }
            _ => "Lunar has no such setting",
        };
        draft.leave(line, format!("option {name} {value}"), why);
    }
}
