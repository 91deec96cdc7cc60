//! `cargo xtask scale`: what a tree of many LUNs costs a daemon.
//!
//! All goes over its socket, as the verbs do: history, document and audit log with their syncs are
//! in what is timed.

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use control::api::{SetRequest, Status};
use control::client::{ApiClient, ApiRequest, Method};
use control::gate::Outcome;
use tests::process::resident;

use crate::bench::{Verdict, release_binary};

/// Measure what a tree of 10,000 LUNs costs a daemon
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// How many targets there are, each with 10 LUNs on null:
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..))]
    targets: u32,

    /// How many LUNs are added one by one; the median counts
    #[arg(long, default_value_t = 21, value_parser = clap::value_parser!(u32).range(1..))]
    more: u32,
}

/// LUNs of each target.
const LUNS: u32 = 10;

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let daemon = RunningDaemon::start(&release_binary()?)?;
    let before = resident(daemon.child.id())?;
    let document = document(arguments.targets, daemon.portal);
    let from_nothing = daemon.timed(Method::PUT, "/v1/config", document)?;
    let grown = resident(daemon.child.id())?.saturating_sub(before);
    let add = |number| daemon.add(arguments.targets, number);
    let mut each = (0..arguments.more).map(add).collect::<Result<Vec<_>>>()?;
    each.sort_by(f64::total_cmp);
    let (luns, last) = (arguments.targets * LUNS, each.len() - 1);
    let kib = grown as f64 / f64::from(luns) / 1024.0;
    let verdicts = [
        Verdict::at_most(
            from_nothing,
            format!("ms from nothing to {luns} LUNs"),
            3000.0,
        ),
        Verdict::at_most(each[last / 2], "ms for one more, the median", 100.0),
        Verdict::at_most(kib, "KiB for a LUN", 64.0),
    ];
    for verdict in &verdicts {
        println!("{verdict}");
    }
    println!("one more took {:.1} to {:.1} ms", each[0], each[last]);
    let status: Status = daemon
        .client
        .ask(Method::GET, &ApiRequest::new("/v1/status"))?;
    ensure!(
        status.volumes == (luns + arguments.more) as usize,
        "{status:?}"
    );
    let all_good = verdicts.iter().all(|verdict| verdict.good);
    ensure!(all_good, "not all that is required was reached");
    Ok(())
}

/// 10 LUNs in each target.
fn document(targets: u32, portal: u16) -> String {
    let volume = |lun| format!("\n[volume.v{lun}]\naddress = \"null:1G\"\n");
    let volumes: String = (0..targets * LUNS).map(volume).collect();
    let target = |number| {
        let luns = (0..LUNS).map(|lun| format!("{lun} = \"v{}\"", number * LUNS + lun));
        let luns = luns.collect::<Vec<_>>().join(", ");
        format!(
            "\n[target.\"{}\"]\nportals = [\"127.0.0.1:{portal}\"]\nluns = {{ {luns} }}\n\
             allow = [\"*\"]\n",
            name(number)
        )
    };
    let targets: String = (0..targets).map(target).collect();
    format!("version = 1\n{volumes}{targets}")
}

fn name(target: u32) -> String {
    format!("iqn.2026-11.org.example:t{target}")
}

/// A daemon that serves nothing at first, and ends with the chore.
struct RunningDaemon {
    child: Child,
    client: ApiClient,
    /// The port of the portal that all targets have.
    portal: u16,
}

impl RunningDaemon {
    fn start(binary: &Path) -> Result<Self> {
        let dir = tests::scratch("scale").context("cannot make a folder in target/tests")?;
        let socket = dir.join("control.sock");
        fs::write(dir.join("lunar.toml"), "version = 1\n")?;
        let mut command = Command::new("setpriv");
        let ends_with_us = ["--pdeathsig", "KILL"];
        command.args(ends_with_us).arg(binary).arg("daemon");
        for (option, name) in [("--config", "lunar.toml"), ("--state-dir", "state")] {
            command.arg(option).arg(dir.join(name));
        }
        command.arg("--socket").arg(&socket).stdin(Stdio::null());
        let free = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let mut daemon = Self {
            child: command.spawn().context("cannot start setpriv")?,
            client: ApiClient::new(&socket, "cargo xtask scale"),
            portal: free.port(),
        };
        daemon.wait()?;
        Ok(daemon)
    }

    fn wait(&mut self) -> Result<()> {
        for _ in 0..1000 {
            if let Some(status) = self.child.try_wait()? {
                bail!("the daemon has ended: {status}");
            }
            let status = self
                .client
                .text(Method::GET, &ApiRequest::new("/v1/status"));
            if status.is_ok() {
                return Ok(());
            }
            thread::sleep(Duration::from_millis(10));
        }
        bail!("the daemon does not answer")
    }

    /// Has a change made; returns how long that took, in milliseconds.
    fn timed(&self, method: Method, path: &str, body: String) -> Result<f64> {
        let request = ApiRequest {
            body: Some(body),
            ..ApiRequest::new(path)
        };
        let start = Instant::now();
        let outcome: Outcome = self.client.ask(method, &request)?;
        let time = start.elapsed();
        ensure!(outcome.generation > outcome.from, "nothing has changed");
        Ok(time.as_secs_f64() * 1e3)
    }

    /// One more LUN, in a target of its own as far as there are some.
    fn add(&self, targets: u32, number: u32) -> Result<f64> {
        let (target, lun) = (name(number % targets), LUNS + number / targets);
        let set = [
            (format!("volume.more{number}.address"), "null:1G".to_owned()),
            (
                format!("target.{target}.luns.{lun}"),
                format!("more{number}"),
            ),
        ];
        let request = SetRequest {
            set: set.into(),
            unset: Vec::new(),
        };
        self.timed(Method::POST, "/v1/set", serde_json::to_string(&request)?)
    }
}

impl Drop for RunningDaemon {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
