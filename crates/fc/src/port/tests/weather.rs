//! Logins on an Ethernet that loses frames, carries them twice, and lets others overtake them.

use super::rig::{Rig, config, ms};
use crate::initiator::{Fate, FcpInitiatorEvent};
use crate::remote::RemotePort;
use crate::tests::{Ethernet, Faults};

/// No frame is older than 3 s, which is below R_A_TOV.
const BAD: Faults = Faults {
    lost: 6,
    twice: 6,
    late: 4,
    damaged: 0,
    lateness: ms(3000),
};

/// A PLOGI that is late by seconds ends a nexus that came after it, at one end. The first command
/// tells that, and fails; the next one has a new nexus.
#[test]
fn after_the_weather_there_is_a_nexus_and_it_works() {
    for seed in 0..500 {
        for (target, initiator) in [(2, 1), (1, 2)] {
            let mut rig = Rig::new(&config(target), &config(initiator));
            rig.ethernet = Ethernet::new(seed);
            rig.ethernet.faults = BAD;
            rig.run(ms(6000));
            rig.ethernet.faults = Faults::default();
            rig.run(ms(60_000));
            let ended = inquire(&mut rig) || inquire(&mut rig);
            let trace = rig.traced();
            assert!(ended, "seed {seed}: {:?}\n{trace}", rig.done);
        }
    }
}

/// Whether an INQUIRY went well. If not, it failed as it should.
fn inquire(rig: &mut Rig) -> bool {
    if !rig.initiator.port.remotes().any(RemotePort::is_up) {
        return false;
    }
    rig.done.clear();
    rig.inquire();
    rig.pass(100);
    match &rig.done[..] {
        [FcpInitiatorEvent::Done(done)] => done.status == 0,
        [FcpInitiatorEvent::Failed(failed)] if failed.fate == Fate::Unknown => false,
        other => panic!("{other:?}"),
    }
}
