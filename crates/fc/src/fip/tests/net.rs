//! Two to sixteen ports on an Ethernet that loses, repeats, delays and reorders frames, and ports
//! that flap, are killed and come back, and whose clock leaps. In the end, when the Ethernet is
//! good for a while, all know all. A failure prints its seed.

use std::collections::{BTreeMap, BTreeSet};

use scsi::medium::Now;

use super::rig::{addressed, config, frames, ms, receive};
use crate::fip::address::SplitMix;
use crate::fip::{Fip, FipConfig, FipEvent, Mode};
use crate::wire::ethernet::Mac;
use crate::wire::names::FcId;

const SEEDS: u64 = 500;

/// For so long the Ethernet is bad, then good.
const BAD: Now = ms(60_000);
const GOOD: Now = ms(60_000);

struct Port {
    fip: Fip,
    config: FipConfig,
    /// How far its clock is ahead.
    ahead: Now,
    down: bool,
    /// What it was told.
    claimed: Option<FcId>,
    linked: BTreeSet<FcId>,
}

struct Net {
    random: SplitMix,
    now: Now,
    ports: Vec<Port>,
    /// Frames on their way by when they arrive, and to whom.
    wire: BTreeMap<(Now, u64), (usize, Vec<u8>)>,
    number: u64,
}

impl Net {
    fn new(seed: u64) -> Self {
        let mut net = Self {
            random: SplitMix::new(seed.to_be_bytes()),
            now: ms(0),
            ports: Vec::new(),
            wire: BTreeMap::new(),
            number: 0,
        };
        let count = 2 + net.draw(15);
        // Some addresses end alike, so that there are conflicts.
        let alike = 1 + net.draw(count);
        for number in 0..count {
            let low = (number % alike) as u16 + 0x4100;
            let [high, low] = low.to_be_bytes();
            let config = FipConfig {
                mac: Mac([2, 0, 0, number as u8 + 1, high, low]),
                ..config(number as u16 + 1)
            };
            net.add(config);
        }
        net
    }

    fn draw(&mut self, end: u64) -> u64 {
        self.random.up_to(Now::from_micros(end)).as_micros() as u64
    }

    fn add(&mut self, config: FipConfig) {
        let mut fip = Fip::new(config, self.now, self.draw(u64::MAX).to_be_bytes());
        fip.link(self.now, true);
        self.ports.push(Port {
            fip,
            config,
            ahead: ms(0),
            down: false,
            claimed: None,
            linked: BTreeSet::new(),
        });
    }

    /// Now and then something happens to a port.
    fn mischief(&mut self) {
        let at = self.draw(self.ports.len() as u64) as usize;
        let kind = self.draw(4);
        let leap = ms(self.draw(100_000));
        let seed = self.draw(u64::MAX).to_be_bytes();
        let port = &mut self.ports[at];
        match kind {
            0 => {
                port.down = !port.down;
                port.fip.link(self.now + port.ahead, !port.down);
            }
            1 => {
                let now = self.now + port.ahead;
                port.fip = Fip::new(port.config, now, seed);
                port.fip.link(now, true);
                (port.down, port.claimed) = (false, None);
                port.linked.clear();
            }
            2 => port.ahead += leap,
            _ => {
                if let Some(fc_id) = port.linked.first().copied() {
                    port.fip.log_out(self.now + port.ahead, fc_id);
                }
            }
        }
    }

    fn run(&mut self, until: Now, bad: bool) {
        let mut mischief = self.now;
        while self.now < until {
            self.hear(bad);
            let arrives = self.wire.first_key_value().map(|(key, _)| key.0);
            let due = self.ports.iter().filter_map(|port| {
                let at = port.fip.next_deadline()?;
                Some(at.saturating_sub(port.ahead))
            });
            let next = due.chain(arrives).chain(bad.then_some(mischief)).min();
            self.now = next.unwrap_or(until).clamp(self.now, until);
            if bad && self.now >= mischief {
                self.mischief();
                mischief = self.now + ms(500 + self.draw(5000));
            }
            for port in &mut self.ports {
                port.fip.expire(self.now + port.ahead);
            }
            self.arrive();
        }
    }

    /// Takes what ports tell and send.
    fn hear(&mut self, bad: bool) {
        for at in 0..self.ports.len() {
            let port = &mut self.ports[at];
            while let Some(event) = port.fip.poll() {
                port.told(&event);
            }
            let sent = frames(&mut port.fip);
            let down = port.down;
            for frame in sent.into_iter().filter(|_| !down) {
                for to in (0..self.ports.len()).filter(|to| *to != at) {
                    self.put(to, &frame, bad);
                }
            }
        }
    }

    fn put(&mut self, to: usize, frame: &[u8], bad: bool) {
        let copies = match self.draw(100) {
            0..5 if bad => 0,
            5..8 if bad => 2,
            _ => 1,
        };
        for _ in 0..copies {
            let late = if bad { self.draw(20_000) } else { 100 };
            let at = self.now + Now::from_micros(late);
            self.number += 1;
            self.wire.insert((at, self.number), (to, frame.to_vec()));
        }
    }

    fn arrive(&mut self) {
        while let Some(first) = self.wire.first_entry() {
            if first.key().0 > self.now {
                return;
            }
            let (to, frame) = first.remove();
            let port = &mut self.ports[to];
            if !port.down && addressed(&port.fip, &frame) {
                // What is late may be out of place, so it may be refused.
                let _ = receive(&mut port.fip, self.now + port.ahead, &frame);
            }
        }
    }

    fn all_know_all(&self) {
        let mut claimed = BTreeSet::new();
        for port in &self.ports {
            assert!(claimed.insert(port.claimed.unwrap()), "two have one");
        }
        for port in &self.ports {
            let mut others = claimed.clone();
            others.remove(&port.claimed.unwrap());
            assert_eq!(port.linked, others, "{:?}", port.claimed);
        }
    }
}

impl Port {
    /// Events come in an order in which they make sense, whatever the peers do.
    fn told(&mut self, event: &FipEvent) {
        match event {
            FipEvent::Claimed(fc_id) => assert_eq!(self.claimed.replace(*fc_id), None),
            FipEvent::Released(fc_id) => {
                assert_eq!(self.claimed.take(), Some(*fc_id));
                assert!(self.linked.is_empty());
            }
            FipEvent::Found(who) => {
                assert!(self.claimed.is_some());
                assert_ne!(self.claimed, Some(who.fc_id));
                assert!(self.linked.insert(who.fc_id), "found twice");
            }
            FipEvent::Lost(fc_id, _) => assert!(self.linked.remove(fc_id), "lost twice"),
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
        let mut net = Net::new(shown.0);
        net.run(BAD, true);
        for port in &mut net.ports {
            let now = net.now + port.ahead;
            port.fip.link(now, true);
            port.down = false;
        }
        net.run(BAD + GOOD, false);
        net.all_know_all();
    }
}

/// Point-to-point, with as bad an Ethernet.
#[test]
fn in_the_end_both_know_each_other() {
    for seed in 0..SEEDS {
        let shown = Seed(seed);
        let mut net = Net::new(shown.0);
        net.ports.truncate(2);
        for port in &mut net.ports {
            port.config.mode = Mode::PointToPoint;
            port.fip = Fip::new(port.config, net.now, [3; 8]);
            port.fip.link(net.now, true);
        }
        net.run(BAD, true);
        for port in &mut net.ports {
            let now = net.now + port.ahead;
            port.fip.link(now, true);
            port.down = false;
        }
        net.run(BAD + GOOD, false);
        net.all_know_all();
    }
}
