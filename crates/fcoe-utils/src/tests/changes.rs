//! What is written to the kernel, and what is refused before.

use std::fs;

use super::tree::Tree;
use crate::change::{ChangeError, FcoeMode, create, destroy, reset, scan, start};
use crate::instance::{Instance, InstanceError};

#[test]
fn a_name_is_written_and_what_was_created_is_started() {
    let tree = Tree::new();
    let made = create(&tree.sysfs(), "eth3", FcoeMode::Fabric);
    // This kernel is a folder, which makes nothing.
    assert!(matches!(made, Err(ChangeError::NotMade(name)) if name == "eth3"));
    assert_eq!(tree.read("bus/fcoe/ctlr_create").trim_end(), "eth3");
    let instance = Instance::of(&tree.sysfs(), "veth0").unwrap();
    tree.put("class/net/veth0/ctlr_1/enabled", "0");
    start(&instance, FcoeMode::Vn2vn).unwrap();
    assert_eq!(tree.read("class/net/veth0/ctlr_1/mode").trim_end(), "vn2vn");
    assert_eq!(tree.read("class/net/veth0/ctlr_1/enabled").trim_end(), "1");
}

#[test]
fn the_mode_of_a_fabric_is_left_as_the_kernel_has_it() {
    let tree = Tree::new();
    let instance = Instance::of(&tree.sysfs(), "eth3.152-fcoe").unwrap();
    start(&instance, FcoeMode::Fabric).unwrap();
    let mode = tree.read("class/net/eth3.152-fcoe/ctlr_0/mode");
    assert_eq!(mode.trim_end(), "Fabric");
}

#[test]
fn an_interface_has_one_instance() {
    let tree = Tree::new();
    let again = create(&tree.sysfs(), "veth0", FcoeMode::Fabric);
    assert!(matches!(again, Err(ChangeError::Exists(name)) if name == "veth0"));
    assert_eq!(tree.read("bus/fcoe/ctlr_create").trim_end(), "");
}

#[test]
fn older_kernels_have_parameters_of_the_module() {
    for (mode, parameter) in [
        (FcoeMode::Fabric, "create"),
        (FcoeMode::Vn2vn, "create_vn2vn"),
    ] {
        let tree = Tree::bare();
        let path = format!("module/libfcoe/parameters/{parameter}");
        tree.put(&path, "");
        create(&tree.sysfs(), "veth0", mode).unwrap();
        assert_eq!(tree.read(&path).trim_end(), "veth0");
    }
}

#[test]
fn without_the_module_its_name_is_told() {
    let made = create(&Tree::bare().sysfs(), "veth0", FcoeMode::Fabric);
    let told = made.unwrap_err().to_string();
    assert!(told.contains("modprobe fcoe"), "{told}");
}

#[test]
fn an_instance_is_destroyed_reset_and_scanned() {
    let (tree, interface) = (Tree::new(), "eth3.152-fcoe");
    let sysfs = tree.sysfs();
    destroy(&sysfs, interface).unwrap();
    assert_eq!(tree.read("bus/fcoe/ctlr_destroy").trim_end(), interface);
    reset(&sysfs, interface).unwrap();
    assert_eq!(tree.read("class/fc_host/host9/issue_lip").trim_end(), "1");
    scan(&sysfs, interface).unwrap();
    let scan = "class/net/eth3.152-fcoe/ctlr_0/host9/scsi_host/host9/scan";
    assert_eq!(tree.read(scan).trim_end(), "- - -");
}

#[test]
fn what_is_not_there_is_not_changed() {
    let tree = Tree::new();
    for change in [destroy, reset, scan] {
        let refused = change(&tree.sysfs(), "lo");
        assert!(matches!(
            refused,
            Err(ChangeError::Instance(InstanceError::NoInstance(_)))
        ));
    }
    let created = create(&tree.sysfs(), "eth9", FcoeMode::Fabric);
    assert!(matches!(
        created,
        Err(ChangeError::Instance(InstanceError::NoInterface(_)))
    ));
}

/// While it is made or removed.
#[test]
fn an_instance_without_a_host_is_told() {
    let tree = Tree::new();
    fs::remove_dir_all(tree.path("class/net/veth0/ctlr_1/host11")).unwrap();
    let refused = reset(&tree.sysfs(), "veth0");
    assert!(matches!(refused, Err(ChangeError::NoHost(name)) if name == "veth0"));
}
