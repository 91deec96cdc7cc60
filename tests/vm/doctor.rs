//! `lunar doctor` behind a switch on a bridge: in a guest, and on the host beside it.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tests::{server, tool};

use crate::Scene;
use crate::lane::{BRIDGE, Lane};
use crate::switching::{Site, words};
use crate::variations::{PLAIN, Variation};

const SCRIPT: &str = "fabric-doctor.sh";
const NARROW: &str = "1500";

pub(crate) const STORIES: &[Variation] = &[
    Variation {
        name: "settings",
        mtu: 2500,
        ..PLAIN
    },
    Variation {
        name: "host",
        mtu: 2500,
        ..PLAIN
    },
    Variation {
        name: "point-to-point",
        mtu: 2500,
        ..PLAIN
    },
];

/// Plays one of them.
pub(crate) fn run(scene: &mut Scene, variation: &Variation) -> Result<()> {
    let dir = scene.folder(variation)?;
    let lane = scene.lane;
    let mut site = Site::new(scene, &dir)?;
    let place = site.port(0).to_owned();
    let mut answer = |asked: &str| match asked {
        "narrow" => lane.tap_has_mtu(BRIDGE, NARROW),
        "widen" => lane.tap_has_mtu(BRIDGE, crate::lane::BRIDGE_MTU),
        _ => site.answer(asked),
    };
    let words = words(variation.mtu);
    match variation.name {
        "settings" => {
            let mut words = words;
            words.push(("action", "settings_are_mended".to_owned()));
            scene.guest.run(SCRIPT, &words, &mut answer)?;
        }
        "host" => {
            answer("switch")?;
            narrow_port_is_mended(lane, &place)?;
        }
        _ => {
            let second = scene.second.as_mut().context("no second guest")?;
            second.act(SCRIPT, &words, "logs_in_alone", "")?;
            // It is alone, and sends its FLOGIs to all.
            let mac = lane.mac(1);
            let finding = format!("the port 20:00:{mac} logs in outside of FIP");
            let told = finds_in_time(&place, &finding)?;
            if !told.contains("on its machine: echo IFACE") {
                bail!("no command: {told}");
            }
            scene.guest.act(SCRIPT, &words, "logs_in_alone", "")?;
            let mended = [words.clone(), vec![("action", "is_mended".to_owned())]].concat();
            let mut answer = |asked: &str| match asked {
                "mend the other" => second.act(SCRIPT, &words, "other_is_mended", ""),
                _ => site.answer(asked),
            };
            scene.guest.run(SCRIPT, &mended, &mut answer)?;
        }
    }
    site.ends()
}

/// A port of a bridge of this machine, which is named.
fn narrow_port_is_mended(lane: &Lane, place: &str) -> Result<()> {
    finds_nothing(place)?;
    let port = lane.bridged(1);
    tool::must(Command::new("ip").args(["link", "set", &port, "mtu", NARROW]))?;
    let told = finds(place, &port)?;
    for command in told.lines().filter_map(|line| line.strip_prefix("    ")) {
        tool::must(Command::new("sh").args(["-c", command]))?;
    }
    finds_nothing(place)
}

fn doctor(place: &str) -> Result<tool::Ran> {
    let mut command = Command::new(server::binary()?);
    command.args(["doctor", &format!("fcoe://{place}")]);
    tool::run(&mut command, Duration::from_secs(60))
}

fn finds(place: &str, words: &str) -> Result<String> {
    let ran = doctor(place)?;
    if ran.code() != Some(1) || !ran.output.contains(words) {
        bail!(
            "doctor does not find {words}: {:?} {}",
            ran.status,
            ran.output
        );
    }
    Ok(ran.output)
}

/// The same, once there is what is to be found: Linux hears no FIP for 8 s before it gives it up.
fn finds_in_time(place: &str, words: &str) -> Result<String> {
    let tries = (0..5).map(|_| finds(place, words));
    let mut last = None;
    for found in tries {
        if found.is_ok() {
            return found;
        }
        last = Some(found);
    }
    last.context("never tried")?
}

fn finds_nothing(place: &str) -> Result<()> {
    let ran = doctor(place)?;
    if !ran.good() {
        bail!("doctor finds something: {:?} {}", ran.status, ran.output);
    }
    Ok(())
}
