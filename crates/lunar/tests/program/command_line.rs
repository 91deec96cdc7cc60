//! A command line that is wrong is answered by one line (what, why, way out) and exit code 2, and
//! nothing is tried.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::rig::{Run, folder, lunar, taken_portal};

#[test]
fn an_exposed_portal_says_the_ways_out() {
    for portal in ["0.0.0.0:0", "[::]:0", "192.0.2.1"] {
        let line = lunar(&format!("serve ram:1M --listen {portal}")).refused(2);
        for way in ["--allow", "--chap", "--open"] {
            assert!(line.contains(way), "{line}");
        }
    }
}

#[test]
fn a_typing_error_gets_a_hint() {
    let line = lunar("serve ram:1M --lisen 127.0.0.1:0").refused(2);
    assert!(
        line.contains("'--listen'") && line.contains("lunar serve --help"),
        "{line}"
    );
}

#[test]
fn every_malformed_value_is_one_line() {
    let wrong = [
        ["--listen", "127.0.0.1:99999"],
        ["--listen", "no such host:1"],
        ["--listen", "224.0.0.1:3260"],
        ["--listen", "255.255.255.255:3260"],
        ["--listen", "[fe80::1]:3260"],
        ["--advertise", "host:0"],
        ["--advertise", "0.0.0.0:3260"],
        ["--advertise", "[::]"],
        ["--advertise", "224.0.0.1"],
        ["--advertise", "255.255.255.255"],
        ["--block-size", "1024"],
        ["--threads", "0"],
        ["--threads", "many"],
        ["--threads", "2.5"],
        ["--threads", "1025"],
        ["--threads", "18446744073709551616"],
        ["--pin", ""],
        ["--pin", "all"],
        ["--pin", "0,,1"],
        ["--pin", "3-1"],
        ["--pin", "0,0"],
        ["--pin", "0-1024"],
        ["--pin", "99999999999999999999"],
        ["--busy-poll", "50"],
        ["--busy-poll", "0s"],
        ["--busy-poll", "2s"],
        ["--ring", "kqueue"],
        ["--poll", "sometimes"],
        ["--memory-limit", "lots"],
        ["--memory-limit", "0"],
        ["--vendor", "LONGER THAN 8"],
        ["--product", ""],
        ["--serial", "caf\u{e9}"],
        ["--serial", "  "],
        ["--login-timeout", "15 s"],
        ["--nop-interval", "0s"],
        ["--nop-interval", "99999999999999m"],
        ["--max-sessions", "0"],
        ["--max-sessions", "65536"],
        ["--max-sessions", "99999999999999999999"],
        ["--max-logins", "many"],
        ["--connection-memory", "1k"],
        ["--connection-memory", "8G"],
    ];
    for [option, value] in wrong {
        lunar("serve ram:1M")
            .args([option, value])
            .refused_with(2, option);
    }
}

#[test]
fn nothing_to_serve_and_no_verb() {
    lunar("serve").refused_with(2, "ADDR");
    lunar("").refused(2);
}

#[test]
fn version_help_and_documents_go_to_standard_output() {
    for line in [
        "--version",
        "--help",
        "serve --help",
        "completion bash",
        "completion zsh",
        "manual",
        "manual serve",
    ] {
        let ran = lunar(line).ran();
        ran.is_silent_success();
        assert!(ran.out.contains("lunar"), "{line}");
    }
}

#[test]
fn a_manual_page_of_no_verb_is_refused() {
    for verb in ["fly", ""] {
        lunar("manual")
            .arg(verb)
            .refused_with(2, &format!("{verb:?}"));
    }
}

