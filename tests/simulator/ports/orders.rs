//! What is done to the stations of a world, with a switch or without, and the time in which it is.

use std::time::Duration;

use fc::tests::{Faults, Machine, Station};
use scsi::medium::Now;
use sim::Rng;

use crate::oracle::Wrong;

/// A world of stations, in which one thing happens after the other.
pub(crate) trait PortWorld {
    fn now(&self) -> Now;

    /// How many stations there are.
    fn stations(&self) -> usize;

    fn station(&mut self, at: usize) -> &mut Station<dyn Machine>;

    /// A station's process is started, anew if there was one.
    fn start(&mut self, at: usize);

    /// A station's link is another than before.
    fn relinked(&mut self, at: usize);

    /// Lets stations do what they can at once.
    fn settle(&mut self) -> Result<(), Wrong>;

    /// The next thing happens, unless that is after `until`.
    fn step(&mut self, until: Now) -> bool;

    fn tell(&self, what: impl Fn() -> String);

    /// A station's process is killed.
    fn kill(&mut self, at: usize) {
        self.tell(|| format!("{at} is killed"));
        self.station(at).is_alive = false;
    }

    /// A station's cable is taken out or put in.
    fn link(&mut self, at: usize, up: bool) {
        self.tell(|| format!("{at} has its link {}", if up { "up" } else { "down" }));
        let now = self.now();
        self.station(at).link(now, up);
        self.relinked(at);
    }

    /// A station's clock jumps ahead.
    fn jump(&mut self, at: usize, by: Duration) {
        self.tell(|| format!("{at} jumps by {by:?}"));
        self.station(at).jump(by);
    }

    /// Any of these befalls any station, for so long.
    fn disturb_station(&mut self, rng: &mut Rng, pause: Duration) {
        let at = rng.below(self.stations());
        match rng.below(3) {
            0 => {
                self.link(at, false);
                self.run(pause, |_| false);
                self.link(at, true);
            }
            1 => {
                self.kill(at);
                self.run(pause, |_| false);
                self.start(at);
            }
            _ => self.jump(at, pause),
        }
    }

    /// Lets things happen for a while, or until something is so; whether it is.
    fn run(&mut self, most: Duration, is_so: impl Fn(&Self) -> bool) -> bool {
        let until = self.now() + most;
        loop {
            self.settled();
            if is_so(self) {
                return true;
            }
            if !self.step(until) {
                return false;
            }
        }
    }

    /// The same, where it has to become so.
    #[track_caller]
    fn within(&mut self, most: Duration, what: &str, is_so: impl Fn(&Self) -> bool) {
        assert!(self.run(most, is_so), "no {what} within {most:?}");
    }

    /// Lets stations do what they can, and nothing that must not be.
    fn settled(&mut self) {
        let settled = self.settle();
        settled.unwrap_or_else(|Wrong(what)| panic!("{what}"));
    }
}

/// Any faults, of which one in ten FCoE frames suffers at the most.
pub(crate) fn any_faults(rng: &mut Rng) -> Faults {
    let mut times = || *rng.pick(&[0, 0, 10, 30, 100]);
    Faults {
        lost: times(),
        twice: times(),
        late: times(),
        damaged: times(),
        lateness: Duration::from_micros(*rng.pick(&[100, 3000, 50_000])),
    }
}
