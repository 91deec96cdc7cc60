//! `lunar serve --iser`: its ready lines, what a connection meets that begins as Linux's ib_iser
//! does, and options that are wrong.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use crate::rig::{LUNAR, PATIENCE, Run, lunar, signal};

/// Frames of Linux's initiator over software iWARP, without CRCs.
const CAPTURED: &str = include_str!("../../../../tests/frames/iser-siw.hex");

/// The target that they log in to.
const TARGET: &str = "iqn.2026-01.test:lio";

/// The bytes of the first frame of this title.
fn captured(title: &str) -> Vec<u8> {
    let (_, rest) = CAPTURED.split_once(&format!("= {title}\n")).unwrap();
    let frame = rest.split("\n\n").next().unwrap();
    let hex = frame.split_whitespace();
    hex.map(|digits| u8::from_str_radix(digits, 16).unwrap())
        .collect()
}

/// A server, and its ready lines.
struct Server {
    child: Child,
    lines: Vec<String>,
}

impl Server {
    fn start(options: &[&str], lines: usize) -> Self {
        let mut child = Command::new(LUNAR)
            .args([
                "serve",
                "ram:1M",
                "--listen",
                "127.0.0.1:0",
                "--iqn",
                TARGET,
            ])
            .args(options)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let lines = out.lines().take(lines).map(Result::unwrap).collect();
        Self { child, lines }
    }

    /// The addresses of the ready lines.
    fn addresses(&self) -> Vec<&str> {
        let first = |line: &'_ String| line.find("  ").unwrap();
        self.lines.iter().map(|line| &line[..first(line)]).collect()
    }