#[test]
fn each_wrong_command_line_says_what_would_be_right() {
    for (line, way_out) in [
        ("", "choose from serve, "),
        ("help fly", "choose from serve, "),
        ("cp a b", "did you mean copy?"),
        ("resize ram:1M", "\"resize\": choose from serve, "),
        ("version 2", "unknown verb"),
        ("serve ram:1M --daemon", "'--daemon' found (see "),
        ("sevre ram:1M", "did you mean serve?"),
        ("ram:1M", "did you mean lunar serve ram:1M?"),
        ("completion", "lunar completion --help"),
        ("completion tcsh", "bash, elvish, fish, powershell, zsh"),
        ("completion bash extra", "lunar completion --help"),
        ("manual a b", "lunar manual --help"),
        ("serve ram:1M --listen *:3260", "0.0.0.0"),
        ("serve ram:1M --listen iscsi://h", "HOST:PORT"),
        ("serve --block-size 1", "choose from 512, 4096 (see"),
        (
            "import lioo x",
            "\"lioo\" is not a format: lunar import reads lio, tgt",
        ),
        (
            "export tgtd",
            "\"tgtd\" is not a format: lunar import reads lio, tgt",
        ),
        (
            "export tgt",
            "tgt is imported only: lunar import reads lio, tgt",
        ),
        ("export iet", "chiscsi, lunar export writes lio (see"),
        ("metrics --gmetric --detail", "cannot be used with"),
        ("metrics --gmetric=db", "lunar metrics --help"),
        ("bench --iodepth 0", "give a number from 1 to 4096"),
        ("bench --numjobs x", "give a number from 1 to 256"),
        ("bench --randseed x", "give a whole number (see"),
        ("dcb", "lunar dcb --help"),
        ("dcb eth0 --seconds 0", "give a number from 1 to 3600"),
        ("dcb iscsi://h", "not an interface: name one, such as eth0"),
        ("bench --rate-iops 0", "give a number of I/Os per second"),
    ] {
        lunar(line).refused_with(2, way_out);
    }
}

#[test]
fn a_value_with_a_dash_gets_no_advice_that_leads_nowhere() {
    for option in ["--threads -1", "--login-timeout -5s"] {
        let line = lunar(&format!("serve ram:1M {option}")).refused(2);
        assert!(!line.contains("-- -"), "{line}");
    }
}

#[test]
fn what_is_not_text_is_shown() {
    let line = lunar("serve")
        .arg(OsStr::from_bytes(b"ram:\xff"))
        .refused(2);
    assert!(line.contains("ram:") && line.contains("UTF-8"), "{line}");
}

#[test]
fn a_full_disk_is_a_failure() {
    for line in ["--help", "manual", "completion bash"] {
        let full = fs::OpenOptions::new().write(true).open("/dev/full");
        let ended = lunar(line).stdout(full.unwrap()).status().unwrap();
        assert_eq!(ended.code(), Some(1), "{line}");
    }
}

/// The portal is taken, so that it ends by itself, with its own exit code and not by a panic.
#[test]
fn a_log_that_cannot_be_written_ends_nothing() {
    let (_holder, portal) = taken_portal();
    let full = fs::OpenOptions::new().write(true).open("/dev/full");
    let mut serve = lunar(&format!("serve ram:1M --listen {portal}"));
    let ended = serve
        .env("LUNAR_LOG", "loud")
        .stderr(full.unwrap())
        .status();
    assert_eq!(ended.unwrap().code(), Some(1));
}

/// The portal is taken, so that it ends by itself.
#[test]
fn a_log_level_that_is_none_is_told() {
    for level in ["loud", "info,loud", "iscsi=loud"] {
        let (_holder, portal) = taken_portal();
        let mut serve = lunar(&format!("serve ram:1M --listen {portal}"));
        let err = serve.env("LUNAR_LOG", level).ran().err;
        assert!(err.contains("LUNAR_LOG") && err.contains(level), "{err}");
    }
}

#[test]
fn what_cannot_be_opened_is_a_failure() {
    for address in [
        "file:/dev/null/disk?size=1M",
        "block:/dev/null",
        "block:/dev/null/disk",
    ] {
        let ran = lunar(&format!("serve ram:16M {address} --listen 127.0.0.1:0")).ran();
        assert_eq!(ran.code, Some(1), "{address}: {}", ran.err);
        assert!(ran.err.contains(address), "{}", ran.err);
        assert_eq!(ran.out, "", "nothing is half-started");
    }
}

#[test]
fn a_malformed_address_is_a_usage_error() {
    for address in [
        "ram:",
        "ram:1Q",
        "rom:1G",
        "/dev/sda",
        "file:",
        "null:0",
        "fault:often(ram:1M)",
        "stripe:64k(ram:1M)",
    ] {
        let first = "file:created-by-nobody?size=1M";
        let ran = lunar(&format!("serve {first} {address} --listen 127.0.0.1:0")).ran();
        assert_eq!(ran.code, Some(2), "{address}: {}", ran.err);
        assert!(!Path::new("created-by-nobody").exists(), "{address}");
    }
}

