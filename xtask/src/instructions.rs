//! `cargo xtask instructions`: counts the instructions of the hot paths, and compares them with
//! what is committed.

mod baseline;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use ::tests::{tool, top};
use anyhow::{Context, Result, bail, ensure};
use baseline::Baseline;

/// Count the instructions of the hot paths, and compare them with tests/instructions/baseline.txt
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Write what was counted in place of what is committed
    #[arg(long)]
    renew: bool,
}

/// How often each benchmark does what it counts: COMMANDS of tests/instructions/main.rs.
const COMMANDS: f64 = 128.0;

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    tool::present(&["valgrind", "gungraun-runner"])?;
    let path = file();
    let made_by = made_by()?;
    if arguments.renew {
        let counts = count()?;
        let baseline = Baseline { made_by, counts };
        print!("{baseline}");
        return fs::write(&path, baseline.to_string()).with_context(|| path.display().to_string());
    }
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let committed: Baseline = text.parse()?;
    committed.check_compiler(&made_by)?;
    let (table, bad) = committed.compare(&count()?);
    print!("{table}");
    if bad > 0 {
        bail!(
            "{bad} grew by more than 3 %, or have no row{}",
            committed.other_tools(&made_by)
        );
    }
    Ok(())
}

fn file() -> PathBuf {
    top().join("tests/instructions/baseline.txt")
}

/// What the counts depend on, beside the source: compiler, C library, valgrind.
fn made_by() -> Result<Vec<String>> {
    let commands = [
        ["rustc", "--version"],
        ["ldd", "--version"],
        ["valgrind", "--version"],
    ];
    let version = |[program, argument]: [&str; 2]| {
        let said = tool::must(Command::new(program).arg(argument))?;
        Ok(said.lines().next().unwrap_or_default().to_owned())
    };
    commands.into_iter().map(version).collect()
}

/// Instructions by benchmark, each time.
fn count() -> Result<BTreeMap<String, f64>> {
    let output = Command::new("cargo")
        .current_dir(top())
        .args(["bench", "-p", "tests", "--no-default-features"])
        .args(["--bench", "instructions", "--", "--output-format=json"])
        .stderr(Stdio::inherit())
        .output()
        .context("cannot start cargo")?;
    ensure!(output.status.success(), "the benchmarks failed");
    let text = String::from_utf8(output.stdout)?;
    text.lines().map(row).collect()
}

/// A line of what gungraun says: one benchmark.
fn row(line: &str) -> Result<(String, f64)> {
    let said: serde_json::Value = serde_json::from_str(line)?;
    let name = |key| {
        said[key]
            .as_str()
            .with_context(|| format!("no {key}: {line}"))
    };
    let instructions = "/profiles/0/data/total/metrics/Ir/values/new";
    let counted = said
        .pointer(instructions)
        .and_then(serde_json::Value::as_f64);
    let counted = counted.with_context(|| format!("no {instructions}: {line}"))?;
    // Without its entry point, callgrind counts nothing and says so nowhere.
    ensure!(counted > 0.0, "nothing was counted: {line}");
    Ok((
        format!("{}/{}", name("function_name")?, name("id")?),
        counted / COMMANDS,
    ))
}
