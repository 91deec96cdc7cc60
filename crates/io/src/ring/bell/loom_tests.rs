//! Two who ring and a ring that sleeps, in every order. A ring that is not woken is a deadlock,
//! which loom finds.

use loom::sync::atomic::{AtomicBool, Ordering::Relaxed};
use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;

use super::{BellState, DONE, WOKEN};

/// An eventfd as a ring waits on it: each write ends one wait, now or the next.
#[derive(Default)]
struct Event {
    writes: Mutex<u32>,
    changed: Condvar,
}

struct World {
    state: BellState,
    event: Event,
    /// What the one who rings left behind before.
    left: [AtomicBool; 2],
}

impl World {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            state: BellState::new(),
            event: Event::default(),
            left: [AtomicBool::new(false), AtomicBool::new(false)],
        })
    }

    fn ring(&self, who: usize, what: u8) {
        self.left[who].store(true, Relaxed);
        if self.state.ring(what) {
            *self.event.writes.lock().unwrap() += 1;
            self.event.changed.notify_one();
        }
    }

    /// Sleeps until it was rung for all of `awaited`. How often it slept.
    fn wait(&self, awaited: u8) -> u32 {
        let (mut heard, mut slept, mut seen) = (0, 0, 0);
        loop {
            let rung = self.state.answer();
            for (who, what) in [WOKEN, DONE].into_iter().enumerate() {
                assert!(rung & what == 0 || self.left[who].load(Relaxed));
            }
            heard |= rung;
            if heard == awaited {
                return slept;
            }
            if self.state.sleep() {
                slept += 1;
                let mut writes = self.event.writes.lock().unwrap();
                while *writes == seen {
                    writes = self.event.changed.wait(writes).unwrap();
                }
                seen = *writes;
            }
        }
    }
}

#[test]
fn who_rings_is_heard_and_so_is_what_he_left() {
    loom::model(|| {
        let world = World::new();
        let ringer = Arc::clone(&world);
        let thread = thread::spawn(move || ringer.ring(0, WOKEN));
        let slept = world.wait(WOKEN);
        thread.join().unwrap();
        assert!(slept <= 1, "one who rings ends one sleep");
    });
}

#[test]
fn two_who_ring_are_both_heard() {
    loom::model(|| {
        let world = World::new();
        let ringers = [(0, WOKEN), (1, DONE)].map(|(who, what)| {
            let world = Arc::clone(&world);
            thread::spawn(move || world.ring(who, what))
        });
        world.wait(WOKEN | DONE);
        for ringer in ringers {
            ringer.join().unwrap();
        }
        let writes = *world.event.writes.lock().unwrap();
        assert!(
            writes <= 2,
            "only who finds it asleep pays for a system call"
        );
    });
}
