//! Hosts at cables of a switch: they log in, and reach whom their zones let them.

use std::fs;
use std::sync::mpsc::channel;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use fc::wire::names::FcId;
use tempfile::TempDir;

use super::super::options::{Place, SwitchOptions, Zoning};
use super::super::{ReadyPort, SwitchError, SwitchOrders, first_low, run};
use super::enode::Enode;

/// A switch on a thread of its own, with cables in a folder.
pub(super) struct Running {
    folder: TempDir,
    orders: Option<SwitchOrders>,
    pub(super) ports: Vec<ReadyPort>,
    thread: Option<JoinHandle<Result<(), SwitchError>>>,
}

impl Running {
    pub(super) fn start(cables: usize, change: impl FnOnce(&mut SwitchOptions, &TempDir)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = |number| folder.path().join(format!("cable{number}"));
        let places = (0..cables).map(|number| Place::Cable(path(number)));
        let mut options = SwitchOptions::new(places.collect());
        options.zoning = Zoning::Open;
        change(&mut options, &folder);
        Self::start_again(folder, options)
    }

    pub(super) fn start_again(folder: TempDir, options: SwitchOptions) -> Self {
        let (told, ready) = channel();
        let thread = thread::spawn(move || {
            run(&options, |ports, orders| {
                told.send((ports.to_vec(), orders)).unwrap();
                Ok(())
            })
        });
        let (ports, orders) = ready.recv().unwrap();
        Self {
            folder,
            orders: Some(orders),
            ports,
            thread: Some(thread),
        }
    }

    pub(super) fn cable(&self, number: usize) -> Place {
        Place::Cable(self.folder.path().join(format!("cable{number}")))
    }

    pub(super) fn host(&self, number: usize) -> Enode {
        let mut host = Enode::plug(&self.cable(number), self.ports[number].vlan);
        host.log_in();
        host
    }

    pub(super) fn orders(&self) -> &SwitchOrders {
        self.orders.as_ref().unwrap()
    }

    pub(super) fn stop(mut self) -> TempDir {
        self.orders().stop();
        self.thread.take().unwrap().join().unwrap().unwrap();
        self.folder
    }
}

#[test]
fn hosts_log_in_and_their_frames_arrive_in_order() {
    let switch = Running::start(2, |_, _| {});
    let (mut one, mut other) = (switch.host(0), switch.host(1));
    let domain = |fc_id: FcId| fc_id.bytes()[0];
    assert_eq!((domain(one.fc_id), domain(other.fc_id)), (1, 1));
    assert_ne!(one.fc_id, other.fc_id);
    for number in 0..100_u32 {
        one.send(other.fc_id, &number.to_be_bytes());
    }
    for number in 0..100_u32 {
        let frame = (one.fc_id, number.to_be_bytes().to_vec());
        assert_eq!(other.next_frame(), frame);
    }
    // Egress may be ingress.
    one.send(one.fc_id, b"self");
    assert_eq!(one.next_frame(), (one.fc_id, b"self".to_vec()));
    switch.orders().stop();
    one.hears_the_end();
    other.hears_the_end();
    switch.stop();
}

#[test]
fn a_fabric_on_a_vlan_tells_it_and_tags_its_frames() {
    let switch = Running::start(2, |options, _| options.vlan = Some(152));
    assert!(switch.ports[0].fabric_name.starts_with("20:98:"));
    let mut one = Enode::plug(&switch.cable(0), Some(152));
    assert_eq!(one.vlans(), [152]);
    one.log_in();
    let mut other = switch.host(1);
    one.send(other.fc_id, b"tagged!!");
    assert_eq!(other.next_frame(), (one.fc_id, b"tagged!!".to_vec()));
    switch.stop();
}

