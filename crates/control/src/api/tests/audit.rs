//! What the audit log has of calls to the API, and what comes of it when it cannot be written.

use std::fs;
use std::net::TcpListener;
use std::thread;
use std::time::{Duration, Instant};

use super::{Rig, text};
use crate::audit::{AuditEntry, AuditOutcome};
use crate::client::{ApiRequest, Method};
use crate::plane::MOST_CHANGING;

const SECRET: &str = "correct horse battery";

fn put_secret(rig: &Rig) -> Result<String, crate::client::ApiError> {
    let request = ApiRequest {
        path: "/v1/secrets/host".to_owned(),
        body: Some(SECRET.to_owned()),
        based_on: None,
    };
    rig.client().text(Method::PUT, &request)
}

/// The lines of a log, but for those of starts.
fn lines(log: &str) -> Vec<AuditEntry> {
    let lines = log.lines().map(|line| serde_json::from_str(line).unwrap());
    lines.filter(|one: &AuditEntry| one.by != "start").collect()
}

fn log(rig: &Rig) -> String {
    fs::read_to_string(rig.path("state/audit.jsonl")).unwrap()
}

#[test]
fn a_start_with_a_file_that_was_edited_has_a_line() {
    let mut rig = Rig::new(&text());
    let edited = format!("{}[volume.b]\naddress = \"null:1G\"\n", rig.file());
    fs::write(rig.path("etc/lunar.toml"), edited).unwrap();
    rig.restart();
    // One whose file is the same has none.
    rig.restart();
    let log = log(&rig);
    let lines = log.lines().map(|line| serde_json::from_str(line).unwrap());
    let told = lines.map(|one: AuditEntry| (one.by, one.what, one.outcome, one.generation));
    let made = |number| {
        let (by, what) = ("start".to_owned(), "apply the file".to_owned());
        (by, what, AuditOutcome::Made, Some(number))
    };
    assert_eq!(told.collect::<Vec<_>>(), [made(1), made(2)]);
}

/// The line of an apply says that it is made; a kill before its commit is found at the next start.
#[test]
fn a_generation_that_was_never_made_has_a_second_line() {
    let mut rig = Rig::new(&text());
    let history = rig.path("state/history");
    let kept = fs::read_to_string(history.join("000001.toml")).unwrap();
    let next = kept.replacen("\"number\":1", "\"number\":2", 1) + "\n";
    fs::write(history.join("000002.next"), next).unwrap();
    rig.restart();
    let log = log(&rig);
    let last: AuditEntry = serde_json::from_str(log.lines().last().unwrap()).unwrap();
    assert_eq!(
        (last.outcome, last.generation),
        (AuditOutcome::Failed, Some(2))
    );
    assert_eq!(rig.status().generation, 1);
}

/// What makes no generation and does something all the same has its line before.
#[test]
fn an_edit_that_is_dropped_and_names_that_are_read_again_have_lines() {
    let mut rig = Rig::new(&text());
    let good = rig.file();
    rig.send(Method::POST, "/v1/apply", &good).unwrap();
    fs::write(rig.path("etc/lunar.toml"), format!("{good}# edited\n")).unwrap();
    rig.send(Method::POST, "/v1/rollback/1", "").unwrap();
    let told = lines(&log(&rig));
    let told: Vec<_> = told.iter().map(|one| (one.outcome, &*one.plan)).collect();
    let dropped = ["- the edit of the file".to_owned()];
    let expected: [(_, &[String]); 2] = [
        (AuditOutcome::Unchanged, &[]),
        (AuditOutcome::Made, &dropped),
    ];
    assert_eq!(told, expected);
    // And are not done without.
    fs::remove_file(rig.path("state/audit.jsonl")).unwrap();
    fs::create_dir(rig.path("state/audit.jsonl")).unwrap();
    rig.restart();
    let edited = format!("{good}# edited\n");
    fs::write(rig.path("etc/lunar.toml"), &edited).unwrap();
    rig.refused(Method::POST, "/v1/rollback/1", "");
    assert_eq!(rig.file(), edited);
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
    let lines = lines(&log);
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

/// A target that does not answer holds up a change; three more may wait for it.
#[test]
fn a_change_that_finds_no_turn_has_a_line() {
    let rig = Rig::new("version = 1\n");
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let portal = silent.local_addr().unwrap();
    let slow = format!("iscsi://{portal}/iqn.2026-11.org.example:t/0");
    let plane = rig.daemon.as_ref().unwrap().plane();
    let (status, told) = thread::scope(|scope| {
        for number in 0..MOST_CHANGING {
            let address = if number == 0 { &*slow } else { "null:1G" };
            let name = format!("v{number}");
            let (client, request) = (rig.client(), put_volume(&name, address));
            scope.spawn(move || client.text(Method::PUT, &request).is_ok());
            let until = Instant::now() + Duration::from_secs(20);
            while plane.turns().len() <= number {
                assert!(Instant::now() < until, "{name}");
                thread::yield_now();
            }
        }
        let one_more = put_volume("late", "null:1G");
        let refused = rig.refused(Method::PUT, &one_more.path, &one_more.body.unwrap());
        drop(silent);
        refused
    });
    assert_eq!(status, 503);
    let lines = lines(&log(&rig));
    let busy = lines
        .iter()
        .find(|line| line.reason.as_ref() == Some(&told));
    let busy = busy.unwrap_or_else(|| panic!("{told}: {lines:?}"));
    assert_eq!(
        (&*busy.what, busy.outcome),
        ("change rows", AuditOutcome::Refused)
    );
    assert_eq!((busy.generation, &busy.plan[..]), (None, &[][..]));
    assert!(told.starts_with("a change by "), "{told}");
    assert!(!rig.file().contains("volume.late"));
}

fn put_volume(name: &str, address: &str) -> ApiRequest {
    ApiRequest {
        path: format!("/v1/volumes/{name}"),
        body: Some(format!("{{\"address\":{address:?}}}")),
        based_on: None,
    }
}

#[test]
fn what_cannot_be_told_is_not_done() {
    let mut rig = Rig::new(&text());
    fs::remove_file(rig.path("state/audit.jsonl")).unwrap();
    fs::create_dir(rig.path("state/audit.jsonl")).unwrap();
    rig.restart();
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
