//! Sessions that end while others work: connections end at any point, in whatever way, and their
//! hosts log in again; a port logs in again while writes of its old session are at the medium; a
//! host logs out. Nothing is lost that was acknowledged, nothing of the old session comes late,
//! and nothing is left behind.

use std::time::Duration;

use scsi::medium::Extent;
use sim::{DiskKind, Rng};
use tests::initiator::Reply;
use tests::iser_end::IserSettings;

use crate::lab::{Lab, Mix, Shape};
use crate::oracle::Pattern;
use crate::seeds::{with_seeds, with_transports};

/// Longer than a silent session is kept.
const SILENCE: Duration = Duration::from_secs(45);
const LOGIN_TIMEOUT: Duration = Duration::from_secs(15);
/// What a peer has to take the last that it is sent is 15 s.
const LONGER_THAN_A_PARTING: Duration = Duration::from_secs(20);
const HOSTS: usize = 3;
/// Not the first, which lives on the core where the owners of the units are.
const LEAVER: usize = 1;

#[test]
fn cut_connections_leave_nothing_behind() {
    with_transports("cut connections", 60, |seed| {
        let mut lab = Lab::any(seed);
        lab.any_pace();
        lab.log_in_hosts(4);
        for _ in 0..12 {
            let steps = lab.rng.below(400);
            lab.run(steps, &Mix::with_aborts());
            let host = lab.rng.below(4);
            end_connection(&mut lab, host);
            lab.dial(host);
        }
        lab.finish();
        lab.log_out_all();
        // Of those who went without a word the target learns as they are silent.
        for _ in 0..3 {
            lab.world.pass(SILENCE);
            lab.quiesce();
        }
        lab.is_left_by_all();
    });
}

/// A connection may just have begun to log in, or have been gone before.
pub(super) fn end_connection(lab: &mut Lab, host: usize) {
    let way = lab.rng.below(4);
    lab.tell(|| format!("host {host} ends its connection: {way}"));
    if way == 0 && lab.hosts[host].logged_in {
        lab.hosts[host].log_out();
        let steps = lab.rng.below(60);
        lab.run(steps, &Mix::default());
    }
    let Some(wire) = lab.hosts[host].hang_up() else {
        return;
    };
    match way {
        1 => wire.cut(),
        2 => wire.finish(),
        _ => {}
    }
}

/// That a write cannot be had is found when it is asked for, and nothing leaves then.
#[test]
fn a_host_that_lets_nothing_be_read_is_closed_at_its_first_long_write() {
    let mut lab = Lab::new(1, Shape::new(1, DiskKind::Apart));
    let host = lab.add_host();
    lab.hosts[host].settings.iser = Some(IserSettings {
        reads: 0,
        immediate_data: false,
        ..IserSettings::usual()
    });
    lab.log_in(host);
    lab.insist(host, |lab| lab.read(host, 0, Extent::new(0, 1)));
    lab.write(host, 0, Extent::new(0, 32), Pattern::Each);
    lab.quiesce();
    assert!(lab.hosts[host].link.is_none(), "it is still connected");
    lab.finish();
    lab.is_left_by_all();
}

/// Once the login was answered, nothing of the old session comes (RFC 7143 §6.3.5).
#[test]
fn nothing_of_the_old_session_lands_after_the_login() {
    with_transports("reinstatement", 60, |seed| {
        let mut lab = Lab::any(seed);
        lab.log_in_hosts(3);
        // Writes stay at the medium for long.
        lab.slow_mail(8);
        lab.prompt = Some(0);
        for _ in 0..5 {
            let steps = 200 + lab.rng.below(400);
            lab.run(steps, &Mix::default());
            log_in_again(&mut lab);
        }
        lab.finish();
        lab.log_out_all();
        // Logins that were given up half-way.
        lab.world.pass(LOGIN_TIMEOUT);
        lab.quiesce();
        lab.is_left_by_all();
    });
}

/// Both come to the same portal group, so it is the same I_T nexus.
#[test]
fn a_session_is_reinstated_by_a_login_over_the_other_transport() {
    with_seeds("reinstatement across transports", 60, |seed| {
        let mut lab = Lab::any(seed);
        lab.log_in_hosts(3);
        lab.slow_mail(8);
        lab.prompt = Some(0);
        for comes_by_iser in [true, false, true, false] {
            let steps = 200 + lab.rng.below(400);
            lab.run(steps, &Mix::default());
            lab.hosts[0].settings.iser = comes_by_iser.then(IserSettings::usual);
            log_in_again(&mut lab);
        }
        lab.finish();
        lab.log_out_all();
        lab.world.pass(LOGIN_TIMEOUT);
        lab.quiesce();
        lab.is_left_by_all();
    });
}

