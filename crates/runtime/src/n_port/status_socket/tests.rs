//! Sockets that answer, that belong to dead processes, and that are silent.

use std::thread;

use ::io::ether::Place;
use fc::initiator::{FcpInitiator, FcpInitiatorConfig};
use scsi::medium::HeapLease;

use super::super::{Attachment, NPort, PortOwner, PortStatus, ports_here};
use super::*;

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().path()).collect()
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
    assert_eq!(asking.join().unwrap(), ["\"all is well\""]);
    assert_eq!(ask_in(folder.path(), StatusKind::Port), [""; 0]);
    drop(socket);
    assert_eq!(files(folder.path()), [""; 0].map(PathBuf::from));
}

/// The kernel leaves the file of a socket whose process is gone.
#[test]
fn what_a_dead_process_has_left_is_removed() {
    let folder = tempfile::tempdir().unwrap();
    let dead = folder.path().join("4711-00000000.port");
    drop(UnixListener::bind(&dead).unwrap());
    assert_eq!(ask_in(folder.path(), StatusKind::Port), [""; 0]);
    assert!(!dead.exists());
}

#[test]
fn one_that_is_silent_is_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let silent = folder.path().join("4711-00000000.port");
    let _stopped = UnixListener::bind(&silent).unwrap();
    assert_eq!(ask_in(folder.path(), StatusKind::Port), [""; 0]);
    assert!(silent.exists(), "its process is there");
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
    let all = asking.join().unwrap();
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
        ..PortStatus::default()
    };
    assert_eq!(told, &expected);
}
