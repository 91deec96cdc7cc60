//! The API over TCP: it opens and closes with the tree, with TLS and without.

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::Arc;

use hyper::Method;
use rcgen::{CertifiedKey, generate_simple_self_signed};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use super::{Rig, free_port, wait};
use crate::api::connections::CONNECTIONS;
use crate::api::{ShownToken, TokenInfo};
use crate::audit::AuditEntry;
use crate::client::ApiRequest;

fn request(token: &str) -> String {
    format!(
        "GET /v1/status HTTP/1.1\r\nHost: lunar\r\nConnection: close\r\n\
         Authorization: Bearer {token}\r\n\r\n"
    )
}

/// The first line of an answer; none where nothing listens, or nothing is answered.
fn asked(port: u16, token: &str) -> Option<String> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).ok()?;
    stream.write_all(request(token).as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    answer.lines().next().map(str::to_owned)
}

pub(super) fn token(rig: &Rig, name: &str) -> String {
    token_of(rig, name, "view")
}

fn token_of(rig: &Rig, name: &str, role: &str) -> String {
    let request = ApiRequest {
        path: "/v1/tokens".to_owned(),
        body: Some(format!("{{\"name\":{name:?},\"role\":{role:?}}}")),
        based_on: None,
    };
    let shown: ShownToken = rig.client().ask(Method::POST, &request).unwrap();
    shown.token
}

pub(super) fn listening(port: u16) -> String {
    format!("version = 1\n[api]\nlisten = [\"127.0.0.1:{port}\"]\n")
}

#[test]
fn a_listener_opens_and_closes_with_the_tree() {
    let mut rig = Rig::new("version = 1\n");
    let (port, token) = (free_port(), token(&rig, "one"));
    assert_eq!(asked(port, &token), None);
    rig.send(Method::PUT, "/v1/config", &listening(port))
        .unwrap();
    assert_eq!(asked(port, &token).unwrap(), "HTTP/1.1 200 OK");
    assert_eq!(
        asked(port, "lunar_wrong").unwrap(),
        "HTTP/1.1 401 Unauthorized"
    );
    // Both the listener and the token are there after a restart.
    rig.restart();
    assert_eq!(asked(port, &token).unwrap(), "HTTP/1.1 200 OK");
    rig.send(Method::PUT, "/v1/config", "version = 1\n")
        .unwrap();
    assert_eq!(asked(port, &token), None);
}

/// Tokens of a spoilt file count no more; the socket is served, and new tokens count.
#[test]
fn a_list_of_tokens_that_is_spoilt_keeps_no_daemon_down() {
    let port = free_port();
    let mut rig = Rig::new(&listening(port));
    let (list, aside) = (
        rig.path("state/tokens.json"),
        rig.path("state/tokens.json.spoilt"),
    );
    let lost = token(&rig, "one");
    rig.daemon.take().unwrap().stop().unwrap();
    let spoilt = format!("{}]", fs::read_to_string(&list).unwrap());
    fs::write(&list, &spoilt).unwrap();
    rig.daemon = Some(Rig::start(&rig.folder).unwrap());
    assert_eq!(asked(port, &lost).unwrap(), "HTTP/1.1 401 Unauthorized");
    let told = ("tokens".to_owned(), Some(aside.display().to_string()));
    assert_eq!(rig.alarms(), [told]);
    assert_eq!(fs::read_to_string(&aside).unwrap(), spoilt);
    let token = token(&rig, "one");
    assert_eq!(asked(port, &token).unwrap(), "HTTP/1.1 200 OK");
    fs::remove_file(aside).unwrap();
    assert_eq!(rig.alarms(), []);
}

