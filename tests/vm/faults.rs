//! What goes wrong while fio in a guest writes, reads back and compares: the server dies or stands
//! still, frames are lost, the link is cut, a session is dropped, the volume grows.
//!
//! One more is a row. The script strikes as often as the row says, each time after fio has written
//! more, and the host does what the script asks for.

use std::path::Path;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use block::file::UndoLog;
use engine::inventory::{Inventory, LunRow, TargetRow, UnitRow};
use engine::server::{ServerConfig, ServerHandle};
use iscsi::target::NodeAccess;
use tests::server::Server;

use crate::Scene;
use crate::relay::Relay;
use crate::rxe::served_in_guest;
use crate::serving::{Disk, GUEST, TARGET, ended, options, start};
use crate::variations::{PLAIN, Variation, Word};

/// A row: what befalls the loads.
struct Fault {
    name: &'static str,
    /// One after the other, each with the seconds that it lasts: nothing is done for so long.
    strikes: &'static str,
    /// What else the script is told; no value has spaces. `logged` and `counted` are what the
    /// kernel has to tell of it.
    words: &'static [(&'static str, &'static str)],
    /// How many of a million frames are lost, either way.
    lost: u32,
}

const FAULT: Fault = Fault {
    name: "",
    strikes: "",
    words: &[],
    lost: 0,
};

const ISCSI_FAULTS: [Fault; 9] = [
    Fault {
        name: "killed",
        strikes: "kill-1,kill-1,kill-1,kill-1,kill-1,kill-1,kill-1,kill-1,kill-1,kill-1",
        words: &[("logged", "conn.error:10")],
        ..FAULT
    },
    // With NOPs as open-iscsi sends them by default, a connection is given up after 10 s.
    Fault {
        name: "frozen",
        strikes: "freeze-7,freeze-20,freeze-40",
        words: &[("logged", "ping.timeout:2")],
        ..FAULT
    },
    // Without them, ABORT TASK is answered after the first, and not in time after the second.
    Fault {
        name: "frozen-commands",
        strikes: "freeze-7,freeze-20",
        words: &[
            ("command_timeout", "2"),
            ("counted", "eh_abort_cnt:2"),
            ("logged", "conn.error:1"),
        ],
        ..FAULT
    },
    Fault {
        name: "reset",
        strikes: "reset-device,reset-target,reset-device",
        words: &[("counted", "tmfcmd_pdus:3")],
        ..FAULT
    },
    Fault {
        name: "lost-0.1",
        lost: 1000,
        ..FAULT
    },
    Fault {
        name: "lost-1",
        lost: 10_000,
        ..FAULT
    },
    Fault {
        name: "cut",
        strikes: "cut-5",
        ..FAULT
    },
    Fault {
        name: "grown",
        strikes: "grow",
        ..FAULT
    },
    Fault {
        name: "dropped",
        strikes: "drop,drop,drop",
        words: &[("logged", "conn.error:3")],
        ..FAULT
    },
];

const ISER_FAULTS: [Fault; 7] = [
    Fault {
        name: "killed",
        strikes: "kill-1,kill-1",
        words: &[("logged", "conn.error:2")],
        ..FAULT
    },
    Fault {
        name: "frozen",
        strikes: "freeze-7,freeze-20",
        words: &[("logged", "ping.timeout:1")],
        ..FAULT
    },
    // ib_iser does not count aborts apart from other functions.
    Fault {
        name: "frozen-commands",
        strikes: "freeze-7,freeze-20",
        words: &[
            ("command_timeout", "2"),
            ("counted", "tmfcmd_pdus:2"),
            ("logged", "conn.error:1"),
        ],
        ..FAULT
    },
    Fault {
        name: "reset",
        strikes: "reset-device,reset-target,reset-device",
        words: &[("counted", "tmfcmd_pdus:3")],
        ..FAULT
    },
    Fault {
        name: "lost-0.1",
        lost: 1000,
        ..FAULT
    },
    Fault {
        name: "cut",
        strikes: "cut-5",
        ..FAULT
    },
    Fault {
        name: "grown",
        strikes: "grow",
        ..FAULT
    },
];

