//! mdadm's RAID-0 and dm-linear over four remote RAM disks, and what the layouts of such disks over
//! targets and portals yield.

use std::path::Path;

use anyhow::{Result, bail};
use tests::server::Server;

use crate::Scene;
use crate::serving::{GUEST, ended, options, start};
use crate::variations::{PLAIN, Variation};

const TARGET: &str = "iqn.2026-11.org.lunar.test:disks";
const RAM_DISKS: &[&str] = &["ram:64M", "ram:64M", "ram:64M", "ram:64M"];

pub(crate) const STORIES: &[Variation] = &[
    Variation {
        name: "layouts",
        ..PLAIN
    },
    Variation {
        name: "raid-0",
        ..PLAIN
    },
    Variation {
        name: "linear",
        ..PLAIN
    },
];

/// One server has all disks in one target, which two portals lead to; the other one has a target
/// for each.
pub(crate) fn run(scene: &mut Scene, variation: &Variation) -> Result<()> {
    let dir = scene.folder(variation)?;
    let portals = [3260, 3261, 3262].map(|port| format!("{}:{port}", scene.lane.host(0)));
    let [first, second, third] = portals.each_ref().map(String::as_str);
    let shared = serve(
        scene,
        &dir.join("shared"),
        &["--listen", first, "--listen", second],
    )?;
    let apart = serve(
        scene,
        &dir.join("apart"),
        &["--listen", third, "--target-per-volume"],
    )?;
    let words = [
        ("story", variation.name.to_owned()),
        ("own", scene.lane.guest(0)),
        ("target", TARGET.to_owned()),
        ("portals", format!("{first},{second}")),
        ("portal_apart", third.to_owned()),
    ];
    let name = scene.cell.name;
    let mut answer = |asked: &str| match asked.split_once(' ') {
        Some(("figure", text)) => {
            println!("{name}: {text}");
            Ok(())
        }
        _ => bail!("it is not known"),
    };
    scene.guest.run(scene.cell.script, &words, &mut answer)?;
    ended(shared, variation)?;
    ended(apart, variation)
}

fn serve(scene: &Scene, dir: &Path, more: &[&str]) -> Result<Server> {
    std::fs::create_dir_all(dir)?;
    let options = options(
        scene,
        &[&["--iqn", TARGET, "--allow", GUEST], more].concat(),
    );
    start(dir, RAM_DISKS, &options)
}
