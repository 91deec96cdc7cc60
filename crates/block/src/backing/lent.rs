//! What a core lends of a file in memory: its pages, to be sent from where they lie.

use std::ops::Range;
use std::sync::Arc;

use ::io::memory::{Buffer, FileMap, LocalFileMap, PrefetchQueue, Recall};
use ::io::ring::RingFile;
use scsi::medium::{Extent, Now};

use super::Backing;

/// The pages of a file, as one core lends them.
#[derive(Debug, Default)]
pub(super) struct LentPages {
    map: Option<LocalFileMap>,
    /// It cannot be mapped.
    has_failed: bool,
    /// Where the file ended, and when that was looked at.
    end: Option<(Now, u64)>,
    ahead: PrefetchQueue,
}

impl LentPages {
    /// The data of an extent, only to be sent; `None` where it has to be read.
    pub(super) fn lend(
        &mut self,
        now: Now,
        (backing, file): (&Backing, &Arc<RingFile>),
        extent: Extent,
    ) -> Option<Buffer> {
        if self.has_failed || !file.is_in_memory() || backing.rules.direct.is_some() {
            return None;
        }
        let range = backing.rules.block_size.range(extent);
        // One map for all cores, as only one is told what was given back.
        if self
            .map
            .as_ref()
            .is_none_or(|map| map.end() < backing.bytes())
        {
            self.map_anew(backing, file)?;
        }
        let map = self.map.as_ref()?;
        // One look a turn. What is not there any more is an error of the read.
        let end = match self.end {
            Some((then, end)) if then == now => end,
            _ => self.end.insert((now, map.file_end())).1,
        };
        let buffer = (range.end <= end).then(|| map.buffer(range))??;
        self.ahead.note(&buffer);
        Some(buffer)
    }

    #[cold]
    fn map_anew(&mut self, backing: &Backing, file: &Arc<RingFile>) -> Option<()> {
        let Some(map) = backing.map(file) else {
            self.has_failed = true;
            return None;
        };
        match &mut self.map {
            Some(lent) => lent.renew(map),
            None => self.map = Some(LocalFileMap::new(map, Arc::clone(file))),
        }
        Some(())
    }

    /// What was lent until now.
    pub(super) fn recall(&mut self) -> Option<Recall> {
        self.map.as_mut().map(LocalFileMap::recall)
    }
}

impl Backing {
    /// The map of all of the volume.
    fn map(&self, file: &RingFile) -> Option<Arc<FileMap>> {
        let mut map = self.shared_map();
        if map.as_ref().is_none_or(|map| map.end() < self.bytes()) {
            match FileMap::new(file, self.bytes()) {
                Ok(new) => *map = Some(new),
                Err(cause) => self.notices.not_mapped(&self.rules, &cause),
            }
        }
        map.clone().filter(|map| map.end() >= self.bytes())
    }

    /// Space of a range was given back.
    pub(super) fn forget_pages(&self, range: &Range<u64>) {
        if let Some(map) = &*self.shared_map() {
            map.forget(range);
        }
    }
}
