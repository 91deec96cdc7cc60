//! Configurations of the six other targets, imported, served and logged in to: by libiscsi, and by
//! our own initiator.

use std::fs;

use tests::{server, tool};

use super::rig::Rig;
use super::{says, secret};

/// A configuration, and a host that it lets in.
struct Case {
    format: &'static str,
    /// Of crates/control/src/import/samples.
    files: &'static [&'static str],
    /// Taken out by hand before it is served, with the reason.
    by_hand: &'static [(&'static str, &'static str, &'static str)],
    portal: &'static str,
    target: &'static str,
    /// Portal group tag.
    tag: u16,
    initiator: &'static str,
    /// User and secret.
    chap: Option<[&'static str; 2]>,
    luns: &'static [u16],
}

const CASES: &[Case] = &[
    Case {
        format: "chiscsi",
        files: &["chiscsi.conf"],
        by_hand: &[],
        portal: "102.5.5.2",
        target: "iqn.2004-05.com.chelsio.target6",
        tag: 6,
        initiator: "iqn.2026-11.org.example:anybody",
        chap: None,
        luns: &[0],
    },
    Case {
        format: "lio",
        files: &["lio-targetcli.json"],
        by_hand: &[],
        portal: "192.0.2.10",
        target: "iqn.2003-01.org.linux-iscsi.san.x8664:sn.b2f1c07e9a33",
        tag: 1,
        initiator: "iqn.1994-05.com.redhat:node1",
        chap: Some(["node1", "Correct-Horse-1"]),
        luns: &[0, 1, 2],
    },
    Case {
        format: "tgt",
        files: &["tgt.conf"],
        by_hand: &[(
            "address = \"rbd:rbd/vm2@golden\"",
            "address = \"null:1G\"",
            "no RBD yet",
        )],
        portal: "192.0.2.1",
        target: "iqn.2008-09.com.example:server.mail",
        tag: 1,
        initiator: "iqn.1993-08.org.debian:01:mail",
        chap: Some(["mail", "Mail-Secret-001"]),
        luns: &[1, 2, 3],
    },
    Case {
        format: "ctld",
        files: &["ctld.conf"],
        by_hand: &[(
            "portals = [\"0.0.0.0\", \"[::]\"]",
            "portals = [\"192.0.2.2\"]",
            "all addresses and one of them cannot be listened to at once",
        )],
        portal: "192.0.2.1",
        target: "iqn.2012-06.com.example:cluster",
        tag: 1,
        initiator: "iqn.1994-09.org.freebsd:node1",
        chap: Some(["node", "Node-Secret-0001"]),
        luns: &[0, 1],
    },
    Case {
        format: "iet",
        files: &["ietd.conf", "initiators.allow"],
        by_hand: &[],
        portal: "192.0.2.1",
        target: "iqn.2001-04.com.example:storage.disk2.sys1.xyz",
        tag: 1,
        initiator: "iqn.1993-08.org.debian:01:sys1",
        chap: Some(["jim", "Jims-Secret-001"]),
        luns: &[0, 1, 2, 3],
    },
    Case {
        format: "scst",
        files: &["scst.conf"],
        by_hand: &[],
        portal: "192.0.2.1",
        target: "iqn.2006-10.net.vlnb:tgt",
        tag: 1,
        initiator: "iqn.1993-08.org.debian:01:node1",
        chap: Some(["joe", "Joes-Secret-001"]),
        luns: &[0, 5],
    },
];

/// All addresses of the samples.
const NETWORK: &str = "
ip link set lo up
for address in 192.0.2.1 192.0.2.2 192.0.2.10 102.5.5.2; do ip addr add $address/32 dev lo; done
for address in 2001:db8::1 2001:db8::10; do ip addr add $address/128 dev lo; done
";

#[test]
fn what_other_targets_served_is_served() {
    for case in CASES {
        let rig = Rig::within(NETWORK);
        serve(&rig, case);
        libiscsi_finds(&rig, case);
        our_initiator_finds(&rig, case);
    }
}

