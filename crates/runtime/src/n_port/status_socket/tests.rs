//! Sockets that answer, that belong to dead processes, and that are silent.

use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Instant;

use ::io::ether::Place;
use fc::initiator::{FcpInitiator, FcpInitiatorConfig};
use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, utimensat};
use scsi::medium::HeapLease;

use super::super::{Attachment, NPort, PortOwner, PortStatus, ports_here};
use super::*;

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().path()).collect()
}

/// What all tell, each in a word.
fn ask_in(folder: &Path, kind: StatusKind) -> StatusAnswers<String> {
    ask::ask_in(folder, kind)
}

#[test]
fn whoever_connects_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let mut socket = StatusSocket::open_in(folder.path(), StatusKind::Switch).unwrap();
    let [path] = &files(folder.path())[..] else {
        panic!("one file")
    };
    assert_eq!(
        fs::metadata(path).unwrap().permissions().mode() & 0o777,
        0o600
    );
    let here = folder.path().to_owned();
    let asking = thread::spawn(move || ask_in(&here, StatusKind::Switch));
    let begin = Instant::now();
    while !asking.is_finished() {
        socket.answer(begin.elapsed(), || "all is well");
        thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(asking.join().unwrap().told, ["all is well"]);
    let answers = ask_in(folder.path(), StatusKind::Port);
    assert_eq!((answers.told.len(), answers.silent.len()), (0, 0));
    drop(socket);
    assert_eq!(files(folder.path()), [""; 0].map(PathBuf::from));
}

/// The kernel leaves the file of a socket whose process is gone.
#[test]
fn what_a_dead_process_has_left_is_removed() {
    let folder = tempfile::tempdir().unwrap();
    let dead = folder.path().join("4711-00000000.port");
    drop(UnixListener::bind(&dead).unwrap());
    let answers = ask_in(folder.path(), StatusKind::Port);
    assert_eq!((answers.told.len(), answers.silent.len()), (0, 0));
    assert!(!dead.exists());
}

#[test]
fn what_has_died_before_it_had_its_name_is_removed_after_a_while() {
    let folder = tempfile::tempdir().unwrap();
    let [old, new, claim] = ["4711-00000000", "4711-00000001", "eth0-0"].map(|name| {
        let path = folder.path().join(name);
        if name.starts_with("eth0") {
            fs::write(&path, "4711").unwrap();
        } else {
            drop(UnixListener::bind(&path).unwrap());
        }
        path
    });
    let long_ago = Timespec {
        tv_sec: 1,
        tv_nsec: 0,
    };
    let times = Timestamps {
        last_access: long_ago,
        last_modification: long_ago,
    };
    for path in [&old, &claim] {
        utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW).unwrap();
    }
    ask_in(folder.path(), StatusKind::Switch);
    let there = [&old, &new, &claim].map(|path| path.exists());
    assert_eq!(there, [false, true, true]);
}

#[test]
fn one_that_is_silent_is_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let silent = folder.path().join("4711-00000000.port");
    let _stopped = UnixListener::bind(&silent).unwrap();
    let answers = ask_in(folder.path(), StatusKind::Port);
    assert_eq!((answers.told.len(), &answers.silent[..]), (0, &[4711][..]));
    assert!(silent.exists(), "its process is there");
}

/// Else it would look as if nothing ran there.
#[test]
fn one_whose_answer_is_cut_off_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let listener = UnixListener::bind(folder.path().join("4711-00000000.switch")).unwrap();
    let here = folder.path().to_owned();
    let asking = thread::spawn(move || ask_in(&here, StatusKind::Switch));
    let (mut stream, _) = listener.accept().unwrap();
    stream.write_all(b"\"all is w").unwrap();
    drop(stream);
    let answers = asking.join().unwrap();
    assert_eq!((answers.told.len(), answers.silent.len()), (0, 0));
    assert_eq!(answers.garbled, [4711]);
}

#[test]
fn an_answer_as_long_as_may_be_goes_into_a_socket_that_is_not_read() {
    let (stream, reader) = UnixStream::pair().unwrap();
    let told = "x".repeat(ANSWER_BYTES - 2);
    assert_eq!(answer_len(&told), ANSWER_BYTES);
    give(stream, &told).unwrap();
    assert_eq!(io::read_to_string(reader).unwrap().len(), ANSWER_BYTES);
}

