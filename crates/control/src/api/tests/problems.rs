//! Whatever is wrong with a request, its answer is a problem of RFC 9457.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use super::Rig;
use crate::api::connections::CONNECTIONS;
use crate::api::{BODY_BYTES, Problem};
use crate::client::{ApiRequest, Method};

/// Sends the bytes of a request; returns the head and the body of its answer.
fn exchange(rig: &Rig, request: &[u8]) -> (String, String) {
    let mut stream = UnixStream::connect(rig.path("socket")).unwrap();
    stream.write_all(request).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.to_ascii_lowercase(), body.to_owned())
}

fn request(method: &str, path: &str, kind: &str, length: usize, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: lunar\r\nConnection: close\r\n\
         Content-Type: {kind}\r\nContent-Length: {length}\r\n\r\n"
    );
    [head.as_bytes(), body].concat()
}

/// A method, a path, the kind of a body, its length if it is not that of the bytes, and these.
type Wrong = (
    &'static str,
    &'static str,
    &'static str,
    Option<usize>,
    &'static [u8],
);

const JSON: &str = "application/json";
const TOML: &str = "application/toml";

/// What each is answered with, and what `at` says.
const WRONG: &[(Wrong, u16, &str)] = &[
    (("GET", "/", JSON, None, b""), 404, "the path"),
    (("GET", "/v1/disks", JSON, None, b""), 404, "the path"),
    (("GET", "/v1/status/", JSON, None, b""), 404, "the path"),
    (("DELETE", "/v1/status", JSON, None, b""), 405, "the method"),
    (("BREW", "/v1/status", JSON, None, b""), 405, "the method"),
    (("GET", "/v1/volumes/%ff", JSON, None, b""), 400, "the path"),
    (("GET", "/v1/history/one", JSON, None, b""), 400, "the path"),
    (
        ("DELETE", "/v1/sessions/65536", JSON, None, b""),
        400,
        "the path",
    ),
    (
        ("POST", "/v1/plan?force", TOML, None, b""),
        400,
        "the query",
    ),
    (
        ("POST", "/v1/plan?dry-run=1", TOML, None, b""),
        400,
        "the query",
    ),
    (
        ("POST", "/v1/plan?allow=all", TOML, None, b""),
        400,
        "the query",
    ),
    (
        ("POST", "/v1/plan", "image/png", None, b"x"),
        415,
        "Content-Type",
    ),
    (("POST", "/v1/set", TOML, None, b"x"), 415, "Content-Type"),
    (("POST", "/v1/plan", TOML, None, b"\xff"), 400, "the body"),
    (
        ("POST", "/v1/plan", TOML, Some(BODY_BYTES + 1), b""),
        413,
        "the body",
    ),
    (
        ("POST", "/v1/set", JSON, None, b"{\n x"),
        400,
        "the body, line 2, column 2",
    ),
    (
        ("POST", "/v1/set", JSON, None, b"{\"sett\":[]}"),
        400,
        "the body, line 1, column 7",
    ),
    (
        ("PUT", "/v1/volumes/b", JSON, None, b""),
        400,
        "the body, line 1, column 0",
    ),
    (("PUT", "/v1/volumes/b", JSON, None, b"[]"), 400, "volume.b"),
    (
        (
            "PUT",
            "/v1/secrets/..",
            TOML,
            None,
            b"twelve bytes and more",
        ),
        400,
        "the path",
    ),
    (
        ("PUT", "/v1/secrets/lab", TOML, None, b"short"),
        400,
        "the body",
    ),
    (
        ("POST", "/v1/plan", TOML, None, b"version = 7"),
        422,
        "line 1, column 11: version",
    ),
];

#[test]
fn whatever_is_wrong_is_answered_in_one_way() {
    let rig = Rig::new("version = 1\n");
    for &((method, path, kind, length, body), status, at) in WRONG {
        let length = length.unwrap_or(body.len());
        let (head, text) = exchange(&rig, &request(method, path, kind, length, body));
        let what = format!("{method} {path}: {head}\n{text}");
        assert!(head.starts_with(&format!("http/1.1 {status} ")), "{what}");
        assert!(
            head.contains("content-type: application/problem+json"),
            "{what}"
        );
        let problem: Problem = serde_json::from_str(&text).expect(&what);
        assert_eq!(
            (problem.status, problem.at.as_deref()),
            (status, Some(at)),
            "{what}"
        );
        assert_eq!(
            head.contains("\r\nallow: get,head"),
            status == 405,
            "{what}"
        );
    }
    assert_eq!(rig.status().generation, 1);
}

