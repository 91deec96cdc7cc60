//! N_Ports, targets and hosts, over an Ethernet on which everything goes wrong that can.

use std::time::Duration;

use fc::tests::{Fate, Faults};
use fc::wire::frame::RCtl;
use scsi::medium::Extent;
use sim::{DiskKind, Rng};

use crate::ports::{PortWorld, Shape, Use, World, any_faults};
use crate::seeds::with_seeds;

/// How long it takes two ports that are left alone to find each other and log in.
const BRING_UP: Duration = Duration::from_secs(2);

/// How long it may take until everything is well again, whatever was before: a virtual link is
/// given up after 2.5 beacons of 8 s each, and a login tried again within another minute.
const RECOVERY: Duration = Duration::from_secs(120);

#[test]
fn reads_and_writes_while_everything_goes_wrong() {
    with_seeds("ports", 1000, |seed| {
        let mut rng = Rng::new(seed ^ 0x0070_6f72_7473);
        let mut world = World::new(seed, &Shape::any(&mut rng));
        world.run(RECOVERY, World::is_up);
        world.ethernet.faults = any_faults(&mut rng);
        for _ in 0..40 {
            let host = rng.below(world.hosts.len());
            let path = rng.below(world.servers.len());
            if world.hosts[host].busy() < 6 {
                world.begin(host, path, Use::any(&mut rng));
            }
            if rng.one_in(16) {
                let pause = Duration::from_millis(*rng.pick(&[0, 10, 500, 30_000]));
                world.disturb_station(&mut rng, pause);
            }
            let most = if rng.one_in(16) { 10_000_000 } else { 1500 };
            let pause = Duration::from_micros(rng.below(most) as u64);
            world.run(pause, |_| false);
        }
        calm(&mut world);
    });
}

/// No more faults: everybody finds each other again, everything that was begun has ended, and the
/// disks hold what they may.
fn calm(world: &mut World) {
    world.ethernet.faults = Faults::default();
    world.within(RECOVERY, "end of what was begun", World::is_idle);
    world.read_all(RECOVERY);
}

#[test]
fn two_ports_find_each_other_in_two_seconds() {
    with_seeds("bring-up", 20, |seed| {
        let mut world = World::new(seed, &Shape::new(DiskKind::Memory));
        world.within(BRING_UP, "login", World::is_up);
        world.read_all(BRING_UP);
    });
}

#[test]
fn one_frame_is_spoilt_at_every_position() {
    for kind in [DiskKind::Apart, DiskKind::Memory] {
        for retries in [true, false] {
            for how in [
                Fate::IsLost,
                Fate::ComesTwice(OVERTAKEN),
                Fate::ComesLate(OVERTAKEN),
                Fate::IsDamaged,
            ] {
                let shape = Shape {
                    retries,
                    ..Shape::new(kind)
                };
                let positions = (0..).take_while(|position| spoilt(&shape, *position, how));
                assert!(positions.count() >= 15, "a few frames each way");
            }
        }
    }
}

/// By how much a frame is late that was chosen: more than an exchange takes without it, and less
/// than the time-outs.
const OVERTAKEN: Duration = Duration::from_millis(20);

/// Long enough for what was sent to be kept until its arrival is confirmed.
const LONG: Extent = Extent::new(0, 32);

/// What a lost frame costs the command at the most where both ends can ask at once: three first
/// pauses.
const SOON: Duration = Duration::from_millis(60);

/// One read and one write of several frames, of which one is spoilt; whether there was that one.
fn spoilt(shape: &Shape, position: usize, how: Fate) -> bool {
    let mut world = World::new(7, shape);
    world.within(BRING_UP, "login", World::is_up);
    world.read_all(BRING_UP);
    let good = world.hosts[0].good;
    let spoilt = world.ethernet.spoil(position, how);
    let limit = match how {
        Fate::IsLost | Fate::IsDamaged if shape.retries => SOON,
        // REC_TOV is 3 s by default; a command that fails does so in good time.
        _ => Duration::from_secs(10),
    };
    for what in [Use::Write(LONG), Use::Read(LONG)] {
        world.begin(0, 0, what);
        world.within(limit, "end", World::is_idle);
    }
    world.ethernet.forget_plan();
    let spoilt = spoilt.get();
    // A command that never came fails: whether it is repeated is up to its user.
    let never_came =
        spoilt == Some(RCtl::UNSOLICITED_COMMAND) && how != Fate::ComesTwice(OVERTAKEN);
    if shape.retries && !never_came {
        let done = world.hosts[0].good - good;
        assert_eq!(done, 2, "position {position}, {how:?} of {spoilt:?}");
    }
    calm(&mut world);
    assert_eq!(world.hosts[0].nexuses(0), 1, "position {position}, {how:?}");
    spoilt.is_some()
}
