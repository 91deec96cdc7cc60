//! Connections that never become a session, or are silent: what they cost is bounded in number and
//! time, and a session that works is not disturbed.

use std::time::Duration;

use iscsi::wire::bhs::Opcode;
use sim::{DiskKind, Rng, SimWire};
use tests::initiator::Initiator;

use crate::lab::{Lab, Mix, Shape};
use crate::seeds::with_transports;

const LOGIN_TIMEOUT: Duration = Duration::from_secs(15);
const NOP_INTERVAL: Duration = Duration::from_secs(30);
const NOP_TIMEOUT: Duration = Duration::from_secs(60);
/// What a peer has to take the last that it is sent.
const PARTING: Duration = Duration::from_secs(15);
const MOMENT: Duration = Duration::from_millis(100);

/// Connections that may be logging in at once.
const LOGINS: usize = 12;
const GOOD: usize = 0;

#[test]
fn storms_and_junk_do_not_disturb_a_session() {
    with_transports("login storms", 30, |seed| {
        let mut shape = Shape::any(&mut Rng::new(seed));
        shape.limits.logins = LOGINS;
        let mut lab = Lab::new(seed, shape);
        lab.log_in_hosts(1);
        let mut wires = Vec::new();
        for number in 0..120 {
            let wire = lab.world.connect().expect("somebody listens");
            send_anything(&mut lab, &wire, number);
            wires.push(wire);
            let steps = lab.rng.below(60);
            lab.run(steps, &Mix::default());
            let logins = lab.sum(|held| held.core.logins);
            assert!(logins <= LOGINS, "{logins} at once");
            if lab.rng.one_in(10) {
                lab.world.pass(LOGIN_TIMEOUT / 10);
            }
        }
        keep_talking(&mut lab, NOP_INTERVAL + NOP_TIMEOUT + 2 * PARTING);
        let open = wires.iter().filter(|wire| !wire.is_over()).count();
        assert_eq!(open, 0, "connections that are silent are still open");
        assert!(lab.hosts[GOOD].logged_in, "the good session is gone");
        lab.leave();
    });
}

#[test]
fn a_host_that_holds_all_places_for_logins_keeps_no_other_host_out() {
    with_transports("all places", 1, all_places_are_held);
}

fn all_places_are_held(seed: u64) {
    let mut shape = Shape::new(1, DiskKind::Apart);
    shape.limits.logins = LOGINS;
    let mut lab = Lab::new(seed, shape);
    let connect = |lab: &mut Lab| lab.world.connect_from([127, 0, 0, 2]).expect("a portal");
    let mut held: Vec<_> = (0..LOGINS).map(|_| connect(&mut lab)).collect();
    lab.log_in_hosts(1);
    assert!(held[0].is_over(), "the oldest made no room");
    // It comes again at once, as often as it likes.
    held.extend((0..LOGINS).map(|_| connect(&mut lab)));
    lab.log_in_hosts(1);
    lab.quiesce();
    let open = held.iter().filter(|wire| !wire.is_over()).count();
    assert_eq!(open, LOGINS - 1, "more was closed than had to be");
    lab.hosts.iter().for_each(|host| assert!(host.logged_in));
    held.iter().for_each(SimWire::cut);
    lab.leave();
}

/// Lets the time pass, but for the one session.
fn keep_talking(lab: &mut Lab, time: Duration) {
    let step = Duration::from_secs(5);
    for _ in 0..time.as_secs() / step.as_secs() {
        lab.world.pass(step);
        lab.run(100, &Mix::default());
    }
}

/// Junk, part of a login, a login with a wrong byte, or a whole one with junk behind it. Over iSER
/// it is the Request of MPA in place of a login.
fn send_anything(lab: &mut Lab, wire: &SimWire, number: u32) {
    let settings = lab.settings(1000 + number % 20);
    let mut login = std::mem::take(Initiator::new(settings).output());
    let rng = &mut lab.rng;
    match rng.below(6) {
        0 => {
            let junk: [u8; 200] = rng.bytes();
            wire.put(&junk);
        }
        1 => wire.put(&login[..rng.below(login.len())]),
        2 => {
            let at = rng.below(login.len());
            login[at] = rng.below(256) as u8;
            wire.put(&login);
        }
        3 => {
            let junk: [u8; 100] = rng.bytes();
            login.extend_from_slice(&junk);
            wire.put(&login);
        }
        4 => {
            wire.put(&login);
            wire.finish();
        }
        // A whole login, and then silence.
        _ => wire.put(&login),
    }
    if rng.one_in(8) {
        wire.cut();
    }
}

#[test]
fn a_peer_that_does_not_log_in_has_15_seconds() {
    with_transports("slow logins", 1, nobody_logs_in);
}

fn nobody_logs_in(seed: u64) {
    let mut lab = Lab::new(seed, Shape::new(2, DiskKind::Apart));
    let silent = lab.world.connect().expect("somebody listens");
    let slow = lab.world.connect().expect("somebody listens");
    let settings = lab.settings(0);
    let login = std::mem::take(Initiator::new(settings).output());
    // The Request of MPA is shorter than a login: it is whole, and then nothing comes.
    for at in 0..29 {
        slow.put(login.get(at..=at).unwrap_or_default());
        lab.quiesce();
        lab.world.pass(LOGIN_TIMEOUT / 30);
    }
    assert!(!silent.is_over() && !slow.is_over(), "too early");
    lab.world.pass(LOGIN_TIMEOUT / 30 + MOMENT);
    lab.quiesce();
    assert!(silent.is_over() && slow.is_over(), "too late");
    lab.is_left_by_all();
}

/// What idle sessions are asked leaves together, at the next quarter of a second.
const TOGETHER: Duration = Duration::from_millis(250);

#[test]
fn a_silent_session_is_pinged_and_dropped() {
    with_transports("silent sessions", 4, one_session_is_silent);
}

fn one_session_is_silent(seed: u64) {
    let mut lab = Lab::new(seed, Shape::new(2, DiskKind::Apart));
    for host in 0..2 {
        lab.add_host();
        lab.log_in(host);
    }
    lab.quiesce();
    // The other one answers.
    lab.hosts[0].reads = false;
    let silent = lab.hosts[0].link.as_ref().expect("a link").wire.clone();
    lab.world.pass(NOP_INTERVAL - MOMENT);
    lab.quiesce();
    assert_eq!(silent.arrived(), 0, "it was pinged too early");
    lab.world.pass(MOMENT + TOGETHER);
    lab.quiesce();
    let ping = silent.take(silent.arrived());
    assert_eq!(lab.hosts[0].header_in(&ping).opcode(), Opcode::NopIn);
    lab.world.pass(NOP_TIMEOUT - MOMENT - TOGETHER);
    lab.quiesce();
    assert!(!silent.is_over(), "it was dropped too early");
    lab.world.pass(MOMENT + 2 * TOGETHER);
    lab.quiesce();
    assert!(silent.is_over(), "it was not dropped");
    assert!(!lab.hosts[1].is_cut_off() && lab.hosts[1].logged_in);
    lab.hosts[0].hang_up();
    lab.leave();
}
