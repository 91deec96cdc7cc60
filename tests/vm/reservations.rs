//! Persistent reservations, as two initiators see them: every type and action, fencing, and what a
//! server remembers that was killed.

use anyhow::{Context, Result, bail};
use tests::server::Server;

use crate::Scene;
use crate::lane::BRIDGE;
use crate::pair::name;
use crate::serving::{Disk, TARGET, ended, options, start};
use crate::variations::{PLAIN, Variation, Word};

const fn story(name: &'static str) -> Variation {
    Variation { name, ..PLAIN }
}

/// Their names are the script's.
pub(crate) const VARIATIONS: &[Variation] = &[
    story("fencing_by_mpath"),
    story("fencing_by_scsi"),
    story("types"),
    story("actions"),
    story("transports"),
    story("restart"),
];

/// The first guest acts. The second one does what the first one asks of the `other`.
pub(crate) fn persist(scene: &mut Scene, variation: &Variation) -> Result<()> {
    let dir = scene.folder(variation)?;
    let disk = Disk::new(&dir)?;
    let portal = format!("{}:3260", scene.lane.host(BRIDGE));
    let names = [0, 1].map(name);
    let listen = ["--iqn", TARGET, "--listen", &portal];
    let allow = ["--allow", &names[0], "--allow", &names[1]];
    let options = options(scene, &[&listen[..], &allow].concat());
    let serve = || start(&dir, &[&disk.address()], &options);
    let mut server = Some(serve()?);

    let words = [0, 1].map(|guest| words(scene, guest, &names[guest], &portal));
    let script = scene.cell.script;
    let mut snapshot = Vec::new();
    let Scene { guest, second, .. } = scene;
    let second = second.as_mut().context("there is one guest only")?;
    guest.act(script, &words[0], "begins", "")?;
    second.act(script, &words[1], "begins", "")?;
    let mut answer = |asked: &str| match asked.split_once(' ').unwrap_or((asked, "")) {
        ("other", what) => {
            let (action, given) = what.split_once(' ').unwrap_or((what, ""));
            second.act(script, &words[1], action, given)
        }
        ("restart", _) => restart(&mut server, &serve),
        ("snapshot", _) => {
            snapshot = disk.bytes()?;
            Ok(())
        }
        ("changed" | "unchanged", _) if (disk.bytes()? == snapshot) == (asked == "unchanged") => {
            Ok(())
        }
        _ => bail!("it is not known, or not so"),
    };
    let story = [&[("action", variation.name.to_owned())], &words[0][..]].concat();
    guest.run(script, &story, &mut answer)?;
    guest.act(script, &words[0], "ends", "")?;
    second.act(script, &words[1], "ends", "")?;
    ended(server.context("there is no server")?, variation)
}

/// What a script is told in any case.
fn words(scene: &Scene, guest: usize, name: &str, portal: &str) -> Vec<Word> {
    vec![
        ("own", scene.lane.on_bridge(guest)),
        ("initiator", name.to_owned()),
        ("target", TARGET.to_owned()),
        ("portal", portal.to_owned()),
    ]
}

/// Ends the server as a power cut would, and starts it again.
fn restart(server: &mut Option<Server>, serve: &dyn Fn() -> Result<Server>) -> Result<()> {
    server.take().context("there is no server")?.kill()?;
    *server = Some(serve()?);
    Ok(())
}
