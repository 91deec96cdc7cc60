//! fcping, fcnsq and fcrls, with a fabric that the test plays.

use std::cell::Cell;
use std::io;
use std::time::Duration;

use fc::wire::names::{FcId, Wwn};

use super::tree::Tree;
use crate::link_errors::{self, LinkErrorsError};
use crate::local_port::{LocalPortError, find, of_mac};
use crate::name_server::{NameQuery, QueryError};
use crate::ping::{EchoSizes, Pings, SIZE_MAX, hex_dump};
use crate::transport::FcTransport;

/// Answers every request in the same way.
struct Fabric<F>(F);

impl<F: FnMut(&[u8]) -> io::Result<Vec<u8>>> FcTransport for Fabric<F> {
    fn els(&mut self, _: FcId, request: &[u8], answer_max: usize) -> io::Result<Vec<u8>> {
        let mut answer = (self.0)(request)?;
        answer.truncate(answer_max);
        Ok(answer)
    }

    fn ct(&mut self, request: &[u8], answer_max: usize) -> io::Result<Vec<u8>> {
        self.els(FcId::DIRECTORY, request, answer_max)
    }
}

/// A header of CT with this code, reason and explanation, and what follows.
fn ct(code: u16, reason: u8, explanation: u8, told: &[u8]) -> Vec<u8> {
    let [high, low] = code.to_be_bytes();
    let header = [
        1,
        0,
        0,
        0,
        0xfc,
        2,
        0,
        0,
        high,
        low,
        0,
        0,
        0,
        reason,
        explanation,
        0,
    ];
    [&header, told].concat()
}

#[test]
fn a_local_port_is_meant_by_any_of_its_names() {
    let tree = Tree::new();
    for meant in [
        "eth3.152-fcoe",
        "host9",
        "00:1b:21:90:98:5a",
        "20:00:00:1b:21:90:98:5a",
        "0x2000001b2190985a",
        "0x270027",
        "270027",
    ] {
        let port = find(&tree.sysfs(), meant).unwrap();
        assert_eq!(
            (&*port.host, port.fc_id),
            ("host9", FcId(0x27_0027)),
            "{meant}"
        );
        assert_eq!(port.max_frame, 2048);
    }
    for meant in [
        "eth9",
        "host8",
        "00:1b:21:90:98:5c",
        "270099",
        "",
        "../host9",
    ] {
        let missing = find(&tree.sysfs(), meant);
        assert_eq!(missing, Err(LocalPortError::NotFound(meant.to_owned())));
    }
    let none = find(&Tree::bare().sysfs(), "eth3");
    assert_eq!(none, Err(LocalPortError::NoneAtAll));
    assert_eq!(
        of_mac("52:54:00:12:34:56".parse().unwrap()),
        Wwn(0x2000_5254_0012_3456)
    );
}

#[test]
fn the_least_of_what_all_allow_is_sent() {
    let tree = Tree::new();
    let from = find(&tree.sysfs(), "host9").unwrap();
    let used = |to, asked| EchoSizes::new(&tree.sysfs(), &from, FcId(to), asked).used();
    assert_eq!(used(0x27_01ef, SIZE_MAX), 2044);
    assert_eq!(used(0xff_fffc, SIZE_MAX), 2044);
    // Nobody has logged in there.
    assert_eq!(used(0x27_0099, SIZE_MAX), 32);
    assert_eq!(used(0x27_01ef, 4), 4);
}

#[test]
fn sizes_are_told_as_fcping_tells_them() {
    let sizes = EchoSizes {
        asked: 2108,
        source: 2044,
        target: 1024,
    };
    let expected = "Maximum ECHO data allowed by the Fabric (0xfffffd) : 2108 bytes.
Maximum ECHO data allowed by the Source (0x270027) : 2044 bytes.
Maximum ECHO data allowed by the Target (0x2701ef) : 1024 bytes.
Maximum ECHO data requested from user input (-s) : 2108 (default 32) bytes.
Actual FC ELS ECHO data size used : 1024 bytes.
Actual FC ELS ECHO payload size used : 1028 bytes (including 4 bytes ECHO command).
";
    assert_eq!(sizes.told(FcId(0x27_0027), FcId(0x27_01ef)), expected);
}

