//! Whatever comes in in whatever order: each request is answered once and not too early, locks
//! never overlap, and subscribers know them.

use super::*;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

const CORES: u16 = 3;

#[derive(Clone, Debug)]
enum Step {
    Ask(u16, Wish),
    /// The n-th acknowledgement that is due comes in.
    Acknowledge(prop::sample::Index),
    Persisted(bool),
}

#[derive(Clone, Debug)]
enum Wish {
    Register(u64, bool),
    Reserve,
    Reset,
    Lock(u64, u64),
    Unlock(u64),
    Subscribe,
    Unsubscribe,
}

fn step() -> impl Strategy<Value = Step> {
    let wish = prop_oneof![
        (0_u64..3, any::<bool>()).prop_map(|(key, aptpl)| Wish::Register(key, aptpl)),
        Just(Wish::Reserve),
        Just(Wish::Reset),
        (0_u64..20, 1_u64..8).prop_map(|(lba, blocks)| Wish::Lock(lba, blocks)),
        (0_u64..40).prop_map(Wish::Unlock),
        Just(Wish::Subscribe),
        Just(Wish::Unsubscribe),
    ];
    prop_oneof![
        2 => (0..CORES, wish).prop_map(|(core, wish)| Step::Ask(core, wish)),
        4 => any::<prop::sample::Index>().prop_map(Step::Acknowledge),
        1 => any::<bool>().prop_map(Step::Persisted),
    ]
}

/// An owner with its cores, and what must be true of them.
struct World {
    owner: UnitOwner,
    asked: BTreeSet<(u16, u64)>,
    answered: BTreeSet<(u16, u64)>,
    due: Vec<(u16, u64)>,
    /// Which version a request was published by.
    published: BTreeMap<(u16, u64), u64>,
    version: u64,
    persisting: bool,
    /// The requests of cores that subscribe, and whether a core has.
    subscribing: BTreeSet<(u16, u64)>,
    subscribed: [bool; CORES as usize],
    /// What each core knows.
    known: Vec<Arc<UnitState>>,
}

impl World {
    fn new() -> Self {
        Self {
            owner: UnitOwner::new(unit(), CORES),
            asked: BTreeSet::new(),
            answered: BTreeSet::new(),
            due: Vec::new(),
            published: BTreeMap::new(),
            version: 0,
            persisting: false,
            subscribing: BTreeSet::new(),
            subscribed: [false; CORES as usize],
            known: (0..CORES).map(|_| Arc::new(unit())).collect(),
        }
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Ask(core, wish) => self.ask(*core, wish),
            Step::Acknowledge(_) if self.due.is_empty() => {}
            Step::Acknowledge(at) => {
                let (core, version) = self.due.swap_remove(at.index(self.due.len()));
                self.put(acknowledge(core, version));
            }
            Step::Persisted(_) if !self.persisting => {}
            Step::Persisted(well) => {
                self.persisting = false;
                self.put(Input::Persisted(*well));
            }
        }
    }

    fn ask(&mut self, core: u16, wish: &Wish) {
        let id = self.asked.len() as u64;
        let change = match *wish {
            Wish::Register(key, aptpl) => register(key, aptpl),
            Wish::Reserve => reserve(1),
            Wish::Reset => UnitChange::Reset,
            Wish::Lock(lba, blocks) => UnitChange::Lock(Extent::new(lba, blocks)),
            Wish::Unlock(id) => UnitChange::Unlock(id),
            Wish::Subscribe => {
                self.subscribing.insert((core, id));
                UnitChange::Subscribe
            }
            Wish::Unsubscribe => {
                self.subscribed[usize::from(core)] = false;
                UnitChange::Unsubscribe
            }
        };
        self.asked.insert((core, id));
        self.put(ask(core, id, change));
    }

    fn put(&mut self, input: Input) {
        self.owner.handle(input);
        while let Some(output) = self.owner.poll() {
            self.take(output);
        }
        let locks = &self.owner.state().locks;
        for (at, lock) in locks.iter().enumerate() {
            let overlaps = |other: &crate::unit::BlockLock| other.extent.overlaps(lock.extent);
            assert!(!locks[at + 1..].iter().any(overlaps), "{locks:?}");
        }
        self.check_known();
    }

    fn take(&mut self, output: OwnerOutput) {
        match output {
            OwnerOutput::Publish { to, publication } => {
                let version = publication.state.version;
                assert!((self.version..=self.version + 1).contains(&version));
                self.version = version;
                for core in to {
                    self.known[usize::from(core.0)] = publication.state.clone();
                    let due = publication.is_awaited.then_some((core.0, version));
                    self.due.extend(due);
                }
                let (core, id) = publication.cause.expect("a cause");
                if publication.is_awaited {
                    self.published.entry((core.0, id)).or_insert(version);
                }
            }
            OwnerOutput::Persist(_) => {
                assert!(!self.persisting, "one after the other");
                self.persisting = true;
            }
            OwnerOutput::Reply { core, id, result } => {
                let asked = (core.0, id);
                assert!(self.asked.contains(&asked));
                assert!(self.answered.insert(asked), "{asked:?} answered twice");
                let version = self.published.get(&asked);
                let early = version.is_some_and(|version| self.is_due(*version));
                assert!(!early || result.is_err(), "{asked:?} answered too early");
                if self.subscribing.contains(&asked) {
                    self.subscribed[usize::from(core.0)] = true;
                }
            }
        }
    }

    /// Whoever is told of locks knows them all, from before the answer on.
    fn check_known(&self) {
        let locks = &self.owner.state().locks;
        let cores = self.known.iter().zip(self.subscribed);
        for (known, _) in cores.filter(|(_, subscribed)| *subscribed) {
            assert_eq!(&known.locks, locks);
        }
    }

    fn is_due(&self, version: u64) -> bool {
        self.due.iter().any(|(_, due)| *due == version)
    }

    /// Every core does its part, and gives back what it had locked.
    fn settle(&mut self) {
        while self.answered.len() < self.asked.len() || !self.owner.state().locks.is_empty() {
            let before = (self.answered.len(), self.version, self.due.len());
            self.step(&Step::Persisted(true));
            for (core, version) in std::mem::take(&mut self.due) {
                self.put(acknowledge(core, version));
            }
            let held = self.owner.state().locks.first().map(|lock| lock.holder);
            if let Some((core, id)) = held {
                self.ask(core.0, &Wish::Unlock(id));
            }
            let after = (self.answered.len(), self.version, self.due.len());
            assert_ne!(before, after, "wedged: {:?}", self.owner);
        }
    }
}

proptest! {
    #[test]
    fn each_request_is_answered_once_and_in_time(
        steps in proptest::collection::vec(step(), 1..80),
    ) {
        let mut world = World::new();
        for step in &steps {
            world.step(step);
        }
        world.settle();
        prop_assert_eq!(&world.answered, &world.asked);
    }
}
