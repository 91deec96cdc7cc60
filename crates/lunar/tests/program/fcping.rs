//! `lunar fcping`, `fcnsq` and `fcrls` without a host of the kernel: what is wrong is told with the
//! way out.

use std::fs;
use std::path::{Path, PathBuf};

use crate::rig::{Run, folder, lunar};

/// A host that no kernel has, and a remote port of it.
fn sysfs(name: &str) -> PathBuf {
    let sysfs = folder(name);
    for (path, text) in [
        ("class/fc_host/host987/port_name", "0x2000525400123456\n"),
        ("class/fc_host/host987/port_id", "0x010100\n"),
        ("class/fc_remote_ports/rport-987:0-0/port_id", "0x010200\n"),
        ("class/fc_remote_ports/rport-987:0-0/port_state", "Online\n"),
        ("class/fc_remote_ports/rport-987:0-1/port_id", "0x010201\n"),
        (
            "class/fc_remote_ports/rport-987:0-1/port_state",
            "Blocked\n",
        ),
    ] {
        put(&sysfs.join(path), text);
    }
    sysfs
}

fn put(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

#[test]
fn each_wrong_line_says_what_would_be_right() {
    for (line, way_out) in [
        ("fcping -F 0x010200", "--hba"),
        ("fcping -h eth0", "--fcid"),
        (
            "fcping -h eth0 -F 1 -P 2000525400123456",
            "cannot be used with",
        ),
        ("fcping -h eth0 -F 0x1000000", "6 hexadecimal digits"),
        ("fcping -h eth0 -F x", "6 hexadecimal digits"),
        ("fcping -h eth0 -P 12", "16 hexadecimal digits"),
        (
            "fcping -h eth0 -F 1 -s 2109",
            "give a number from 4 to 2108",
        ),
        ("fcping -h eth0 -F 1 -s 3", "give a number from 4 to 2108"),
        ("fcping -h eth0 -F 1 -i 0", "give seconds from 0.001"),
        ("fcping -h eth0 -F 1 -i NaN", "give seconds from 0.001"),
        ("fcping -h eth0 -F 1 -f -i 2", "cannot be used with"),
        ("fcping -h eth0 -F 1 -c 0", "give a number from 1"),
        ("fcnsq host5", "--gpn"),
        ("fcnsq --gpn 1", "HOST"),
        ("fcnsq host5 --gpn 1 --gnn 1", "cannot be used with"),
        ("fcnsq host5 --gsnn 12", "16 hexadecimal digits"),
        ("fcrls", "--port"),
        ("fcrls --port rport-1:0-0 --fcid 1", "cannot be used with"),
    ] {
        lunar(line).refused_with(2, way_out);
    }
}

#[test]
fn ports_that_are_not_there_are_told() {
    let sysfs = sysfs("fcping-missing");
    let sysfs = sysfs.display();
    for (line, told) in [
        (
            "fcping -h eth9 -F 0x010200",
            "FCoE interface eth9 not found",
        ),
        (
            "fcping -h 0x010100 -F 0x010200",
            "no such port: /dev/bsg/fc_host987",
        ),
        (
            "fcping -h 52:54:00:12:34:56 -F 0x010200",
            "/dev/bsg/fc_host987",
        ),
        ("fcrls --port rport-987:0-7", "rport-987:0-7 is not a rport"),
        (
            "fcrls --fcid 0x010201",
            "rport 0x010201 Blocked: must be Online",
        ),
        ("fcrls --fcid 010200", "no such port: /dev/bsg/fc_host987"),
    ] {
        lunar(&format!("{line} --sysfs {sysfs}")).refused_with(1, told);
    }
    // "No FCoE interfaces created" where none of this machine can be meant.
    lunar("fcnsq ../host5 --gpn 1").refused_with(1, "FCoE interface");
    lunar("fcnsq host987 --gpn 1").refused_with(1, "no such port: /dev/bsg/fc_host987");
    let quiet = lunar("fcnsq -q host987 --gpn 1").ran();
    assert_eq!((quiet.code, &*quiet.out, &*quiet.err), (Some(1), "", ""));
}
