//! Hosts at cables of a switch whose ports live on several cores.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use fc::fabric::DropReason;
use fc::fabric::zones::Zones;
use fc::wire::names::FcId;
use tempfile::TempDir;

use super::super::cores::homes;
use super::super::options::{Place, SwitchOptions, Zoning};
use super::super::{SwitchSurvey, run};
use super::carry::Running;
use super::enode::Enode;

/// A switch with as many ports as cores.
fn start(cores: usize) -> Running {
    start_with(cores, |_, _| {})
}

fn start_with(cores: usize, change: impl FnOnce(&mut SwitchOptions, &TempDir)) -> Running {
    Running::start(cores, |options, folder| {
        options.threads = NonZeroUsize::new(cores);
        change(options, folder);
    })
}

fn dropped(survey: &SwitchSurvey) -> Vec<(DropReason, u64)> {
    let ports = survey.ports.iter();
    ports.flat_map(|port| port.dropped.clone()).collect()
}

#[test]
fn each_port_lives_on_the_core_with_the_fewest() {
    assert_eq!(homes(5, 2), [0, 1, 0, 1, 0]);
    assert_eq!(homes(2, 2), [0, 1]);
    assert_eq!(homes(3, 1), [0, 0, 0]);
}

#[test]
fn frames_cross_from_each_core_to_each_in_order() {
    let switch = start(3);
    let mut hosts = [0, 1, 2].map(|number| switch.host(number));
    let ids = hosts.each_ref().map(|host| host.fc_id);
    for from in 0..3 {
        for to in 0..3 {
            for number in 0..200_u32 {
                hosts[from].send(ids[to], &number.to_be_bytes());
            }
            for number in 0..200_u32 {
                let frame = (ids[from], number.to_be_bytes().to_vec());
                assert_eq!(hosts[to].next_frame(), frame, "{from} to {to}");
            }
        }
    }
    let survey = switch.orders().survey().unwrap();
    let frames: Vec<_> = survey.ports.iter().map(|port| port.frames).collect();
    assert_eq!((frames, dropped(&survey)), (vec![600; 3], Vec::new()));
    switch.stop();
}

/// A cable whose port lives on another core than that of the egress waits for it, too.
#[test]
fn a_cable_that_is_faster_waits_for_a_port_of_another_core() {
    let switch = start(2);
    let (mut one, mut other) = (switch.host(0), switch.host(1));
    let payload = [9; 2048];
    let (mut sent, mut came) = (0, 0);
    while sent < 20_000 {
        sent += other.flood(one.fc_id, &payload, 256);
        came += one.drain();
    }
    while came < sent {
        other.flush();
        let more = one.drain();
        came += more;
        let survey = || dropped(&switch.orders().survey().unwrap());
        let goes_on = more > 0 || !one.is_quiet() || came == sent;
        assert!(goes_on, "{came} of {sent}: {:?}", survey());
    }
    switch.stop();
}

/// Each core has a socket of its own there, which alone knows what it has not sent.
#[test]
fn what_another_core_could_not_send_is_counted_at_the_port() {
    for (from, to) in [(0, 1), (1, 0)] {
        // The core of the port itself says nothing there meanwhile.
        let switch = start_with(2, |options, _| options.fka = Duration::from_secs(90));
        let (mut one, other) = (switch.host(from), switch.host(to));
        let gone = other.fc_id;
        drop(other);
        one.send(gone, b"lost");
        let unsent = || {
            let survey = switch.orders().survey().unwrap();
            let places = survey.ports[to].lost.map(|lost| lost.places());
            let mut places = places.into_iter().flatten();
            places
                .find(|loss| loss.place == "link_down")
                .unwrap()
                .frames
        };
        let until = Instant::now() + Duration::from_secs(30);
        while unsent() == 0 {
            assert!(Instant::now() < until, "it is never told");
            thread::sleep(Duration::from_millis(50));
        }
        assert_eq!(unsent(), 1);
        switch.stop();
    }
}

