//! What there is, as `iscsi-ls` sees it.

use tests::server::Server;

use crate::must;

#[test]
fn each_volume_is_a_lun_of_its_size() {
    let volumes = ["ram:16M", "null:2G", "ram:1G"];
    let server = Server::start("luns", &volumes, &[]).unwrap();
    let text = must(
        "iscsi-ls",
        &["-s", &format!("iscsi://{}", server.luns[0].portals[0])],
    );
    for line in ["Lun:0", "Lun:1", "Lun:2"] {
        assert!(text.contains(line), "{text}");
    }
    assert_eq!(text.matches("DIRECT_ACCESS").count(), 3, "{text}");
    let told: Vec<_> = server
        .luns
        .iter()
        .map(|lun| (lun.lun, lun.size_bytes))
        .collect();
    assert_eq!(told, [(0, 16 << 20), (1, 2 << 30), (2, 1 << 30)]);
    for lun in &server.luns {
        let text = must("iscsi-readcapacity16", &[&lun.address]);
        assert!(
            text.contains(&format!("Total size:{}", lun.size_bytes)),
            "{text}"
        );
    }
}

#[test]
fn each_volume_can_have_its_own_target() {
    let options = [
        "--target-per-volume",
        "--iqn",
        "iqn.2026-11.org.example:Disks",
    ];
    let server = Server::start("targets", &["ram:16M", "ram:32M"], &options).unwrap();
    let text = must(
        "iscsi-ls",
        &["-s", &format!("iscsi://{}", server.luns[0].portals[0])],
    );
    for (lun, target) in server.luns.iter().zip(["disks:0", "disks:1"]) {
        assert_eq!(lun.target, format!("iqn.2026-11.org.example:{target}"));
        assert_eq!(lun.lun, 0);
        assert!(text.contains(&format!("Target:{}", lun.target)), "{text}");
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
            assert!(text.contains(&format!("Portal:{portal},1")), "{text}");
        }
    }
}

#[test]
fn a_wildcard_is_never_advertised() {
    let server = Server::start(
        "wildcard",
        &["ram:16M"],
        &["--listen", "0.0.0.0:0", "--open"],
    )
    .unwrap();
    let (_, port) = server.luns[0].portals[0].rsplit_once(':').unwrap();
    let text = must("iscsi-ls", &[&format!("iscsi://127.0.0.1:{port}")]);
    assert!(
        text.contains(&format!("Portal:127.0.0.1:{port},1")),
        "{text}"
    );
    assert!(!text.contains("0.0.0.0"), "{text}");
}

#[test]
fn behind_nat_another_portal_is_advertised() {
    let options = ["--advertise", "192.0.2.1:3261"];
    let server = Server::start("nat", &["ram:16M"], &options).unwrap();
    let text = must(
        "iscsi-ls",
        &[&format!("iscsi://{}", server.luns[0].portals[0])],
    );
    assert!(text.contains("Portal:192.0.2.1:3261,1"), "{text}");
}
