//! Real kernels as peers: guests of QEMU, emulated, whose initiators and targets meet `lunar`.
//!
//! `cells.rs` has the table of cells, `programs.rs` that of peers that need no guest. `./check`
//! runs the starred ones and `./check vm` all of them, in a network namespace of its own, by
//!
//! ```text
//! cargo test --workspace --test vm -- [--all] [--keep] [NAME…]
//! ```
//!
//! NAME is the beginning of a cell's name, or of that of one of its variations, such as
//! `2-lio/damaged`; `--keep` keeps the captures of cells that pass. A cell boots one guest, or two
//! on one network, in which its variations run one after the other; two cells run at once where
//! there are two cores. A guest that does not boot is tried once more; a variation that fails is
//! not. A cell that fails leaves its captures, the guests' consoles with the kernel's log, and the
//! logs of `lunar` in `target/check/vm`; the next run keeps them beside it as `NAME.failed`.
#![forbid(unsafe_code)]

mod boot;
mod captures;
mod cells;
mod cluster;
mod damage;
mod doctor;
mod fabric;
mod faults;
mod filesystems;
mod firmware;
mod guest;
mod lane;
mod libiscsi;
mod overheard;
mod pair;
mod programs;
mod raid;
mod relay;
mod report;
mod reservations;
mod rxe;
mod serving;
mod switching;
mod targets;
mod two_hosts;
mod using;
mod variations;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use tests::{server, tool};

use self::cells::{CELLS, Cell, Root};
use self::guest::Guest;
use self::lane::Lane;
use self::programs::{PROGRAMS, Program};
use self::report::{NotRun, Report};
use self::variations::Variation;

fn main() -> ExitCode {
    let asked = match Asked::parse(std::env::args().skip(1)) {
        Ok(asked) => asked,
        Err(cause) => {
            eprintln!("vm: {cause:#}");
            return ExitCode::FAILURE;
        }
    };
    let report = Report::default();
    run_all(&asked, &report);
    report.end()
}

/// What the command line asks for.
struct Asked {
    names: Vec<String>,
    cells: Vec<&'static Cell>,
    programs: Vec<&'static Program>,
    /// Captures are kept of what passed, too.
    keep: bool,
}

impl Asked {
    fn parse(args: impl Iterator<Item = String>) -> Result<Self> {
        let (flags, names): (Vec<_>, Vec<_>) = args.partition(|arg| arg.starts_with('-'));
        let known = ["--all", "--keep"];
        if let Some(flag) = flags.iter().find(|flag| !known.contains(&flag.as_str())) {
            bail!("{flag} is not known: [--all] [--keep] [NAME…]");
        }
        let [all, keep] = known.map(|flag| flags.iter().any(|given| given == flag));
        let asked = |name: &str, variations: &[Variation], usual: bool| {
            let mut variations = variations.iter();
            variations.any(|variation| names_have(&names, name, variation))
                && (usual || !names.is_empty())
        };
        let cell = |cell: &&Cell| asked(cell.name, cell.variations, cell.starred || all);
        let program = |program: &&Program| asked(program.name, program.variations, all);
        let cells: Vec<_> = CELLS.iter().filter(cell).collect();
        let programs: Vec<_> = PROGRAMS.iter().filter(program).collect();
        if cells.is_empty() && programs.is_empty() {
            bail!("no cell begins with {}", names.join(" or "));
        }
        Ok(Self {
            names,
            cells,
            programs,
            keep,
        })
    }
}

/// Whether a variation is among those asked for: all are, without names.
fn names_have(names: &[String], cell: &str, variation: &Variation) -> bool {
    let name = format!("{cell}/{}", variation.name);
    names.is_empty() || names.iter().any(|begin| name.starts_with(begin))
}

/// The folder of what a guest boots, if all is there that it needs.
fn ready(root: Root) -> Result<PathBuf> {
    tool::present(&["qemu-system-x86_64", "ip", "strip", "tar"])?;
    let (folder, size) = root.names();
    let image = tests::top().join("target").join(folder);
    if !image.join("recipe").exists() {
        bail!("no root for guests, which tests/vm/image.sh {size} target/{folder} makes");
    }
    if let (Root::Siw, Ok(reason)) = (root, fs::read_to_string(image.join("without-siw"))) {
        bail!("{}", reason.trim());
    }
    Ok(image)
}

/// Each lane takes the next cell when it is through with one. The programs, which wait most of the
/// time, run beside them.
fn run_all(asked: &Asked, report: &Report) {
    let left = Mutex::new(asked.cells.iter());
    let next = || left.lock().ok()?.next();
    let cores = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for number in 0..cores.min(2) {
            let next = &next;
            scope.spawn(move || {
                let lane = Lane::new(number as u8);
                while let Some(cell) = next() {
                    run_cell(&lane, cell, asked, report);
                }
            });
        }
        for program in &asked.programs {
            let has = |variation: &Variation| names_have(&asked.names, program.name, variation);
            programs::run(program, has, report);
        }
    });
}

/// What a variation runs with.
pub(crate) struct Scene<'a> {
    pub(crate) cell: &'static Cell,
    pub(crate) lane: &'a Lane,
    pub(crate) guest: Guest,
    /// The other one of a cell with two, until it dies.
    pub(crate) second: Option<Guest>,
    /// For what the cell leaves behind if it fails.
    pub(crate) dir: PathBuf,
}

