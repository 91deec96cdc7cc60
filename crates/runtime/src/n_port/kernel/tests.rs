//! A sysfs made of files.

use std::env;
use std::os::unix::fs::symlink;

use super::*;

/// A sysfs with these interfaces, each with what its uevent says and a lower one, and FCoE
/// ports of the kernel at some of them.
fn sysfs(name: &str, ports: &[&str]) -> PathBuf {
    let root = env::temp_dir().join(format!("lunar-sysfs-{}-{name}", std::process::id()));
    let _ = fs::remove_dir_all(&root);
    for folder in ["bus/fcoe/devices", "class/net"] {
        fs::create_dir_all(root.join(folder)).unwrap();
    }
    for (interface, kind, lower) in [
        ("eth0", "INTERFACE=eth0", None),
        ("eth1", "INTERFACE=eth1", None),
        ("eth0.100", "DEVTYPE=vlan", Some("eth0")),
        ("br0", "DEVTYPE=bridge", Some("eth1")),
    ] {
        let device = root.join("devices/net").join(interface);
        fs::create_dir_all(&device).unwrap();
        fs::write(device.join("uevent"), kind).unwrap();
        if let Some(lower) = lower {
            symlink("..", device.join(format!("lower_{lower}"))).unwrap();
        }
        symlink(&device, root.join("class/net").join(interface)).unwrap();
        if ports.contains(&interface) {
            let controller = device.join(format!("ctlr_{interface}"));
            fs::create_dir(&controller).unwrap();
            let link = root
                .join("bus/fcoe/devices")
                .join(format!("ctlr_{interface}"));
            symlink(&controller, link).unwrap();
        }
    }
    root
}

#[test]
fn a_port_of_the_kernel_is_seen_where_it_is_in_the_way() {
    let found = |ports: &[&str], interface| {
        let root = sysfs(&format!("{}-{interface}", ports.join("+")), ports);
        let found = fcoe_port(&root, interface);
        fs::remove_dir_all(&root).unwrap();
        found
    };
    assert_eq!(found(&["eth0"], "eth0").as_deref(), Some("eth0"));
    assert_eq!(found(&["eth0"], "eth1"), None);
    assert_eq!(found(&["eth0.100"], "eth0").as_deref(), Some("eth0.100"));
    assert_eq!(found(&["eth0"], "eth0.100"), None);
    assert_eq!(found(&["br0"], "eth1"), None);
    assert_eq!(found(&[], "eth0"), None);
    assert_eq!(fcoe_port(Path::new("/nowhere"), "eth0"), None);
}

#[test]
fn a_port_of_another_network_namespace_is_left_alone() {
    let root = sysfs("namespace", &[]);
    let link = root.join("bus/fcoe/devices/ctlr_9");
    symlink(root.join("devices/net/hidden/ctlr_9"), link).unwrap();
    assert_eq!(fcoe_port(&root, "eth0"), None);
    fs::remove_dir_all(&root).unwrap();
}