/// The core of the host sends the frames, and the logout goes by mail to core 0, which has it at
/// once.
#[test]
fn a_logout_does_not_overtake_the_last_frames() {
    // A cable has room for ten, and what waits for room is dropped when its sender logs out.
    const BURST: usize = 8;
    for (from, to) in [(1, 0), (1, 2), (0, 1)] {
        let switch = start(3);
        let (mut one, mut other) = (switch.host(from), switch.host(to));
        let to = other.fc_id;
        for round in 0..50 {
            let own = one.fc_id;
            let logo = one.frames.logo(own, round + 100);
            assert_eq!(one.flood(to, &[7; 64], BURST), BURST);
            one.put(&logo);
            for number in 0..BURST {
                let Some((s_id, _)) = other.frame_within(Duration::from_secs(5)) else {
                    let survey = switch.orders().survey().unwrap();
                    panic!("{number} of round {round}: {:?}", dropped(&survey));
                };
                assert_eq!(s_id, own);
            }
            one.log_in();
        }
        let survey = switch.orders().survey().unwrap();
        assert_eq!(dropped(&survey), Vec::new());
        switch.stop();
    }
}

/// Who has registered for changes hears of other zones when they hold on the cores of all ports.
#[test]
fn zones_are_told_when_no_core_lets_more_through() {
    for (from, to) in [(1, 0), (1, 2), (0, 1)] {
        let switch = start(3);
        let (mut one, mut other) = (switch.host(from), switch.host(to));
        let to = other.fc_id;
        // By then all have been told of the logins.
        thread::sleep(Duration::from_millis(2500));
        one.register_for_changes();
        assert_eq!(one.next_frame().0, FcId::FABRIC_CONTROLLER);
        one.send(to, b"last");
        assert_eq!(other.next_frame().1, b"last");
        switch.orders().set_zones(Arc::new(Zones::closed()));
        assert_eq!(one.next_frame().0, FcId::FABRIC_CONTROLLER);
        one.send(to, b"cut!");
        // What is answered later was read later.
        one.solicit();
        let survey = switch.orders().survey().unwrap();
        assert_eq!(dropped(&survey), [(DropReason::Zoned, 1)]);
        assert_eq!(other.drain(), 0);
        switch.stop();
    }
}

#[test]
fn hosts_of_all_cores_hear_that_the_switch_ends() {
    let switch = start(3);
    let mut hosts = [0, 1, 2].map(|number| switch.host(number));
    switch.orders().stop();
    hosts.iter_mut().for_each(Enode::hears_the_end);
    switch.stop();
}

/// A core that cannot give its mail away leaves the port of it unread, and goes on afterwards.
#[test]
fn a_port_waits_while_the_machine_takes_no_mail() {
    let folder = tempfile::tempdir().unwrap();
    let place = |number: usize| Place::Cable(folder.path().join(format!("cable{number}")));
    let mut options = SwitchOptions::new((0..2).map(place).collect());
    (options.zoning, options.threads) = (Zoning::Open, NonZeroUsize::new(2));
    let (told, orders) = channel();
    let (goes_on, gate) = channel::<()>();
    let switch = thread::spawn(move || {
        run(&options, |_, orders| {
            told.send(orders).unwrap();
            gate.recv().unwrap();
            Ok(())
        })
    });
    let orders = orders.recv().unwrap();
    let mut host = Enode::plug(&place(1), None);
    let solicitation = host.frames.solicitation(2158);
    let (mut sent, mut refused) = (0, 0);
    // The last time the cable has taken nothing for a while.
    while refused < 100 {
        match host.flood_with(&solicitation, 64) {
            0 => {
                refused += 1;
                thread::sleep(Duration::from_millis(1));
            }
            more => (sent, refused) = (sent + more, 0),
        }
        assert!(sent < 100_000, "the mailbox has no end");
    }
    goes_on.send(()).unwrap();
    while !host.flush() {}
    host.solicit();
    // What one station may ask of the switch in a while is limited.
    thread::sleep(Duration::from_secs(2));
    host.log_in();
    host.send(host.fc_id, b"fine");
    assert_eq!(host.next_frame().1, b"fine");
    orders.stop();
    switch.join().unwrap().unwrap();
}
