//! A port logs in again while writes of its old session are at the medium: once the login was
//! answered, nothing of them comes (RFC 7143 §6.3.5).

use std::time::Duration;

use scsi::medium::Extent;
use sim::{DiskKind, EventWeights, Rng};
use tests::initiator::Reply;

use crate::lab::{Lab, Mix, Shape};
use crate::seeds::with_seeds;

const LOGIN_TIMEOUT: Duration = Duration::from_secs(15);

#[test]
fn nothing_of_the_old_session_lands_after_the_login() {
    with_seeds("reinstatement", 60, |seed| {
        let mut lab = Lab::new(seed, Shape::any(&mut Rng::new(seed)));
        lab.log_in_hosts(3);
        // Writes stay at the medium for long.
        lab.world.pace = EventWeights {
            wires: 16,
            mail: 1 + lab.rng.below(8),
            ..EventWeights::default()
        };
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

/// A discovery session that names the target is no nexus: it hears nothing of what the port is to
/// be told next, and that is not lost to the normal session that follows.
#[test]
fn a_named_discovery_between_two_sessions_leaves_what_the_second_one_is_told() {
    let mut lab = Lab::new(0, Shape::new(1, DiskKind::Apart));
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
