//! A target that redirects a login over iSER: the next login is one over iSER, too.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Instant;

use iscsi::initiator::error::SessionEnd;
use iscsi::wire::bhs::{Bhs, Opcode};
use iscsi::wire::iser::{AdvertisedBuffers, ControlMessage, IserHeader};
use rdma::iwarp::startup::{Agreed, FrameKind, FrameReader, StartupConfig};
use rdma::iwarp::stream::Stream;
use rdma::test_support::{config, sent};
use rdma::verbs::{Completion, QueuePair as _, SendHeader, Work};
use scsi::medium::{HeapLease, Lease as _};

use super::log_in_over;
use crate::remote::{IserOptions, LinkEnd, RemoteError};

/// Redirected temporarily, and for ever (RFC 7143 §11.13.5).
const MOVED: [u16; 2] = [0x0101, 0x0102];

/// Answers the Request of MPA.
fn start(stream: &mut TcpStream) -> io::Result<Agreed> {
    let mut reader = FrameReader::new(FrameKind::Request);
    loop {
        let mut byte = [0];
        stream.read_exact(&mut byte)?;
        if let Some(request) = reader.receive(&byte).expect("a Request") {
            let ours = StartupConfig {
                crc: true,
                long_fpdus: true,
                ird: 1,
                ord: 1,
            };
            let (reply, agreed) = ours.accept(&request, &[]);
            stream.write_all(&reply.encode())?;
            return Ok(agreed);
        }
    }
}

/// Answers the first Login Request by a redirection.
fn redirect(mut stream: TcpStream, status: u16, to: SocketAddr) -> io::Result<()> {
    let mut pair = Stream::<HeapLease>::new(start(&mut stream)?, &config());
    let message = loop {
        let mut byte = [0];
        stream.read_exact(&mut byte)?;
        pair.receive(&byte);
        if let Some(Completion::Received { bytes, .. }) = pair.poll() {
            break bytes;
        }
    };
    let (_, rest) = IserHeader::split(&message).expect("an iSER header");
    let request = ControlMessage::split(rest).expect("a Login Request").bhs;
    let text = format!("TargetAddress={to}\0");
    let mut response = Bhs::new(Opcode::LoginResponse);
    response.0[8..20].copy_from_slice(&request.0[8..20]);
    response.0[36..38].copy_from_slice(&status.to_be_bytes());
    response.set_data_len(text.len() as u32);
    let mut text = text.into_bytes();
    text.resize(text.len().next_multiple_of(4), 0);
    let header = IserHeader::Control(AdvertisedBuffers::default()).encode();
    pair.post(Work::Send {
        header: SendHeader::new(&[&header, &response.0]).expect("room for both"),
        data: Some(HeapLease::from_bytes(text)),
        invalidate: None,
    });
    stream.write_all(&sent(&mut pair))
}

/// How a connection begins that comes next; it is closed then.
fn beginning(listener: &TcpListener) -> io::Result<[u8; 16]> {
    let mut bytes = [0; 16];
    listener.accept()?.0.read_exact(&mut bytes)?;
    Ok(bytes)
}

#[test]
fn a_login_is_redirected_to_iser_at_another_portal() {
    for status in MOVED {
        let [first, second] = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
        let portal = first.local_addr().unwrap();
        let target = thread::spawn(move || {
            redirect(first.accept()?.0, status, second.local_addr()?)?;
            beginning(&second)
        });
        let iser = IserOptions::software();
        let told = log_in_over(portal, Some(&iser), Instant::now());
        let told = told.map(|_| ()).unwrap_err();
        let begun = target.join().unwrap().unwrap();
        assert_eq!(&begun, b"MPA ID Req Frame");
        assert!(
            matches!(
                told,
                RemoteError::Session(LinkEnd::Session(SessionEnd::Login(_)))
            ),
            "the second portal closes the connection: {told:?}"
        );
    }
}
