use std::sync::Arc;

use iscsi::target::{InitiatorPort, SessionIdentity, SessionScope};
use scsi::nexus::AttentionHistory;

use super::{DepartedInitiators, MOST};

/// The greater `number`, the lower its name.
fn port(number: usize) -> SessionIdentity {
    let name = format!("iqn.2026-01.test:{}", 2 * MOST - number);
    let isid = [0; 6];
    let node = SessionScope::Node("iqn.2026-11.org.lunar:disk".into(), 1);
    (InitiatorPort { name, isid }, node)
}

fn heard(version: u64) -> AttentionHistory {
    AttentionHistory {
        target: Arc::default(),
        versions: [Some(version)].into(),
    }
}

#[test]
fn the_port_that_went_away_first_is_forgotten_first() {
    let mut ports = DepartedInitiators::default();
    for number in 0..=MOST {
        ports.go_away(port(number), heard(1));
    }
    assert_eq!(ports.come_back(Some(&port(0))), None);
    for number in 1..=MOST {
        assert_eq!(ports.come_back(Some(&port(number))), Some(heard(1)));
    }
}

#[test]
fn a_port_that_is_known_takes_the_place_of_no_other() {
    let mut ports = DepartedInitiators::default();
    for number in 0..MOST {
        ports.go_away(port(number), heard(1));
    }
    ports.go_away(port(5), heard(2));
    assert_eq!(ports.come_back(Some(&port(5))), Some(heard(2)));
    for number in (0..MOST).filter(|number| *number != 5) {
        assert_eq!(ports.come_back(Some(&port(number))), Some(heard(1)));
    }
}
