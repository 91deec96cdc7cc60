//! Programs that ask, in good order and otherwise.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::thread::{self, JoinHandle};
use std::time::Instant;

use ::io::ether::Place;
use fc::initiator::{FcpInitiator, FcpInitiatorConfig};
use fc::wire::ct::name_server::NameServerRequest;
use fc::wire::els::Els;
use fc::wire::names::FcId;
use scsi::medium::HeapLease;

use super::super::{Attachment, NPort, PortOwner, PortStatus};
use super::message::{QueryFailure, REQUEST_MAX};
use super::*;

type InitiatorPort = NPort<FcpInitiator<HeapLease>>;

/// Two ports of VN2VN at the ends of a cable.
struct Pair {
    begin: Instant,
    ports: [InitiatorPort; 2],
    _folder: tempfile::TempDir,
}

impl Pair {
    /// Both have an address, and know each other.
    fn up() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let place = Place::Cable(folder.path().join("x"));
        let port = || {
            let site = Attachment::open(&place, &PortOwner::Initiator).unwrap();
            let initiator = FcpInitiator::new(FcpInitiatorConfig::default());
            NPort::begin(site, initiator, Now::ZERO)
        };
        let mut pair = Self {
            begin: Instant::now(),
            ports: [port(), port()],
            _folder: folder,
        };
        pair.turn_until(|pair| {
            let knows = |port: &InitiatorPort| port.port().remotes().next().is_some();
            pair.ports.iter().all(knows)
        });
        pair
    }

    fn turn(&mut self) {
        let now = self.begin.elapsed();
        for port in &mut self.ports {
            port.receive(now);
            port.expire(now);
            while port.poll().is_some() {}
            port.transmit();
        }
        thread::sleep(Duration::from_micros(200));
    }

    #[track_caller]
    fn turn_until(&mut self, is_over: impl Fn(&Self) -> bool) {
        let until = Instant::now() + Duration::from_secs(60);
        while !is_over(self) {
            assert!(Instant::now() < until, "it does not come to that");
            self.turn();
        }
    }

    /// What another program makes of a port meanwhile.
    #[track_caller]
    fn while_asked<T: Send + 'static>(
        &mut self,
        ask: impl FnOnce(PortStatus) -> T + Send + 'static,
    ) -> T {
        let status = self.ports[0].status(0);
        let asking: JoinHandle<T> = thread::spawn(move || ask(status));
        self.turn_until(|_| asking.is_finished());
        asking.join().unwrap()
    }

    fn socket(&self) -> PathBuf {
        self.ports[0].status(0).query_socket.unwrap()
    }

    fn other(&self) -> FcId {
        self.ports[1].port().address().unwrap().fc_id
    }

    /// What is said to one who sends this, and how.
    fn told(&mut self, sent: Vec<u8>) -> String {
        self.while_asked(move |status| {
            let mut stream = UnixStream::connect(status.query_socket.unwrap()).unwrap();
            stream.write_all(&sent).unwrap();
            let mut text = String::new();
            let _ = stream.read_to_string(&mut text);
            text
        })
    }
}

#[test]
fn an_echo_and_link_errors_come_back() {
    let mut pair = Pair::up();
    let mode = fs::metadata(pair.socket()).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::mode(&mode.permissions());
    assert_eq!(mode & 0o777, 0o600);
    let to = pair.other();
    let data: Vec<u8> = (0..1000_u16).map(|at| at as u8).collect();
    let sent = Els::Echo(data.clone()).encode();
    let got = pair.while_asked(move |port| port.ask_els(to, &sent));
    assert_eq!(got.unwrap(), [&[2, 0, 0, 0], &data[..]].concat());
    let got = pair.while_asked(move |port| port.ask_els(to, &Els::Rls(to).encode()));
    assert_eq!(got.unwrap().len(), 28);
}

#[test]
fn what_is_not_sent_is_told() {
    let mut pair = Pair::up();
    let echo = Els::Echo(vec![1]).encode();
    let absent = pair.while_asked(move |port| port.ask_els(FcId(1), &echo));
    let absent = absent.unwrap_err();
    assert_eq!(absent.kind(), io::ErrorKind::InvalidInput);
    assert!(
        absent.to_string().contains("N_Port_ID 0x000001"),
        "{absent}"
    );
    let name = NameServerRequest::GpnId(FcId(1)).encode();
    let none = pair.while_asked(move |port| port.ask_ct(&name));
    assert!(none.unwrap_err().to_string().contains("VN2VN mode"));
}

