//! From a link that comes up to a nexus.

use insta::assert_snapshot;

use super::rig::{Rig, config, ms};

#[test]
fn the_port_of_the_higher_name_logs_in_and_the_initiator_makes_the_pair() {
    let mut rig = Rig::new(&config(2), &config(1));
    rig.run(ms(1900));
    assert_snapshot!(rig.traced());
    assert_eq!(rig.target.told, ["online 000002", "up 0"]);
    assert_eq!(rig.initiator.told, ["online 000001", "up 0"]);
}
