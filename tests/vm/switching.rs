//! `lunar switch`, and the ports of `lunar serve` at it, for guests that ask for them.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use anyhow::{Context, Result, anyhow, bail};
use serde_json::Value;
use tests::server::Server;
use tests::tool::must;

use crate::Scene;
use crate::cells::Link;
use crate::serving::{Disk, ended_but, start};
use crate::variations::Word;

/// The servers that a story may have.
const SERVERS: usize = 2;

/// The host's part of a story: a switch, and servers that have a port and a disk each.
pub(crate) struct Site {
    dir: PathBuf,
    /// The places of the switch: those of the guests, then those of the servers.
    places: Vec<String>,
    /// Where the servers have their ports.
    ports: Vec<String>,
    /// The WWPNs of the guests.
    guests: Vec<String>,
    /// What the servers' ports are on a VLAN by.
    pub(crate) vlan: Option<u16>,
    /// The zones, if there are any: else every port sees all others.
    zones: Option<PathBuf>,
    /// Whether a second switch waits for the first one to fall silent, and its place.
    pub(crate) has_standby: bool,
    standby_place: String,
    switch: Option<Switch>,
    standby: Option<Switch>,
    /// Whether a switch was ended.
    has_struck: bool,
    load: Option<Load>,
    servers: [Option<(Server, Disk)>; SERVERS],
}

impl Site {
    pub(crate) fn new(scene: &Scene, dir: &Path) -> Result<Self> {
        let (lane, guests) = (scene.lane, scene.cell.link.guests());
        let cable = |guest| format!("cable:{}", lane.cable_of(guest).display());
        let standby_place = match scene.cell.link {
            Link::Bridge => lane.veth(1 + SERVERS)?,
            _ => String::new(),
        };
        let ports: Vec<_> = (0..SERVERS)
            .map(|server| match scene.cell.link {
                Link::Bridge => lane.veth(1 + server),
                _ => Ok(format!("{}.server-{server}", cable(0))),
            })
            .collect::<Result<_>>()?;
        let places = match scene.cell.link {
            Link::Bridge => vec![lane.veth(0)?],
            _ => (0..guests).map(cable).chain(ports.clone()).collect(),
        };
        Ok(Self {
            dir: dir.to_owned(),
            places,
            ports,
            guests: (0..guests)
                .map(|guest| format!("20:00:{}", lane.mac(guest)))
                .collect(),
            vlan: None,
            zones: None,
            has_standby: false,
            standby_place,
            switch: None,
            standby: None,
            has_struck: false,
            load: None,
            servers: [None, None],
        })
    }

    /// Does what a guest asks for.
    pub(crate) fn answer(&mut self, asked: &str) -> Result<()> {
        let (verb, what) = asked.split_once(' ').unwrap_or((asked, "0"));
        match verb {
            "switch" => self.switch(),
            "serve" => self.serve(what.parse()?),
            "leave" => self.leave(what.parse()?),
            "zones" => self.activate(what),
            "switches" => self.switches(),
            "kill" | "restart" => self.strike("-KILL"),
            "term" => self.strike("-TERM"),
            "revive" => self.revive(),
            "load" => self.load_begins(),
            "loaded" => self.load.take().context("no load")?.ends(),
            _ => bail!("it is not known"),
        }
    }

    /// Starts the switch.
    pub(crate) fn switch(&mut self) -> Result<()> {
        let mut options = match &self.zones {
            Some(file) => vec!["--zones".to_owned(), file.display().to_string()],
            None => vec!["--open".to_owned()],
        };
        if let Some(vlan) = self.vlan {
            options.extend(["--vlan".to_owned(), vlan.to_string()]);
        }
        self.switch = Some(Switch::start(&self.dir, &self.places, &options)?);
        Ok(())
    }

    /// A port of this machine.
    pub(crate) fn port(&self, number: usize) -> &str {
        &self.ports[number]
    }

    /// The WWPN of a guest.
    pub(crate) fn guest(&self, number: usize) -> &str {
        &self.guests[number]
    }

    /// Starts the switch, and the one that waits for its end, if there is to be one.
    fn switches(&mut self) -> Result<()> {
        if self.switch.is_some() {
            return Ok(());
        }
        self.switch = Some(self.named_switch(&self.places, &[])?);
        if self.has_standby {
            let place = [self.standby_place.clone()];
            self.standby = Some(self.named_switch(&place, &["--standby"])?);
        }
        Ok(())
    }