/// The kernel has whoever connects wait for room in the queue, without end.
#[test]
fn one_whose_queue_is_full_holds_up_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let stopped = folder.path().join("4711-00000000.port");
    let _listener = UnixListener::bind(&stopped).unwrap();
    let mut queued = Vec::new();
    while let Ok(stream) = connect_to(&stopped) {
        queued.push(stream);
    }
    assert!(!queued.is_empty() && stopped.exists());
    let here = folder.path().to_owned();
    let asking = thread::spawn(move || ask_in(&here, StatusKind::Port));
    let until = Instant::now() + Duration::from_secs(30);
    while !asking.is_finished() {
        assert!(Instant::now() < until, "it waits for room");
        thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(asking.join().unwrap().silent, [4711]);
}

/// Whoever asks has room for some descriptors only, and asks all nevertheless.
#[test]
fn of_many_all_are_asked() {
    let folder = tempfile::tempdir().unwrap();
    let mut sockets: Vec<_> = (0..300)
        .map(|_| StatusSocket::open_in(folder.path(), StatusKind::Port).unwrap())
        .collect();
    let has_asked = AtomicBool::new(false);
    let answers = thread::scope(|scope| {
        let asking = scope.spawn(|| {
            let answers = ask_in(folder.path(), StatusKind::Port);
            has_asked.store(true, Relaxed);
            answers
        });
        let begin = Instant::now();
        while !has_asked.load(Relaxed) {
            for socket in &mut sockets {
                socket.answer(begin.elapsed(), || "all is well");
            }
        }
        asking.join().unwrap()
    });
    assert_eq!((answers.told.len(), answers.silent.len()), (300, 0));
}

/// One that nothing accepts would wake the thread again and again.
#[test]
fn without_a_descriptor_left_whoever_asks_is_turned_away() {
    let folder = tempfile::tempdir().unwrap();
    let mut socket = StatusSocket::open_in(folder.path(), StatusKind::Port).unwrap();
    let asking = UnixStream::connect(&files(folder.path())[0]).unwrap();
    socket.turn_away();
    assert_eq!(io::read_to_string(asking).unwrap(), "");
    let waiting = socket.listener.accept().unwrap_err();
    assert_eq!(waiting.kind(), io::ErrorKind::WouldBlock);
    assert!(socket.spare.is_some());
    assert!(is_exhausted(&Errno::MFILE.into()) && is_exhausted(&Errno::NFILE.into()));
    assert!(!is_exhausted(&Errno::AGAIN.into()));
}

#[test]
fn an_n_port_tells_what_it_is_like() {
    let folder = tempfile::tempdir().unwrap();
    let place = Place::Cable(folder.path().join("x"));
    let site = Attachment::open(&place, &PortOwner::Initiator).unwrap();
    let initiator = FcpInitiator::<HeapLease>::new(FcpInitiatorConfig::default());
    let mut port = NPort::begin(site, initiator, Now::ZERO);
    let asking = thread::spawn(ports_here);
    let begin = Instant::now();
    while !asking.is_finished() {
        port.receive(begin.elapsed());
        thread::sleep(Duration::from_millis(1));
    }
    let all = asking.join().unwrap().told;
    let told = all.iter().find(|told| told.place == place.to_string());
    let told = told.unwrap_or_else(|| panic!("{all:?}"));
    let expected = PortStatus {
        pid: std::process::id(),
        program: told.program.clone(),
        role: "FCP Initiator".to_owned(),
        place: place.to_string(),
        mode: "vn2vn".to_owned(),
        port_name: port.port().wwpn().to_string(),
        node_name: port.port().wwnn().to_string(),
        mac: port.names().mac.to_string(),
        state: "Offline".to_owned(),
        user_priority: 3,
        mtu: told.mtu,
        max_frame: port.port().payload_max(),
        statistics: told.statistics,
        query_socket: told.query_socket.clone(),
        ..PortStatus::default()
    };
    assert_eq!(told, &expected);
}