/// Each of these ends its own connection, and nothing else.
#[test]
fn garbage_is_refused() {
    let mut pair = Pair::up();
    let line = |text: &str| format!("{text}\n").into_bytes();
    for (sent, told) in [
        (line(""), "no request"),
        (line("{}"), "missing field `version`"),
        (line(r#"{"version":2}"#), "a request of version 2"),
        (line(r#"{"version":1}"#), "missing field `service`"),
        (
            line(r#"{"version":1,"service":"els","to":1,"payload":"1"}"#),
            "not hexadecimal",
        ),
        (
            line(r#"{"version":1,"service":"els","to":1,"payload":"éé"}"#),
            "not hexadecimal",
        ),
        (
            line(r#"{"version":1,"service":"els","to":16777216,"payload":"10000000"}"#),
            "no N_Port_ID",
        ),
        (
            line(r#"{"version":1,"service":"els","to":1,"payload":"05000000"}"#),
            "only ECHO",
        ),
        (
            line(r#"{"version":1,"service":"ct","to":1,"payload":""}"#),
            "only ECHO",
        ),
        (vec![0xff, b'\n'], "no request"),
        // More than any request has is not read.
        (vec![b'['; REQUEST_MAX], ""),
    ] {
        let answer = pair.told(sent.clone());
        let sent = String::from_utf8_lossy(&sent);
        assert!(answer.contains(told), "{sent}: {answer}");
        assert_eq!(answer.is_empty(), told.is_empty(), "{sent}: {answer}");
    }
    let to = pair.other();
    let echo = Els::Echo(vec![1]).encode();
    let got = pair.while_asked(move |port| port.ask_els(to, &echo));
    assert_eq!(got.unwrap(), [2, 0, 0, 0, 1]);
}

/// Those that connect and send nothing have their time, and then make room.
#[test]
fn the_silent_and_the_many_hold_nothing_up() {
    let mut pair = Pair::up();
    let socket = pair.socket();
    let idle: Vec<_> = (0..ASKERS_MAX)
        .map(|_| UnixStream::connect(&socket).unwrap())
        .collect();
    let is_full = |pair: &Pair| {
        let queries = pair.ports[0].queries.as_ref().unwrap();
        queries.askers.len() == ASKERS_MAX
    };
    pair.turn_until(is_full);
    // As a program asks, whose request is not read then.
    let echo = Els::Echo(vec![1]).encode();
    let busy = pair.while_asked(move |port| port.ask_els(FcId(1), &echo));
    assert_eq!(busy.unwrap_err().kind(), io::ErrorKind::ResourceBusy);
    let turned_away = pair.told(Vec::new());
    assert!(turned_away.contains("busy"), "{turned_away}");
    pair.turn_until(|pair| !is_full(pair));
    let mut told = String::new();
    BufReader::new(&idle[0]).read_line(&mut told).unwrap();
    assert_eq!(told, "");
}

/// What whoever asked left behind would hold a place for E_D_TOV else.
#[test]
fn one_that_goes_away_takes_its_query_along() {
    let mut pair = Pair::up();
    let to = pair.other();
    let line = QueryRequest::els(to, &Els::Echo(vec![1]).encode());
    let line = line.encode().unwrap();
    // The other end of the cable says nothing from now on.
    let silence = |pair: &mut Pair, turns| {
        for _ in 0..turns {
            let now = pair.begin.elapsed();
            pair.ports[0].receive(now);
            pair.ports[0].transmit();
            thread::sleep(Duration::from_millis(6));
        }
    };
    let is_asked = |pair: &Pair| {
        let queries = pair.ports[0].queries.as_ref().unwrap();
        queries.askers.iter().any(|one| one.query.is_some())
    };
    for _ in 0..2 * fc::port::QUERIES_MAX {
        let mut stream = UnixStream::connect(pair.socket()).unwrap();
        stream.write_all(&line).unwrap();
        // Connections are looked for every 5 ms, and read in the turn after that.
        silence(&mut pair, 3);
        assert!(is_asked(&pair));
        drop(stream);
        silence(&mut pair, 1);
        assert!(!is_asked(&pair));
    }
}

#[test]
fn a_port_that_has_ended_is_told_of() {
    let pair = Pair::up();
    let status = pair.ports[0].status(0);
    drop(pair);
    let ended = status.ask_els(FcId(1), &[]).unwrap_err();
    assert_eq!(ended.kind(), io::ErrorKind::ConnectionAborted);
    assert!(ended.to_string().contains("has ended"), "{ended}");
    let older = PortStatus::default().ask_ct(&[]).unwrap_err();
    assert!(older.to_string().contains("older version"), "{older}");
}

/// A dead process leaves its sockets; whoever finds one removes both.
#[test]
fn the_socket_of_a_dead_process_goes_with_its_status_socket() {
    let folder = tempfile::tempdir().unwrap();
    let status = StatusSocket::open_in(folder.path(), StatusKind::Port).unwrap();
    let queries = QuerySocket::open(&status).unwrap();
    let paths = [status.path(), queries.path()].map(Path::to_owned);
    assert_eq!(paths[0].file_stem(), paths[1].file_stem());
    drop((status, queries));
    for path in &paths {
        drop(std::os::unix::net::UnixListener::bind(path).unwrap());
    }
    assert!(super::super::status_socket::connect_to(&paths[0]).is_err());
    assert_eq!(paths.map(|path| path.exists()), [false, false]);
}

#[test]
fn each_failure_has_its_kind() {
    let kind = |cause| QueryAnswer::of(&Err(cause)).outcome().unwrap_err().kind();
    let silent = FcQueryError::Silent(Duration::from_secs(2));
    assert_eq!(kind(silent), io::ErrorKind::TimedOut);
    assert_eq!(kind(FcQueryError::Busy), io::ErrorKind::ResourceBusy);
    assert_eq!(kind(FcQueryError::Ended), io::ErrorKind::ConnectionAborted);
    assert_eq!(kind(FcQueryError::NoFabric), io::ErrorKind::InvalidInput);
    assert_eq!(
        serde_json::to_string(&QueryFailure::Gone).unwrap(),
        "\"gone\""
    );
    // A name server may answer with more than a frame has.
    let long = QueryAnswer::of(&Ok(vec![7; 100_000]));
    assert!(serde_json::to_vec(&long).unwrap().len() <= message::ANSWER_MAX);
    assert_eq!(long.outcome().unwrap().len(), 2112);
}