#[test]
fn the_audit_log_tells_which_token_has_changed_what_from_where() {
    let port = free_port();
    let rig = Rig::new(&listening(port));
    let token = token_of(&rig, "robot", "operate");
    let body = "{\"address\":\"null:1G\"}";
    let put = format!(
        "PUT /v1/volumes/b HTTP/1.1\r\nHost: lunar\r\nConnection: close\r\n\
         Authorization: Bearer {token}\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
    stream.write_all(put.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    let revoke = ApiRequest::new("/v1/tokens/robot");
    rig.client().text(Method::DELETE, &revoke).unwrap();
    let log = fs::read_to_string(rig.path("state/audit.jsonl")).unwrap();
    let lines = log.lines().map(|line| serde_json::from_str(line).unwrap());
    let lines: Vec<AuditEntry> = lines.filter(|one: &AuditEntry| one.by != "start").collect();
    let told: Vec<_> = lines.iter().map(|one| (&*one.what, &*one.from)).collect();
    let expected = [
        ("make the token robot (Operate)", "unix socket"),
        ("change rows", "127.0.0.1"),
        ("revoke the token \"robot\"", "unix socket"),
    ];
    assert_eq!(told, expected);
    assert_eq!(lines[1].who, "token robot");
    assert!(!log.contains(&token), "{log}");
}

#[test]
fn a_token_that_was_revoked_does_not_count() {
    let port = free_port();
    let rig = Rig::new(&listening(port));
    let token = token(&rig, "one");
    assert_eq!(asked(port, &token).unwrap(), "HTTP/1.1 200 OK");
    let tokens = ApiRequest::new("/v1/tokens");
    let list: Vec<TokenInfo> = rig.client().ask(Method::GET, &tokens).unwrap();
    assert!(list.len() == 1 && list[0].used.is_some(), "{list:?}");
    let revoke = ApiRequest::new("/v1/tokens/one");
    rig.client().text(Method::DELETE, &revoke).unwrap();
    assert_eq!(asked(port, &token).unwrap(), "HTTP/1.1 401 Unauthorized");
}

#[test]
fn what_cannot_be_had_changes_nothing() {
    let rig = Rig::new("version = 1\n");
    let (taken, port) = (
        std::net::TcpListener::bind("127.0.0.1:0").unwrap(),
        free_port(),
    );
    let taken = taken.local_addr().unwrap();
    let cert = rig.path("cert.pem");
    fs::write(&cert, "no certificate").unwrap();
    let tls = |cert: &str| {
        format!(
            "{}tls = {{ cert = {cert:?}, key = \"file:/no/such/key\" }}\n",
            listening(port)
        )
    };
    let stories = [
        (listening(taken.port()), 409, "api.listen: cannot listen on"),
        (
            tls("/no/such/cert"),
            409,
            "api.tls.cert: cannot use /no/such/cert",
        ),
        (tls(cert.to_str().unwrap()), 409, "cannot use"),
        (
            listening(port).replace("127.0.0.1", "0.0.0.0"),
            422,
            "without TLS",
        ),
        (
            listening(port).replace("127.0.0.1", "lunar"),
            422,
            "is not an address",
        ),
    ];
    for (text, status, why) in stories {
        let (code, told) = rig.refused(Method::PUT, "/v1/config", &text);
        assert!(code == status && told.contains(why), "{code} {told}");
        assert_eq!(asked(port, ""), None, "{text}");
    }
    assert_eq!(rig.status().generation, 1);
}

/// What it cannot listen to at the start does not keep it from serving disks.
#[test]
fn a_port_that_is_taken_at_the_start_is_an_alarm() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let rig = Rig::new(&listening(port));
    let alarms = rig.status().alarms;
    assert!(
        alarms.len() == 1 && alarms[0].contains("cannot listen"),
        "{alarms:?}"
    );
    drop(taken);
    rig.reload();
    let token = token(&rig, "one");
    assert_eq!(asked(port, &token).unwrap(), "HTTP/1.1 200 OK");
}

#[test]
fn a_crowd_over_tcp_shuts_out_itself_alone() {
    let port = free_port();
    let rig = Rig::new(&listening(port));
    let token = token(&rig, "one");
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let crowd: Vec<_> = (0..CONNECTIONS)
        .map(|_| {
            let mut stream = TcpStream::connect(address).unwrap();
            let kept = request(&token).replace("close", "keep-alive");
            stream.write_all(kept.as_bytes()).unwrap();
            assert!(stream.read(&mut [0; 64]).unwrap() > 0);
            stream
        })
        .collect();
    let full = "HTTP/1.1 503 Service Unavailable";
    assert_eq!(asked(port, &token).as_deref(), Some(full));
    assert_eq!(rig.status().generation, 1);
    drop(crowd);
    let until = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while asked(port, &token).as_deref() == Some(full) {
        assert!(std::time::Instant::now() < until);
    }
}

/// The first line of an answer over TLS to a client that trusts this certificate.
async fn asked_by_tls(port: u16, trusted: &CertificateDer<'static>, token: &str) -> Option<String> {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.clone()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let stream = tokio::net::TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await;
    let name = ServerName::try_from("localhost").unwrap();
    let connector = TlsConnector::from(Arc::new(config));
    let mut stream = connector.connect(name, stream.ok()?).await.ok()?;
    stream.write_all(request(token).as_bytes()).await.ok()?;
    let mut answer = String::new();
    // It may close without a word of TLS.
    let _ = stream.read_to_string(&mut answer).await;
    answer.lines().next().map(str::to_owned)
}

/// Writes a new certificate and its key.
fn certificate(rig: &Rig) -> CertificateDer<'static> {
    let names = vec!["localhost".to_owned()];
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed(names).unwrap();
    fs::write(rig.path("cert.pem"), cert.pem()).unwrap();
    fs::write(rig.path("key.pem"), signing_key.serialize_pem()).unwrap();
    cert.der().clone()
}

