//! Wrong input for a Fibre Channel port is answered by one line, with the way out.
#![expect(clippy::unwrap_used, reason = "a test ends by panicking")]

use std::process::{Command, Output};

/// Serves a RAM disk by these options.
fn serve(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lunar"));
    command
        .args(["serve", "ram:1M"])
        .args(args)
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> &str {
    str::from_utf8(bytes).unwrap()
}

#[test]
fn what_is_wrong_with_a_port_is_told_with_the_way_out() {
    for (args, ways) in [
        (&["--fcoe", "eth0"] as &[_], ["--allow WWPN", "--open"]),
        (
            &["--fcoe", "eth0,mode=fabric", "--open"],
            ["--fcoe", "vn2vn"],
        ),
        (
            &["--fcoe", "eth0,wwpn=1", "--open"],
            ["wwpn=1", "16 hexadecimal digits"],
        ),
        (
            &["--fcoe", "eth0,e_d_tov=5m", "--open"],
            ["e_d_tov=5m", "1ms to 10s"],
        ),
        (
            &["--fcoe", "eth0", "--allow", "20:00"],
            ["--allow 20:00", "iqn."],
        ),
        (
            &["--fcoe", "eth0", "--open", "--target-per-volume"],
            ["--target-per-volume", "omit"],
        ),
    ] {
        let ran = serve(args);
        assert_eq!(ran.status.code(), Some(2), "{args:?}");
        let line = text(&ran.stderr);
        assert_eq!((line.lines().count(), &*ran.stdout), (1, &[][..]), "{line}");
        for way in ways {
            assert!(line.contains(way), "{line}");
        }
    }
}

#[test]
fn an_interface_that_is_not_there_is_a_failure() {
    let none = serve(&["--fcoe", "lunar-none", "--open"]);
    assert_eq!(none.status.code(), Some(1));
    let line = text(&none.stderr);
    assert!(line.contains("--fcoe: no interface"), "{line}");
}
