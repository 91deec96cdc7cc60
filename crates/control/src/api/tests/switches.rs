//! A switch and a target of one daemon, connected by a cable.

use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::Rig;
use crate::api::Fabric;
use crate::client::{ApiError, ApiRequest, Method};
use crate::plan::Impact;

const WWPN: &str = "20:00:ac:de:48:23:45:67";

/// A daemon, and the folder of the cable.
fn rig() -> (Rig, TempDir) {
    let cables = tempfile::tempdir().unwrap();
    let path = cables.path().display();
    let text = format!(
        "version = 1\n[volume.vm]\naddress = \"ram:1M\"\n\
         [target.\"{WWPN}\"]\nportals = [\"fcoe:cable:{path}/a,mode=fabric\"]\n\
         luns = {{ 0 = \"vm\" }}\nallow = [\"*\"]\n\
         [switch.blue]\nplaces = [\"cable:{path}/a\"]\nzones = [\"default permit\"]\n"
    );
    (Rig::new(&text), cables)
}

fn fabrics(rig: &Rig) -> Vec<Fabric> {
    let request = ApiRequest::new("/v1/fabrics");
    rig.client().ask(Method::GET, &request).unwrap()
}

/// The fabrics, once the target is logged in.
fn logged_in(rig: &Rig) -> Vec<Fabric> {
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        let fabrics = fabrics(rig);
        if fabrics.iter().any(|fabric| !fabric.logins.is_empty()) {
            return fabrics;
        }
        assert!(Instant::now() < until, "{fabrics:?} {:?}", rig.alarms());
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_target_logs_in_by_a_cable_and_a_plan_tells_that_it_would_lose_that() {
    let (rig, _cables) = rig();
    let [fabric] = &logged_in(&rig)[..] else {
        panic!("one fabric");
    };
    assert_eq!((&*fabric.switch, fabric.active), ("blue", true));
    let login = &fabric.logins[0];
    assert_eq!((&*login.wwpn, &login.fc_id[..4]), (WWPN, "0x01"));
    assert!(
        fabric.ports[0].up && fabric.ports[0].taken > 0,
        "{fabric:?}"
    );
    assert_eq!(rig.status().switches, 1);

    let plan = rig
        .send(Method::DELETE, "/v1/switches/blue?dry-run", "")
        .unwrap();
    assert_eq!(plan.plan.differences[0].hosts, [WWPN]);
    let (status, detail) = rig.refused(Method::DELETE, "/v1/switches/blue", "");
    assert_eq!(
        (status, &*detail),
        (409, "more would come of it than is allowed")
    );
    let restarted = rig.send(
        Method::PATCH,
        "/v1/switches/blue?allow=cuts",
        r#"{"domain": 7}"#,
    );
    assert_eq!(restarted.unwrap().worst, Impact::Cuts);
    assert_eq!(logged_in(&rig)[0].logins[0].fc_id[..4], *"0x07");
    rig.send(Method::DELETE, "/v1/switches/blue?allow=cuts", "")
        .unwrap();
    assert_eq!(fabrics(&rig), []);
    assert_eq!(rig.status().switches, 0);
}

#[test]
fn zones_change_while_a_port_stays_logged_in() {
    let (rig, _cables) = rig();
    let before = logged_in(&rig);
    let zones = r#"{"zones": ["zone z = port:eth1", "zoneset s = z", "active s"]}"#;
    let (status, detail) = rig.refused(Method::PATCH, "/v1/switches/blue", zones);
    assert_eq!(
        (status, &*detail),
        (409, "more would come of it than is allowed")
    );
    rig.send(Method::PATCH, "/v1/switches/blue?allow=cuts", zones)
        .unwrap();
    assert_eq!(fabrics(&rig)[0].logins, before[0].logins);
    let told = rig.send(
        Method::PATCH,
        "/v1/switches/blue",
        r#"{"zones": null, "open": true}"#,
    );
    assert_eq!(told.unwrap().worst, Impact::Told);
    assert_eq!(fabrics(&rig)[0].logins, before[0].logins);
    let metrics = rig
        .client()
        .text(Method::GET, &ApiRequest::new("/metrics"))
        .unwrap();
    assert!(
        metrics.contains("lunar_switch_logins{switch=\"blue\",port=\"cable:"),
        "{metrics}"
    );
}

#[test]
fn a_switch_that_cannot_be_had_refuses_a_change_and_no_start() {
    let text = "version = 1\n[switch.lost]\nplaces = [\"no-such-if\"]\nopen = true\n";
    let rig = Rig::new(text);
    let alarm = ("switch".to_owned(), Some("switch.lost".to_owned()));
    assert_eq!(rig.alarms(), [alarm]);
    let row = r#"{"places": ["neither-this"], "open": true}"#;
    let (status, detail) = rig.refused(Method::PUT, "/v1/switches/new", row);
    assert_eq!(status, 409);
    assert!(detail.starts_with("switch.new: "), "{detail}");
    rig.send(Method::PUT, "/v1/volumes/vm", r#"{"address": "ram:1M"}"#)
        .unwrap();
    let wrong = r#"{"places": ["eth1"], "zones": ["zone a = b"]}"#;
    let (status, detail) = rig.refused(Method::PUT, "/v1/switches/new", wrong);
    assert_eq!(status, 422);
    assert!(detail.contains("line 1, column 10"), "{detail}");
    match rig.send(Method::DELETE, "/v1/switches/none", "") {
        Err(ApiError::Refused(problem)) => {
            let way_out = "/v1/switches lists those that there are";
            assert_eq!(
                (problem.status, problem.way_out.as_deref()),
                (404, Some(way_out))
            );
        }
        other => panic!("{other:?}"),
    }
}
