//! `TargetDevice=…` of chiscsi: a LUN, numbered from 0 in the order of the lines.

use address::{Address, FileAddress, Size};

use crate::import::draft::{Draft, lun, lun_row, null_address, path_address, path_name};
use crate::import::row::Identity;
use crate::import::words::{Line, size};
use crate::tree::{Access, LunRows, VolumeRow};

/// Adds a LUN. Its number counts the lines before, also those that are left out, so that the others
/// keep theirs.
pub(super) fn read(draft: &mut Draft, rows: &mut LunRows, number: u64, line: &Line, value: &str) {
    let Some(number) = lun(number) else {
        return draft.leave(line.number, &*line.text, crate::import::LUN_NUMBER);
    };
    let device = Device::parse(value);
    let Some(address) = device.address() else {
        let why = "a device is MEM with a size, FILE or BLK with a path; pass-through devices are \
                   named by their node here: scsi:/dev/sg3";
        return draft.leave(line.number, &*line.text, why);
    };
    let mut row = VolumeRow::new(address.to_string());
    for (key, value) in &device.settings {
        let why = match &**key {
            "size" if device.is("mem") => continue,
            "size" => "a file or a device has its own size",
            "sn" if row.set_serial(value) => continue,
            "sn" => "a serial number has up to 36 printable characters",
            "wwn" if row.set_naa(value) => continue,
            "wwn" => {
                "an NAA designator has 16 hexadecimal digits from 2, 3 or 5 on, or 32 from 6 on"
            }
            "id" => "the T10 designator follows from the serial number here",
            _ => "Lunar has no such setting",
        };
        draft.leave(line.number, format!("TargetDevice: {key}={value}"), why);
    }
    for word in &device.words {
        let known = ["mem", "nullrw", "file", "blk", "ro", "sync"].contains(&&**word);
        if !known || (word == "sync" && !matches!(address, Address::File(_))) {
            let why = "Lunar has no such setting";
            draft.leave(line.number, format!("TargetDevice: {word}"), why);
        }
    }
    let access = if device.is("ro") {
        Access::ReadOnly
    } else {
        Access::ReadWrite
    };
    let volume = draft.volume(line.number, path_name(device.name), row);
    rows.insert(number, lun_row(volume, access));
}

/// A name or path, words, and `key=value` settings, both in lower case.
struct Device<'a> {
    name: &'a str,
    words: Vec<String>,
    settings: Vec<(String, &'a str)>,
}

impl<'a> Device<'a> {
    fn parse(text: &'a str) -> Self {
        let mut parts = text.split(',').map(str::trim);
        let mut device = Self {
            name: parts.next().unwrap_or_default(),
            words: Vec::new(),
            settings: Vec::new(),
        };
        for part in parts.filter(|part| !part.is_empty()) {
            match part.split_once('=') {
                Some((key, value)) => {
                    let key = key.trim().to_ascii_lowercase();
                    device.settings.push((key, value.trim()));
                }
                None => device.words.push(part.to_ascii_lowercase()),
            }
        }
        device
    }

    fn is(&self, word: &str) -> bool {
        self.words.iter().any(|known| known == word)
    }

    fn address(&self) -> Option<Address> {
        if self.is("mem") {
            let (_, bytes) = self.settings.iter().find(|(key, _)| key == "size")?;
            let bytes = size(bytes)?;
            let null = null_address(bytes)?;
            return Some(if self.is("nullrw") {
                null
            } else {
                Address::Ram(Size(bytes).into())
            });
        }
        if !self.name.starts_with('/') || self.is("pass") || self.is("nullrw") {
            return None;
        }
        match path_address(self.name) {
            Address::File(file) => Some(Address::File(FileAddress {
                sync: self.is("sync"),
                ..file
            })),
            other => Some(other),
        }
    }
}