#[test]
fn echoes_are_timed_compared_and_counted() {
    let mut pings = Pings::new(FcId(0xbf_0027), 8);
    let now = Cell::new(Duration::ZERO);
    let mut turn = 0;
    let mut fabric = Fabric(|request: &[u8]| {
        turn += 1;
        now.set(now.get() + Duration::from_micros(10_000 + 2 * turn));
        assert_eq!(request[..4], [0x10, 0, 0, 0]);
        assert_eq!(request[4..], [0, 0, 0, turn as u8, 0, 1, 2, 3]);
        let mut answer = [&[2, 0, 0, 0], &request[4..]].concat();
        match turn {
            1 => Ok(answer),
            2 => {
                answer[9] = 0xff;
                Ok(answer)
            }
            3 => Ok(vec![1, 0, 0, 0, 0, 9, 0, 0]),
            4 => Ok(vec![0x50]),
            _ => Err(io::ErrorKind::ConnectionAborted.into()),
        }
    });
    let (mut lines, mut accepted) = (Vec::new(), Vec::new());
    let mut is_last = false;
    while !is_last {
        let outcome = pings.ping(&mut fabric, || now.get());
        is_last = outcome.is_last;
        accepted.push(outcome.is_accepted);
        lines.push(outcome.line);
    }
    let expected = [
        "echo    1 accepted                       10.002 ms",
        "echo    2 accept data mismatches         10.004 ms",
        "echo    3 REJECT received                10.006 ms",
        "echo    4 op 50 received                 10.008 ms",
        "echo    5 error: connection aborted",
    ];
    assert_eq!(lines, expected);
    assert_eq!(accepted, [true, false, false, false, false]);
    assert!(!pings.is_success());
    let summary = "5 frames sent, 4 received 4 errors, 20.000% loss, avg. rt time 10.005 ms";
    assert_eq!(pings.summary(), summary);
}

#[test]
fn an_answer_is_dumped_in_groups_of_words() {
    let bytes: Vec<u8> = (0..18).collect();
    let expected = "response length 18
     0 00010203 04050607 08090a0b 0c0d0e0f
    10 1011

";
    assert_eq!(hex_dump(&bytes), expected);
}

#[test]
fn the_name_server_is_asked_for_names() {
    let id = FcId(0x27_01ef);
    let name = [0x50, 0x06, 0x01, 0x62, 0x3b, 0x20, 0x22, 0x80];
    let mut fabric = Fabric(|request: &[u8]| {
        assert_eq!(request[..8], [1, 0, 0, 0, 0xfc, 2, 0, 0]);
        Ok(match &request[8..10] {
            [1, 0x12 | 0x13] => {
                assert_eq!(request[16..], [0, 0x27, 0x01, 0xef]);
                ct(0x8002, 0, 0, &name)
            }
            [1, 0x18] => ct(0x8002, 0, 0, b"\x07na\x1bme\0x"),
            [1, 0x39] => ct(0x8002, 0, 0, b"\x00"),
            [1, 0x21] => ct(0x8002, 0, 0, &[0, 0x27, 0x01, 0xef]),
            other => panic!("{other:x?}"),
        })
    });
    let mut told = |query: NameQuery| query.text(&mut fabric).unwrap();
    let wwn = "500601623b202280";
    assert_eq!(told(NameQuery::PortName(id)), ("Port Name", wwn.to_owned()));
    assert_eq!(told(NameQuery::NodeName(id)), ("Node Name", wwn.to_owned()));
    let symbolic = told(NameQuery::SymbolicPortName(id));
    assert_eq!(symbolic, ("Symbolic Port Name", "na?me".to_owned()));
    let empty = told(NameQuery::SymbolicNodeName(Wwn(1)));
    assert_eq!(empty, ("Symbolic Node Name", String::new()));
    let found = NameQuery::IdOfPort(Wwn(u64::from_be_bytes(name)))
        .id(&mut fabric)
        .unwrap();
    assert_eq!(found, id);
}

