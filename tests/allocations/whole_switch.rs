//! A switch: frames from one host to another, through its ports and from core to core.

use std::num::NonZeroUsize;
use std::thread;
use std::time::{Duration, Instant};

use engine::switch::options::{LldpMode, Place, SwitchOptions, Zoning};
use engine::switch::testing::Enode;
use engine::switch::{SwitchOrders, run};
use io::counting::allocations;

/// What core 0 allocates from its start to its end, while each of two hosts sends the other as many
/// full frames.
fn allocations_of(cores: usize, frames: usize) -> usize {
    let folder = tempfile::tempdir().unwrap();
    let places = ["a", "b"].map(|name| Place::Cable(folder.path().join(name)));
    let mut options = SwitchOptions::new(places.to_vec());
    options.zoning = Zoning::Open;
    options.lldp = LldpMode::Off;
    options.threads = NonZeroUsize::new(cores);
    let before = allocations();
    run(&options, |_, orders| {
        thread::spawn(move || exchange(&places, frames, &orders));
        Ok(())
    })
    .unwrap();
    allocations() - before
}

fn exchange(places: &[Place; 2], frames: usize, orders: &SwitchOrders) {
    let mut hosts = places.each_ref().map(|place| Enode::plug(place, None));
    hosts.iter_mut().for_each(Enode::log_in);
    let ids = hosts.each_ref().map(|host| host.fc_id);
    let payload = [7; 2112];
    let (mut sent, mut came) = ([0; 2], [0; 2]);
    let mut alive = Instant::now();
    let mut heard = Instant::now();
    // A machine that is so slow that a cable is held back for too long loses some.
    while sent != [frames; 2] || (came != [frames; 2] && heard.elapsed() < SILENCE) {
        // A slow machine takes longer than a login lasts without them.
        if alive.elapsed() > KEEP_ALIVE {
            alive = Instant::now();
            for host in &mut hosts {
                let keep_alive = host.frames.keep_alive();
                host.put(&keep_alive);
            }
        }
        for (at, host) in hosts.iter_mut().enumerate() {
            sent[at] += host.flood(ids[1 - at], &payload, (frames - sent[at]).min(64));
            let more = host.drain();
            came[at] += more;
            if more > 0 {
                heard = Instant::now();
            }
        }
    }
    orders.stop();
}

/// After that no more frames come.
const SILENCE: Duration = Duration::from_secs(3);

/// How often hosts send keep alives: a period is 8 s.
const KEEP_ALIVE: Duration = Duration::from_secs(4);

/// Logins and the like do, as often whatever comes afterwards. What grows with the frames that wait
/// has grown by then.
#[test]
fn a_switch_allocates_nothing_for_a_frame() {
    for cores in [1, 2] {
        let (few, many) = (allocations_of(cores, 5_000), allocations_of(cores, 50_000));
        assert!(many < few + 100, "{cores} cores: {few}, then {many}");
    }
}
