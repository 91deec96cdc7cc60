//! Two to sixteen ports on an Ethernet that loses, repeats, delays and reorders frames, and ports
//! that flap, are killed and come back, and whose clock leaps. In the end, when the Ethernet is
//! good for a while, all know all. A failure prints its seed.

use scsi::medium::Now;

use super::rig::{Lan, config, ms};
use crate::fip::{Fip, FipConfig, Mode};
use crate::tests::{Ethernet, Faults, FipView};
use crate::wire::ethernet::Mac;

const SEEDS: u64 = 500;

/// For so long the Ethernet is bad, then good.
const BAD: Now = ms(60_000);
const GOOD: Now = ms(60_000);

/// What a bad one does.
const FAULTS: Faults = Faults {
    lost: 20,
    twice: 33,
    late: 2,
    damaged: 0,
    lateness: ms(20),
};

struct Net {
    random: fastrand::Rng,
    lan: Lan,
    configs: Vec<FipConfig>,
    /// What each port told.
    views: Vec<FipView>,
}

impl Net {
    fn new(seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let count = random.u16(2..17);
        // Some addresses end alike, so that there are conflicts.
        let alike = random.u16(1..=count);
        let configs = (0..count).map(|number| {
            let [high, low] = (number % alike + 0x4100).to_be_bytes();
            FipConfig {
                mac: Mac([2, 0, 0, number as u8 + 1, high, low]),
                ..config(number + 1)
            }
        });
        Self::of(random, configs.collect())
    }

    fn of(mut random: fastrand::Rng, configs: Vec<FipConfig>) -> Self {
        let mut lan = Lan::of(&[]);
        lan.ethernet = Ethernet::new(random.u64(..)).slow(ms(0), ms(1));
        for config in &configs {
            lan.add(*config, random.u8(..));
        }
        Self {
            random,
            lan,
            views: vec![FipView::default(); configs.len()],
            configs,
        }
    }

    /// Something happens to a port.
    fn mischief(&mut self) {
        let (now, at) = (self.lan.now, self.random.usize(..self.configs.len()));
        let port = &mut self.lan.ports[at];
        match self.random.u8(..4) {
            0 => {
                let up = !port.is_linked();
                port.link(now, up);
            }
            1 => {
                let seed = self.random.u64(..).to_be_bytes();
                let fip = Fip::new(self.configs[at], port.clock(now), seed);
                port.start(now, fip);
                self.views[at] = FipView::default();
            }
            2 => port.jump(ms(self.random.u64(..100_000))),
            _ => {
                if let Some(fc_id) = self.views[at].linked.first().copied() {
                    let clock = port.clock(now);
                    port.log_out(clock, fc_id);
                }
            }
        }
    }

    fn run(&mut self, until: Now) {
        let views = &mut self.views;
        let told = |at: usize, event: &_| views[at].told(event);
        self.lan.drive(until, told, |_| true);
    }

    /// A bad Ethernet, then a good one, on which all find all others.
    fn weather(&mut self) {
        self.lan.ethernet.faults = FAULTS;
        while self.lan.now < BAD {
            self.mischief();
            let next = self.lan.now + ms(500 + self.random.u64(..5000));
            self.run(next.min(BAD));
        }
        self.lan.ethernet.faults = Faults::default();
        for port in &mut self.lan.ports {
            port.link(BAD, true);
        }
        self.run(BAD + GOOD);
        self.all_know_all();
    }

    fn all_know_all(&self) {
        let claimed = self.views.iter().map(|view| view.claimed.unwrap());
        let claimed: Vec<_> = claimed.collect();
        for view in &self.views {
            let ours = view.claimed.unwrap();
            let others = claimed.iter().filter(|fc_id| **fc_id != ours);
            assert_eq!(others.clone().count(), claimed.len() - 1, "two have one");
            assert_eq!(view.linked, others.copied().collect(), "{ours:?}");
        }
    }
}

/// Says which seed it was when its run fails.
struct Seed(u64);

impl Drop for Seed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("seed {}", self.0);
        }
    }
}

#[test]
fn in_the_end_all_know_all() {
    for seed in 0..SEEDS {
        let shown = Seed(seed);
        Net::new(shown.0).weather();
    }
}

/// Point-to-point, with as bad an Ethernet.
#[test]
fn in_the_end_both_know_each_other() {
    for seed in 0..SEEDS {
        let shown = Seed(seed);
        let configs = [1, 2].map(|number| FipConfig {
            mac: Mac([
                2,
                0,
                0,
                number as u8,
                0x41,
                (shown.0 % 2) as u8 * number as u8,
            ]),
            mode: Mode::PointToPoint,
            ..config(number)
        });
        Net::of(fastrand::Rng::with_seed(shown.0), configs.to_vec()).weather();
    }
}