/// A discovery session that names the target is no nexus: it hears nothing of what the port is to
/// be told next, and that is not lost to the normal session that follows.
#[test]
fn a_named_discovery_between_two_sessions_leaves_what_the_second_one_is_told() {
    with_transports("a named discovery", 4, a_discovery_comes_between);
}

fn a_discovery_comes_between(seed: u64) {
    let mut lab = Lab::new(seed, Shape::new(1, DiskKind::Apart));
    lab.log_in_hosts(1);
    let read = |lab: &mut Lab| lab.read(0, 0, Extent::new(0, 1));
    lab.insist(0, read);
    lab.log_out_all();
    let keys = lab.hosts[0].settings.keys.clone();
    lab.hosts[0].settings.keys = vec![("SessionType", "Discovery".into())];
    lab.log_in(0);
    lab.log_out_all();
    lab.hosts[0].settings.keys = keys;
    lab.log_in(0);
    lab.hosts[0].told.clear();
    read(&mut lab);
    lab.quiesce();
    let senses = lab.hosts[0].told.iter().filter_map(|reply| match reply {
        Reply::Done { sense, .. } => sense.get(12..14),
        _ => None,
    });
    let nexus_loss: &[u8] = &[0x29, 0x07];
    assert_eq!(senses.collect::<Vec<_>>(), [nexus_loss]);
    lab.leave();
}

/// The old connection stays as it is; sometimes the new one is replaced before it is logged in.
fn log_in_again(lab: &mut Lab) {
    let mut old = Vec::new();
    for _ in 0..1 + lab.rng.below(3) {
        let logged_in = lab.hosts[0].logged_in;
        old.extend(lab.hosts[0].hang_up().filter(|_| logged_in));
        lab.dial(0);
        let steps = lab.rng.below(60);
        lab.run(steps, &Mix::default());
    }
    lab.until("a login", |lab| lab.hosts[0].logged_in);
    for wire in old {
        assert!(wire.is_over(), "the old connection is still open");
    }
}

/// So the host finds nothing of it under another ISID or on another core (PREVENT, reservations).
#[test]
fn a_nexus_is_gone_when_its_logout_is_answered() {
    with_transports("logouts", 60, |seed| {
        let mut lab = on_several_cores(seed);
        lab.log_in_hosts(HOSTS);
        // The leaver hears its answer at once, what cores tell each other takes longer.
        lab.prompt = Some(LEAVER);
        lab.slow_mail(4);
        for _ in 0..4 {
            let steps = lab.rng.below(300);
            lab.run(steps, &Mix::default());
            assert_eq!(nexuses(&lab), HOSTS);
            ask_to_log_out(&mut lab);
            hear_of_it(&mut lab);
            assert_eq!(nexuses(&lab), HOSTS - 1);
            lab.log_in(LEAVER);
            lab.run(200, &Mix::default());
        }
        lab.leave();
    });
}

#[test]
fn a_nexus_that_goes_slowly_has_its_logout_answered() {
    with_transports("slow logouts", 20, |seed| {
        let mut lab = on_several_cores(seed);
        lab.log_in_hosts(2);
        lab.run(200, &Mix::default());
        lab.finish();
        // The owners of the units do not hear of it.
        lab.world.pace.mail = 0;
        ask_to_log_out(&mut lab);
        lab.quiesce();
        assert_eq!(nexuses(&lab), 2, "it is not gone");
        lab.world.pass(LONGER_THAN_A_PARTING);
        lab.world.pace.mail = 1;
        hear_of_it(&mut lab);
        lab.leave();
    });
}

fn on_several_cores(seed: u64) -> Lab {
    let mut shape = Shape::any(&mut Rng::new(seed));
    shape.cores = shape.cores.max(2);
    Lab::new(seed, shape)
}

fn nexuses(lab: &Lab) -> usize {
    lab.sum(|held| held.core.device.nexuses)
}

fn ask_to_log_out(lab: &mut Lab) {
    lab.hosts[LEAVER].told.clear();
    lab.hosts[LEAVER].log_out();
}

fn hear_of_it(lab: &mut Lab) {
    let is_it = |reply: &Reply| matches!(reply, Reply::LoggedOut(0));
    lab.until("an answer", |lab| lab.hosts[LEAVER].told.iter().any(is_it));
}
