//! What there is, as `iscsi-ls` sees it.

use tests::server::Server;

use crate::{must, says, words};

/// What `iscsi-ls` finds at the first portal of a server, with its options.
fn listed(server: &Server, options: &[&str]) -> String {
    let portal = format!("iscsi://{}", server.luns[0].portals[0]);
    must("iscsi-ls", &[options, &[&portal]].concat())
}

#[test]
fn each_volume_is_a_lun_of_its_size() {
    let volumes = ["ram:16M", "null:2G", "ram:1G"];
    let server = Server::start("luns", &volumes, &[]).unwrap();
    let text = listed(&server, &["-s"]);
    says(&text, &["Lun:0", "Lun:1", "Lun:2"]);
    assert_eq!(text.matches("DIRECT_ACCESS").count(), 3, "{text}");
    let told = server.luns.iter().map(|lun| (lun.lun, lun.size_bytes));
    let told: Vec<_> = told.collect();
    assert_eq!(told, [(0, 16 << 20), (1, 2 << 30), (2, 1 << 30)]);
    for lun in &server.luns {
        let text = must("iscsi-readcapacity16", &[&lun.address]);
        says(&text, &[&format!("Total size:{}", lun.size_bytes)]);
    }
}

#[test]
fn each_volume_can_have_its_own_target() {
    let options = words("--target-per-volume --iqn iqn.2026-11.org.example:Disks");
    let server = Server::start("targets", &["ram:16M", "ram:32M"], &options).unwrap();
    let text = listed(&server, &["-s"]);
    for (lun, target) in server.luns.iter().zip(["disks:0", "disks:1"]) {
        assert_eq!(lun.target, format!("iqn.2026-11.org.example:{target}"));
        assert_eq!(lun.lun, 0);
        says(&text, &[&format!("Target:{}", lun.target)]);
    }
}

#[test]
fn several_portals_of_both_families() {
    let options = ["--listen", "127.0.0.1:0", "--listen", "[::1]:0"];
    let server = Server::start("portals", &["ram:16M"], &options).unwrap();
    let lun = &server.luns[0];
    assert_eq!(lun.portals.len(), 2, "{lun:?}");
    for portal in &lun.portals {
        let address = format!("iscsi://{portal}/{}/0", lun.target);
        must("iscsi-inq", &[&address]);
        // A discovery by either finds both paths.
        let text = must("iscsi-ls", &[&format!("iscsi://{portal}")]);
        for portal in &lun.portals {
            says(&text, &[&format!("Portal:{portal},1")]);
        }
    }
}

#[test]
fn a_wildcard_is_never_advertised() {
    let options = ["--listen", "0.0.0.0:0", "--open"];
    let server = Server::start("wildcard", &["ram:16M"], &options).unwrap();
    let (_, port) = server.luns[0].portals[0].rsplit_once(':').unwrap();
    let text = must("iscsi-ls", &[&format!("iscsi://127.0.0.1:{port}")]);
    says(&text, &[&format!("Portal:127.0.0.1:{port},1")]);
    assert!(!text.contains("0.0.0.0"), "{text}");
}

#[test]
fn behind_nat_another_portal_is_advertised() {
    let options = ["--advertise", "192.0.2.1:3261"];
    let server = Server::start("nat", &["ram:16M"], &options).unwrap();
    says(&listed(&server, &[]), &["Portal:192.0.2.1:3261,1"]);
}
