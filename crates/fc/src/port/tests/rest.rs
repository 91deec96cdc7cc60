//! Ports whose users change.

use super::rig::{Rig, config, ms};
use crate::initiator::FcpInitiatorEvent;
use crate::port::PortConfig;
use crate::remote::Partners;
use crate::wire::names::Wwn;

fn inquire(rig: &mut Rig) -> String {
    rig.traced();
    rig.inquire();
    let done = rig.done.pop();
    assert!(matches!(done, Some(FcpInitiatorEvent::Done(_))), "{done:?}");
    rig.traced()
}

/// The target takes the second command for another one than the first, and the login holds.
#[test]
fn a_port_goes_on_after_a_rest() {
    let mut rig = Rig::up();
    let before = inquire(&mut rig);
    assert!(rig.initiator.port.fc4().is_at_rest());
    let mut rig = rig.rested();
    let after = inquire(&mut rig);
    assert_eq!(after.lines().count(), before.lines().count());
    assert_ne!(after, before);
    assert_eq!(rig.initiator.told, ["online 000001", "up 0"]);
}

/// It has heard of the target long before, and has left it alone.
#[test]
fn a_target_is_logged_in_to_as_soon_as_somebody_wants_it() {
    let nobody = PortConfig {
        partners: Partners::Only([].into()),
        ..config(1)
    };
    let mut rig = Rig::new(&config(2), &nobody);
    rig.run(ms(3000));
    let wwpn = config(2).wwpn;
    assert!(!rig.initiator.port.find(wwpn).unwrap().is_up());
    rig.initiator.port.admit(rig.now, Wwn(1));
    rig.initiator.port.admit(rig.now, wwpn);
    rig.run(ms(3001));
    assert!(rig.initiator.port.find(wwpn).unwrap().is_up());
    inquire(&mut rig);
}
