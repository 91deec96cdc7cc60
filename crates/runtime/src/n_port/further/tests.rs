use std::sync::mpsc;
use std::thread;

use ::io::ether::Place;

use super::*;

#[test]
fn each_port_has_the_first_wwpn_that_is_free() {
    let dir = tempfile::tempdir().unwrap();
    let folder = ClaimDir::new(dir.path()).unwrap();
    let mut names = FurtherPlaces::default();
    (names[0], names[1]) = (Some(Wwn(7)), Some(Wwn(9)));
    let first = claim(&folder, names).unwrap();
    let second = claim(&folder, names).unwrap();
    assert_eq!((first.0, second.0), (Wwn(7), Wwn(9)));
    let refused = claim(&folder, names).unwrap_err().to_string();
    assert!(refused.contains("00:00:00:00:00:00:00:09"), "{refused}");
    assert!(refused.contains("npiv=WWPN+WWPN"), "{refused}");
    drop(first);
    assert_eq!(claim(&folder, names).unwrap().0, Wwn(7));
}

#[test]
fn a_further_port_has_left_only_after_its_enode() {
    let dir = tempfile::tempdir().unwrap();
    let cable = Place::Cable(dir.path().join("cable"));
    let folder = ClaimDir::new(dir.path()).unwrap();
    let Attempt::Locked(claim) = folder.take("npiv").unwrap() else {
        panic!("the name is held");
    };
    let (stop, mut stopped) = UnixStream::pair().unwrap();
    let (has_logged_out, logs_out) = mpsc::channel();
    let thread = thread::spawn(move || {
        assert_eq!(stopped.read(&mut [0]).unwrap(), 0);
        logs_out.recv().unwrap();
    });
    let enode = EnodeThread {
        stop: Some(stop),
        thread,
    };
    let mut site = Attachment::open(&cable, &PortOwner::Initiator).unwrap();
    site.further = Some(FurtherLogin {
        _claim: claim,
        enode,
    });
    let fcp = FcpInitiator::<HeapLease>::new(FcpInitiatorConfig::default());
    let mut port = NPort::begin(site, fcp, Now::ZERO);
    let second = Duration::from_secs(1);
    port.leave(second);
    port.expire(second * 2);
    assert!(!port.has_left());
    has_logged_out.send(()).unwrap();
    while !port.has_left() {
        let due = port.next_deadline().unwrap();
        thread::sleep(Duration::from_millis(1));
        port.expire(due);
    }
}