    /// One whose names and N_Port_IDs are those of the other one, or of the one before it.
    fn named_switch(&self, places: &[String], more: &[&str]) -> Result<Switch> {
        let state = self.dir.join("switch-state").display().to_string();
        let names = ["--switch-name", SWITCH_NAME, "--fabric-name", FABRIC_NAME];
        let options = ["--open", "--fka", "1s", "--state", &state];
        let options = [&names[..], &options, more].concat();
        let options: Vec<_> = options.into_iter().map(str::to_owned).collect();
        Switch::start(&self.dir, places, &options)
    }

    /// Ends the active switch. Where there is no other one it is started again.
    fn strike(&mut self, signal: &str) -> Result<()> {
        self.has_struck = true;
        let switch = self.switch.take().context("no switch")?;
        let status = switch.stop(signal)?;
        if signal == "-TERM" && !status.success() {
            bail!("the switch ended with {status}");
        }
        if self.has_standby {
            self.switch = self.standby.take();
            let places = [self.standby_place.clone()];
            let [place] = std::mem::replace(&mut self.places, places.into())
                .try_into()
                .map_err(|_| anyhow!("more than one place"))?;
            self.standby_place = place;
        } else {
            self.switch = Some(self.named_switch(&self.places, &[])?);
        }
        Ok(())
    }

    /// The switch that was ended is back, and waits.
    fn revive(&mut self) -> Result<()> {
        if self.has_standby {
            let place = [self.standby_place.clone()];
            self.standby = Some(self.named_switch(&place, &["--standby"])?);
        }
        Ok(())
    }

    /// Has an initiator of ours write and compare, on a part of the disk that no guest uses.
    fn load_begins(&mut self) -> Result<()> {
        let (server, _) = self.servers[0].as_ref().context("no server")?;
        let unit = format!(
            "fcoe://{}/{}/0?mode=fabric",
            self.ports[1], server.luns[0].target
        );
        self.load = Some(Load::start(&self.dir, &unit)?);
        Ok(())
    }

    /// The MAC address of a port of the switch, as its peers see it.
    pub(crate) fn fcf_mac(&self, place: usize) -> Result<&str> {
        let switch = self.switch.as_ref().context("no switch was asked for")?;
        Ok(&switch.macs[place])
    }

    /// Starts a server, whose disk stays what it was.
    fn serve(&mut self, number: usize) -> Result<()> {
        let dir = self.dir.join(format!("server-{number}"));
        fs::create_dir_all(&dir)?;
        let disk = match self.servers[number].take() {
            Some((_, disk)) => disk,
            None => Disk::new(&dir)?,
        };
        let mut port = format!("{},mode=fabric", self.ports[number]);
        if let Some(vlan) = self.vlan {
            port += &format!(",vlan={vlan}");
        }
        let options = ["--fcoe", &port, "--open"].map(str::to_owned);
        let server = start(&dir, &[&disk.address()], &options)?;
        self.servers[number] = Some((server, disk));
        Ok(())
    }

    /// Stops a server, which has warned of nothing but of a switch that has ended.
    fn leave(&mut self, number: usize) -> Result<()> {
        let served = self.servers[number].take();
        let (server, _) = served.context("no such server was asked for")?;
        let expected: &[&str] = if self.has_struck {
            &["left the fabric"]
        } else {
            &[]
        };
        ended_but(server, expected)
    }

    /// Has these zones be the active ones, `first,second`: each server is in one with the first
    /// guest, or the second with the NPIV port of that guest.
    fn activate(&mut self, names: &str) -> Result<()> {
        let mut lines = vec![
            format!("alias guest = {}", self.guests[0]),
            format!("alias virtual = {VIRTUAL_WWPN}"),
            format!("zone first = guest port:{}", self.ports[0]),
            format!("zone second = guest port:{}", self.ports[1]),
            format!("zone other = virtual port:{}", self.ports[1]),
        ];
        if names != "none" {
            lines.push(format!("zoneset now = {}", names.replace(',', " ")));
            lines.push("active now".to_owned());
        }
        let file = self.dir.join("zones");
        fs::write(&file, lines.join("\n") + "\n")?;
        self.zones = Some(file);
        match &self.switch {
            Some(switch) => switch.signal("-HUP"),
            None => Ok(()),
        }
    }