/// Within a guest, nothing is lost on the way.
const RXE_FAULTS: [Fault; 5] = {
    let [killed, frozen, commands, reset, _, _, grown] = ISER_FAULTS;
    [killed, frozen, commands, reset, grown]
};

const FCOE_FAULTS: [Fault; 5] = [
    Fault {
        name: "killed",
        strikes: "kill-1,kill-1,kill-1",
        words: &[("logged", "Power-on:4")],
        ..FAULT
    },
    Fault {
        name: "frozen",
        strikes: "freeze-7,freeze-20,freeze-40",
        ..FAULT
    },
    Fault {
        name: "lost-0.1",
        words: &[("command_timeout", "10")],
        lost: 1000,
        ..FAULT
    },
    Fault {
        name: "lost-1",
        // Each command that loses a frame takes the kernel seconds.
        words: &[
            ("command_timeout", "10"),
            ("small", "256k"),
            ("large", "1M"),
        ],
        lost: 10_000,
        ..FAULT
    },
    Fault {
        name: "cut",
        strikes: "cut-5",
        ..FAULT
    },
];

pub(crate) const ISCSI: &[Variation] = &variations(&ISCSI_FAULTS);
pub(crate) const ISER: &[Variation] = &variations(&ISER_FAULTS);
pub(crate) const RXE: &[Variation] = &variations(&RXE_FAULTS);
pub(crate) const FCOE: &[Variation] = &variations(&FCOE_FAULTS);

const fn variations<const N: usize>(faults: &[Fault; N]) -> [Variation; N] {
    let mut all = [PLAIN; N];
    let mut at = 0;
    while at < N {
        all[at].name = faults[at].name;
        all[at].mtu = 2500;
        at += 1;
    }
    all
}

fn row<'a>(faults: &'a [Fault], variation: &Variation) -> Result<&'a Fault> {
    let mut rows = faults.iter();
    let named = rows.find(|fault| fault.name == variation.name);
    named.context("no fault has that name")
}

impl Fault {
    fn words(&self) -> Vec<Word> {
        let own = self.words.iter();
        let mut words: Vec<Word> = own.map(|(name, value)| (*name, (*value).into())).collect();
        words.push(("strikes", self.strikes.to_owned()));
        if self.lost > 0 {
            words.push(("lost", format!("{}%", f64::from(self.lost) / 10_000.0)));
        }
        words
    }
}

/// What is served, and its server.
struct Served<'a> {
    dir: &'a Path,
    disk: Disk,
    options: Vec<String>,
    server: Option<Server>,
}

impl<'a> Served<'a> {
    fn new(dir: &'a Path, options: Vec<String>) -> Result<Self> {
        Ok(Self {
            dir,
            disk: Disk::new(dir)?,
            options,
            server: None,
        })
    }

    /// Does what the script asks for, where it is about the server.
    fn answer(&mut self, asked: &str) -> Result<()> {
        match asked {
            "serve" => {
                let address = self.disk.address();
                self.server = Some(start(self.dir, &[&address], &self.options)?);
                Ok(())
            }
            "kill" => self.server.take().context("no server")?.kill(),
            "freeze" => self.server()?.freeze(),
            "thaw" => self.server()?.signal("-CONT"),
            _ => self.disk.answer(asked),
        }
    }

    fn server(&self) -> Result<&Server> {
        self.server.as_ref().context("no server")
    }

    fn end(self, variation: &Variation) -> Result<()> {
        ended(self.server.context("no server was asked for")?, variation)
    }
}

/// open-iscsi. Frames are lost in the guest, by its own kernel.
pub(crate) fn iscsi(scene: &mut Scene, variation: &Variation) -> Result<()> {
    struck(scene, variation, row(&ISCSI_FAULTS, variation)?)
}

/// The same with the kernel's ib_iser.
pub(crate) fn iser(scene: &mut Scene, variation: &Variation) -> Result<()> {
    struck(scene, variation, row(&ISER_FAULTS, variation)?)
}

