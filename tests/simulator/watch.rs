//! Disks that are watched while what is served changes.
//!
//! Every block tells which disk it was of at the beginning, or which write it is of; a write tells
//! on which disk it has landed. So a read tells which disk it came from, and whatever changes on a
//! disk that is not served any more is seen at once.

use sim::{Disk, DiskKind, Rng};

/// Bytes in a block.
pub(crate) const BLOCK: usize = 512;

/// Blocks that hosts use; disks may have more.
pub(crate) const BLOCKS: u64 = 8;

/// Disks, and all writes that hosts have sent.
pub(crate) struct Watch {
    pub(crate) disks: Vec<WatchedDisk>,
    pub(crate) writes: Vec<Write>,
}

pub(crate) struct WatchedDisk {
    pub(crate) disk: Disk,
    /// What it held when it was looked at last.
    shadow: Vec<Vec<u8>>,
    /// It is served, or about to be.
    pub(crate) is_in: bool,
}

pub(crate) struct Write {
    host: usize,
    lun: u16,
    /// The disk that has a block of it.
    landed: Option<usize>,
    /// It was answered, or its session has ended.
    pub(crate) is_over: bool,
}

impl Write {
    const fn none() -> Self {
        Self {
            host: usize::MAX,
            lun: 0,
            landed: None,
            is_over: true,
        }
    }
}

/// What a block holds: a stamp, and what tells of a disk at its beginning.
fn content(stamp: u32, disk: u32) -> Vec<u8> {
    let sum = stamp.wrapping_mul(0x9e37_79b9) ^ disk;
    let words = [stamp, disk, sum, !sum];
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
    bytes.repeat(BLOCK / 16)
}

/// The stamp of a block, or the disk that it was of at the beginning; `None` of a mixture.
fn parse(block: &[u8]) -> Option<(u32, u32)> {
    let word = |at: usize| Some(u32::from_be_bytes(*block.get(at..)?.first_chunk()?));
    let (stamp, disk) = (word(0)?, word(4)?);
    (content(stamp, disk) == block).then_some((stamp, disk))
}

impl Watch {
    /// So many disks of any kind, the first of which are served.
    pub(crate) fn new(rng: &mut Rng, count: usize, served: usize) -> Self {
        let kinds = [DiskKind::Apart, DiskKind::Apart, DiskKind::Memory];
        let disks = (0..count).map(|number| {
            // A volume that takes another one's place may be longer or shorter.
            let blocks = BLOCKS + number as u64 % 2;
            let disk = Disk::new(*rng.pick(&kinds), BLOCK as u32, blocks);
            let first = content(0, number as u32);
            (0..BLOCKS).for_each(|lba| disk.fill(lba, &first));
            WatchedDisk {
                disk,
                shadow: vec![first; BLOCKS as usize],
                is_in: number < served,
            }
        });
        Self {
            disks: disks.collect(),
            // Stamp 0 is of no write.
            writes: vec![Write::none()],
        }
    }

    /// A host writes so many blocks to a LUN; tells the stamp and the data.
    pub(crate) fn write(&mut self, host: usize, lun: u16, blocks: u64) -> (u32, Vec<u8>) {
        let stamp = self.writes.len() as u32;
        self.writes.push(Write {
            host,
            lun,
            landed: None,
            is_over: false,
        });
        (stamp, content(stamp, u32::MAX).repeat(blocks as usize))
    }

    /// Nothing of a write may come any more.
    pub(crate) fn over(&mut self, stamp: u32) {
        self.writes[stamp as usize].is_over = true;
    }

    /// Whatever has changed on a disk was written by somebody who could. Tells which host, by which
    /// LUN, has come to which disk.
    pub(crate) fn look(&mut self) -> Vec<(usize, u16, usize)> {
        let mut seen = Vec::new();
        for number in 0..self.disks.len() {
            let one = &mut self.disks[number];
            for lba in 0..BLOCKS {
                let (block, before) = (one.disk.block(lba), &mut one.shadow[lba as usize]);
                if block == *before {
                    continue;
                }
                assert!(
                    one.is_in,
                    "disk {number}, LBA {lba} changes while it is not served"
                );
                before.clone_from(&block);
                let Some((stamp, _)) = parse(&block) else {
                    continue;
                };
                let Some(write) = self.writes.get_mut(stamp as usize) else {
                    panic!("disk {number}, LBA {lba}: {stamp} was never written");
                };
                let (host, lun) = (write.host, write.lun);
                let named = format!("write {stamp} of host {host} to LUN {lun}");
                assert!(!write.is_over, "{named} lands after it was over");
                let landed = *write.landed.get_or_insert(number);
                assert_eq!(landed, number, "{named} lands on two disks");
                seen.push((host, lun, number));
            }
        }
        seen
    }

    /// Each block that was read is of one of these disks.
    pub(crate) fn is_of(&self, possible: &[usize], data: &[u8], named: &str) {
        // A block of a RAM disk that is being written is whatever has come.
        for (stamp, disk) in data.chunks(BLOCK).filter_map(parse) {
            let disk = match stamp {
                0 => Some(disk as usize),
                stamp => self.writes[stamp as usize].landed,
            };
            let is_right = disk.is_some_and(|disk| possible.contains(&disk));
            assert!(
                is_right,
                "{named}: read of disk {disk:?}, not of {possible:?}"
            );
        }
    }
}
