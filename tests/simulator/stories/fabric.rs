//! Switches, our N_Ports and those of Linux kernels, at Ethernets on which everything goes wrong
//! that can.

use std::panic::catch_unwind;
use std::time::Duration;

use fc::tests::Faults;
use fc::wire::ethernet::Mac;
use fc::wire::fip::{Descriptor, FipOperation, Flags};
use sim::Rng;

use crate::fabric::{FabricShape, FabricWorld, Mutant};
use crate::ports::{PortWorld, Use, any_faults};
use crate::seeds::{with_seeds, with_seeds_in_parallel};

/// How long it takes ports and a switch that are left alone until all are logged in, and know what
/// they may.
const BRING_UP: Duration = Duration::from_secs(10);

/// How long it may take until everything is well again, whatever was before: a switch and an FCF
/// are given up after 2.5 periods of 8 s each, one after the other, and logins are tried again
/// within another minute.
const RECOVERY: Duration = Duration::from_secs(150);

/// Longer than the 2.5 periods after which a port that is silent is taken for lost.
fn lasting(shape: &FabricShape) -> Duration {
    shape.period * 3 + Duration::from_secs(1)
}

#[test]
fn a_fabric_recovers_from_whatever_goes_wrong() {
    with_seeds_in_parallel("fabric", 1000, |seed| {
        let mut rng = Rng::new(seed ^ 0x6661_6272_6963);
        let shape = FabricShape::any(&mut rng);
        tell(seed, &shape, &mut rng);
    });
}

fn tell(seed: u64, shape: &FabricShape, rng: &mut Rng) {
    let mut world = FabricWorld::new(seed, shape);
    world.recover(RECOVERY);
    world.ethernet.faults = any_faults(rng);
    for _ in 0..30 {
        let host = rng.below(world.hosts.len());
        let path = rng.below(world.servers.len());
        if world.hosts[host].busy() < 6 {
            world.begin(host, path, Use::any(rng));
        }
        if rng.one_in(6) {
            disturb(&mut world, rng);
        }
        let most = if rng.one_in(8) { 10_000_000 } else { 3000 };
        let pause = Duration::from_micros(rng.below(most) as u64);
        world.run(pause, |_| false);
    }
    calm(&mut world, shape);
}

/// No more faults, and no other fabric: everybody finds everybody again.
fn calm(world: &mut FabricWorld, shape: &FabricShape) {
    world.ethernet.faults = Faults::default();
    if shape.foreign {
        world.kill_switch(world.switches() - 1);
    }
    world.relink_point_to_point();
    // That a port was silent for too long is seen only when its time is over.
    world.run(lasting(shape), |_| false);
    world.recover(RECOVERY);
    world.use_all(RECOVERY);
    world.recover(RECOVERY);
    world.stay(lasting(shape));
}

fn disturb(world: &mut FabricWorld, rng: &mut Rng) {
    let pause = Duration::from_millis(*rng.pick(&[0, 10, 500, 3000, 30_000]));
    match rng.below(8) {
        0..3 => world.disturb_station(rng, pause),
        3..5 => disturb_switch(world, rng, pause),
        5 => clear(world, rng),
        _ => world.rezone(),
    }
}

fn disturb_switch(world: &mut FabricWorld, rng: &mut Rng, pause: Duration) {
    let number = rng.below(world.switches());
    match rng.below(4) {
        0 => {
            let ethernet = rng.below(world.ethernets());
            world.link_switch(number, ethernet, false);
            world.run(pause, |_| false);
            world.link_switch(number, ethernet, true);
        }
        how => {
            if how == 1 {
                world.end_switch(number);
            } else {
                world.kill_switch(number);
            }
            world.run(pause, |_| false);
            if rng.one_in(2) && world.is_alone() {
                world.set_fc_map(number, [0x0e, 0xfc, rng.below(4) as u8]);
                world.set_vlan(number, 150 + rng.below(4) as u16);
            }
            world.start_switch(number);
        }
    }
}

/// Somebody clears the virtual links of all at an Ethernet, in the name of a switch.
fn clear(world: &mut FabricWorld, rng: &mut Rng) {
    let ethernet = rng.below(world.ethernets());
    let number = rng.below(world.switches());
    clear_at(world, number, ethernet);
}

