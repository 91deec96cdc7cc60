//! Which device it is: by a name that it has worldwide, else by one that it has on this machine.
//!
//! A name of the first kind goes with the disk to another machine. One of the second kind is told
//! together with the machine's own name, as two machines may each have a disk of that name: QEMU
//! calls them alike. Where there is neither, the number that the kernel gives to each disk once
//! holds until the next boot.

use std::os::fd::OwnedFd;
use std::path::Path;

use super::Attributes;
use crate::identity::machine;

/// The identity of a device; `None` where nothing tells it from others.
pub(super) fn of(device: &OwnedFd) -> Option<String> {
    let number = rustix::fs::fstat(device).ok()?.st_rdev;
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok();
    let known = HostIdentity {
        machine: machine(),
        boot: boot.map(|boot| boot.trim().to_owned()),
    };
    known.identity(&Attributes::of(number))
}

/// What is known of the machine.
struct HostIdentity {
    machine: Option<String>,
    boot: Option<String>,
}

impl HostIdentity {
    /// A partition is where it begins on its disk.
    fn identity(&self, attributes: &Attributes) -> Option<String> {
        let name = self.name(attributes)?;
        Some(match attributes.own("start") {
            Some(start) => format!("device {name}, from sector {start}"),
            None => format!("device {name}"),
        })
    }

    fn name(&self, attributes: &Attributes) -> Option<String> {
        worldwide(attributes)
            .or_else(|| {
                let (machine, name) = (self.machine.as_deref()?, local(attributes)?);
                Some(format!("{name} of machine {machine}"))
            })
            .or_else(|| self.until_reboot(attributes))
    }

    fn until_reboot(&self, attributes: &Attributes) -> Option<String> {
        let sequence = of_disk(attributes, "diskseq")?;
        let boot = self.boot.as_deref()?;
        Some(format!("{sequence} until the next boot ({boot})"))
    }
}

/// An attribute of the disk; a partition's disk is the folder around it.
fn of_disk(attributes: &Attributes, name: &str) -> Option<String> {
    let found = ["", "../"]
        .iter()
        .find_map(|place| attributes.own(&format!("{place}{name}")));
    found.filter(|text| !text.is_empty())
}

/// A name of which there is one in the world: NAA, EUI-64 and UUID, and those that LVM, LUKS and
/// md give.
fn worldwide(attributes: &Attributes) -> Option<String> {
    let wwid = wwid(attributes).filter(|wwid| {
        let number = ["naa.", "eui.", "uuid."]
            .iter()
            .find_map(|kind| wwid.strip_prefix(kind));
        number.is_some_and(|number| number.bytes().any(|c| !matches!(c, b'0' | b'-')))
    });
    let mapped = || {
        let uuid = of_disk(attributes, "dm/uuid")?;
        let random = ["LVM-", "CRYPT-LUKS"];
        let is_random = random.iter().any(|kind| uuid.starts_with(kind));
        is_random.then_some(uuid)
    };
    let raid = || of_disk(attributes, "md/uuid").map(|uuid| format!("md {uuid}"));
    wwid.or_else(mapped).or_else(raid)
}

fn wwid(attributes: &Attributes) -> Option<String> {
    of_disk(attributes, "wwid").or_else(|| of_disk(attributes, "device/wwid"))
}

/// A name that a disk keeps on its machine: one that its maker or an administrator gave it, the
/// file behind a loop device, or the slot that it is in.
fn local(attributes: &Attributes) -> Option<String> {
    let given = || {
        let names = [
            "dm/uuid",
            "dm/name",
            "serial",
            "device/serial",
            "device/cid",
        ];
        let found = names.iter().find_map(|name| of_disk(attributes, name));
        found.map(|name| format!("\"{name}\""))
    };
    wwid(attributes)
        .or_else(|| loop_file(attributes))
        .or_else(given)
        .or_else(|| slot(attributes))
}

fn loop_file(attributes: &Attributes) -> Option<String> {
    let path = of_disk(attributes, "loop/backing_file")?;
    let offset = of_disk(attributes, "loop/offset").unwrap_or_default();
    let file = crate::file::place(Path::new(&path))?;
    Some(format!("loop of {file} at {offset}"))
}

/// Devices that are not made of hardware have no slot, and may be empty after a restart.
fn slot(attributes: &Attributes) -> Option<String> {
    let folder = attributes.folder()?;
    let slot = folder.to_str()?.split_once("/devices/")?.1;
    let disk = match attributes.own("partition") {
        Some(_) => slot.rsplit_once('/')?.0,
        None => slot,
    };
    (!disk.starts_with("virtual/")).then(|| format!("at {disk}"))
}

#[cfg(test)]
mod tests;
