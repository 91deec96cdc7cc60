//! By folders such as the kernel has under `/sys/dev/block`.

use std::fs;
use std::path::PathBuf;

use super::{Attributes, HostIdentity};

const MACHINE: &str = "0123456789abcdef0123456789abcdef";

/// A folder of attributes, which goes when the test ends.
struct Disk(PathBuf);

impl Disk {
    /// `slot` is below `devices`.
    fn new(name: &str, slot: &str, attributes: &[(&str, &str)]) -> Self {
        let top = format!("lunar-sysfs-{}-{name}", std::process::id());
        let disk = Self(std::env::temp_dir().join(top));
        let folder = disk.0.join("devices").join(slot);
        fs::create_dir_all(&folder).unwrap();
        for (name, value) in attributes {
            let path = folder.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, format!("{value}\n")).unwrap();
        }
        disk
    }

    fn identity(&self, slot: &str, machine: Option<&str>, boot: &str) -> Option<String> {
        let known = HostIdentity {
            machine: machine.map(str::to_owned),
            boot: Some(boot.to_owned()),
        };
        known.identity(&Attributes::at(self.0.join("devices").join(slot)))
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const SLOT: &str = "pci0000:00/0000:00:05.0/virtio2/block/vda";

#[test]
fn a_worldwide_name_is_the_same_on_every_machine() {
    let names = [
        ("device/wwid", "naa.5000c500a1b2c3d4"),
        ("wwid", "eui.0025388b710116a1"),
        ("wwid", "uuid.11111111-2222-3333-4444-555555555555"),
        ("dm/uuid", "LVM-abcdef"),
        ("dm/uuid", "CRYPT-LUKS2-abcdef-name"),
        ("md/uuid", "a:b:c:d"),
    ];
    for (number, name) in names.into_iter().enumerate() {
        let disk = Disk::new(
            &format!("worldwide-{number}"),
            SLOT,
            &[name, ("diskseq", "7")],
        );
        let here = disk.identity(SLOT, Some(MACHINE), "boot 1");
        assert!(here.as_ref().unwrap().contains(name.1), "{here:?}");
        assert_eq!(here, disk.identity(SLOT, None, "boot 2"), "{name:?}");
    }
}

/// QEMU gives each of its machines a disk of these names.
#[test]
fn a_local_name_counts_with_its_machine_only() {
    let names: [&[(&str, &str)]; 5] = [
        &[("device/wwid", "t10.ATA     QEMU HARDDISK  QM00001")],
        &[("wwid", "eui.0000000000000000"), ("serial", "S1")],
        &[("serial", "S1")],
        &[("dm/uuid", "CRYPT-PLAIN-swap")],
        &[],
    ];
    for (number, name) in names.into_iter().enumerate() {
        let attributes = [name, &[("diskseq", "7")]].concat();
        let disk = Disk::new(&format!("local-{number}"), SLOT, &attributes);
        let here = disk.identity(SLOT, Some(MACHINE), "boot 1");
        assert_eq!(
            here,
            disk.identity(SLOT, Some(MACHINE), "boot 2"),
            "{name:?}"
        );
        let there = disk.identity(SLOT, Some(&MACHINE.replace('0', "f")), "boot 1");
        assert_ne!(here, there, "{name:?}");
        let unnamed = disk.identity(SLOT, None, "boot 1");
        assert_eq!(unnamed, disk.identity(SLOT, None, "boot 1"));
        assert_ne!(unnamed, disk.identity(SLOT, None, "boot 2"), "{name:?}");
    }
}

#[test]
fn what_is_not_hardware_is_another_one_after_a_reboot() {
    let slot = "virtual/block/ram0";
    let disk = Disk::new("virtual", slot, &[("diskseq", "7")]);
    let first = disk.identity(slot, Some(MACHINE), "boot 1");
    assert!(first.as_ref().unwrap().contains("until the next boot"));
    assert_ne!(first, disk.identity(slot, Some(MACHINE), "boot 2"));
    let unknown = Disk::new("unknown", slot, &[]);
    assert_eq!(unknown.identity(slot, Some(MACHINE), "boot 1"), None);
}

#[test]
fn partitions_of_a_disk_differ_by_where_they_begin() {
    let disk = Disk::new("partitions", SLOT, &[("wwid", "naa.5000c500a1b2c3d4")]);
    let part = |number: u32, start: &str| {
        let slot = format!("{SLOT}/vda{number}");
        let folder = disk.0.join("devices").join(&slot);
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("partition"), number.to_string()).unwrap();
        fs::write(folder.join("start"), start).unwrap();
        disk.identity(&slot, Some(MACHINE), "boot 1").unwrap()
    };
    let all = [part(1, "2048\n"), part(2, "4096\n")];
    assert_ne!(all[0], all[1]);
    let whole = disk.identity(SLOT, Some(MACHINE), "boot 1").unwrap();
    assert!(all.iter().all(|one| one.starts_with(&whole)), "{all:?}");
}