fn clear_at(world: &mut FabricWorld, number: usize, ethernet: usize) {
    let (fcf, name) = world.fcf(number, ethernet);
    let parts = [Descriptor::Mac(fcf), Descriptor::Name(name)];
    let operation = FipOperation::ClearVirtualLinks;
    let ends = (fcf, Mac::ALL_ENODE);
    world.inject(ethernet, ends, operation, Flags::F_PORT, &parts);
}

#[test]
fn a_fabric_comes_up_in_ten_seconds() {
    with_seeds("fabric bring-up", 20, |seed| {
        let shape = FabricShape::new();
        let mut world = FabricWorld::new(seed, &shape);
        world.recover(BRING_UP);
        world.use_all(BRING_UP);
        world.stay(lasting(&shape));
    });
}

/// The second host logs in by FDISC, or a host that has its ENode from a target.
#[test]
fn ports_of_ours_that_share_an_enode_come_up() {
    with_seeds("fabric NPIV", 20, |seed| {
        let hosts = 1 + seed as usize % 2;
        let shape = FabricShape {
            hosts,
            further: Some(hosts),
            ..FabricShape::new()
        };
        let mut world = FabricWorld::new(seed, &shape);
        world.recover(BRING_UP);
        world.use_all(BRING_UP);
        world.stay(lasting(&shape));
    });
}

/// Two kernels that hear no FCF hear each other, and then no FCF.
#[test]
fn kernels_without_a_switch_go_point_to_point_until_their_link_goes_down() {
    let shape = FabricShape {
        linux: 2,
        ..FabricShape::new()
    };
    let mut world = FabricWorld::new(1, &shape);
    world.recover(BRING_UP);
    world.kill_switch(0);
    for at in 2..4 {
        world.link(at, false);
        world.link(at, true);
    }
    world.run(Duration::from_secs(20), |_| false);
    world.start_switch(0);
    world.run(RECOVERY, |_| false);
    assert!(world.is_well().is_err(), "they hear the switch");
    assert_eq!(world.relink_point_to_point(), 2);
    world.recover(RECOVERY);
    world.use_all(RECOVERY);
}

/// In the midst of a login, of the registrations, of a list: all begin anew.
#[test]
fn a_fabric_whose_links_are_cleared_at_any_step_comes_up() {
    for step in 0..STEPS {
        let shape = FabricShape {
            linux: 2,
            vports: 1,
            ..FabricShape::new()
        };
        let mut world = FabricWorld::new(1, &shape);
        let is_over = !world.steps(step);
        clear_at(&mut world, 0, 0);
        world.recover(RECOVERY);
        world.use_all(RECOVERY);
        assert!(!is_over, "it had nothing to do at step {step}");
    }
}

/// Steps of a fabric of two kernels that comes up.
const STEPS: u32 = 300;

/// What a mistake that is made on purpose is found by, in one of so many worlds, in which the
/// switch advertises often. The same world without it is well.
fn found(mutant: Mutant, worlds: u64) -> String {
    let story = |seed, mutant| {
        let shape = FabricShape {
            mutant,
            period: Duration::from_millis(500),
            ..FabricShape::new()
        };
        catch_unwind(|| tell(seed, &shape, &mut Rng::new(seed))).err()
    };
    for seed in 0..worlds {
        if let Some(cause) = story(seed, Some(mutant)) {
            assert!(story(seed, None).is_none(), "seed {seed} fails without it");
            return *cause.downcast().expect("a panic with a message");
        }
    }
    panic!("{mutant:?} passes in all of {worlds} worlds");
}

#[test]
fn a_change_of_zones_that_is_answered_before_it_cuts_is_found() {
    let cause = found(Mutant::AnswersFirst, 200);
    assert!(cause.contains("which share no zone"), "{cause}");
}

#[test]
fn an_enode_that_takes_an_fcf_without_s_is_found() {
    let cause = found(Mutant::TakesUnsolicited, 200);
    assert!(cause.contains("without its S"), "{cause}");
}
