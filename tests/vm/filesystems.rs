//! File systems of a guest's kernel on a LUN of `lunar serve`.

use std::cell::OnceCell;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::Scene;
use crate::serving::{GUEST, MIB, ended, network_words, options, start};
use crate::variations::{PLAIN, Variation};

const TARGET: &str = "iqn.2026-11.org.lunar.test:files";
/// XFS takes no less than 300 MiB.
const SIZE_MIB: u64 = 384;
/// Of the 64 MiB that are removed in the end.
const GIVEN_BACK_MIB: u64 = 48;

/// The kinds of volume. The name of the cell has the file system.
pub(crate) const VOLUMES: &[Variation] = &[
    Variation {
        name: "file",
        ..PLAIN
    },
    Variation {
        name: "ram",
        ..PLAIN
    },
];

/// A file system that is stressed, crashes, grows, and gives back what it took.
pub(crate) fn stressed(scene: &mut Scene, variation: &Variation) -> Result<()> {
    let dir = scene.folder(variation)?;
    let (_, file_system) = scene.cell.name.split_once('-').context("no file system")?;
    let volume = Volume::new(variation.name, &dir)?;
    let portal = format!("{}:3260", scene.lane.host(0));
    let access = ["--iqn", TARGET, "--allow", GUEST, "--listen", &portal];
    let server = start(&dir, &[&volume.address()], &options(scene, &access))?;
    let pid = server.pid();
    let mut words = network_words(scene, 0);
    words.extend([
        ("file_system", file_system.to_owned()),
        ("volume", variation.name.to_owned()),
        ("target", TARGET.to_owned()),
        ("portal", portal),
    ]);
    let filled = OnceCell::new();
    let mut answer = |asked: &str| match asked {
        "grow" => volume.grow(),
        "filled" => filled.set(volume.taken(pid)?).ok().context("twice"),
        "emptied" => gives_back(filled.get(), volume.taken(pid)?),
        _ => bail!("it is not known"),
    };
    scene.guest.run(scene.cell.script, &words, &mut answer)?;
    ended(server, variation)
}

/// What was written and removed has to be given back by trims.
fn gives_back(filled: Option<&u64>, emptied: u64) -> Result<()> {
    let filled = *filled.context("it was not filled")?;
    if filled < emptied + GIVEN_BACK_MIB * MIB {
        bail!("{filled} bytes were taken, and {emptied} when all files were removed");
    }
    Ok(())
}

enum Volume {
    File(PathBuf),
    Ram,
}

impl Volume {
    fn new(kind: &str, dir: &Path) -> Result<Self> {
        if kind == "ram" {
            return Ok(Self::Ram);
        }
        let path = dir.join("disk");
        File::create(&path)?.set_len(SIZE_MIB * MIB)?;
        Ok(Self::File(path))
    }

    fn address(&self) -> String {
        match self {
            Self::File(path) => format!("file:{}", path.display()),
            Self::Ram => format!("ram:{SIZE_MIB}M"),
        }
    }

    /// The bytes of disk or memory that it takes, or the whole server.
    fn taken(&self, pid: u32) -> Result<u64> {
        match self {
            Self::File(path) => Ok(path.metadata()?.blocks() * 512),
            Self::Ram => {
                let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
                let mut lines = status.lines();
                let line = lines.find_map(|line| line.strip_prefix("VmRSS:"));
                let kib = line.and_then(|line| line.split_whitespace().next());
                Ok(kib.context("no VmRSS")?.parse::<u64>()? << 10)
            }
        }
    }

    fn grow(&self) -> Result<()> {
        match self {
            Self::File(path) => {
                let file = File::options().write(true).open(path)?;
                Ok(file.set_len(2 * SIZE_MIB * MIB)?)
            }
            Self::Ram => bail!("a RAM disk does not grow"),
        }
    }
}

impl Drop for Volume {
    fn drop(&mut self) {
        // Logs and captures are kept of what failed, not disks.
        if let Self::File(path) = self {
            let _ = fs::remove_file(path);
        }
    }
}
