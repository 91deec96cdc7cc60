//! A port at a cable, both ends of which are in use.

use std::env;
use std::fs;

use fc::fip::enode::FabricConfig;
use fc::initiator::FcpInitiatorConfig;
use scsi::medium::HeapLease;

use super::*;
use crate::n_port::{Attachment, PortOwner};

impl IdlePorts {
    fn fresh_for(fresh: Duration) -> Self {
        Self(Arc::new(IdlePortState {
            fresh,
            ..IdlePortState::default()
        }))
    }

    fn take_up(&self, place: &Place) -> Option<NPort<FcpInitiator<HeapLease>>> {
        self.take(place, PortTerms::default(), Now::ZERO)
    }
}

fn cable(name: &str) -> Place {
    let path = env::temp_dir().join(format!("lunar-idle-{}-{name}", std::process::id()));
    let _ = fs::remove_file(&path);
    Place::Cable(path)
}

fn port(place: &Place) -> NPort<FcpInitiator<HeapLease>> {
    let site = Attachment::open(place, &PortOwner::Initiator).unwrap();
    NPort::begin(
        site,
        FcpInitiator::new(FcpInitiatorConfig::default()),
        Now::ZERO,
    )
}

#[test]
fn a_port_is_taken_up_by_one_whose_logins_say_the_same() {
    let (place, ports) = (cable("taken"), IdlePorts::default());
    ports.put(port(&place), PortTerms::default(), Now::ZERO);
    let short = PortTerms {
        e_d_tov: Some(Duration::from_millis(100)),
        ..PortTerms::default()
    };
    let fabric = PortTerms {
        mode: PortMode::Fabric(FabricConfig::default()),
        ..PortTerms::default()
    };
    let lossless = PortTerms {
        dcb: DcbUse::Required,
        ..PortTerms::default()
    };
    for other in [short, fabric, lossless] {
        assert!(ports.take::<HeapLease>(&place, other, Now::ZERO).is_none());
    }
    assert!(ports.take_up(&cable("another")).is_none());
    let taken = ports.take_up(&place);
    assert_eq!(taken.map(|port| port.place().clone()), Some(place.clone()));
    assert!(ports.take_up(&place).is_none());
}

#[test]
fn a_port_that_nobody_takes_up_ends_by_itself() {
    let (place, ports) = (cable("left"), IdlePorts::fresh_for(Duration::ZERO));
    let _other = port(&place);
    ports.put(port(&place), PortTerms::default(), Now::ZERO);
    assert!(ports.take_up(&place).is_none());
    ports.wait_for_ending(&place);
    Attachment::open(&place, &PortOwner::Initiator).unwrap();
}