/// `[api]` with a certificate of the rig.
fn with_certificate(rig: &Rig, port: u16) -> String {
    format!(
        "{}tls = {{ cert = {:?}, key = \"file:{}\" }}\n",
        listening(port).replace("127.0.0.1", "0.0.0.0"),
        rig.path("cert.pem"),
        rig.path("key.pem").display()
    )
}

#[test]
fn a_certificate_that_has_gone_keeps_back_nothing_that_has_no_need_of_it() {
    let rig = Rig::new("version = 1\n");
    let (port, token) = (free_port(), token(&rig, "one"));
    let old = certificate(&rig);
    let tls = with_certificate(&rig, port);
    rig.send(Method::PUT, "/v1/config", &tls).unwrap();
    fs::remove_file(rig.path("cert.pem")).unwrap();
    let put = |name: &str| {
        let path = format!("/v1/volumes/{name}");
        rig.send(Method::PUT, &path, "{\"address\":\"null:1G\"}")
    };
    put("b").unwrap();
    assert_eq!(rig.alarms(), [("api".to_owned(), None)]);
    let ok = Some("HTTP/1.1 200 OK".to_owned());
    assert_eq!(wait(asked_by_tls(port, &old, &token)), ok);
    // What has need of it is refused.
    let other = rig
        .file()
        .replace(&port.to_string(), &free_port().to_string());
    let (status, told) = rig.refused(Method::PUT, "/v1/config", &other);
    assert!(status == 409 && told.contains("api.tls.cert"), "{told}");
    let new = certificate(&rig);
    put("c").unwrap();
    assert_eq!(rig.alarms(), []);
    assert_eq!(wait(asked_by_tls(port, &new, &token)), ok);
}

#[test]
fn a_listener_moves_from_all_addresses_to_one_and_back() {
    let rig = Rig::new("version = 1\n");
    let (port, token) = (free_port(), token(&rig, "one"));
    let trusted = certificate(&rig);
    let all = with_certificate(&rig, port);
    let one = all.replace("0.0.0.0", "127.0.0.1");
    for text in [&all, &one, &all, &one] {
        rig.send(Method::PUT, "/v1/config", text).unwrap();
        let answer = wait(asked_by_tls(port, &trusted, &token));
        assert_eq!(answer.as_deref(), Some("HTTP/1.1 200 OK"), "{text}");
    }
    // Another process has no part in it.
    let second = Rig::new("version = 1\n");
    certificate(&second);
    for text in [with_certificate(&second, port), listening(port)] {
        let (status, told) = second.refused(Method::PUT, "/v1/config", &text);
        assert!(status == 409 && told.contains("in use"), "{told}");
    }
}

#[test]
fn a_certificate_is_read_again_when_the_file_is_applied() {
    let rig = Rig::new("version = 1\n");
    let (port, token) = (free_port(), token(&rig, "one"));
    let old = certificate(&rig);
    let tls = with_certificate(&rig, port);
    rig.send(Method::PUT, "/v1/config", &tls).unwrap();
    let ok = Some("HTTP/1.1 200 OK".to_owned());
    assert_eq!(wait(asked_by_tls(port, &old, &token)), ok);
    let plain = asked(port, &token).unwrap_or_default();
    assert!(!plain.starts_with("HTTP"), "{plain:?}");
    let new = certificate(&rig);
    rig.reload();
    assert_eq!(wait(asked_by_tls(port, &new, &token)), ok);
    assert_eq!(wait(asked_by_tls(port, &old, &token)), None);
}

/// What keeps a portal from being opened is named where it is the daemon's own, and by the plan.
#[test]
fn a_portal_beside_the_wildcard_of_another_target_is_told_with_that() {
    let port = free_port();
    let target = |name: &str, address: &str| {
        format!(
            "[target.\"iqn.2026-11.org.example:{name}\"]\nportals = [\"{address}:{port}\"]\n\
             allow = [\"*\"]\n"
        )
    };
    let all = format!("version = 1\n{}", target("all", "0.0.0.0"));
    let rig = Rig::new(&all);
    let both = format!("{all}{}", target("one", "127.0.0.1"));
    for path in ["/v1/config?dry-run", "/v1/config"] {
        let (status, told) = rig.refused(Method::PUT, path, &both);
        assert_eq!(status, 422);
        assert!(
            told.contains("of target iqn.2026-11.org.example:all") && !told.contains('\n'),
            "{told}"
        );
    }
}
