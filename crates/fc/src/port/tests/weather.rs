//! Logins on an Ethernet that loses frames, carries them twice, and lets others overtake them.

use scsi::medium::{HeapLease, Lease};

use super::rig::{Rig, Weather, config, ms};
use crate::initiator::{Data, Fate, FcpInitiatorEvent};
use crate::remote::RemotePort;

/// A PLOGI that is late by seconds ends a nexus that came after it, at one end. The first command
/// tells that, and fails; the next one has a new nexus.
#[test]
fn after_the_weather_there_is_a_nexus_and_it_works() {
    for seed in 0..500 {
        for (target, initiator) in [(2, 1), (1, 2)] {
            let mut rig = Rig::new(&config(target), &config(initiator));
            let until = ms(6000);
            rig.weather = Some(Weather { seed, until });
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
    let into = HeapLease::from_bytes(vec![0; 36]);
    rig.execute(&[0x12, 0, 0, 0, 36, 0], Data::In(into));
    let later = rig.now + ms(100);
    rig.run(later);
    match &rig.done[..] {
        [FcpInitiatorEvent::Done(done)] => done.status == 0,
        [FcpInitiatorEvent::Failed(failed)] if failed.fate == Fate::Unknown => false,
        other => panic!("{other:?}"),
    }
}
