//! `Lun N Path=…,Type=…,…` of ietd.

use address::{Address, FileAddress};

use crate::import::draft::{Draft, lun, lun_row, null_address, path_address, path_name};
use crate::import::row::Identity;
use crate::import::words::{Line, key_and_rest};
use crate::tree::{Access, LunRows, VolumeRow};

/// Adds a LUN.
pub(super) fn read(draft: &mut Draft, rows: &mut LunRows, line: &Line, rest: &str) {
    let (number, settings) = key_and_rest(rest);
    let Some(number) = number.parse().ok().and_then(lun) else {
        draft.leave(line.number, &*line.text, crate::import::LUN_NUMBER);
        return;
    };
    if rows.contains_key(&number) {
        draft.leave(line.number, &*line.text, "this LUN is there already");
        return;
    }
    let settings = Settings::parse(settings);
    let Some(address) = settings.address() else {
        let why = "a LUN has Type=fileio or blockio with a Path, or Type=nullio with Blocks";
        draft.leave(line.number, &*line.text, why);
        return;
    };
    let name = match settings.get("path") {
        "" => "null",
        path => path_name(path),
    };
    let mut row = VolumeRow::new(address.to_string());
    let mut access = Access::ReadWrite;
    for (key, value) in &settings.0 {
        let why = match &**key {
            "path" | "type" | "blocks" | "sectors" => continue,
            "iomode" => match value.to_ascii_lowercase().as_str() {
                "ro" => {
                    access = Access::ReadOnly;
                    continue;
                }
                "wb" | "wt" if row.address.starts_with("file:") => continue,
                _ => "only a file's write cache can be set",
            },
            "scsisn" if row.set_serial(value) => continue,
            "scsisn" => "a serial number has up to 36 printable characters",
            "blocksize" if row.set_block_size(value) => continue,
            "blocksize" => "blocks have 512 or 4096 bytes here",
            "scsiid" => "the T10 designator follows from the serial number here",
            _ => "Lunar has no such setting",
        };
        draft.leave(line.number, format!("Lun {number} {key}={value}"), why);
    }
    let volume = draft.volume(line.number, name, row);
    rows.insert(number, lun_row(volume, access));
}

/// `key=value` with commas between; keys in lower case.
struct Settings(Vec<(String, String)>);

impl Settings {
    fn parse(text: &str) -> Self {
        let parts = text
            .split(',')
            .map(str::trim)
            .filter(|part| !part.is_empty());
        let pairs = parts.map(|part| match part.split_once('=') {
            Some((key, value)) => (key.trim().to_ascii_lowercase(), value.trim().to_owned()),
            None => (part.to_ascii_lowercase(), String::new()),
        });
        Self(pairs.collect())
    }

    fn get(&self, key: &str) -> &str {
        let found = self.0.iter().find(|(known, _)| known == key);
        found.map_or("", |(_, value)| value)
    }

    fn address(&self) -> Option<Address> {
        let path = self.get("path");
        match &*self.get("type").to_ascii_lowercase() {
            "nullio" => null_address(self.null_bytes()?),
            "fileio" | "blockio" | "" if path.starts_with('/') => Some(self.file(path)),
            _ => None,
        }
    }

    fn null_bytes(&self) -> Option<u64> {
        let number = |key: &str| self.get(key).parse::<u64>().ok();
        let block = number("blocksize").unwrap_or(512);
        let sectors = || number("sectors").and_then(|count| count.checked_mul(512));
        let blocks = number("blocks").and_then(|count| count.checked_mul(block));
        blocks.or_else(sectors)
    }

    /// ietd writes through, unless it is told to write back.
    fn file(&self, path: &str) -> Address {
        let back = ["wb", "ro"]
            .iter()
            .any(|mode| self.get("iomode").eq_ignore_ascii_case(mode));
        match path_address(path) {
            Address::File(file) => Address::File(FileAddress {
                sync: !back,
                ..file
            }),
            other => other,
        }
    }
}
