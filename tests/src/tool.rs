//! Other people's programs, run with a time limit.

use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};

/// What a program said, and how it ended.
#[derive(Debug)]
pub struct Ran {
    /// How it ended; `None` when its time was up.
    pub status: Option<ExitStatus>,
    /// Standard output and standard error, as they came.
    pub output: String,
}

impl Ran {
    /// Whether it ended in time and well.
    #[must_use]
    pub fn good(&self) -> bool {
        self.status.is_some_and(|status| status.success())
    }

    /// Its exit code, if it ended by itself and in time.
    #[must_use]
    pub fn code(&self) -> Option<i32> {
        self.status?.code()
    }
}

/// A program of this machine, or one in another root directory, where only root can run it.
#[must_use]
pub fn inside(root: Option<&Path>, program: &str) -> Command {
    let Some(root) = root else {
        return Command::new(program);
    };
    let mut command = Command::new("chroot");
    command.arg(root).arg(program);
    command
}

/// Runs a program to its end, or kills it when `limit` has passed.
///
/// # Errors
/// When it cannot be started.
pub fn run(command: &mut Command, limit: Duration) -> Result<Ran> {
    let name = command.get_program().to_string_lossy().into_owned();
    let (mut reader, writer) = std::io::pipe().context("no pipe")?;
    command.stdin(Stdio::null());
    command.stdout(writer.try_clone()?).stderr(writer);
    let child = command.spawn();
    // The command holds the writing ends too: the reader would never see the end.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = child.with_context(|| format!("cannot start {name}"))?;
    // Read while it runs, so that a chatty program is never stopped by a full pipe.
    let reading = thread::spawn(move || {
        let mut bytes = Vec::new();
        reader.read_to_end(&mut bytes).map(|_| bytes)
    });
    let status = wait(&mut child, limit)?;
    let bytes = reading
        .join()
        .map_err(|_| anyhow!("the reader of {name} died"))??;
    let output = String::from_utf8_lossy(&bytes).into_owned();
    Ok(Ran { status, output })
}

/// Runs a program that has to end well within a minute; gives its output.
///
/// # Errors
/// With the output, when it does not.
pub fn must(command: &mut Command) -> Result<String> {
    let ran = run(command, Duration::from_secs(60))?;
    if !ran.good() {
        bail!("{command:?}: {:?}\n{}", ran.status, ran.output);
    }
    Ok(ran.output)
}

/// Tells `./check`, past what captures the output of tests that pass, that something has not run.
/// `what` is a line, with the reason.
pub fn not_run(what: &str) {
    let words = format!("\nnot run: {what}\ntest result: ok. 0 passed; 0 failed; 1 not run\n");
    // Without standard error there is nobody to tell.
    let _ = std::io::stderr().write_all(words.as_bytes());
}

/// Stops a process as it is (SIGSTOP), and waits until it stands still: its threads go on until the
/// one that takes the signal runs, which on a busy machine is later.
///
/// # Errors
/// When it has ended, or goes on.
pub fn freeze(process: u32) -> Result<()> {
    must(Command::new("kill").args(["-STOP", &process.to_string()]))?;
    let end = Instant::now() + Duration::from_secs(20);
    while !stands_still(process)? {
        if Instant::now() >= end {
            bail!("process {process} goes on");
        }
        thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

/// Whether all threads of a process are stopped.
fn stands_still(process: u32) -> Result<bool> {
    for task in fs::read_dir(format!("/proc/{process}/task"))? {
        let stat = fs::read_to_string(task?.path().join("stat"))?;
        // The state stands behind the name, which is in parentheses.
        let state = stat.rsplit_once(") ").map(|(_, rest)| rest);
        if !state.is_some_and(|state| state.starts_with('T')) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Waits for a child; kills it when `limit` has passed.
fn wait(child: &mut Child, limit: Duration) -> Result<Option<ExitStatus>> {
    let end = Instant::now() + limit;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if Instant::now() >= end {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        thread::sleep(Duration::from_millis(5));
    }
}

/// Whether every program of `names` is in the search path.
///
/// # Errors
/// Names those that are not.
pub fn present(names: &[&str]) -> Result<()> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let dirs: Vec<_> = std::env::split_paths(&path).collect();
    let missing = |name: &&&str| !dirs.iter().any(|dir| is_program(&dir.join(name)));
    let missing: Vec<_> = names.iter().filter(missing).copied().collect();
    if !missing.is_empty() {
        bail!(
            "missing: {}; ./check as root installs them",
            missing.join(", ")
        );
    }
    Ok(())
}

fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata()
        .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}
