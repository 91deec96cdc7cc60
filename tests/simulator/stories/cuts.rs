//! Connections end at any point, in whatever way, and their hosts log in again: nothing is lost
//! that was acknowledged, nothing of the old session comes late, and nothing is left behind.

use std::time::Duration;

use sim::Rng;

use crate::lab::{Lab, Mix, Shape};
use crate::seeds::with_seeds;

/// Longer than a silent session is kept.
const SILENCE: Duration = Duration::from_secs(45);

#[test]
fn cut_connections_leave_nothing_behind() {
    with_seeds("cut connections", 60, |seed| {
        let mut lab = Lab::new(seed, Shape::any(&mut Rng::new(seed)));
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
fn end_connection(lab: &mut Lab, host: usize) {
    let way = lab.rng.below(4);
    lab.tell(|| format!("host {host} ends its connection: {way}"));
    if way == 0
        && lab.hosts[host].logged_in
        && let Some(link) = &mut lab.hosts[host].link
    {
        link.initiator.log_out();
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
