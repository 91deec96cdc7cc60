//! A host logs out while others work: once it is told so, nothing of its nexus is left anywhere, so
//! that it finds nothing of it under another ISID or on another core (PREVENT, reservations).

use std::time::Duration;

use sim::{EventWeights, Rng};
use tests::initiator::Reply;

use crate::lab::{Lab, Mix, Shape};
use crate::seeds::with_seeds;

const HOSTS: usize = 3;
/// Not the first, which lives on the core where the owners of the units are.
const LEAVER: usize = 1;
/// What a peer has to take the last that it is sent is 15 s.
const LONGER_THAN_A_PARTING: Duration = Duration::from_secs(20);

#[test]
fn a_nexus_is_gone_when_its_logout_is_answered() {
    with_seeds("logouts", 60, |seed| {
        let mut shape = Shape::any(&mut Rng::new(seed));
        shape.cores = shape.cores.max(2);
        let mut lab = Lab::new(seed, shape);
        lab.log_in_hosts(HOSTS);
        // The leaver hears its answer at once, what cores tell each other takes longer.
        lab.prompt = Some(LEAVER);
        lab.world.pace = EventWeights {
            wires: 16,
            mail: 1 + lab.rng.below(4),
            ..EventWeights::default()
        };
        for _ in 0..4 {
            let steps = lab.rng.below(300);
            lab.run(steps, &Mix::default());
            assert_eq!(nexuses(&lab), HOSTS);
            log_out(&mut lab);
            assert_eq!(nexuses(&lab), HOSTS - 1);
            lab.hosts[LEAVER].hang_up();
            lab.dial(LEAVER);
            lab.until("a login", |lab| lab.hosts[LEAVER].logged_in);
            lab.run(200, &Mix::default());
        }
        lab.finish();
        lab.log_out_all();
        lab.is_left_by_all();
    });
}

#[test]
fn a_nexus_that_goes_slowly_has_its_logout_answered() {
    with_seeds("slow logouts", 20, |seed| {
        let mut shape = Shape::any(&mut Rng::new(seed));
        shape.cores = shape.cores.max(2);
        let mut lab = Lab::new(seed, shape);
        lab.log_in_hosts(2);
        lab.run(200, &Mix::default());
        lab.finish();
        // The owners of the units do not hear of it.
        lab.world.pace.mail = 0;
        ask_to_log_out(&mut lab);
        while lab.step() {}
        assert_eq!(nexuses(&lab), 2, "it is not gone");
        lab.world.pass(LONGER_THAN_A_PARTING);
        lab.world.pace.mail = 1;
        hear_of_it(&mut lab);
        lab.log_out_all();
        lab.is_left_by_all();
    });
}

fn nexuses(lab: &Lab) -> usize {
    let census = lab.world.census();
    census.iter().map(|held| held.core.device.nexuses).sum()
}

fn log_out(lab: &mut Lab) {
    ask_to_log_out(lab);
    hear_of_it(lab);
}

fn ask_to_log_out(lab: &mut Lab) {
    lab.hosts[LEAVER].told.clear();
    if let Some(link) = &mut lab.hosts[LEAVER].link {
        link.initiator.log_out();
    }
}

fn hear_of_it(lab: &mut Lab) {
    let is_it = |reply: &Reply| matches!(reply, Reply::LoggedOut(0));
    lab.until("an answer", |lab| lab.hosts[LEAVER].told.iter().any(is_it));
}
