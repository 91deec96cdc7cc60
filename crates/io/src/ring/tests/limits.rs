//! Running out of file descriptors. The limit is one of the process, so these tests run as
//! processes of their own: the test binary again, with the story's name.

use std::os::unix::process::CommandExt;
use std::process::Command;

use super::*;

const CHILD: &str = "IO_TEST_OUT_OF_DESCRIPTORS";

#[test]
fn epoll_does_not_spin_without_descriptors() {
    in_a_process("epoll_does_not_spin_without_descriptors", Kind::Epoll);
}

fn in_a_process(name: &str, kind: Kind) {
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

fn without_descriptors(kind: Kind) {
    let ring = &mut open(kind);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    ring.listen(listener.into(), Token(1)).unwrap();
    ring.wait(Some(Duration::ZERO)).unwrap();
    let _peer = socket2::Socket::from(TcpStream::connect(address).unwrap());
    let mut taken = Vec::new();
    let limit = rustix::process::Rlimit {
        current: Some(64),
        maximum: None,
    };
    let maximum = rustix::process::getrlimit(rustix::process::Resource::Nofile).maximum;
    let limit = rustix::process::Rlimit { maximum, ..limit };
    rustix::process::setrlimit(rustix::process::Resource::Nofile, limit).unwrap();
    while let Ok(file) = std::fs::File::open("/dev/null") {
        taken.push(file);
    }
    let start = Instant::now();
    let mut waits = 0;
    while start.elapsed() < Duration::from_millis(350) {
        ring.wait(Some(Duration::from_millis(400))).unwrap();
        assert!(ring.next_event().is_none());
        waits += 1;
    }
    assert!(waits <= 12, "{waits} waits in 350 ms");
    drop(taken);
    assert!(matches!(next(ring), Seen::Accepted(Token(1), _)));
}
