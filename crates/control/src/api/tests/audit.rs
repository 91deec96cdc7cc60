//! What the audit log has of calls to the API, and what comes of it when it cannot be written.

use std::fs;

use super::{Rig, text};
use crate::audit::{AuditEntry, AuditOutcome};
use crate::client::{ApiRequest, Method};

const SECRET: &str = "correct horse battery";

fn put_secret(rig: &Rig) -> Result<String, crate::client::ApiError> {
    let request = ApiRequest {
        path: "/v1/secrets/host".to_owned(),
        body: Some(SECRET.to_owned()),
        based_on: None,
    };
    rig.client().text(Method::PUT, &request)
}

#[test]
fn each_changing_call_has_a_line_and_no_secret_is_in_it() {
    let rig = Rig::new(&text());
    put_secret(&rig).unwrap();
    rig.send(Method::PUT, "/v1/volumes/b", "{\"address\":\"null:1G\"}")
        .unwrap();
    rig.send(
        Method::PUT,
        "/v1/volumes/c?dry-run",
        "{\"address\":\"null:1G\"}",
    )
    .unwrap();
    rig.refused(
        Method::PUT,
        "/v1/volumes/d",
        "{\"address\":\"file:/nowhere/d\"}",
    );
    let log = fs::read_to_string(rig.path("state/audit.jsonl")).unwrap();
    assert!(!log.contains(SECRET), "{log}");
    let lines: Vec<AuditEntry> = log
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let told: Vec<_> = lines
        .iter()
        .map(|line| (&*line.what, line.outcome, line.generation))
        .collect();
    let expected = [
        ("set the secret state:host", AuditOutcome::Made, None),
        ("change rows", AuditOutcome::Made, Some(2)),
        ("change rows", AuditOutcome::Refused, None),
    ];
    assert_eq!(told, expected);
    assert!(lines[1].plan[0].contains('b'), "{:?}", lines[1]);
    assert!(lines[2].reason.as_ref().unwrap().contains("/nowhere/d"));
    assert!(
        lines
            .iter()
            .all(|line| line.by == "a test" && line.from == "unix socket")
    );
}

#[test]
fn what_cannot_be_told_is_not_done() {
    let rig = Rig::new(&text());
    fs::create_dir(rig.path("state/audit.jsonl")).unwrap();
    let before = rig.file();
    let (status, cause) = rig.refused(Method::PUT, "/v1/volumes/b", "{\"address\":\"null:1G\"}");
    assert!(
        status >= 400 && cause.contains("audit.jsonl"),
        "{status} {cause}"
    );
    assert!(put_secret(&rig).is_err());
    assert!(!rig.path("state/secrets/host").exists());
    assert_eq!((rig.file(), rig.status().generation), (before, 1));
}

#[test]
fn metrics_are_those_that_were_asked_for() {
    let rig = Rig::new(&text());
    let scrape = |path: &str| rig.client().text(Method::GET, &ApiRequest::new(path));
    let all = scrape("/metrics").unwrap();
    assert!(all.contains("\nlunar_config_generation 1\n"), "{all}");
    assert!(
        all.contains("\nlunar_volume_capacity_bytes{volume=\"a\"} 1048576\n"),
        "{all}"
    );
    assert!(
        all.contains("\nlunar_core_idle_seconds_total{core=\"0\"} "),
        "{all}"
    );
    let alone = scrape("/metrics?volume=a").unwrap();
    assert!(!alone.contains("lunar_config_generation"), "{alone}");
    assert!(scrape("/metrics?detail=2").is_err());
}