#[test]
fn a_name_that_is_none_is_a_usage_error() {
    for name in [
        "disk",
        "iqn.example",
        "iqn.2026-13.org.example:a",
        "iqn.2026-11.org.example:a b",
    ] {
        let mut serve = lunar("serve ram:1M --listen 127.0.0.1:0 --iqn");
        let ran = serve.arg(name).ran();
        assert_eq!(ran.code, Some(2), "{name}: {}", ran.err);
    }
}

/// No name server is asked for a name with an empty part.
#[test]
fn a_host_that_nobody_knows_is_a_failure_with_a_way_out() {
    for line in [
        "serve ram:1M --listen nowhere..invalid:0",
        "floor --listen nowhere..invalid:0",
        "floor nowhere..invalid",
    ] {
        let told = lunar(line).refused(1);
        assert!(
            told.contains("nowhere..invalid cannot be resolved"),
            "{told}"
        );
        assert!(told.contains("give an address"), "{told}");
    }
}

#[test]
fn a_floor_of_ethernet_is_an_interface_and_nothing_behind_it() {
    let unit = "fcoe://eth0/20:00:ac:de:48:23:45:67/0";
    for place in [unit, "fcoe://", "fcoe://a-name-beyond-15"] {
        lunar(&format!("floor --listen {place}")).refused_with(2, place);
        let way_out = lunar(&format!("floor {place}")).refused(2);
        assert!(way_out.contains(place), "{way_out}");
        let ways = ["fcoe://IFACE", "fcoe://eth0"];
        assert!(ways.iter().any(|way| way_out.contains(way)), "{way_out}");
    }
}

#[test]
fn a_portal_that_stays_in_use_is_told() {
    let (_holder, portal) = taken_portal();
    let ran = lunar(&format!("serve ram:1M --listen {portal}")).ran();
    assert_eq!(ran.code, Some(1), "{}", ran.err);
    assert!(ran.err.contains(&portal), "{}", ran.err);
}

#[test]
fn what_is_wrong_with_a_port_is_told_with_the_way_out() {
    for (options, ways) in [
        ("--fcoe eth0", ["--allow WWPN", "--open"]),
        ("--fcoe eth0,mode=star --open", ["--fcoe", "fabric"]),
        ("--fcoe eth0,vlan=152 --open", ["--fcoe", "mode=fabric"]),
        (
            "--fcoe eth0,mode=fabric,vlan=5000 --open",
            ["vlan=5000", "4094"],
        ),
        (
            "--fcoe eth0,mode=fabric,fcf=a --open",
            ["fcf=a", "Switch_Name"],
        ),
        (
            "--fcoe eth0,wwpn=1 --open",
            ["wwpn=1", "16 hexadecimal digits"],
        ),
        (
            "--fcoe eth0,e_d_tov=5m --open",
            ["e_d_tov=5m", "1ms to 10s"],
        ),
        ("--fcoe eth0 --allow 20:00", ["--allow 20:00", "iqn."]),
        (
            "--fcoe eth0 --open --target-per-volume",
            ["--target-per-volume", "omit"],
        ),
    ] {
        let line = lunar(&format!("serve ram:1M {options}")).refused(2);
        for way in ways {
            assert!(line.contains(way), "{line}");
        }
    }
}

#[test]
fn an_interface_that_is_not_there_is_a_failure() {
    let none = lunar("serve ram:1M --fcoe lunar-none --open").ran();
    assert_eq!(none.code, Some(1));
    assert!(none.err.contains("--fcoe: no interface"), "{}", none.err);
    let none = lunar("dcb lunar-none --seconds 1").ran();
    assert_eq!(none.code, Some(1));
    assert!(none.err.contains("no interface"), "{}", none.err);
}

#[test]
fn the_log_names_what_means_nothing_in_files_of_fcoemon() {
    let config = folder("fcoe-config");
    let lines = "FCOE_ENABLE=\"yes\"\nMODE=\"vn2vn\"\nFOO=\"x\"\n";
    fs::write(config.join("cfg-lunar-none"), lines).unwrap();
    let line = format!("serve ram:1M --fcoe-config {} --open", config.display());
    let ran = lunar(&line).ran();
    let told = "cfg-lunar-none: line 3: FOO means nothing here";
    assert!(ran.err.contains(told), "{}", ran.err);
}