    /// Stops all that was asked for. None of it has warned of anything.
    pub(crate) fn ends(self) -> Result<()> {
        self.ends_with_log().map(drop)
    }

    /// The same, with what the switches have logged.
    pub(crate) fn ends_with_log(mut self) -> Result<String> {
        for number in 0..SERVERS {
            if self.servers[number].is_some() {
                self.leave(number)?;
            }
        }
        let switch = self.switch.context("no switch was asked for")?;
        let status = switch.stop("-TERM")?;
        if !status.success() {
            bail!("the switch ended with {status}");
        }
        let log = fs::read_to_string(self.dir.join("switch.log"))?;
        match log.lines().find(|line| line.contains("ERROR")) {
            Some(line) => bail!("the log of the switch: {line}"),
            None => Ok(log),
        }
    }
}

/// The WWPN of the NPIV port that a guest makes, which its script knows, too.
pub(crate) const VIRTUAL_WWPN: &str = "28:00:00:00:00:00:00:01";

const SWITCH_NAME: &str = "10:00:52:54:00:00:0f:cf";
const FABRIC_NAME: &str = "20:00:52:54:00:00:0f:cf";

/// `lunar bench`, which writes and compares until it is told to end.
struct Load {
    child: Child,
    dir: PathBuf,
}

impl Load {
    fn start(dir: &Path, unit: &str) -> Result<Self> {
        let load = ["--rw", "randrw", "--bs", "4k", "--iodepth", "4", "--verify"];
        let place = ["--offset", "96M", "--size", "16M", "--rate-iops", "200"];
        let child = Command::new(tests::server::binary()?)
            .args(["bench", unit])
            .args(load)
            .args(place)
            .args(["--runtime", "1000s"])
            .stdin(Stdio::null())
            .stdout(File::create(dir.join("bench"))?)
            .stderr(File::create(dir.join("bench.log"))?)
            .spawn()
            .context("cannot start lunar bench")?;
        Ok(Self {
            child,
            dir: dir.to_owned(),
        })
    }

    /// Ends it, and prints what it has measured, the longest wait among it. 130 is the exit code
    /// of what was interrupted, and 1 that of an error.
    fn ends(mut self) -> Result<()> {
        let pid = self.child.id().to_string();
        must(Command::new("kill").args(["-INT", &pid]))?;
        let status = self.child.wait()?;
        println!("{}", fs::read_to_string(self.dir.join("bench"))?);
        if status.code() != Some(130) {
            bail!("lunar bench ended with {status}: see bench.log");
        }
        Ok(())
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A switch that runs until this is dropped.
pub(crate) struct Switch {
    child: Child,
    /// Those of its ports.
    pub(crate) macs: Vec<String>,
}

impl Switch {
    pub(crate) fn start(dir: &Path, places: &[String], options: &[String]) -> Result<Self> {
        let log = File::options()
            .create(true)
            .append(true)
            .open(dir.join("switch.log"))?;
        let mut child = Command::new(tests::server::binary()?)
            .args(["switch", "--json"])
            .args(places)
            .args(options)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .context("cannot start lunar switch")?;
        let lines = child.stdout.take().context("no pipe")?;
        let mut switch = Self {
            child,
            macs: Vec::new(),
        };
        for line in BufReader::new(lines).lines().take(places.len()) {
            let port: Value = serde_json::from_str(&line?)?;
            let mac = port["mac"].as_str().context("no MAC address")?;
            switch.macs.push(mac.to_owned());
        }
        if switch.macs.len() < places.len() {
            bail!("the switch was not ready: see switch.log");
        }
        Ok(switch)
    }

    pub(crate) fn signal(&self, signal: &str) -> Result<()> {
        let pid = self.child.id().to_string();
        must(Command::new("kill").args([signal, &pid])).map(drop)
    }

    /// Sends it this signal, and waits for its end.
    pub(crate) fn stop(mut self, signal: &str) -> Result<ExitStatus> {
        self.signal(signal)?;
        Ok(self.child.wait()?)
    }
}

impl Drop for Switch {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What every script behind a switch is told.
pub(crate) fn words(mtu: u16) -> Vec<Word> {
    vec![
        ("mtu", mtu.to_string()),
        ("virtual", VIRTUAL_WWPN.replace(':', "")),
    ]
}