/// The same over rxe, where the guest is also the server's host.
pub(crate) fn rxe(scene: &mut Scene, variation: &Variation) -> Result<()> {
    let mut words = row(&RXE_FAULTS, variation)?.words();
    words.extend(served_in_guest(scene));
    let mut none = |_: &str| bail!("the host has no part in it");
    scene.guest.run(scene.cell.script, &words, &mut none)
}

fn struck(scene: &mut Scene, variation: &Variation, fault: &Fault) -> Result<()> {
    let dir = scene.folder(variation)?;
    let portal = format!("{}:3260", scene.lane.host(0));
    let listen = ["--iqn", TARGET, "--allow", GUEST, "--listen", &portal];
    let mut served = Served::new(&dir, options(scene, &listen))?;
    let mut words = fault.words();
    words.extend([
        ("own", scene.lane.guest(0)),
        ("target", TARGET.to_owned()),
        ("portal", portal.clone()),
    ]);
    let (lane, script) = (scene.lane, scene.cell.script);
    if fault.strikes.contains("drop") {
        let here = LocalServer::start(&served.disk, &portal)?;
        let mut answer = |asked: &str| match asked {
            "serve" => Ok(()),
            "drop" => here.drop_session(),
            _ => bail!("it is not known"),
        };
        return scene.guest.run(script, &words, &mut answer);
    }
    let mut answer = |asked: &str| match asked {
        "cut" | "join" => lane.cut(0, asked == "cut"),
        _ => served.answer(asked),
    };
    scene.guest.run(script, &words, &mut answer)?;
    served.end(variation)
}

/// The kernel's fcoe, over a cable with a relay in it.
pub(crate) fn fcoe(scene: &mut Scene, variation: &Variation) -> Result<()> {
    let fault = row(&FCOE_FAULTS, variation)?;
    let dir = scene.folder(variation)?;
    let relay = Relay::start(&scene.lane.cable(), fault.lost)?;
    let cable = format!("cable:{}", relay.cable().display());
    let wwpn = format!("20:00:{}", scene.lane.mac(0));
    let options = options(scene, &["--fcoe", &cable, "--allow", &wwpn]);
    let mut served = Served::new(&dir, options)?;
    let mut words = fault.words();
    words.push(("mtu", variation.mtu.to_string()));
    let mut answer = |asked: &str| match asked {
        "cut" | "join" => {
            relay.cut(asked == "cut");
            Ok(())
        }
        _ => served.answer(asked),
    };
    scene.guest.run(scene.cell.script, &words, &mut answer)?;
    let lost = relay.lost();
    if fault.lost > 0 && lost.contains(&0) {
        bail!("{lost:?} frames were lost only");
    }
    served.end(variation)
}

/// A server in this process, which can be told to drop a session.
struct LocalServer(ServerHandle);

impl LocalServer {
    fn start(disk: &Disk, portal: &str) -> Result<Self> {
        let mut inventory = Inventory {
            portals: vec![portal.parse()?],
            ..Inventory::default()
        };
        let unit = UnitRow::new(disk.address().parse()?, disk.address());
        inventory.units.insert("0".to_owned(), unit.into());
        let mut target = TargetRow::default();
        target.luns.push(LunRow::new(0, "0"));
        target.access = NodeAccess::only([GUEST.to_owned()].into());
        inventory.targets.insert(TARGET.to_owned(), target);
        let config = ServerConfig::new(TARGET.to_owned())?;
        let undo = UndoLog::default();
        Ok(Self(engine::server::Server::start(
            config, inventory, &undo,
        )?))
    }

    fn drop_session(&self) -> Result<()> {
        let session = self.0.sessions().pop().context("there is no session")?;
        if !self.0.drop_session(session.tsih) {
            bail!("the session had ended already");
        }
        thread::sleep(Duration::from_millis(100));
        Ok(())
    }
}

impl Drop for LocalServer {
    fn drop(&mut self) {
        self.0.stop();
        // What it was to flush, fio has flushed.
        let _ = self.0.wait();
    }
}
