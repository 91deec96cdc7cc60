//! Readers of events: what they are told, how many there can be, and when they are let go.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::os::unix::net::UnixStream;

use hyper::Method;

use super::tcp::{listening, token};
use super::{Rig, free_port};
use crate::api::events::READERS;
use crate::client::ApiRequest;

fn request(path: &str, token: &str) -> String {
    format!(
        "GET {path} HTTP/1.1\r\nHost: lunar\r\nAccept: text/event-stream\r\n\
         Authorization: Bearer {token}\r\n\r\n"
    )
}

/// A reader of what comes from a path.
fn reader(rig: &Rig, path: &str) -> BufReader<UnixStream> {
    let mut stream = UnixStream::connect(rig.path("socket")).unwrap();
    stream.write_all(request(path, "").as_bytes()).unwrap();
    BufReader::new(stream)
}

/// Reads up to a line that begins with this; returns it.
fn line(reader: &mut impl BufRead, begin: &str) -> String {
    let mut line = String::new();
    while !line.starts_with(begin) {
        line.clear();
        assert!(reader.read_line(&mut line).unwrap() > 0, "it has ended");
    }
    line.trim_end().to_owned()
}

#[test]
fn a_reader_is_told_what_is_applied() {
    let rig = Rig::new("version = 1\n");
    let mut events = reader(&rig, "/v1/events");
    assert_eq!(line(&mut events, "HTTP"), "HTTP/1.1 200 OK");
    assert_eq!(line(&mut events, "event:"), "event: served");
    rig.send(Method::PUT, "/v1/volumes/b", "{\"address\":\"null:1G\"}")
        .unwrap();
    assert_eq!(line(&mut events, "event:"), "event: applied");
    assert_eq!(line(&mut events, "data:"), "data: {\"generation\":2}");
    let mut stats = reader(&rig, "/v1/stats?every=1");
    for _ in 0..2 {
        assert_eq!(line(&mut stats, "event:"), "event: stats");
        assert!(line(&mut stats, "data:").contains("\"volume\":\"b\""));
    }
}

#[test]
fn one_reader_too_many_is_told_so() {
    let rig = Rig::new("version = 1\n");
    let readers: Vec<_> = (0..READERS)
        .map(|_| {
            let mut events = reader(&rig, "/v1/events");
            line(&mut events, "event: served");
            events
        })
        .collect();
    let mut one_more = reader(&rig, "/v1/events");
    assert_eq!(
        line(&mut one_more, "HTTP"),
        "HTTP/1.1 503 Service Unavailable"
    );
    assert_eq!(rig.status().generation, 1);
    drop(readers);
}

#[test]
fn a_reader_whose_token_is_revoked_is_let_go() {
    let port = free_port();
    let rig = Rig::new(&listening(port));
    let token = token(&rig, "one");
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
    let asked = request("/v1/events", &token).replace("Accept", "Connection: close\r\nAccept");
    stream.write_all(asked.as_bytes()).unwrap();
    let mut events = BufReader::new(stream);
    line(&mut events, "event: served");
    let revoke = ApiRequest::new("/v1/tokens/one");
    rig.client().text(Method::DELETE, &revoke).unwrap();
    events.read_to_string(&mut String::new()).unwrap();
}
