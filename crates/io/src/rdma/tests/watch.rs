//! What a core sleeps on, and what wakes it.

use super::rig::{Ends, World, message, told};
use crate::rdma::RdmaWatch;

fn ready(watch: &mut RdmaWatch) -> Vec<u64> {
    watch.ready().collect()
}

#[test]
fn a_listener_wakes_by_its_number() {
    let world = World::new();
    let mut watch = RdmaWatch::new().unwrap();
    let mut listener = world.listener();
    watch.add_listener(&listener, 1 << 63).unwrap();
    assert_eq!(ready(&mut watch), []);
    let mut connector = world.connector(listener.portal());
    assert!(connector.poll().is_none());
    assert_eq!(ready(&mut watch), [1 << 63]);
    drop(listener.poll());
    assert_eq!(ready(&mut watch), []);
    drop(connector);
}

#[test]
fn a_pair_wakes_when_it_is_armed_and_leaves_as_it_ends() {
    let mut ends = Ends::new();
    let mut watch = RdmaWatch::new().unwrap();
    // That the connection stands was told before.
    ends.target.wake();
    watch.add(&ends.target, 7).unwrap();
    assert!(watch.add(&ends.target, 8).is_err(), "it is there already");
    assert!(!ends.target.arm());
    ends.initiator.post(message(b"wake up"));
    ends.initiator.flush();
    assert_eq!(ready(&mut watch), [7]);
    ends.target.wake();
    assert_eq!(ready(&mut watch), []);
    assert_eq!(told(&mut ends.target), ["received wake up"]);
    watch.remove(&ends.target);
    watch.remove(&ends.target);
    watch.add(&ends.target, 9).unwrap();
    ends.initiator.end();
    assert_eq!(ready(&mut watch), [9]);
    drop(ends);
    assert_eq!(ready(&mut watch), []);
}
