//! `lunar`'s verbs at a target in a guest.

use std::fs::{self, File};
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::Value;
use tests::server;
use tests::tool;

use crate::Scene;
use crate::damage::{Damage, OFTEN, SELDOM};
use crate::serving::{load_words, secret};
use crate::variations::{Auth, MUTUAL_SECRET, SECRET, USER, Variation, Word};

pub(crate) const TARGET: &str = "iqn.2026-11.org.lunar.test:lio";
pub(crate) const INITIATOR: &str = "iqn.2026-11.org.lunar.test:host";

/// LIO over iSCSI.
pub(crate) fn iscsi(scene: &mut Scene, variation: &Variation) -> Result<()> {
    lio(scene, variation, "iscsi")
}

/// LIO over iSER.
pub(crate) fn iser(scene: &mut Scene, variation: &Variation) -> Result<()> {
    lio(scene, variation, "iser")
}

fn lio(scene: &mut Scene, variation: &Variation, scheme: &str) -> Result<()> {
    let dir = scene.folder(variation)?;
    let own = scene.lane.guest(0);
    let mut words = variation.words();
    words.extend([("own", own.clone()), ("target", TARGET.to_owned())]);
    words.push(("initiator", INITIATOR.to_owned()));
    words.extend(load_words(variation));
    act(scene, "begin", &words)?;

    let mut portal = format!("{own}:3260");
    listed(&dir, &format!("{scheme}://{portal}"), TARGET, variation)?;
    let damage = if variation.damaged {
        let every = if scheme == "iser" { OFTEN } else { SELDOM };
        let damage = Damage::start("127.0.0.1:0", portal.parse()?, every)?;
        portal = damage.portal().to_string();
        Some(damage)
    } else {
        None
    };
    let unit = address(&dir, scheme, &format!("{portal}/{TARGET}/0"), variation)?;
    let told = lunar(&dir, &["info", &unit])?;
    negotiated(&told, scheme, "LIO-ORG", variation)?;
    match &damage {
        Some(damage) if scheme == "iser" => suffers(damage, || load(&dir, &unit, ONE_AT_A_TIME))?,
        Some(damage) => {
            uses(&dir, &unit)?;
            suffers(damage, || load(&dir, &unit, EIGHT))?;
        }
        None => uses(&dir, &unit)?,
    }
    act(scene, "grow", &words)?;
    told_to_have(&dir, &unit, "256.0 MiB")?;
    act(scene, "end", &words)
}

/// Does that until so many bits were flipped that no luck is left in it.
fn suffers(damage: &Damage, load: impl Fn() -> Result<()>) -> Result<()> {
    for _ in 0..20 {
        if damage.flipped() < 4 {
            load()?;
        }
    }
    if damage.flipped() < 4 {
        bail!("{} bits were flipped only", damage.flipped());
    }
    Ok(())
}

/// tcm_fc over a cable.
pub(crate) fn fcoe(scene: &mut Scene, variation: &Variation) -> Result<()> {
    let dir = scene.folder(variation)?;
    let cable = format!("fcoe://cable:{}", scene.lane.cable().display());
    let target = format!("20:00:{}", scene.lane.mac(0));
    let words = [
        ("mtu", variation.mtu.to_string()),
        ("target", target.clone()),
        ("initiator", own_port(&dir, &cable)?),
    ];
    act(scene, "begin", &words)?;
    let unit = format!("{cable}/{target}/0");
    let told = lunar(&dir, &["ls", &cable])?;
    if !told.contains(&unit) {
        bail!("{unit} is not listed: {told}");
    }
    lunar(&dir, &["info", &unit])?;
    uses(&dir, &unit)?;
    act(scene, "grow", &words)?;
    told_to_have(&dir, &unit, "256.0 MiB")?;
    act(scene, "end", &words)
}

/// The WWPN of our port, which tcm_fc has to know before its own port comes up.
pub(crate) fn own_port(dir: &Path, cable: &str) -> Result<String> {
    let listed = run(dir, &["ls", "--json", cable])?;
    let lines = listed.output.lines();
    let objects = lines.filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut ours = objects.filter(|port| port["ours"] == true);
    let own = ours.next().with_context(|| listed.output.clone())?;
    Ok(own["port_name"].as_str().context("no name")?.to_owned())
}

fn act(scene: &mut Scene, action: &str, words: &[Word]) -> Result<()> {
    let words = [&[("action", action.to_owned())], words].concat();
    let mut none = |_: &str| bail!("the host has no part in it");
    scene.guest.run(scene.cell.script, &words, &mut none)
}

/// The target is discovered, by the same proof.
pub(crate) fn listed(dir: &Path, portal: &str, target: &str, variation: &Variation) -> Result<()> {
    let file = secret(dir, "secret", SECRET)?;
    let hash = variation.hash.to_lowercase();
    let mut args = vec!["ls", portal];
    if variation.auth != Auth::None {
        args.extend(["--user", USER, "--secret-file", &file, "--chap-hash", &hash]);
    }
    args.extend(["--initiator", INITIATOR]);
    let told = run(dir, &args)?;
    if !told.output.contains(target) {
        bail!("{target} is not listed: {}", told.output);
    }
    Ok(())
}

/// The address of a unit at `PORTAL/TARGET/LUN`, by `iscsi` or `iser`.
pub(crate) fn address(
    dir: &Path,
    scheme: &str,
    unit: &str,
    variation: &Variation,
) -> Result<String> {
    let sums = match scheme {
        "iser" if variation.fpdu_crc => "crc=on",
        "iser" => "crc=off",
        _ if variation.digests => "digests=crc32c",
        _ => "digests=none",
    };
    let mut address = format!("{unit}?initiator={INITIATOR}&{sums}");
    if variation.auth != Auth::None {
        let file = secret(dir, "secret", SECRET)?;
        let hash = variation.hash.to_lowercase();
        address = format!("{USER}@{address}&secret-file={file}&chap-hash={hash}");
    }
    if variation.auth == Auth::Mutual {
        let file = secret(dir, "mutual-secret", MUTUAL_SECRET)?;
        address += &format!("&mutual-secret-file={file}");
    }
    Ok(format!("{scheme}://{address}"))
}

