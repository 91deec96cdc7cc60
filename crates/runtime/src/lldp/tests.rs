//! A cable with an agent at its other end, and settings of cards.

use std::sync::Arc;
use std::thread;

use ::io::ether::dcb::{DcbApp, DcbEts, DcbPfc};
use fc::frames::FrameSink;

use super::*;

/// A port at the end of a cable, as a place for frames.
struct Port(EtherPort);

impl FrameSink for Port {
    fn slot(&mut self, len: usize) -> Option<&mut [u8]> {
        self.0.slot(len)
    }

    fn commit(&mut self, len: usize) {
        self.0.commit(len);
    }
}

/// An agent that sends until it was heard, and then has the one that hears it stop.
fn sender(place: &Place, name: &str, stop: Arc<AtomicBool>) -> thread::JoinHandle<()> {
    let mut port = Port(EtherPort::open(place, &OPTIONS).unwrap());
    let config = LldpConfig {
        mode: LldpMode::Send,
        mac: Mac(port.0.mac()),
        port_id: "swp1".to_owned(),
        port_description: String::new(),
        system_name: name.to_owned(),
        system_description: String::new(),
        dcb: Some(DcbSettings::fcoe(3, false)),
    };
    thread::spawn(move || {
        while !stop.load(Relaxed) {
            let mut agent = Lldp::new(config.clone(), Duration::ZERO);
            agent.link(Duration::ZERO, true);
            agent.expire(Duration::ZERO);
            agent.transmit(&mut port);
            let has_left = port.0.flush().unwrap_or(false);
            stop.store(has_left && !port.0.is_alone(), Relaxed);
            thread::sleep(Duration::from_millis(10));
        }
    })
}

#[test]
fn the_agent_at_the_other_end_of_a_cable_is_heard() {
    let folder = tempfile::tempdir().unwrap();
    let place = Place::Cable(folder.path().join("x.sock"));
    let stop = Arc::new(AtomicBool::new(false));
    let other = sender(&place, "leaf1", Arc::clone(&stop));
    let view = listen(&place, Duration::from_secs(60), &stop).unwrap();
    other.join().unwrap();
    let [neighbour] = view.agent.neighbours() else {
        panic!("{view:?}");
    };
    assert_eq!(neighbour.system_name, "leaf1");
    assert!(neighbour.ieee.is_some(), "{neighbour:?}");
    assert_eq!((view.card, view.violations), (None, Vec::new()));
    assert_eq!(view.agent.dcbx().lossless(), Err(DcbProblem::NotHere));
}

#[test]
fn who_is_told_to_stop_does() {
    let folder = tempfile::tempdir().unwrap();
    let place = Place::Cable(folder.path().join("x.sock"));
    let view = listen(&place, Duration::MAX, &AtomicBool::new(true)).unwrap();
    assert!(view.agent.neighbours().is_empty());
}

/// A neighbour sends faster than it is heard.
#[test]
fn a_flood_does_not_keep_it_from_ending() {
    let folder = tempfile::tempdir().unwrap();
    let place = Place::Cable(folder.path().join("x.sock"));
    let port = EtherPort::open(&place, &OPTIONS).unwrap();
    let mut view = LldpView::new(&place, &port, None);
    let mut frames = 0_u64;
    view.take_some(|_| {
        frames += 256;
        256
    });
    assert!(frames > 0);
}

#[test]
fn the_time_that_is_told_is_that_of_listening() {
    let folder = tempfile::tempdir().unwrap();
    let place = Place::Cable(folder.path().join("x.sock"));
    let view = listen(&place, Duration::MAX, &AtomicBool::new(true)).unwrap();
    assert!(view.listened < Duration::from_secs(3600), "{view:?}");
}

#[test]
fn an_interface_that_is_not_there_is_told() {
    let place = Place::Interface("no-such-one".to_owned());
    let told = listen(&place, Duration::ZERO, &AtomicBool::new(false)).unwrap_err();
    assert!(told.to_string().contains("no-such-one"), "{told}");
}

#[test]
fn the_settings_of_a_card_are_those_that_are_told() {
    let usual = DcbSettings::fcoe(3, true);
    let app = |protocol| DcbApp {
        selector: 1,
        priority: 3,
        protocol,
    };
    let card = InterfaceDcb {
        dcbx: InterfaceDcb::HOST,
        ets: Some(DcbEts {
            willing: true,
            classes_max: 8,
            bandwidth: usual.table.bandwidth,
            algorithms: usual.table.algorithms,
            classes: usual.table.classes,
        }),
        pfc: Some(DcbPfc {
            classes_max: 8,
            enabled: 0x08,
            ..DcbPfc::default()
        }),
        apps: vec![app(0x8906), app(0x8914)],
    };
    assert_eq!(settings(&card), usual);
}