/// Imports with the secrets, and applies.
fn serve(rig: &Rig, case: &Case) {
    let samples = tests::top().join("crates/control/src/import/samples");
    let files = case
        .files
        .iter()
        .map(|file| samples.join(file).display().to_string());
    let files: Vec<_> = files.collect();
    let mut args = vec!["import", case.format, "--secrets"];
    args.extend(files.iter().map(String::as_str));
    let mut import = std::process::Command::new(server::binary().unwrap());
    import.args(&args).env("LUNAR_SOCKET", rig.path("socket"));
    let output = import.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{args:?}: {said}");
    let mut text = String::from_utf8(output.stdout).unwrap();
    for (from, to, why) in case.by_hand {
        assert!(text.contains(from), "{from} ({why}) is not in\n{text}");
        text = text.replace(from, to);
    }
    fs::write(rig.path("etc/lunar.toml"), in_folder(rig, &text)).unwrap();
    rig.says(&["apply"]);
}

/// The configuration with files of the rig in the place of files and devices of this machine, which
/// may be somebody's.
fn in_folder(rig: &Rig, text: &str) -> String {
    let folder = rig.folder.path().display().to_string();
    let mut out = String::new();
    for line in text.lines() {
        let address = line.strip_prefix("address = \"");
        let path = address.and_then(|address| {
            let rest = address
                .strip_prefix("file:/")
                .or_else(|| address.strip_prefix("block:/"));
            rest?.split(['?', '"']).next()
        });
        let Some(path) = path else {
            out += &format!("{line}\n");
            continue;
        };
        let name = path.replace('/', "-");
        let file = fs::File::create(rig.path(&name)).unwrap();
        file.set_len(64 << 20).unwrap();
        out += &format!("address = \"file:{folder}/{name}\"\n");
    }
    out
}

fn libiscsi_finds(rig: &Rig, case: &Case) {
    let Case {
        portal,
        target,
        tag,
        initiator,
        ..
    } = case;
    let login = case
        .chap
        .map_or(String::new(), |[user, secret]| format!("{user}%{secret}@"));
    let url = format!("iscsi://{login}{portal}");
    let ls = ["-s", "-i", initiator, &url];
    let found = tool::must(rig.inside(None, "iscsi-ls").args(ls));
    let found = found.unwrap_or_else(|cause| panic!("{cause:#}\n{}", rig.log()));
    says(
        &found,
        &[&format!("Target:{target} Portal:{portal}:3260,{tag}")],
    );
    let (_, listed) = found.split_once(*target).unwrap();
    let listed = listed.split("Target:").next().unwrap();
    let numbers = listed.lines().filter_map(|line| line.strip_prefix("Lun:"));
    let numbers = numbers.map(|line| line.split_whitespace().next().unwrap().parse().unwrap());
    assert_eq!(numbers.collect::<Vec<u16>>(), case.luns, "{found}");
    // Somebody else, or without its secret.
    let url = format!("iscsi://{portal}/{target}/{}", case.luns[0]);
    let stranger = rig.inside(None, "iscsi-inq").arg(url).output().unwrap();
    assert_eq!(stranger.status.success(), case.chap.is_none(), "{target}");
}

fn our_initiator_finds(rig: &Rig, case: &Case) {
    let mut ls = rig.inside(None, server::binary().unwrap().to_str().unwrap());
    ls.args(["ls", case.portal, "--initiator", case.initiator]);
    if let Some([user, known]) = case.chap {
        let file = secret(rig.folder.path(), "known", known);
        ls.args(["--user", user, "--secret-file", &file]);
    }
    let found = tool::must(&mut ls).unwrap_or_else(|cause| panic!("{cause:#}\n{}", rig.log()));
    for lun in case.luns {
        says(&found, &[&format!("{}/{lun}", case.target)]);
    }
}
