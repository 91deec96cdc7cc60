//! Running out of file descriptors. The limit is one of the process, so these tests run as
//! processes of their own: the test binary again, with the story's name.

use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::*;

const CHILD: &str = "IO_TEST_OUT_OF_DESCRIPTORS";

#[test]
fn epoll_does_not_spin_without_descriptors() {
    in_a_process("epoll_does_not_spin_without_descriptors", RingKind::Epoll);
}

#[test]
fn uring_does_not_spin_without_descriptors() {
    in_a_process("uring_does_not_spin_without_descriptors", RingKind::Uring);
}

fn in_a_process(name: &str, kind: RingKind) {
    if std::env::var_os(CHILD).is_some() {
        return without_descriptors(kind);
    }
    let test = format!("ring::tests::limits::{name}");
    let program = std::env::current_exe().unwrap();
    let mut child = Command::new(program);
    child
        .arg0("io-test")
        .args([&test, "--exact"])
        .env(CHILD, "1");
    let output = child.output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stdout)
    );
}

fn without_descriptors(kind: RingKind) {
    // First of all: io_uring keeps the limit that it found when the accept was submitted.
    let maximum = getrlimit(Resource::Nofile).maximum;
    let current = Some(64);
    setrlimit(Resource::Nofile, Rlimit { current, maximum }).unwrap();
    let ring = &mut open(kind);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    ring.listen(listener.into(), Token(1)).unwrap();
    ring.wait(Some(Duration::ZERO)).unwrap();
    let peer = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    let mut taken = Vec::new();
    while let Ok(file) = std::fs::File::open("/dev/null") {
        taken.push(file);
    }
    peer.connect(&address.into()).unwrap();
    let start = Instant::now();
    let (mut waits, mut told) = (0, 0);
    while start.elapsed() < Duration::from_millis(350) {
        ring.wait(Some(Duration::from_millis(400))).unwrap();
        while let Some(event) = ring.next_event() {
            let RingEvent::NotAccepted { cause } = event else {
                panic!("{event:?}");
            };
            assert_eq!(cause.raw_os_error(), Some(libc::EMFILE));
            told += 1;
        }
        waits += 1;
    }
    assert!((1..=waits).contains(&told), "{told} in {waits} waits");
    assert!(waits <= 12, "{waits} waits in 350 ms");
    drop(taken);
    let accepted = loop {
        match next(ring) {
            Seen::NotAccepted => {}
            seen => break seen,
        }
    };
    assert!(matches!(accepted, Seen::Accepted(Token(1), _)));
}
