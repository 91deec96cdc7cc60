//! `lunar fcoeadm` on a folder that is laid out like sysfs, by either name.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::namespace::Namespace;
use crate::rig::{LUNAR, Run, first_line, folder, lunar, signal};

/// An interface with an instance, and one without.
fn sysfs(name: &str) -> PathBuf {
    let sysfs = folder(name);
    for (path, text) in [
        (
            "class/net/eth0/ctlr_0/host7/fc_host/host7/port_id",
            "0x010100\n",
        ),
        (
            "class/net/eth0/ctlr_0/host7/fc_host/host7/port_state",
            "Online\n",
        ),
        ("class/net/eth0/ctlr_0/host7/fc_host/host7/issue_lip", "\n"),
        ("class/net/eth0/ctlr_0/mode", "Fabric\n"),
        ("class/net/eth0/ctlr_0/lesb/miss_fka", "3\n"),
        ("class/net/eth1/mtu", "2500\n"),
        ("bus/fcoe/ctlr_create", "\n"),
        ("bus/fcoe/ctlr_destroy", "\n"),
    ] {
        put(&sysfs.join(path), text);
    }
    sysfs
}

fn put(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn fcoeadm(line: &str, sysfs: &Path) -> Command {
    let mut command = lunar(&format!("fcoeadm {line}"));
    command.arg("--sysfs").arg(sysfs);
    command
}

#[test]
fn views_go_to_standard_output() {
    let sysfs = sysfs("fcoeadm-views");
    for (line, told) in [
        ("-i", "        FC-ID (Port ID):   0x010100\n"),
        ("--interface eth0", "    Description:      Unknown\n"),
        ("-f eth0", "    Connection Type:  Fabric\n"),
        ("-t", ""),
        ("-l eth0", ""),
    ] {
        let ran = fcoeadm(line, &sysfs).ran();
        ran.is_silent_success();
        assert!(ran.out.contains(told), "{line}: {}", ran.out);
    }
}

/// As Open-FCoE's own program is called, by a link in its place.
#[test]
fn a_link_of_its_name_is_the_verb() {
    let sysfs = sysfs("fcoeadm-link");
    let link = sysfs.join("fcoeadm");
    symlink(LUNAR, &link).unwrap();
    let by_name = Command::new(&link)
        .args(["eth0", "-f", "--sysfs"])
        .arg(&sysfs)
        .ran();
    by_name.is_silent_success();
    assert_eq!(by_name.out, fcoeadm("-f eth0", &sysfs).ran().out);
    Command::new(&link)
        .arg("-x")
        .refused_with(2, "lunar fcoeadm --help");
    let version = Command::new(&link).arg("-v").ran();
    version.is_silent_success();
    assert!(
        version.out.contains(env!("CARGO_PKG_VERSION")),
        "{}",
        version.out
    );
}

#[test]
fn rows_come_until_it_is_interrupted() {
    let sysfs = sysfs("fcoeadm-rows");
    let mut rows = fcoeadm("-b eth0 86400", &sysfs)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // Before the header, an empty line.
    assert_eq!(first_line(&mut rows), "\n");
    signal("TERM", rows.id());
    rows.wait().unwrap();
}

#[test]
fn the_kernel_is_told_names_and_numbers() {
    let sysfs = sysfs("fcoeadm-changes");
    fcoeadm("-d eth0", &sysfs).ran().is_silent_success();
    let read = |path: &str| fs::read_to_string(sysfs.join(path)).unwrap();
    assert_eq!(read("bus/fcoe/ctlr_destroy").trim_end(), "eth0");
    fcoeadm("-r eth0", &sysfs).ran().is_silent_success();
    let lip = "class/net/eth0/ctlr_0/host7/fc_host/host7/issue_lip";
    assert_eq!(read(lip).trim_end(), "1");
    // This kernel is a folder.
    fcoeadm("-m vn2vn -c eth1", &sysfs).refused_with(1, "not created an instance");
    assert_eq!(read("bus/fcoe/ctlr_create").trim_end(), "eth1");
}

#[test]
fn each_wrong_line_says_what_would_be_right() {
    let sysfs = sysfs("fcoeadm-wrong");
    for (line, way_out) in [
        ("", "--interface"),
        ("eth0", "--interface"),
        ("-i -t", "cannot be used with"),
        ("-c", "needs IFACE"),
        ("-s", "needs IFACE"),
        ("-i eth0 5", "-s or -b"),
        ("-s eth0 0", "give a number from 1 to 86400"),
        ("-s eth0 x", "give a number from 1 to 86400"),
        ("-s eth0 1 1", "lunar fcoeadm --help"),
        ("-c eth0 -m fabrik", "choose from fabric, vn2vn"),
    ] {
        fcoeadm(line, &sysfs).refused_with(2, way_out);
    }
}

#[test]
fn what_the_kernel_does_not_have_says_how_it_is_had() {
    let sysfs = sysfs("fcoeadm-missing");
    for (line, way_out) in [
        (
            "-i eth1",
            "No connection created on interface eth1: fcoeadm -c eth1",
        ),
        ("-d eth1", "fcoeadm -c eth1"),
        ("-s eth9", "Invalid interface name eth9: ip link"),
        ("-c ../eth0", "Invalid interface name"),
        ("-c eth0", "Connection already created on interface eth0"),
        ("-S eth0", "No such file"),
    ] {
        fcoeadm(line, &sysfs).refused_with(1, way_out);
    }
    let empty = folder("fcoeadm-empty");
    fcoeadm("-t", &empty).refused_with(1, "No action was taken");
    fs::create_dir_all(empty.join("class/net/eth0")).unwrap();
    fcoeadm("-c eth0", &empty).refused_with(1, "modprobe fcoe");
}

/// Those of this program are shown by the same labels as those of the kernel.
#[test]
fn running_ports_of_lunar_are_shown_and_left_alone() {
    let namespace = Namespace::new();
    namespace.sh(
        "ip link add va mtu 2500 address 52:54:00:00:00:0a up type veth peer name vb mtu 2500 && \
         ip link set vb up",
    );
    let server = namespace.serve("va");
    let online =
        "until timeout 60 \"$0\" fcoeadm -i va | grep -q 'State: *Online'; do sleep 0.1; done";
    let waited = namespace.command("sh").args(["-c", online, LUNAR]).status();
    assert!(waited.unwrap().success());
    let told = namespace.lunar("fcoeadm -i va").ran();
    told.is_silent_success();
    for line in [
        "        Port Name:         0x2000525400",
        "        MaxFrameSize:      2112 bytes\n",
        "        FC-ID (Port ID):   0x00000a\n",
        "        OS Device Name:    lunar-",
    ] {
        assert!(told.out.contains(line), "{line}: {}", told.out);
    }
    let fcfs = namespace.lunar("fcoeadm -f").ran();
    assert!(
        fcfs.out.contains("    Connection Type:  VN2VN\n"),
        "{}",
        fcfs.out
    );
    for change in ["-c va", "-d va", "-r va", "-S va"] {
        namespace
            .lunar(&format!("fcoeadm {change}"))
            .refused_with(1, "begins and ends with that command");
    }
    drop(server);
    namespace.lunar("fcoeadm -i va").refused(1);
}
