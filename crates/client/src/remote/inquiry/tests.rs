//! A target that says little, and what is told while it is waited for.

mod redirected;

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;

use iscsi::initiator::error::SessionEnd;

use super::*;
use crate::open::{self, portal_of};
use crate::remote::{self, IserOptions, SessionEnvironment};
use address::{SessionOptions, UnitAddress};

type Session = Inquiry<InitiatorConnection>;

fn log_in(portal: SocketAddr) -> Result<Session, RemoteError> {
    log_in_since(portal, Instant::now())
}

fn log_in_since(portal: SocketAddr, asked: Instant) -> Result<Session, RemoteError> {
    log_in_over(portal, None, asked)
}

fn log_in_over(
    portal: SocketAddr,
    iser: Option<&IserOptions>,
    asked: Instant,
) -> Result<Session, RemoteError> {
    let unit = UnitAddress {
        user: None,
        portal: portal.to_string().parse().unwrap(),
        target: "iqn.2026-01.test:target".into(),
        lun: 0,
        session: SessionOptions::default(),
    };
    let portal = portal_of(&unit, iser, &open::tests::options()).unwrap();
    Inquiry::log_in(asked, |core| {
        let (name, outside) = (portal.to_string(), SessionEnvironment::default());
        InitiatorConnection::new(core.node(), portal, name, outside)
    })
}

/// The response and the status of a SCSI Response PDU (RFC 7143 §11.4).
type Said = (u8, Status);

const BUSY: Said = (0, Status::Busy);

/// Lets everybody in, answers the requests after that in turn, and closes. Returns what was asked
/// last.
fn answer(mut stream: TcpStream, said: &[Said]) -> io::Result<u8> {
    let mut said = said.iter();
    for stat_sn in 1_u32.. {
        let mut request = [0; 48];
        stream.read_exact(&mut request)?;
        let length = u32::from_be_bytes([0, request[5], request[6], request[7]]);
        let mut data = vec![0; length.next_multiple_of(4) as usize];
        stream.read_exact(&mut data)?;
        let opcode = request[0] & 0x3f;
        let is_login = opcode == LOGIN;
        let mut response = [0; 48];
        response[16..20].copy_from_slice(&request[16..20]);
        response[24..28].copy_from_slice(&stat_sn.to_be_bytes());
        let cmd_sn = u32::from_be_bytes([request[24], request[25], request[26], request[27]]);
        let next = cmd_sn + u32::from(!is_login);
        response[28..32].copy_from_slice(&next.to_be_bytes());
        response[32..36].copy_from_slice(&(next + 8).to_be_bytes());
        if is_login {
            (response[0], response[1]) = (0x23, request[1]);
            response[8..14].copy_from_slice(&request[8..14]);
            response[15] = 1;
        } else {
            (response[0], response[1]) = (0x21, 0x80);
            let (code, status) = said.next().expect("something to say");
            (response[2], response[3]) = (*code, *status as u8);
        }
        stream.write_all(&response)?;
        if !is_login && said.len() == 0 {
            return Ok(opcode);
        }
    }
    Ok(LOGIN)
}

const LOGIN: u8 = 0x03;
const LOGOUT: u8 = 0x06;

/// Before any question that has time left.
fn long_ago() -> Instant {
    Instant::now().checked_sub(2 * LIMIT).unwrap()
}

#[test]
fn a_connection_that_is_lost_while_a_unit_is_busy_is_told_as_such() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let portal = listener.local_addr().unwrap();
    let target = thread::spawn(move || answer(listener.accept()?.0, &[BUSY]));
    let mut talk = log_in(portal).unwrap();
    let told = talk.facts(Lun::from_index(0));
    assert!(
        matches!(
            told,
            Err(RemoteError::Session(remote::LinkEnd::Session(
                SessionEnd::Lost
            )))
        ),
        "{told:?}"
    );
    target.join().unwrap().unwrap();
}

#[test]
fn a_target_is_told_of_the_logout_after_any_time() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let portal = listener.local_addr().unwrap();
    let leaves: [fn(Session); 2] = [Session::leave, |talk| talk.leave_since(long_ago())];
    for leave in leaves {
        let listener = listener.try_clone().unwrap();
        let target = thread::spawn(move || answer(listener.accept()?.0, &[BUSY]));
        let mut talk = log_in(portal).unwrap();
        talk.asked = long_ago();
        leave(talk);
        assert_eq!(target.join().unwrap().unwrap(), LOGOUT);
    }
}

#[test]
fn who_has_no_time_left_logs_in_no_more() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let portal = listener.local_addr().unwrap();
    let late = log_in_since(portal, long_ago());
    assert!(matches!(late, Err(RemoteError::Late(_))));
    listener.set_nonblocking(true).unwrap();
    let came = listener.accept().map_err(|cause| cause.kind());
    assert!(matches!(came, Err(io::ErrorKind::WouldBlock)), "{came:?}");
}

/// What a target is told to have said that answers REPORT LUNS so.
fn luns(said: &'static [Said]) -> RemoteError {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let portal = listener.local_addr().unwrap();
    let target = thread::spawn(move || answer(listener.accept()?.0, said));
    let mut talk = log_in(portal).unwrap();
    let told = talk.report_luns().unwrap_err();
    target.join().unwrap().unwrap();
    told
}

#[test]
fn what_a_target_says_in_place_of_its_luns_is_told_at_once() {
    let busy = luns(&[BUSY; 8]);
    assert!(
        matches!(busy, RemoteError::Luns { status: 8, .. }),
        "{busy:?}"
    );
    let kept_out = luns(&[BUSY, (0, Status::ReservationConflict)]);
    assert!(
        matches!(kept_out, RemoteError::Luns { status: 0x18, .. }),
        "{kept_out:?}"
    );
}

#[test]
fn a_command_that_failed_at_the_target_is_over() {
    let failed = luns(&[(1, Status::Good), (0, Status::CheckCondition)]);
    assert!(
        matches!(failed, RemoteError::Luns { status: 2, .. }),
        "{failed:?}"
    );
}

#[test]
fn each_thing_that_takes_long_is_told_once() {
    let begun = Instant::now();
    let mut patience = WaitNotice::new(begun);
    let mut line = |ms, awaited: &str| {
        let now = begun + Duration::from_millis(ms);
        let line = patience.line(now, awaited.to_owned());
        (line, patience.left(now).map(|left| left.as_millis()))
    };
    assert_eq!(line(0, "a login"), (None, Some(3000)));
    assert_eq!(line(2999, "a login"), (None, Some(1)));
    let told = Some("waiting for a login".to_owned());
    assert_eq!(line(3000, "a login"), (told, None));
    assert_eq!(line(9000, "a login"), (None, None));
    assert_eq!(line(9000, "a unit"), (None, Some(3000)));
    let told = Some("waiting for a unit".to_owned());
    assert_eq!(line(12_000, "a unit"), (told, None));
}
