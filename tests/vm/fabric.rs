//! `lunar switch` between the kernel's fcoe and a port of `lunar serve`, each at its own cable.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail};
use tests::tool::must;

use crate::Scene;
use crate::serving::{Disk, ended, options, start};
use crate::variations::Variation;

/// A disk of ours, which the kernel finds by the name server.
pub(crate) fn disk(scene: &mut Scene, variation: &Variation) -> Result<()> {
    let dir = scene.folder(variation)?;
    let disk = Disk::new(&dir)?;
    let to_guest = format!("cable:{}", scene.lane.cable().display());
    let to_server = format!("{to_guest}.server");
    let port = format!("{to_server},mode=fabric");
    let wwpn = format!("20:00:{}", scene.lane.mac(0));
    let options = options(scene, &["--fcoe", &port, "--allow", &wwpn]);
    let words = [("mtu", variation.mtu.to_string())];
    let (mut switch, mut server) = (None, None);
    let mut answer = |asked: &str| {
        match asked {
            "switch" => switch = Some(Switch::start(&dir, &[&to_guest, &to_server])?),
            "serve" => server = Some(start(&dir, &[&disk.address()], &options)?),
            _ => return disk.answer(asked),
        }
        Ok(())
    };
    scene.guest.run(scene.cell.script, &words, &mut answer)?;
    ended(server.context("no server was asked for")?, variation)?;
    switch.context("no switch was asked for")?.stop()
}

/// A switch that runs until this is dropped.
struct Switch(Child);

impl Switch {
    fn start(dir: &Path, places: &[&str]) -> Result<Self> {
        let mut child = Command::new(tests::server::binary()?)
            .arg("switch")
            .args(places)
            .arg("--open")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(File::create(dir.join("switch.log"))?)
            .spawn()
            .context("cannot start lunar switch")?;
        let lines = child.stdout.take().context("no pipe")?;
        let switch = Self(child);
        let ready = BufReader::new(lines).lines().take(places.len());
        if ready.map_while(Result::ok).count() < places.len() {
            bail!("the switch was not ready: see switch.log");
        }
        Ok(switch)
    }

    /// Stops it; it tells its ports and ends well.
    fn stop(mut self) -> Result<()> {
        must(Command::new("kill").args(["-TERM", &self.0.id().to_string()]))?;
        let status = self.0.wait()?;
        if !status.success() {
            bail!("the switch ended with {status}");
        }
        Ok(())
    }
}

impl Drop for Switch {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