#[test]
fn n_port_ids_outlive_the_switch() {
    let state = |options: &mut SwitchOptions, folder: &TempDir| {
        options.state = Some(folder.path().join("state"));
    };
    let switch = Running::start(2, state);
    let (one, other) = (switch.host(0), switch.host(1));
    let before = (one.fc_id, other.fc_id);
    drop((one, other));
    let folder = switch.stop();
    let places = (0..2).map(|n| Place::Cable(folder.path().join(format!("cable{n}"))));
    let mut options = SwitchOptions::new(places.collect());
    options.state = Some(folder.path().join("state"));
    let switch = Running::start_again(folder, options);
    let (other, one) = (switch.host(1), switch.host(0));
    assert_eq!((one.fc_id, other.fc_id), before, "in another order");
    switch.stop();
}

/// Hosts may still mean another port by what was given before.
#[test]
fn without_a_state_n_port_ids_begin_anywhere() {
    assert_eq!(first_low(true, [0xff; 8]), 0x0100);
    assert_eq!(first_low(false, [0; 8]), 0x0100);
    assert_eq!(first_low(false, [0xfd, 0xff, 0, 0, 0, 0, 0, 0]), 0xfeff);
    assert_eq!(first_low(false, [0xfe, 0, 0, 0, 0, 0, 0, 0]), 0x0100);
    let switch = Running::start(1, |options, folder| {
        options.state = Some(folder.path().join("state"));
    });
    assert_eq!(switch.host(0).fc_id, FcId(0x01_0100));
    switch.stop();
}

#[test]
fn zones_are_read_again_whole_or_not_at_all() {
    let switch = Running::start(2, |options, folder| {
        let zones = folder.path().join("zones");
        fs::write(&zones, "default deny\n").unwrap();
        options.zoning = Zoning::File(zones);
    });
    let (mut one, mut other) = (switch.host(0), switch.host(1));
    one.send(other.fc_id, b"cut!");
    // What is answered later was read later: the frame has been dropped by then.
    one.solicit();
    let zones = switch.folder.path().join("zones");
    let (a, b) = (one.wwpn(), other.wwpn());
    let text = format!("zone pair = {a} {b}\nzoneset all = pair\nactive all\n");
    fs::write(&zones, &text).unwrap();
    switch.orders().read_zones();
    // The file is read meanwhile.
    let heard = loop {
        one.send(other.fc_id, b"here");
        if let Some((_, heard)) = other.frame_within(Duration::from_millis(50)) {
            break heard;
        }
    };
    assert_eq!(heard, b"here");
    fs::write(&zones, format!("{text}zone x\n")).unwrap();
    switch.orders().read_zones();
    while other.drain() > 0 || !other.is_quiet() {}
    one.send(other.fc_id, b"stay");
    assert_eq!(other.next_frame().1, b"stay");
    switch.stop();
}

/// The host at the other end does not read, so that its queue fills up: the sender's cable is
/// not read for a while, and then loses frames. A host that sends to others is not concerned.
#[test]
fn a_host_that_does_not_read_delays_no_other() {
    let switch = Running::start(3, |_, _| {});
    let (mut one, stuck, mut third) = (switch.host(0), switch.host(1), switch.host(2));
    let payload = [7; 2048];
    let mut sent = 0;
    // More than queue and sockets have room for.
    while sent < 16_384 {
        sent += one.flood(stuck.fc_id, &payload, 256);
        third.send(third.fc_id, b"fine");
        assert_eq!(third.next_frame().1, b"fine");
    }
    while !one.flush() {}
    one.send(third.fc_id, b"also");
    assert_eq!(third.next_frame().1, b"also");
    switch.stop();
}

/// A host that reads as fast as it can loses nothing, however fast the other one sends.
#[test]
fn a_cable_that_is_faster_waits() {
    let switch = Running::start(2, |_, _| {});
    let (mut one, mut other) = (switch.host(0), switch.host(1));
    let payload = [9; 2048];
    let (mut sent, mut came) = (0, 0);
    while sent < 20_000 {
        sent += one.flood(other.fc_id, &payload, 256);
        came += other.drain();
    }
    while came < sent {
        one.flush();
        let more = other.drain();
        came += more;
        assert!(
            more > 0 || !other.is_quiet() || came == sent,
            "{came} of {sent}"
        );
    }
    switch.stop();
}
