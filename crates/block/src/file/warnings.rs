//! What the log says of a file that is not the disk its user may take it for.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::size::BlockSize;

/// Bytes behind the last whole block are not part of the volume.
pub(super) fn of_tail(path: &Path, bytes: u64, block_size: BlockSize) {
    let block_size = u64::from(block_size.bytes());
    let tail = bytes % block_size;
    if tail > 0 {
        tracing::warn!(
            "file:{}: its last {tail} bytes are less than one block of {block_size} and are not \
             part of the volume; extend it to whole blocks (truncate --size %{block_size}) to \
             include them",
            path.display()
        );
    }
}

/// An image of another format is a volume as any file is: its bytes are served as they are.
pub(super) fn of_format(path: &Path) {
    let mut start = Vec::new();
    let read = File::open(path).and_then(|file| file.take(START).read_to_end(&mut start));
    if read.is_ok()
        && let Some((format, name)) = format(&start)
    {
        tracing::warn!(
            "file:{path}: it seems to be a {format} image; its raw bytes are served, not the disk \
             inside it; to serve the disk, convert it (qemu-img convert -f {name} -O raw {path} \
             NEW), or serve the device of qemu-nbd --connect",
            path = path.display()
        );
    }
}

/// What a format is called, and how qemu-img calls it.
fn format(start: &[u8]) -> Option<(&'static str, &'static str)> {
    let has = |(at, magic): &Magic| start.get(*at..).is_some_and(|s| s.starts_with(magic));
    let found = FORMATS.iter().find(|(place, ..)| has(place))?;
    Some((found.1, found.2))
}

/// How much of a file is looked at.
const START: u64 = 512;
/// The first byte of a magic number in the file, and its bytes.
type Magic = (usize, &'static [u8]);

/// Formats by their magic numbers.
const FORMATS: [(Magic, &str, &str); 8] = [
    ((0, b"QFI\xfb\0\0\0\x01"), "qcow", "qcow"),
    ((0, b"QFI\xfb"), "qcow2", "qcow2"),
    ((0, b"QED\0"), "QED", "qed"),
    ((0, b"KDMV"), "VMDK", "vmdk"),
    ((0, b"# Disk DescriptorFile"), "VMDK", "vmdk"),
    ((0x40, &0xbeda_107f_u32.to_le_bytes()), "VDI", "vdi"),
    ((0, b"vhdxfile"), "VHDX", "vhdx"),
    ((0, b"conectix"), "VHD", "vpc"),
];

#[cfg(test)]
mod tests;
