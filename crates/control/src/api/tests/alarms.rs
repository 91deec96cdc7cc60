//! An alarm goes when its cause is gone: not with any other change, and not later.

use std::fs;

use super::{Rig, text};
use crate::api::Alarm;
use crate::client::{ApiRequest, Method};

/// A group whose secret has gone while the daemon was away.
fn without_secret() -> Rig {
    let mut rig = Rig::new(&text());
    put_secret(&rig, "lab");
    let group = "{\"chap\":{\"user\":\"u\",\"secret\":\"state:lab\"}}";
    rig.send(Method::PUT, "/v1/groups/lab", group).unwrap();
    fs::remove_file(rig.path("state/secrets/lab")).unwrap();
    rig.restart();
    rig
}

fn put_secret(rig: &Rig, name: &str) {
    let request = ApiRequest {
        path: format!("/v1/secrets/{name}"),
        body: Some("twelve bytes and more".to_owned()),
        based_on: None,
    };
    rig.client().text(Method::PUT, &request).unwrap();
}

#[test]
fn a_secret_that_is_missing_is_an_alarm_until_it_is_put() {
    let rig = without_secret();
    let alarms = [("secret".to_owned(), Some("state:lab".to_owned()))];
    assert_eq!(rig.alarms(), alarms);
    // What only the file notices reads no secret.
    let comment = format!("{}# a comment\n", rig.file());
    rig.send(Method::PUT, "/v1/config", &comment).unwrap();
    assert_eq!(rig.alarms(), alarms);
    put_secret(&rig, "lab");
    assert_eq!(rig.alarms(), []);
}

#[test]
fn a_reload_that_reads_no_secret_is_an_alarm_until_one_does() {
    let rig = Rig::new(&text());
    put_secret(&rig, "lab");
    let group = "{\"chap\":{\"user\":\"u\",\"secret\":\"state:lab\"}}";
    rig.send(Method::PUT, "/v1/groups/lab", group).unwrap();
    fs::remove_file(rig.path("state/secrets/lab")).unwrap();
    rig.reload();
    assert_eq!(rig.alarms(), [("reload".to_owned(), None)]);
    put_secret(&rig, "lab");
    assert_eq!(rig.alarms(), []);
}

#[test]
fn a_file_that_is_put_back_by_hand_is_no_alarm_any_more() {
    let rig = Rig::new(&text());
    let good = rig.file();
    fs::write(rig.path("etc/lunar.toml"), "version = ").unwrap();
    assert_eq!(rig.alarms(), [("edited".to_owned(), None)]);
    rig.reload();
    assert_eq!(rig.alarms(), [("configuration".to_owned(), None)]);
    fs::write(rig.path("etc/lunar.toml"), good).unwrap();
    assert_eq!(rig.alarms(), []);
}

/// The next change writes it.
#[test]
fn a_file_that_is_missing_is_an_alarm_until_it_is_made() {
    let mut rig = Rig::new(&text());
    let (good, path) = (rig.file(), rig.path("etc/lunar.toml"));
    fs::remove_file(&path).unwrap();
    let alarms = [("edited".to_owned(), None)];
    assert_eq!(rig.alarms(), alarms);
    rig.reload();
    assert_eq!(rig.alarms(), alarms);
    rig.restart();
    assert_eq!(rig.alarms(), alarms);
    let group = "{\"initiators\":[\"iqn.2026-11.org.example:h1\"]}";
    rig.send(Method::PUT, "/v1/groups/lab", group).unwrap();
    assert_eq!(rig.alarms(), []);
    assert!(rig.file().starts_with(&good) && rig.file().contains("[group.lab]"));
}

/// What is there and cannot be read is not overwritten.
#[test]
fn a_link_that_leads_nowhere_is_an_alarm_and_refuses_changes() {
    let mut rig = Rig::new(&text());
    let path = rig.path("etc/lunar.toml");
    fs::remove_file(&path).unwrap();
    std::os::unix::fs::symlink(rig.path("nowhere"), &path).unwrap();
    let alarms = [("edited".to_owned(), None)];
    assert_eq!(rig.alarms(), alarms);
    let group = "{\"initiators\":[\"iqn.2026-11.org.example:h1\"]}";
    rig.send(Method::PUT, "/v1/groups/lab", group).unwrap_err();
    rig.reload();
    assert_eq!(rig.alarms(), alarms);
    rig.restart();
    assert_eq!((rig.alarms(), path.is_symlink()), (alarms.into(), true));
}

/// What was wrong with a file is no alarm any more when that file is gone.
#[test]
fn a_spoilt_file_that_is_removed_is_missing() {
    let rig = Rig::new(&text());
    let path = rig.path("etc/lunar.toml");
    fs::write(&path, "version = ").unwrap();
    rig.reload();
    assert_eq!(rig.alarms(), [("configuration".to_owned(), None)]);
    fs::remove_file(&path).unwrap();
    assert_eq!(rig.alarms(), [("edited".to_owned(), None)]);
}

/// The same ones, whoever asks.
#[test]
fn status_and_metrics_tell_the_same_alarms() {
    let rig = without_secret();
    let get = |path: &str| rig.client().text(Method::GET, &ApiRequest::new(path));
    let alarms: Vec<Alarm> = serde_json::from_str(&get("/v1/alarms").unwrap()).unwrap();
    assert_eq!(rig.status().alarms, [alarms[0].to_string()]);
    let line = "\nlunar_alarm{name=\"secret\",at=\"state:lab\",severity=\"warning\"} 1\n";
    assert!(get("/metrics").unwrap().contains(line));
}