    fn connect(&self) -> TcpStream {
        let (_, rest) = self.lines[0].split_once("://").unwrap();
        let stream = TcpStream::connect(rest.split('/').next().unwrap()).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// Stops it, and gives its log.
    fn log(mut self) -> String {
        signal("TERM", self.child.id());
        let mut log = String::new();
        let mut stderr = self.child.stderr.take().unwrap();
        stderr.read_to_string(&mut log).unwrap();
        assert!(self.child.wait().unwrap().success(), "{log}");
        log
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends the Request of the capture, and gives the Reply.
fn started(stream: &mut TcpStream) -> [u8; 28] {
    stream
        .write_all(&captured("initiator, MPA Request"))
        .unwrap();
    let mut reply = [0; 28];
    stream.read_exact(&mut reply).unwrap();
    assert_eq!(&reply[..16], b"MPA ID Rep Frame");
    reply
}

/// The C flag of a frame of MPA.
const CRC: u8 = 0x40;

#[test]
fn each_lun_is_told_by_iscsi_and_by_iser() {
    let server = Server::start(&["--iser"], 2);
    let [iscsi, iser] = server.addresses()[..] else {
        panic!("{:?}", server.lines);
    };
    let rest = iscsi.strip_prefix("iscsi://").unwrap();
    assert_eq!(iser, format!("iser://{rest}"));
    assert!(
        server.lines[1].ends_with("  1.0 MiB  ram:1M"),
        "{:?}",
        server.lines
    );
    // One port takes both.
    assert_eq!(lunar(&format!("info {iscsi}")).ran().code, Some(0));
    assert!(server.log().contains(&format!("logged in to {TARGET}")));
}

#[test]
fn the_initiator_of_linux_logs_in_as_it_was_captured() {
    let server = Server::start(&["--iser=soft", "--iser-crc", "off"], 2);
    let mut stream = server.connect();
    assert_eq!(started(&mut stream)[16] & CRC, 0);
    stream.write_all(&captured("initiator, Send")).unwrap();
    let mut length = [0; 2];
    stream.read_exact(&mut length).unwrap();
    let mut ulpdu = vec![0; u16::from_be_bytes(length).into()];
    stream.read_exact(&mut ulpdu).unwrap();
    // Behind the headers of DDP and iSER: a Login Response without an error.
    let response = &ulpdu[18 + 28..];
    assert_eq!((response[0], &response[36..38]), (0x23, &[0, 0][..]));
    drop(stream);
    let log = server.log();
    let told = format!("iqn.2026-01.test:initiator (\"ini\") logged in over iSER to {TARGET}");
    assert!(log.contains(&told), "{log}");
}

/// CRCs are used if either end asks for them.
#[test]
fn a_unit_is_found_used_and_told_of() {
    for (server, address, crc) in [
        ("on", "", "yes"),
        ("off", "?crc=off", "no"),
        ("off", "", "yes"),
    ] {
        let server = Server::start(&["--iser", "--iser-crc", server], 2);
        let address = format!("{}{address}", server.addresses()[1]);
        let (portal, _) = server.addresses()[1].split_once("/iqn").unwrap();
        let found = lunar(&format!("ls {portal}")).ran();
        assert!(found.out.contains(server.addresses()[1]), "{}", found.out);
        let told = lunar(&format!("info {address}")).ran();
        let mut rows = told.out.lines().map(str::split_whitespace);
        let has_crc = rows.any(|row| row.eq(["CRC", crc]));
        assert!(
            has_crc && told.out.contains("software iWARP"),
            "{}",
            told.out
        );
        let bench = format!("bench verify({address}) --rw randrw --bs 4k,256k --iodepth 8");
        let ran = lunar(&format!("{bench} --runtime 100ms --ramp-time 0s")).ran();
        assert_eq!(ran.code, Some(0), "{}", ran.err);
        let log = server.log();
        assert!(log.contains("logged in over iSER"), "{log}");
        assert!(log.contains("logged out"), "{log}");
        assert!(!log.contains("WARN"), "{log}");
    }
}

/// By the names of RFC 7145 §6, in both forms.
#[test]
fn info_tells_what_was_negotiated() {
    let server = Server::start(&["--iser"], 2);
    let address = server.addresses()[1];
    let told = lunar(&format!("info {address}")).ran().out;
    let json = lunar(&format!("info --json {address}")).ran().out;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    for (group, name, value) in [
        ("negotiated", "RDMAExtensions", "Yes"),
        ("negotiated", "InitiatorRecvDataSegmentLength", "8192"),
        ("negotiated", "TargetRecvDataSegmentLength", "8192"),
        (
            "negotiated",
            "MaxOutstandingUnexpectedPDUs",
            "4 ours, 16 theirs",
        ),
        ("negotiated", "MaxAHSLength", "256 (not declared)"),
        ("negotiated", "TaggedBufferForSolicitedDataOnly", "Yes"),
        ("queue pair", "MPA revision", "2"),
        ("queue pair", "RDMA Reads of the target", "32"),
        ("queue pair", "invalidation by the target", "yes"),
    ] {
        assert_eq!(json[group][name], value, "{name}");
        let line = format!("    {name:<32}  {value}\n");
        assert!(told.contains(&line), "{name}: {told}");
    }
}

#[test]
fn crcs_are_asked_for_unless_they_are_switched_off() {
    for (options, crc) in [
        (&["--iser"][..], CRC),
        (&["--iser", "--iser-crc", "on"], CRC),
        (&["--iser", "--iser-crc=off"], 0),
    ] {
        let server = Server::start(options, 2);
        let reply = started(&mut server.connect());
        assert_eq!(reply[16] & CRC, crc, "{options:?}");
    }
}

#[test]
fn without_the_option_iser_is_refused() {
    let server = Server::start(&[], 1);
    assert!(server.addresses()[0].starts_with("iscsi://"));
    let mut stream = server.connect();
    stream
        .write_all(&captured("initiator, MPA Request"))
        .unwrap();
    // The end of the connection, with or without a reset.
    assert!(matches!(stream.read(&mut [0]), Ok(0) | Err(_)));
    drop(stream);
    let address = server.addresses()[0].replace("iscsi://", "iser://");
    let told = lunar(&format!("info {address}")).ran();
    let way_out = "RDMA does not begin: the target closed the connection; check that the portal \
                   takes iSER (lunar serve --iser, LIO: enable_iser), or use iscsi://";
    assert!(told.err.contains(way_out), "{}", told.err);
    assert_eq!(told.code, Some(1));
    let log = server.log();
    assert!(
        log.contains("iSER at a portal that does not take it"),
        "{log}"
    );
}

#[test]
fn a_portal_without_a_place_for_a_login_is_told_as_one_that_may_be_full() {
    let server = Server::start(&["--iser", "--max-logins", "1"], 2);
    let _silent = server.connect();
    let addresses = server.addresses();
    let mut addresses = addresses.iter();
    let address = addresses.find(|one| one.starts_with("iser://")).unwrap();
    let told = lunar(&format!("info {address}")).ran();
    let way_out = "the target closed the connection; check that the portal takes iSER (lunar \
                   serve --iser, LIO: enable_iser), or use iscsi://; where it does, all its places \
                   for logins may be taken: try again later, and see its log";
    assert!(told.err.contains(way_out), "{}", told.err);
    assert_eq!(told.code, Some(1));
}

#[test]
fn each_wrong_option_is_one_line() {
    for (line, told) in [
        ("serve ram:1M --iser=hard", "--iser"),
        ("serve ram:1M --iser=", "--iser"),
        ("serve ram:1M --iser --iser", "--iser"),
        ("serve ram:1M --iser-crc off", "--iser"),
        ("serve ram:1M --iser --iser-crc", "--iser-crc"),
        ("serve ram:1M --iser --iser-crc maybe", "--iser-crc"),
        (
            "serve ram:1M --iser=device --iser-crc off",
            "--iser-crc is of software iWARP, which --iser=device does not take",
        ),
        (
            "serve ram:1M --iser --fcoe cable:/tmp/no-cable",
            "--iser needs a portal, and with --fcoe alone there is none: add --listen",
        ),
    ] {
        lunar(line).refused_with(2, told);
    }
}
