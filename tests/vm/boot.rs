//! A machine without a disk starts from a LUN, by firmware that has an initiator of its own.
//!
//! The cell's guest installs Debian there. Then another one starts from it, and its server is
//! killed and started again under the running system.

use std::ffi::OsString;
use std::fs::{self, File};
use std::path::Path;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tests::server::Server;

use crate::Scene;
use crate::cells::Link;
use crate::firmware::{self, SIGNATURE, Session};
use crate::guest::{Guest, KERNEL_ARGUMENTS, Nic};
use crate::report::NotRun;
use crate::serving::{GUEST, ended, ended_but, options, proofs, start};
use crate::variations::{Auth, PLAIN, SECRET, USER, Variation, Word};

const TARGET: &str = "iqn.2026-11.org.lunar.test:root";
const SIZE: u64 = 1 << 30;

pub(crate) const STORIES: &[Variation] = &[
    Variation {
        name: "install",
        ..PLAIN
    },
    Variation {
        name: "ipxe",
        ..PLAIN
    },
    Variation {
        name: "ipxe-chap",
        auth: Auth::Chap,
        ..PLAIN
    },
    Variation {
        name: "ipxe-fcoe",
        ..PLAIN
    },
    Variation {
        name: "ovmf",
        ..PLAIN
    },
    Variation {
        name: "ovmf-chap",
        auth: Auth::Chap,
        ..PLAIN
    },
];

/// The networks of the guest that installs, and of the machine without a disk.
const INSTALLER: usize = 0;
const DISKLESS: usize = 1;

pub(crate) fn run(scene: &mut Scene, variation: &Variation) -> Result<()> {
    let disk = scene.dir.join("disk");
    let ended = match variation.name {
        "install" => installs(scene, variation, &disk),
        "ipxe-fcoe" => has_fcoe(scene),
        _ => starts(scene, variation, &disk),
    };
    if scene.cell.variations.last().map(|last| last.name) == Some(variation.name) {
        // Logs and captures are kept of what failed, not disks.
        let _ = fs::remove_file(&disk);
    }
    ended
}

fn installs(scene: &mut Scene, variation: &Variation, disk: &Path) -> Result<()> {
    let dir = scene.folder(variation)?;
    File::create(disk)?.set_len(SIZE)?;
    let server = serve(scene, &dir, disk, &PLAIN)?;
    let mut words = words(scene, INSTALLER, "install");
    words.push(("arguments", KERNEL_ARGUMENTS.replace(' ', ",")));
    words.push(("signature", format!("{SIGNATURE:#x}")));
    let mut none = |_: &str| bail!("the host has no part in it");
    scene.guest.run(scene.cell.script, &words, &mut none)?;
    ended(server, variation)
}

/// Whether this build of iPXE has FCoE, which it said when it started.
fn has_fcoe(scene: &Scene) -> Result<()> {
    let console = fs::read(scene.dir.join("ipxe/console")).unwrap_or_default();
    let console = String::from_utf8_lossy(&console);
    let features = console
        .split("Features:")
        .nth(1)
        .and_then(|rest| rest.lines().next());
    match features.map(str::trim) {
        Some(has) if has.contains("FCoE") => bail!("it has, and no cell boots by it: {has}"),
        Some(has) => bail!(NotRun(format!("this build of iPXE has no FCoE: {has}"))),
        None => bail!(NotRun("iPXE did not start".to_owned())),
    }
}

/// Starts a machine without a disk, uses it, and has the other guest look at what it left.
fn starts(scene: &mut Scene, variation: &Variation, disk: &Path) -> Result<()> {
    let dir = scene.folder(variation)?;
    let firmware = firmware(scene, &dir, variation)?;
    let server = serve(scene, &dir, disk, variation)?;
    let nics = nics(scene);
    let mut guest = Guest::start(&firmware, &dir, scene.cell.link.processors(), &nics)?;
    println!("{}: {} is up", scene.cell.name, variation.name);
    let mut served = Some(server);
    let mut answer = |asked: &str| {
        if asked != "restart" {
            bail!("it is not known");
        }
        served.take().context("no server")?.kill()?;
        thread::sleep(Duration::from_secs(3));
        served = Some(serve(scene, &dir, disk, variation)?);
        Ok(())
    };
    guest.run("root-disk.sh", &words(scene, DISKLESS, "use"), &mut answer)?;
    guest.off(false);
    // iPXE never logs out. The kernel denies its connection, unless it comes up so late that the
    // server has given up by then.
    ended_but(served.context("no server")?, &["silence (RFC 7143"])?;

    let server = serve(scene, &dir, disk, &PLAIN)?;
    let words = words(scene, INSTALLER, "check");
    let mut none = |_: &str| bail!("the host has no part in it");
    scene.guest.run(scene.cell.script, &words, &mut none)?;
    ended(server, variation)
}

/// One portal in each network.
fn serve(scene: &Scene, dir: &Path, disk: &Path, variation: &Variation) -> Result<Server> {
    let mut options = options(scene, &["--iqn", TARGET, "--allow", GUEST]);
    for network in [INSTALLER, DISKLESS] {
        options.extend(["--listen".to_owned(), portal(scene, network)]);
    }
    options.extend(proofs(dir, variation)?);
    start(dir, &[&format!("file:{}", disk.display())], &options)
}

fn portal(scene: &Scene, network: usize) -> String {
    format!("{}:3260", scene.lane.host(network))
}

fn words(scene: &Scene, network: usize, action: &str) -> Vec<Word> {
    vec![
        ("action", action.to_owned()),
        ("own", scene.lane.guest(network)),
        ("target", TARGET.to_owned()),
        ("portal", portal(scene, network)),
    ]
}

/// The one interface of the machine without a disk.
fn nics(scene: &Scene) -> Vec<Nic> {
    scene
        .lane
        .nics(Link::Taps(2), 0)
        .into_iter()
        .skip(DISKLESS)
        .collect()
}

/// What starts the machine without a disk.
fn firmware(scene: &Scene, dir: &Path, variation: &Variation) -> Result<Vec<OsString>> {
    let session = Session {
        mac: scene.lane.mac(DISKLESS),
        own: scene.lane.guest(DISKLESS).parse()?,
        portal: scene.lane.host(DISKLESS).parse()?,
        initiator: GUEST,
        target: TARGET,
        proof: (variation.auth != Auth::None).then_some((USER, SECRET)),
    };
    if variation.name.starts_with("ipxe") {
        firmware::ipxe(dir, &session)
    } else {
        firmware::ovmf(dir, &session)
    }
}
