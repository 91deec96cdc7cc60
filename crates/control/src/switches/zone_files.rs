//! The zones of rows, of which some are in files: all files are read at once and have one deadline,
//! as one may lie on a server that does not answer and changes wait for it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use engine::switch::{self, PendingRead, ReadError, ZoneReads};
use fc::fabric::zones::Zones;
use runtime::files;

use crate::tree::{SwitchRow, Tree};

type ReadZones = Result<Arc<Zones>, String>;

/// What reads zone files.
pub(super) struct ZoneFiles {
    pub(super) reads: ZoneReads,
    pub(super) read: fn(&Path) -> ReadZones,
    pub(super) patience: Duration,
}

impl Default for ZoneFiles {
    fn default() -> Self {
        Self {
            reads: ZoneReads::default(),
            read,
            patience: PATIENCE,
        }
    }
}

impl ZoneFiles {
    /// The zones of each row of a tree, or what is wrong with them. A file that several rows name
    /// is read once.
    pub(super) fn read<'a>(&self, tree: &'a Tree) -> Vec<(&'a String, ReadZones)> {
        let began = Instant::now();
        let paths = tree
            .switch
            .values()
            .filter_map(|row| row.zone_file.as_ref());
        let paths: BTreeSet<_> = paths.collect();
        let begin = |path| (path, self.reads.begin(Path::new(path), self.read));
        let begun: Vec<_> = paths.into_iter().map(begin).collect();
        let end = |(path, begun)| (path, self.end(began, begun));
        let read: BTreeMap<_, _> = begun.into_iter().map(end).collect();
        let zones = |row: &SwitchRow| match &row.zone_file {
            Some(path) => read[path].clone(),
            None => own_zones(row),
        };
        let rows = tree.switch.iter();
        rows.map(|(name, row)| (name, zones(row))).collect()
    }

    fn end(&self, began: Instant, begun: Result<PendingRead<ReadZones>, ReadError>) -> ReadZones {
        let zones = begun.and_then(|pending| pending.wait(began, self.patience));
        zones.map_err(|cause| cause.to_string()).flatten()
    }
}

/// The zones of a row that names no file.
fn own_zones(row: &SwitchRow) -> ReadZones {
    let zones = if row.open {
        Ok(Zones::open())
    } else {
        Zones::parse(&row.zone_text())
    };
    zones.map(Arc::new).map_err(|error| error.to_string())
}

fn read(path: &Path) -> ReadZones {
    let file = open_readable(path)?;
    switch::read_open_zones("zone-file", path, file).map_err(|error| error.to_string())
}

/// What is wrong in a zone file is told to whoever may change the tree, with its words. So it must
/// not be one that only root can read, such as a secret. The permissions are those of what was
/// opened: the path may name another file a moment later.
pub(super) fn open_readable(path: &Path) -> Result<File, String> {
    let shown = path.display();
    let failed = |cause| format!("zone-file {shown}: {cause}");
    let file = files::open_regular(path).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    if metadata.permissions().mode() & OTHERS_READ == 0 {
        return Err(format!(
            "zone-file {shown}: only its owner or group can read it, so its words must not be \
             told: chmod o+r {shown}, or name a file of zones"
        ));
    }
    Ok(file)
}

/// S_IROTH.
const OTHERS_READ: u32 = 0o4;

/// How long all zone files of a tree may take: any disk that answers is faster, and whoever asked
/// for the change still waits.
const PATIENCE: Duration = Duration::from_secs(5);