impl<'a> Scene<'a> {
    /// Boots the guests for the variations from this number on.
    fn new(
        image: &Path,
        lane: &'a Lane,
        cell: &'static Cell,
        dir: &Path,
        number: usize,
    ) -> Result<Self> {
        let begun = Instant::now();
        lane.mend(cell.link)?;
        let boot = |guest: usize, folder: &str| {
            let folder = dir.join(format!("{folder}-{number}"));
            let lunar = cell.root.has_lunar().then(server::binary).transpose()?;
            Guest::boot(
                image,
                &folder,
                cell.link.processors(),
                &lane.nics(cell.link, guest),
                lunar.as_deref(),
            )
        };
        let (guest, second) = thread::scope(|scope| {
            let second = (cell.link.guests() > 1).then(|| scope.spawn(|| boot(1, "second")));
            let guest = boot(0, "guest");
            let second =
                second.map(|booting| booting.join().map_err(|_| anyhow!("it panicked"))?);
            (guest, second)
        });
        let (guest, second) = (guest?, second.transpose()?);
        let (kernel, took) = (&guest.kernel, begun.elapsed().as_secs_f32());
        println!("{}: {kernel} is up after {took:.1} s", cell.name);
        Ok(Self {
            cell,
            lane,
            guest,
            second,
            dir: dir.to_owned(),
        })
    }

    /// Has tshark find nothing malformed in what went over the guests' interfaces.
    fn judge(&self) -> Result<()> {
        let guests = [Some(&self.guest), self.second.as_ref()];
        let captures = guests.into_iter().flatten().map(Guest::captures);
        captures::judge(&captures.collect::<Vec<_>>().concat())
    }

    /// Turns the guests off. Captures are kept of what failed, or if they are to be.
    fn off(self, keep: bool) {
        for guest in [Some(self.guest), self.second].into_iter().flatten() {
            guest.off(keep);
        }
    }

    /// A folder for one variation.
    pub(crate) fn folder(&self, variation: &Variation) -> Result<PathBuf> {
        let dir = self.dir.join(variation.name);
        fs::create_dir_all(&dir)?;
        Ok(dir)
    }
}

fn run_cell(lane: &Lane, cell: &'static Cell, asked: &Asked, report: &Report) {
    let image = match ready(cell.root) {
        Ok(image) => image,
        Err(cause) => return report.not_run(cell.name, &format!("{cause:#}")),
    };
    if let Some(missing) = lane.missing(cell.link) {
        return report.not_run(cell.name, &missing);
    }
    let dir = tests::top().join("target/check/vm").join(cell.name);
    if let Err(cause) = set_aside(&dir).and_then(|()| emptied(&dir)) {
        return report.failed(cell.name, &format!("{cause:#}"), Duration::ZERO);
    }
    let mut scene = None;
    let variations = cell.variations.iter().zip(1..);
    let has = |variation| names_have(&asked.names, cell.name, variation);
    for (variation, number) in variations.filter(|(variation, _)| has(variation)) {
        let begun = Instant::now();
        let name = format!("{}/{}", cell.name, variation.name);
        let ended = enter(&mut scene, || Scene::new(&image, lane, cell, &dir, number))
            .and_then(|scene| (cell.run)(scene, variation));
        let Err(cause) = ended else {
            report.passed(&name, begun.elapsed());
            continue;
        };
        if let Some(NotRun(reason)) = cause.downcast_ref() {
            report.not_run(&name, reason);
            continue;
        }
        let cause = format!("{cause:#}\n  see {}", dir.display());
        report.failed(&name, &cause, begun.elapsed());
        // Without that mark the next run removes the logs.
        let _ = fs::write(dir.join(FAILED), format!("{name}: {cause}\n"));
        // What it has left in its guest is in the way of the next one.
        match scene.take() {
            Some(scene) => scene.off(true),
            None => {
                for left in &cell.variations[number..] {
                    let name = format!("{}/{}", cell.name, left.name);
                    report.not_run(&name, "the guest did not boot for the one before it");
                }
                return;
            }
        }
    }
    if let Some(scene) = scene {
        let is_judged = cell.is_judged().then(|| judge(&scene, report));
        scene.off(asked.keep || is_judged == Some(false));
    }
}

/// Whether nothing in the captures of a cell that has passed is malformed; that counts as a test.
fn judge(scene: &Scene<'_>, report: &Report) -> bool {
    let (begun, name) = (Instant::now(), format!("{}/captures", scene.cell.name));
    let judged = scene.judge();
    match &judged {
        Ok(()) => report.passed(&name, begun.elapsed()),
        Err(cause) => match cause.downcast_ref() {
            Some(NotRun(reason)) => report.not_run(&name, reason),
            None => report.failed(&name, &format!("{cause:#}"), begun.elapsed()),
        },
    }
    judged.is_ok()
}

/// What a cell has in its folder if it failed.
const FAILED: &str = "failed";

/// Keeps what a cell that failed has left, until it fails again: the next run would remove it.
fn set_aside(dir: &Path) -> Result<()> {
    if dir.join(FAILED).exists() {
        let kept = dir.with_extension("failed");
        emptied(&kept)?;
        fs::rename(dir, kept).context("the folder of a failed cell stays")?;
    }
    Ok(())
}

/// What is there, or else what `make` makes.
fn enter<T>(place: &mut Option<T>, make: impl FnOnce() -> Result<T>) -> Result<&mut T> {
    if place.is_none() {
        *place = Some(make()?);
    }
    place.as_mut().context("no scene")
}

pub(crate) fn emptied(dir: &Path) -> Result<()> {
    match fs::remove_dir_all(dir) {
        Err(cause) if cause.kind() != std::io::ErrorKind::NotFound => return Err(cause.into()),
        _ => {}
    }
    fs::create_dir_all(dir).context("no folder for the cell")
}
