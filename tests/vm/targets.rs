//! `lunar`'s verbs at targets that are programs: istgt and tgtd.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Result, bail};
use tests::tool;

use crate::programs::Running;
use crate::serving::MIB;
use crate::using::{address, listed, lunar, negotiated, uses};
use crate::variations::{Auth, MUTUAL_SECRET, MUTUAL_USER, SECRET, USER, Variation};

const TARGET: &str = "iqn.2026-11.org.lunar.test:disk";
const PORTAL: &str = "127.0.0.1:3261";
/// Where istgt is controlled, and how tgtd is.
const CONTROL: &str = "127.0.0.1:3262";
const CONTROL_NUMBER: &str = "31";

pub(crate) fn istgt_ready() -> Result<()> {
    tool::present(&["istgt"])
}

pub(crate) fn tgtd_ready() -> Result<()> {
    tool::present(&["tgtd", "tgtadm"])
}

/// istgt: what FreeBSD and its NAS distributions had before they had a target in the kernel.
pub(crate) fn istgt(dir: &Path, variation: &Variation) -> Result<()> {
    // It ends itself over InitialR2T=No.
    let variation = &Variation {
        initial_r2t: true,
        ..*variation
    };
    disk(dir)?;
    let config = dir.join("istgt.conf");
    fs::write(&config, istgt_config(dir, variation))?;
    crate::serving::secret(dir, "auth.conf", &istgt_users())?;
    let mut command = Command::new("istgt");
    command.arg("-D").arg("-c").arg(&config);
    let _running = started(command, dir)?;
    meets(dir, "FreeBSD", 0, variation)
}

fn istgt_users() -> String {
    format!("[AuthGroup1]\n  Auth \"{USER}\" \"{SECRET}\" \"{MUTUAL_USER}\" \"{MUTUAL_SECRET}\"\n")
}

fn istgt_config(dir: &Path, variation: &Variation) -> String {
    let proof = match variation.auth {
        Auth::None => "None",
        Auth::Chap => "CHAP",
        Auth::Mutual => "CHAP Mutual",
    };
    // A discovery proves nothing of the target, as `lunar ls` has it.
    let discovery = if variation.auth == Auth::None {
        "None"
    } else {
        "CHAP"
    };
    let (base, name) = TARGET.split_once(':').unwrap_or_default();
    let immediate = if variation.immediate_data {
        "Yes"
    } else {
        "No"
    };
    let burst = variation.max_burst;
    let dir = dir.display();
    format!(
        "[Global]
  NodeBase \"{base}\"
  PidFile {dir}/pid
  AuthFile {dir}/auth.conf
  DiscoveryAuthMethod {discovery}
  DiscoveryAuthGroup AuthGroup1
  MaxBurstLength {burst}
  FirstBurstLength {burst}
  InitialR2T Yes
  ImmediateData {immediate}
[UnitControl]
  AuthMethod None
  Portal UC1 {CONTROL}
  Netmask 127.0.0.1
[PortalGroup1]
  Portal DA1 {PORTAL}
[InitiatorGroup1]
  InitiatorName \"ALL\"
  Netmask 127.0.0.0/8
[LogicalUnit1]
  TargetName {name}
  Mapping PortalGroup1 InitiatorGroup1
  AuthMethod {proof}
  AuthGroup AuthGroup1
  UseDigest Auto
  UnitType Disk
  LUN0 Storage {dir}/disk 64MB
"
    )
}

/// tgtd. Its LUN 0 is a controller.
pub(crate) fn tgtd(dir: &Path, variation: &Variation) -> Result<()> {
    disk(dir)?;
    let mut command = Command::new("tgtd");
    command.args(["-f", "-C", CONTROL_NUMBER, "--iscsi"]);
    command.arg(format!("portal={PORTAL}"));
    let _running = started(command, dir)?;
    let file = dir.join("disk");
    let yes_no = |yes: bool| if yes { "Yes" } else { "No" };
    let digests = if variation.digests { "CRC32C" } else { "None" };
    tgtadm(&format!("new --mode target --tid 1 -T {TARGET}"))?;
    tgtadm(&format!(
        "new --mode logicalunit --tid 1 --lun 1 -b {}",
        file.display()
    ))?;
    let burst = variation.max_burst.to_string();
    for (key, value) in [
        ("HeaderDigest", digests),
        ("DataDigest", digests),
        ("InitialR2T", yes_no(variation.initial_r2t)),
        ("ImmediateData", yes_no(variation.immediate_data)),
        ("FirstBurstLength", &burst),
        ("MaxBurstLength", &burst),
    ] {
        tgtadm(&format!("update --mode target --tid 1 -n {key} -v {value}"))?;
    }
    let accounts = match variation.auth {
        Auth::None => 0,
        Auth::Chap => 1,
        Auth::Mutual => 2,
    };
    let all = [
        (USER, SECRET, ""),
        (MUTUAL_USER, MUTUAL_SECRET, "--outgoing"),
    ];
    for (user, secret, direction) in &all[..accounts] {
        tgtadm(&format!(
            "new --mode account --user {user} --password {secret}"
        ))?;
        tgtadm(&format!(
            "bind --mode account --tid 1 --user {user} {direction}"
        ))?;
    }
    tgtadm("bind --mode target --tid 1 -I ALL")?;
    meets(dir, "IET", 1, variation)
}

fn tgtadm(words: &str) -> Result<()> {
    let mut command = Command::new("tgtadm");
    command.args(["-C", CONTROL_NUMBER, "--lld", "iscsi", "--op"]);
    tool::must(command.args(words.split_whitespace())).map(drop)
}

fn disk(dir: &Path) -> Result<()> {
    Ok(File::create(dir.join("disk"))?.set_len(64 * MIB)?)
}

fn started(mut command: Command, dir: &Path) -> Result<Running> {
    let log = File::create(dir.join("peer"))?;
    command.stdin(Stdio::null());
    command.stdout(log.try_clone()?).stderr(log);
    let mut running = Running(command.spawn()?);
    running.listens(PORTAL)?;
    Ok(running)
}

/// Everything that the verbs do, and what a wrong secret comes to.
fn meets(dir: &Path, vendor: &str, lun: u32, variation: &Variation) -> Result<()> {
    listed(dir, PORTAL, TARGET, variation)?;
    let unit = address(dir, "iscsi", &format!("{PORTAL}/{TARGET}/{lun}"), variation)?;
    let told = lunar(dir, &["info", &unit])?;
    negotiated(&told, "iscsi", vendor, variation)?;
    uses(dir, &unit)?;
    if variation.auth != Auth::None {
        refused(dir, lun, variation)?;
    }
    fs::remove_file(dir.join("disk"))?;
    Ok(())
}

fn refused(dir: &Path, lun: u32, variation: &Variation) -> Result<()> {
    let unit = address(dir, "iscsi", &format!("{PORTAL}/{TARGET}/{lun}"), variation)?;
    crate::serving::secret(dir, "secret", "another-secret")?;
    let mut info = Command::new(tests::server::binary()?);
    let ran = tool::run(info.args(["info", &unit]), Duration::from_secs(60))?;
    if ran.good() || !ran.output.contains("rejected CHAP user") {
        bail!("a wrong secret: {:?}, {}", ran.status, ran.output);
    }
    Ok(())
}