/// What the session of `lunar info` says that it negotiated.
pub(crate) fn negotiated(
    told: &str,
    scheme: &str,
    vendor: &str,
    variation: &Variation,
) -> Result<()> {
    let yes_no = |yes: bool| if yes { "Yes" } else { "No" };
    let digests = if variation.digests { "CRC32C" } else { "None" };
    let crc = if variation.fpdu_crc { "yes" } else { "no" };
    let sums: &[_] = match scheme {
        "iser" => &[("RDMAExtensions", "Yes"), ("CRC", crc)],
        _ => &[("HeaderDigest", digests), ("DataDigest", digests)],
    };
    let wanted = [
        ("vendor", vendor),
        ("ImmediateData", yes_no(variation.immediate_data)),
        ("InitialR2T", yes_no(variation.initial_r2t)),
        ("MaxBurstLength", &variation.agreed_burst().to_string()),
    ];
    for (key, value) in sums.iter().copied().chain(wanted) {
        let mut lines = told.lines().map(str::split_whitespace);
        if !lines.any(|line| line.eq([key, value])) {
            bail!("{key} is not {value}: {told}");
        }
    }
    Ok(())
}

/// Writes what is random and reads it back, copies there and compares, and unmaps.
pub(crate) fn uses(dir: &Path, unit: &str) -> Result<()> {
    load(dir, unit, EIGHT)?;
    let image = Image::new(&dir.join("image"))?;
    lunar(dir, &["copy", &image.address, unit])?;
    lunar(dir, &["verify", &image.address, unit])?;
    // Holes come to be where data was.
    let empty = Image::empty(&dir.join("empty"))?;
    lunar(dir, &["copy", &empty.address, unit])?;
    lunar(dir, &["verify", &empty.address, unit])?;
    Ok(())
}

/// How many commands a load has under way, and how long it lasts for each size.
type Pace = (&'static str, &'static str);

const EIGHT: Pace = ("8", "1s");

/// For bits that flip on the way to ib_isert over siw. siw refuses what is posted while it takes a
/// connection down (-ENOTCONN from `siw_post_send`), where verbs have it complete as flushed. LIO
/// makes a CHECK CONDITION of such a command, which waits for the connection's thread, and that
/// waits for the command (`lio_queue_status`, `isert_wait_conn`). The next login of the session
/// waits for both, with all others behind it: for ever. Where one command is under way, nothing is
/// left to post.
const ONE_AT_A_TIME: Pace = ("1", "4s");

/// Random reads and writes of 4, 64 and 256 KiB; what is read has to be what was written.
fn load(dir: &Path, unit: &str, (depth, runtime): Pace) -> Result<()> {
    let load = [
        "--rw",
        "randrw",
        "--bs",
        "4k,64k,256k",
        "--iodepth",
        depth,
        "--size",
        "32M",
    ];
    let times = ["--verify", "--runtime", runtime, "--ramp-time", "0"];
    lunar(dir, &[&["bench", unit], &load[..], &times].concat()).map(drop)
}

fn told_to_have(dir: &Path, unit: &str, size: &str) -> Result<()> {
    let told = lunar(dir, &["info", unit])?;
    if !told.contains(size) {
        bail!("it has not grown to {size}: {told}");
    }
    Ok(())
}

/// An image that is removed with this.
struct Image {
    path: std::path::PathBuf,
    address: String,
}

const IMAGE_BYTES: u64 = 16 << 20;

impl Image {
    fn empty(path: &Path) -> Result<Self> {
        File::create(path)?.set_len(IMAGE_BYTES)?;
        Ok(Self {
            path: path.to_owned(),
            address: format!("file:{}", path.display()),
        })
    }

    /// No two blocks are the same, and each other MiB is a hole.
    fn new(path: &Path) -> Result<Self> {
        let image = Self::empty(path)?;
        let mut file = File::options().write(true).open(path)?;
        for mib in (0..IMAGE_BYTES >> 20).step_by(2) {
            let words = (0..1_u64 << 17).map(|word| word | (mib + 1) << 32);
            let bytes: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
            file.seek(SeekFrom::Start(mib << 20))?;
            file.write_all(&bytes)?;
        }
        Ok(image)
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        // Logs and captures are kept of what failed, not images.
        let _ = fs::remove_file(&self.path);
    }
}

/// A verb that must not fail; gives what it said.
pub(crate) fn lunar(dir: &Path, args: &[&str]) -> Result<String> {
    let ran = run(dir, args)?;
    if !ran.good() {
        bail!("lunar {}: {:?}\n{}", args.join(" "), ran.status, ran.output);
    }
    Ok(ran.output)
}

/// A verb that may fail. What it says is kept.
fn run(dir: &Path, args: &[&str]) -> Result<tool::Ran> {
    let mut command = Command::new(server::binary()?);
    if matches!(args[0], "copy") {
        command
            .arg(args[0])
            .arg("--state-dir")
            .arg(dir.join("state"))
            .args(&args[1..]);
    } else {
        command.args(args);
    }
    let ran = tool::run(&mut command, Duration::from_secs(180))?;
    let mut log = File::options()
        .create(true)
        .append(true)
        .open(dir.join("log"))?;
    write!(log, "$ lunar {}\n{}", args.join(" "), ran.output)?;
    Ok(ran)
}
