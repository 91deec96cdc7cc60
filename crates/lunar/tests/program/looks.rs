//! `lunar info` and `lunar ls`: what a user sees, and wrong input.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::rig::{LUNAR, Run, file, lunar};

/// A port that takes connections and says nothing: a person is told before the login times out.
#[test]
fn a_mute_portal_is_named_while_it_is_waited_for() {
    let mute = TcpListener::bind("127.0.0.1:0").unwrap();
    let portal = mute.local_addr().unwrap().to_string();
    let unit = format!("iscsi://{portal}/iqn.2026-11.org.example:mute/0");
    let all = format!("iscsi://{portal}");
    for args in [["info", &unit], ["ls", &all]] {
        let mut command = Command::new(LUNAR);
        let command = command.args(args).stdout(Stdio::null());
        let mut ran = command.stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(ran.stderr.take().unwrap()).lines();
        let told = format!("waiting for {portal} to answer the login");
        // It ends by itself, after 15 s.
        let mut said = Vec::new();
        let is_told = lines.map_while(Result::ok).any(|line| {
            said.push(line);
            said.iter().any(|line| line.contains(&told))
        });
        ran.kill().unwrap();
        ran.wait().unwrap();
        assert!(is_told, "{args:?}: {said:?}");
    }
}

#[test]
fn a_volume_tells_of_those_that_it_is_made_of() {
    let ran = lunar("info stripe:64k(ram:1M,readonly(ram:1M))").ran();
    assert_eq!(ran.code, Some(0));
    let said = ran.out;
    let heads: Vec<_> = said
        .lines()
        .filter(|line| !line.contains("  can ") && line.contains(':'))
        .filter(|line| line.trim_end().ends_with([')', 'M']))
        .collect();
    let expected = [
        "stripe:64k(ram:1M,readonly(ram:1M))",
        "  ram:1M",
        "  readonly(ram:1M)",
        "    ram:1M",
    ];
    assert_eq!(heads, expected);
    assert!(
        said.contains("2.0 MiB (2097152 bytes, 4096 blocks of 512)"),
        "{said}"
    );
}

#[test]
fn json_tells_the_same_of_all_of_them() {
    let told = lunar("info stripe:64k(ram:1M,readonly(ram:1M)) --json")
        .ran()
        .json();
    assert_eq!(
        (&told["size_bytes"], &told["read_only"]),
        (&(2 << 20).into(), &true.into())
    );
    assert_eq!(told["parts"][0]["read_only"], false);
    assert_eq!(told["parts"][1]["read_only"], true);
    assert_eq!(told["parts"][1]["parts"][0]["address"], "ram:1M");
    assert_eq!(told.get("identity"), Some(&Value::Null));
}

/// No name server is asked for a name with an empty part.
#[test]
fn what_is_not_there_is_told_in_one_line() {
    for (line, words) in [
        (
            "info file:/none/there",
            "file:/none/there: no such file, and none is created",
        ),
        ("info file:/tmp", "file:/tmp: this is neither a file nor"),
        (
            "info iscsi://nowhere..invalid/iqn.2026-11.org.example:x",
            "nowhere..invalid cannot be resolved",
        ),
        ("ls nowhere..invalid", "check its spelling, or give"),
        (
            "info iscsi://127.0.0.1:1/iqn.2026-11.org.example:x",
            "cannot connect",
        ),
        ("ls 127.0.0.1:1", "no server listens there"),
        ("ls 127.0.0.1:1 --user me", "--secret-file FILE"),
    ] {
        lunar(line).refused_with(1, words);
    }
}

#[test]
fn wrong_input_is_told_before_anything_is_tried() {
    for (line, words) in [
        ("info", "not provided"),
        (
            "info iscsi://san/iqn.2026-11.a:b/0?initiator=host",
            "such as iqn.2026-11.org.example:host",
        ),
        (
            "ls 127.0.0.1:1 --initiator host",
            "such as iqn.2026-11.org.example:host",
        ),
        ("info ram:1Q", "k, M, G, T"),
        ("ls cable:san.sock", "write fcoe://cable:san.sock"),
        ("ls ram:1G", "try lunar info 'ram:1G'"),
        ("ls file:x", "try lunar info 'file:x'"),
        ("ls ::1", "stands in brackets"),
        ("ls 127.0.0.1:99999", "port"),
        ("ls iser://", "a host is expected here"),
        (
            "info iser://san/iqn.2026-11.a:b/0?digests=crc32c",
            "no option \"digests\"",
        ),
        (
            "info iser://san/iqn.2026-11.a:b/0?crc=maybe",
            "on or off is expected here",
        ),
        (
            "info iscsi://san/iqn.2026-11.a:b/0?crc=off",
            "no option \"crc\"",
        ),
    ] {
        let said = lunar(line).ran();
        assert_eq!(
            (said.code, &*said.out),
            (Some(2), ""),
            "{line}: {}",
            said.err
        );
        assert!(said.err.contains(words), "{line}: {}", said.err);
    }
    lunar("ls localhost --user")
        .arg("")
        .refused_with(2, "--user");
}

#[test]
fn an_ethernet_without_a_target_is_told_and_its_ports_are_listed() {
    let portal = format!("fcoe://cable:{}", file("looks-cable").display());
    let ran = lunar(&format!("ls {portal}")).ran();
    assert_eq!(ran.code, Some(1), "{}", ran.err);
    assert!(ran.out.contains("(ours)"), "{}", ran.out);
    let words = format!("lunar: {portal} shows no targets");
    assert!(ran.err.lines().any(|line| line == words), "{}", ran.err);
}
