//! What tshark, which shares no code with us, makes of all that went over the interfaces of a
//! guest.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Result, bail};
use tests::tool;

use crate::report::NotRun;

/// Finds no malformed frame of FCoE, FIP and LLDP in the captures of a cell, and some of FIP.
///
/// # Errors
/// With the first malformed frames, where nothing was captured, or [`NotRun`] without tshark.
pub(crate) fn judge(captures: &[PathBuf]) -> Result<()> {
    tool::present(&["tshark"]).map_err(|cause| NotRun(cause.to_string()))?;
    let mut seen = 0;
    for capture in captures {
        let shown = capture.display();
        let wrong = frames(capture, MALFORMED, FRAMES_MAX)?;
        if !wrong.is_empty() {
            let (count, first) = (wrong.len(), wrong[..wrong.len().min(SHOWN)].join("\n"));
            bail!("tshark on {shown}: {count} malformed:\n{first}");
        }
        seen += frames(capture, "fip", BEGINNING)?.len();
    }
    if seen == 0 {
        bail!("tshark sees no frame of FIP in {captures:?}");
    }
    Ok(())
}

/// The frames that match a filter among the first ones, a line each.
fn frames(capture: &Path, filter: &str, first: u32) -> Result<Vec<String>> {
    let mut command = Command::new("tshark");
    command
        .args(["-n", "-c", &first.to_string(), "-r"])
        .arg(capture);
    let ran = tool::run(command.args(["-Y", filter]), PATIENCE)?;
    if !ran.good() {
        let (status, shown) = (ran.status, capture.display());
        bail!("tshark on {shown}: {status:?}: {}", ran.output);
    }
    // Each frame has its number in front, unlike what it says about itself.
    let number = |line: &&str| line.split_whitespace().next()?.parse::<u32>().ok();
    let lines = ran.output.lines().filter(|line| number(line).is_some());
    Ok(lines.map(str::to_owned).collect())
}

/// The answer to an INQUIRY is cut off at its allocation length, which tshark does not know.
const MALFORMED: &str =
    "(fip || fcoe || lldp || iscsi) && _ws.malformed && !(scsi_sbc.opcode == 0x12)";

/// Of these every kind is among the first ones, and tshark reads some 20,000 in a second.
const FRAMES_MAX: u32 = 100_000;

/// Ports look for each other before anything else.
const BEGINNING: u32 = 2_000;

const PATIENCE: Duration = Duration::from_secs(120);

/// Malformed frames that are shown.
const SHOWN: usize = 10;