#[test]
fn if_match_has_to_be_a_generation() {
    let rig = Rig::new("version = 1\n");
    let plan = |tag: &str| {
        let head = "POST /v1/plan HTTP/1.1\r\nHost: lunar\r\nConnection: close\r\n";
        exchange(&rig, format!("{head}If-Match: {tag}\r\n\r\n").as_bytes())
    };
    for wrong in ["x", "", "\"1", "+1", "*", "\"\"1\"\""] {
        let (head, text) = plan(wrong);
        assert!(head.starts_with("http/1.1 400 "), "{wrong}: {head}");
        let problem: Problem = serde_json::from_str(&text).unwrap();
        assert_eq!(problem.at.as_deref(), Some("If-Match"));
    }
    for right in ["1", "\"1\""] {
        let (head, _) = plan(right);
        assert!(head.starts_with("http/1.1 200 "), "{right}: {head}");
    }
}

/// It is refused before it is sent, and however large it says it is.
#[test]
fn a_body_that_is_too_large_takes_no_memory() {
    let rig = Rig::new("version = 1\n");
    let endless = request("PUT", "/v1/config", TOML, usize::MAX / 2, b"version = 1");
    let (head, _) = exchange(&rig, &endless);
    assert!(head.starts_with("http/1.1 413 "), "{head}");
}

/// What a route of the tests does.
pub(in crate::api) async fn panics() {
    panic!("a handler of the tests");
}

#[test]
fn a_handler_that_panics_costs_one_request() {
    let rig = Rig::new(&super::text());
    for _ in 0..3 {
        let (status, said) = rig.refused(Method::GET, "/v1/panic", "");
        assert_eq!(status, 500, "{said}");
        assert!(said.contains("what is served goes on"), "{said}");
    }
    assert_eq!(rig.status().generation, 1);
    assert!(rig.daemon.as_ref().unwrap().plane().pulse().is_some());
}

/// The daemon alone knows which file it is.
#[test]
fn what_is_wrong_in_the_file_is_told_with_its_name() {
    let rig = Rig::new("version = 1\n");
    let file = rig.path("etc/lunar.toml");
    for (text, place) in [
        ("version = ", "line 1, "),
        (
            "version = 1\n[volume.a]\naddress = \"ram:lots\"\n",
            "volume.a.address: ",
        ),
        (
            "version = 1\n[volume.\"\"]\naddress = \"ram:lots\"\n",
            "volume.\"\": ",
        ),
    ] {
        fs::write(&file, text).unwrap();
        let begins = format!("{}: {place}", file.display());
        for path in ["/v1/plan", "/v1/apply"] {
            let asked = rig.client().text(Method::POST, &ApiRequest::new(path));
            let told = asked.unwrap_err().to_string();
            assert!(told.starts_with(&begins), "{told}");
        }
        rig.reload();
        let alarm = format!("the file is not applied: {begins}");
        assert!(rig.status().alarms[0].starts_with(&alarm));
    }
}

#[test]
fn who_finds_no_place_is_told_how_many_there_are_and_what_to_do() {
    let rig = Rig::new("version = 1\n");
    let connect = || UnixStream::connect(rig.path("socket")).unwrap();
    let ask = |body: Option<String>| {
        let request = ApiRequest {
            path: "/v1/plan".to_owned(),
            body,
            based_on: None,
        };
        rig.client().text(Method::POST, &request)
    };
    let mut crowd: Vec<_> = (0..CONNECTIONS).map(|_| connect()).collect();
    for stream in &mut crowd {
        let request = b"GET /v1/status HTTP/1.1\r\nHost: lunar\r\n\r\n";
        stream.write_all(request).unwrap();
        assert!(stream.read(&mut [0; 64]).unwrap() > 0);
    }
    for body in [None, Some("# ".repeat(1 << 20))] {
        let refused = ask(body).unwrap_err().to_string();
        let told = "the API has 64 connections here already, and takes no more: ask again later";
        assert!(refused.starts_with(told), "{refused}");
    }
    // Nor is there an answer where those are too many that wait for one.
    crowd.extend((0..CONNECTIONS).map(|_| connect()));
    let refused = ask(None).unwrap_err().to_string();
    assert!(refused.contains("does not answer, and has closed the connection: ask again later"));
    drop(crowd);
    let until = Instant::now() + Duration::from_secs(30);
    while ask(None).is_err() {
        assert!(Instant::now() < until);
    }
}
