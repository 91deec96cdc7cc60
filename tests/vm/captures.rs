//! What tshark, which shares no code with us, makes of all that went over the interfaces of a
//! guest.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Result, bail};
use tests::tool;

/// Finds no malformed frame of FCoE, FIP and LLDP in a capture. Where there is no tshark it passes.
pub(crate) fn judge(capture: &Path) -> Result<()> {
    if tool::present(&["tshark"]).is_err() {
        return Ok(());
    }
    let mut command = Command::new("tshark");
    let frames = FRAMES_MAX.to_string();
    command.args(["-n", "-c", &frames, "-r"]).arg(capture);
    let ran = tool::run(command.args(["-Y", MALFORMED]), PATIENCE)?;
    // Each frame has its number in front, unlike what it says about itself.
    let number = |line: &&str| line.split_whitespace().next()?.parse::<u32>().ok();
    let wrong: Vec<_> = ran
        .output
        .lines()
        .filter(|line| number(line).is_some())
        .collect();
    if !ran.good() || !wrong.is_empty() {
        let first = wrong[..wrong.len().min(SHOWN)].join("\n");
        let capture = capture.display();
        bail!(
            "tshark on {capture}: {:?}, {} malformed:\n{first}",
            ran.status,
            wrong.len()
        );
    }
    Ok(())
}

/// The answer to an INQUIRY is cut off at its allocation length, which tshark does not know.
const MALFORMED: &str =
    "(fip || fcoe || lldp || iscsi) && _ws.malformed && !(scsi_sbc.opcode == 0x12)";

/// Of these every kind is among the first ones, and tshark reads some 20,000 in a second.
const FRAMES_MAX: u32 = 100_000;

const PATIENCE: Duration = Duration::from_secs(120);

/// Malformed frames that are shown.
const SHOWN: usize = 10;
