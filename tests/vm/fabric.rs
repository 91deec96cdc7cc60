//! The kernel's fcoe behind `lunar switch`.

use anyhow::{Context, Result, bail};
use tests::logins;

use crate::Scene;
use crate::switching::{Site, words};
use crate::using::{lunar, own_port, uses};
use crate::variations::{PLAIN, Variation, Word};

/// Those of one guest at a switch.
pub(crate) const STORIES: &[Variation] = &[
    full("mtu-2500"),
    Variation {
        name: "mtu-1500",
        ..PLAIN
    },
    full("vlan"),
    full("zones"),
];

const fn full(name: &'static str) -> Variation {
    Variation {
        name,
        mtu: 2500,
        ..PLAIN
    }
}

/// Those of two guests, one of which is a target.
pub(crate) const TARGETS: &[Variation] = &[full("disks")];

/// Those of one guest that begins anew, over and over.
pub(crate) const AGAIN: &[Variation] = &[full("ten-times"), full("ten-times-vlan")];

/// Those of two guests on one Ethernet, with the switch and its peers at ends of veth pairs.
pub(crate) const BRIDGE: &[Variation] = &[
    full("disks"),
    full("vlan"),
    full("ten-times"),
    full("ten-times-vlan"),
    full("restart"),
    full("standby-kill"),
    full("standby-term"),
];

/// The VLAN of the story of that name, and its Fabric_Name as Linux shows it.
const VLAN: u16 = 152;

/// Plays one of them.
pub(crate) fn run(scene: &mut Scene, variation: &Variation) -> Result<()> {
    let dir = scene.folder(variation)?;
    let mut site = Site::new(scene, &dir)?;
    let mut words = words(variation.mtu);
    let script = match variation.name {
        "vlan" => {
            site.vlan = Some(VLAN);
            // It is told the address of the switch.
            site.switch()?;
            let mac = site.fcf_mac(0)?;
            let fabric = format!("0x2{VLAN:03x}{}", mac.replace(':', ""));
            words.extend([("fcf", mac.to_owned()), ("fabric", fabric)]);
            "fabric-vlan.sh"
        }
        "zones" => "fabric-zones.sh",
        _ => scene.cell.script,
    };
    let mut answer = |asked: &str| site.answer(asked);
    scene.guest.run(script, &words, &mut answer)?;
    site.ends()
}

/// Units of the kernel's tcm_fc in the second guest and of `lunar serve`, for the kernel in the
/// first guest; and that of tcm_fc for an initiator of ours.
pub(crate) fn targets(scene: &mut Scene, variation: &Variation) -> Result<()> {
    let dir = scene.folder(variation)?;
    let mut site = Site::new(scene, &dir)?;
    let target = format!("20:00:{}", scene.lane.mac(1));
    let ours = format!("fcoe://{}", site.port(1));
    site.switch()?;
    // Its name depends on the end of the cable, of which the switch has one now.
    let initiators = [site.guest(0).to_owned(), own_port(&dir, &ours)?];
    let mut target_words = words(variation.mtu);
    target_words.extend([
        ("create", "create".to_owned()),
        ("target", target.clone()),
        ("initiator", initiators.join(",")),
    ]);
    second(scene, "begin", &target_words)?;
    let mut answer = |asked: &str| site.answer(asked);
    let script = scene.cell.script;
    let mut guest_words = words(variation.mtu);
    // 64 MiB, or 13 where every change waits for it.
    let mib = if scene.cell.starred { 1 } else { 5 };
    guest_words.push(("mib", mib.to_string()));
    scene.guest.run(script, &guest_words, &mut answer)?;
    let unit = format!("{ours}/{target}/0?mode=fabric");
    let told = lunar(&dir, &["info", &unit])?;
    if !told.contains("LIO-ORG") {
        bail!("it is not LIO's: {told}");
    }
    uses(&dir, &unit)?;
    second(scene, "end", &target_words)?;
    site.ends()
}

/// Has the second guest begin or end to be a target.
fn second(scene: &mut Scene, action: &str, words: &[Word]) -> Result<()> {
    let guest = scene.second.as_mut().context("no second guest")?;
    guest.act("tcm-fc.sh", words, action, "")
}

/// Plays one of the stories on a bridge.
pub(crate) fn bridge(scene: &mut Scene, variation: &Variation) -> Result<()> {
    match variation.name {
        "disks" => targets(scene, variation),
        "vlan" => run(scene, variation),
        _ => again(scene, variation),
    }
}

/// Plays one of those in which the port or the switch begins anew.
pub(crate) fn again(scene: &mut Scene, variation: &Variation) -> Result<()> {
    let dir = scene.folder(variation)?;
    let mut site = Site::new(scene, &dir)?;
    let mut words = words(variation.mtu);
    if variation.name.ends_with("-vlan") {
        site.vlan = Some(VLAN);
        words.push(("vlan", VLAN.to_string()));
    }
    let runs = match variation.name {
        "ten-times" | "ten-times-vlan" => [("fabric-again.sh", "")].as_slice(),
        "restart" => &[("fabric-failover.sh", "restart")],
        // Ten times each, twenty in all.
        "standby-kill" => &[("fabric-failover.sh", "kill"); 2],
        _ => &[("fabric-failover.sh", "term"); 2],
    };
    site.has_standby = variation.name.starts_with("standby");
    for (script, strike) in runs {
        words.push(("strike", (*strike).to_owned()));
        let mut answer = |asked: &str| site.answer(asked);
        scene.guest.run(script, &words, &mut answer)?;
    }
    let log = site.ends_with_log()?;
    // The guest's port, the server's, and that of `lunar bench`.
    if !variation.name.starts_with("ten-times") {
        logins::same_ids(&log, 3)?;
    }
    Ok(())
}
