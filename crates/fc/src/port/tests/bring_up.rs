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

#[test]
fn another_length_of_frames_is_agreed_upon_anew() {
    let mut rig = Rig::up();
    let agreed = |rig: &Rig| {
        let mut remotes = rig.initiator.port.remotes();
        remotes.next().unwrap().payload_max()
    };
    assert_eq!(agreed(&rig), 2112);
    rig.target.told.clear();
    rig.target.port.resize(rig.now, 1500);
    rig.run(ms(2000));
    assert_eq!(rig.target.told[1..], ["offline"]);
    rig.target.port.link(rig.now, true);
    rig.run(ms(30_000));
    assert_eq!(rig.target.told[2..], ["online 000002", "up 0"]);
    assert_eq!(agreed(&rig), 1452);
}
