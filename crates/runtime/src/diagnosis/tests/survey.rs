//! What the kernel shows in files.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::diagnosis::readings::{KernelPort, KernelSettings};
use crate::diagnosis::survey::{port_of_kernel, settings, softnet};

fn write(folder: &Path, path: &str, text: &str) {
    let path = folder.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

#[test]
fn drops_of_all_processors_are_added_up() {
    let proc = tempfile::tempdir().unwrap();
    assert_eq!(softnet(proc.path()), [0, 0]);
    let lines = "00000016 0000000a 00000001 00000000\n000017fd 00000001 0000000f 00000000\n";
    write(proc.path(), "net/softnet_stat", lines);
    assert_eq!(softnet(proc.path()), [11, 16]);
}

#[test]
fn settings_that_are_not_shown_are_not_known() {
    let proc = tempfile::tempdir().unwrap();
    assert_eq!(settings(proc.path()), KernelSettings::default());
    write(proc.path(), "sys/net/core/netdev_budget", "300\n");
    write(proc.path(), "sys/net/core/netdev_max_backlog", "1000\n");
    let told = KernelSettings {
        budget: Some(300),
        max_backlog: Some(1000),
    };
    assert_eq!(settings(proc.path()), told);
}

/// As libfcoe and the SCSI layer show a port in sysfs.
#[test]
fn a_port_of_the_kernel_tells_by_its_address_whether_it_is_point_to_point() {
    let sysfs = tempfile::tempdir().unwrap();
    let sysfs = sysfs.path();
    assert_eq!(port_of_kernel(sysfs, "eth0"), None);
    let port_id = "devices/pci/net/eth0/ctlr_0/host3/fc_host/host3/port_id";
    write(sysfs, port_id, "0x010203\n");
    fs::create_dir_all(sysfs.join("class/net")).unwrap();
    fs::create_dir_all(sysfs.join("bus/fcoe/devices")).unwrap();
    let links = [
        ("class/net/eth0", "devices/pci/net/eth0"),
        ("bus/fcoe/devices/ctlr_0", "devices/pci/net/eth0/ctlr_0"),
    ];
    for (link, to) in links {
        symlink(sysfs.join(to), sysfs.join(link)).unwrap();
    }
    let port = |is_point_to_point| {
        Some(KernelPort {
            interface: "eth0".to_owned(),
            is_point_to_point,
        })
    };
    assert_eq!(port_of_kernel(sysfs, "eth0"), port(false));
    write(sysfs, port_id, "0x010102\n");
    assert_eq!(port_of_kernel(sysfs, "eth0"), port(true));
    let selected = "devices/pci/net/eth0/ctlr_0/fcf_2/selected";
    write(sysfs, selected, "0\n");
    assert_eq!(port_of_kernel(sysfs, "eth0"), port(true));
    write(sysfs, selected, "1\n");
    assert_eq!(port_of_kernel(sysfs, "eth0"), port(false), "in a fabric");
}
