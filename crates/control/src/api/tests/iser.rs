//! A portal takes iSER and no more, while a host is logged in over it. The host sends what Linux's
//! ib_iser was captured to send over software iWARP.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use super::{Rig, free_port};
use crate::client::{ApiRequest, Method};
use crate::plan::Impact;
use crate::plane::Session;

const CAPTURED: &str = include_str!("../../../../../tests/frames/iser-siw.hex");

/// The target that is logged in to there.
const TARGET: &str = "/v1/targets/iqn.2026-01.test:lio";

/// The bytes of the first frame of this title.
fn captured(title: &str) -> Vec<u8> {
    let (_, rest) = CAPTURED.split_once(&format!("= {title}\n")).unwrap();
    let frame = rest.split("\n\n").next().unwrap();
    let hex = frame.split_whitespace();
    hex.map(|digits| u8::from_str_radix(digits, 16).unwrap())
        .collect()
}

/// A connection, and the Reply to its Request; none where it was refused.
fn connect(port: u16) -> Option<(TcpStream, [u8; 28])> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    stream
        .write_all(&captured("initiator, MPA Request"))
        .unwrap();
    let mut reply = [0; 28];
    stream.read_exact(&mut reply).ok()?;
    Some((stream, reply))
}

/// Logs in, where no CRCs are asked for.
fn log_in(port: u16) -> TcpStream {
    let (mut stream, _) = connect(port).unwrap();
    stream.write_all(&captured("initiator, Send")).unwrap();
    let mut length = [0; 2];
    stream.read_exact(&mut length).unwrap();
    let mut response = vec![0; u16::from_be_bytes(length).into()];
    stream.read_exact(&mut response).unwrap();
    stream
}

fn sessions(rig: &Rig) -> Vec<(String, String)> {
    let request = ApiRequest::new("/v1/sessions");
    let sessions: Vec<Session> = rig.client().ask(Method::GET, &request).unwrap();
    let told = |one: Session| (one.transport, one.portal);
    sessions.into_iter().map(told).collect()
}

#[test]
fn a_session_over_iser_stays_when_its_portal_takes_no_more_of_them() {
    let port = free_port();
    let rig = Rig::new(&format!(
        "version = 1\n[daemon]\niser-crc = false\n[volume.a]\naddress = \"ram:1M\"\n\
         [target.\"iqn.2026-01.test:lio\"]\nportals = [\"127.0.0.1:{port}\"] # the one\n\
         luns = {{ 0 = \"a\" }}\nallow = [\"*\"]\n"
    ));
    assert!(connect(port).is_none());
    let on = format!(r#"{{"portals":[{{"address":"127.0.0.1:{port}","iser":true}}]}}"#);
    let outcome = rig.send(Method::PATCH, TARGET, &on).unwrap();
    assert_eq!(outcome.worst, Impact::Quiet);
    let table = format!("portals = [{{ address = \"127.0.0.1:{port}\", iser = true }}] # the one");
    assert!(rig.file().contains(&table), "{}", rig.file());

    let _stream = log_in(port);
    let there = [("iser".to_owned(), format!("127.0.0.1:{port}"))];
    assert_eq!(sessions(&rig), there);
    let metrics = rig.client().text(Method::GET, &ApiRequest::new("/metrics"));
    let series = "lunar_sessions{target=\"iqn.2026-01.test:lio\",transport=\"iser\"} 1\n";
    assert!(metrics.unwrap().contains(series));

    let off = format!(r#"{{"portals":["127.0.0.1:{port}"]}}"#);
    let outcome = rig.send(Method::PATCH, TARGET, &off).unwrap();
    assert_eq!(outcome.worst, Impact::Quiet);
    assert!(connect(port).is_none());
    assert_eq!(sessions(&rig), there);
}

#[test]
fn crcs_are_asked_for_from_the_next_connection_on() {
    let port = free_port();
    let rig = Rig::new(&format!(
        "version = 1\n[target.\"iqn.2026-01.test:lio\"]\nallow = [\"*\"]\n\
         portals = [{{ address = \"127.0.0.1:{port}\", iser = true }}]\n"
    ));
    const CRC: u8 = 0x40;
    let asked = || connect(port).unwrap().1[16] & CRC;
    assert_eq!(asked(), CRC);
    for (value, crc) in [("false", 0), ("true", CRC)] {
        let set = format!(r#"{{"set":[["daemon.iser-crc","{value}"]]}}"#);
        rig.send(Method::POST, "/v1/set", &set).unwrap();
        assert_eq!(asked(), crc, "{value}");
    }
}

#[test]
fn a_portal_that_is_malformed_changes_nothing() {
    let port = free_port();
    let rig = Rig::new(&format!(
        "version = 1\n[target.\"iqn.2026-01.test:lio\"]\nallow = [\"*\"]\n\
         portals = [\"127.0.0.1:{port}\"]\n"
    ));
    let before = rig.file();
    for (portals, told) in [
        (r#"[{"address":"127.0.0.1","iser":"yes"}]"#, "\"device\""),
        (r#"[{"address":"127.0.0.1","isr":true}]"#, "isr"),
        (r#"[{"iser":true}]"#, "address"),
        (r#"["127.0.0.1", 7]"#, "a portal"),
        (r#"7"#, "a list of portals"),
        (r#"[{"address":"fcoe:int0","iser":true}]"#, "Fibre Channel"),
    ] {
        let body = format!(r#"{{"portals":{portals}}}"#);
        let (status, detail) = rig.refused(Method::PATCH, TARGET, &body);
        assert!((400..500).contains(&status), "{status} {portals}");
        assert!(detail.contains(told), "{portals}: {detail}");
    }
    assert_eq!(rig.file(), before);
}