#[test]
fn what_the_name_server_refuses_is_told_in_words() {
    let told = |answer: Vec<u8>| {
        let query = NameQuery::PortName(FcId(1));
        query
            .text(&mut Fabric(|_: &[u8]| Ok(answer.clone())))
            .unwrap_err()
            .to_string()
    };
    let refused = told(ct(0x8001, 9, 1, &[]));
    assert_eq!(
        refused,
        "command failed: Unable to perform command request, Port Identifier not registered"
    );
    assert!(told(ct(0x8001, 0xee, 0xee, &[])).contains("unknown code"));
    for wrong in [
        vec![],
        vec![1; 15],
        ct(0x8002, 0, 0, &[0; 7]),
        ct(0x0112, 0, 0, &[0; 8]),
    ] {
        assert!(told(wrong).contains("malformed"));
    }
    let silent = NameQuery::PortName(FcId(1));
    let silent = silent.ask(&mut Fabric(|_: &[u8]| Err(io::ErrorKind::TimedOut.into())));
    assert!(matches!(silent, Err(QueryError::Io(_))));
}

#[test]
fn counters_of_another_port() {
    let tree = Tree::new();
    let sysfs = tree.sysfs();
    let port = link_errors::find(&sysfs, "0x2701ef", |_, id| id == FcId(0x27_01ef)).unwrap();
    assert_eq!((&*port.name, &*port.host), ("rport-9:0-0", "host9"));
    let counters = [7_u32, 14, 21, 28, 35, 42].map(u32::to_be_bytes).concat();
    let mut fabric = Fabric(|request: &[u8]| {
        assert_eq!(request, [0x0f, 0, 0, 0, 0, 0x27, 0x01, 0xef]);
        Ok([&[2, 0, 0, 0], &*counters].concat())
    });
    let expected = "RLS request accepted (LS_ACC), dumping status counters:
\tLink Failure Count                   = 7
\tVirtual Link Failure Count           = 14
\tMissed Discovery Advertisement Count = 21
\tSymbol Error During Carrier Count    = 28
\tErrored Block Count                  = 35
\tFrame Check Sequence Error Count     = 42
";
    assert_eq!(link_errors::ask(&mut fabric, port.fc_id).unwrap(), expected);
}

#[test]
fn counters_that_are_not_to_be_had() {
    let tree = Tree::new();
    let find = |meant: &str| link_errors::find(&tree.sysfs(), meant, |name, _| name == meant);
    assert!(matches!(
        find("rport-9:0-7"),
        Err(LinkErrorsError::Unknown(_))
    ));
    let state = "class/fc_remote_ports/rport-9:0-0/port_state";
    tree.put(state, "Blocked");
    let told = find("rport-9:0-0").unwrap_err().to_string();
    assert_eq!(told, "rport 0x2701EF Blocked: must be Online");
    let ask =
        |answer: Vec<u8>| link_errors::ask(&mut Fabric(|_: &[u8]| Ok(answer.clone())), FcId(1));
    let refused = ask(vec![1, 0, 0, 0, 0, 0x0b, 0x2c, 0]).unwrap();
    assert!(
        refused.contains("0x0b, Command not supported."),
        "{refused}"
    );
    assert!(
        refused.contains("0x2c, Request not supported."),
        "{refused}"
    );
    for wrong in [vec![], vec![2, 0, 0, 0, 1], vec![9, 0, 0, 0]] {
        assert!(matches!(ask(wrong), Err(LinkErrorsError::Malformed(_))));
    }
}
