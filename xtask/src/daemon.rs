//! A `lunar daemon` of our own, which serves many LUNs, and is asked over its socket as the verbs
//! do: history, document and audit log with their syncs are in what a change takes.

use std::fs::{self, File};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use control::api::SetRequest;
use control::client::{ApiClient, ApiRequest, Method};
use control::gate::Outcome;
use serde::de::DeserializeOwned;

/// LUNs of each target of [`many_luns`].
pub(crate) const LUNS: u32 = 10;

/// A document with as many targets, each with [`LUNS`] LUNs on `null:`.
pub(crate) fn many_luns(targets: u32, portal: u16) -> String {
    let volume = |lun| format!("\n[volume.v{lun}]\naddress = \"null:1G\"\n");
    let volumes: String = (0..targets * LUNS).map(volume).collect();
    let each = |number| {
        let luns = (0..LUNS).map(|lun| format!("{lun} = \"v{}\"", number * LUNS + lun));
        target(&name(number), portal, &luns.collect::<Vec<_>>().join(", "))
    };
    let targets: String = (0..targets).map(each).collect();
    format!("{NOTHING}{volumes}{targets}")
}

/// The row of a target that lets everybody in.
pub(crate) fn target(name: &str, portal: u16, luns: &str) -> String {
    format!(
        "\n[target.\"{name}\"]\nportals = [\"127.0.0.1:{portal}\"]\nluns = {{ {luns} }}\n\
         allow = [\"*\"]\n"
    )
}

/// What the target of a number is called.
pub(crate) fn name(target: u32) -> String {
    format!("iqn.2026-11.org.example:t{target}")
}

/// The document of a daemon that serves nothing.
pub(crate) const NOTHING: &str = "version = 1\n";

/// A daemon that ends with the chore.
pub(crate) struct RunningDaemon {
    child: Child,
    client: ApiClient,
    log: PathBuf,
    /// The port of the portal that all targets have.
    pub(crate) portal: u16,
}

impl RunningDaemon {
    /// Starts it for a chore, in a folder of that name.
    pub(crate) fn start(binary: &Path, chore: &str, document: &str) -> Result<Self> {
        let dir = tests::scratch(chore).context("cannot make a folder in target/tests")?;
        let (socket, log) = (dir.join("control.sock"), dir.join("log"));
        fs::write(dir.join("lunar.toml"), document)?;
        let mut command = Command::new("setpriv");
        let ends_with_us = ["--pdeathsig", "KILL"];
        command.args(ends_with_us).arg(binary).arg("daemon");
        for (option, name) in [("--config", "lunar.toml"), ("--state-dir", "state")] {
            command.arg(option).arg(dir.join(name));
        }
        command.arg("--socket").arg(&socket).stdin(Stdio::null());
        command.stderr(File::create(&log)?);
        let free = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let mut daemon = Self {
            child: command.spawn().context("cannot start setpriv")?,
            client: ApiClient::new(&socket, format!("cargo xtask {chore}")),
            log,
            portal: free.port(),
        };
        daemon.wait()?;
        Ok(daemon)
    }

    fn wait(&mut self) -> Result<()> {
        for _ in 0..1000 {
            if let Some(status) = self.child.try_wait()? {
                let log = fs::read_to_string(&self.log).unwrap_or_default();
                bail!("the daemon has ended ({status}): {}", log.trim());
            }
            if self.text("/v1/status").is_ok() {
                return Ok(());
            }
            thread::sleep(Duration::from_millis(10));
        }
        bail!("the daemon does not answer, see {}", self.log.display())
    }

    /// Its process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What stands at a path.
    pub(crate) fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T> {
        Ok(self.client.ask(Method::GET, &ApiRequest::new(path))?)
    }

    /// The same as it is sent.
    pub(crate) fn text(&self, path: &str) -> Result<String> {
        Ok(self.client.text(Method::GET, &ApiRequest::new(path))?)
    }

    /// Has another document served; returns how long that took, in milliseconds.
    pub(crate) fn serve(&self, document: String) -> Result<f64> {
        self.timed(Method::PUT, "/v1/config", document)
    }

    /// Has values set, after paths have been taken away; returns how long that took, in
    /// milliseconds.
    pub(crate) fn set(&self, request: &SetRequest) -> Result<f64> {
        self.timed(Method::POST, "/v1/set", serde_json::to_string(request)?)
    }

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
}

impl Drop for RunningDaemon {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
