//! Random actions against a model that is as simple as the text of the standard.

use super::super::{Action, RegisterAndMove, ReservationType, Reservations};
use super::{act, register, register_anyway};
use crate::nexus::NexusIdentity;
use crate::testing::host;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Keys by host, and the reservation with its holder; an all registrants type has none.
#[derive(Clone, Debug, Default, PartialEq)]
struct Model {
    keys: BTreeMap<u8, u64>,
    held: Option<(ReservationType, Option<u8>)>,
    generation: u32,
}

impl Model {
    fn key(&self, who: u8) -> u64 {
        self.keys.get(&who).copied().unwrap_or(0)
    }

    fn holds(&self, who: u8) -> bool {
        match self.held {
            Some((_, Some(holder))) => holder == who,
            Some((_, None)) => self.keys.contains_key(&who),
            None => false,
        }
    }

    fn hold(&mut self, who: u8, kind: ReservationType) {
        self.held = Some((kind, (!kind.all_registrants()).then_some(who)));
    }

    fn settle(&mut self) {
        let held = match self.held {
            Some((_, Some(holder))) => self.keys.contains_key(&holder),
            _ => !self.keys.is_empty(),
        };
        if !held {
            self.held = None;
        }
    }

    /// Whether the action is good; changes nothing if not.
    fn step(&mut self, who: u8, what: What) -> bool {
        let own = self.key(who);
        if what.key().is_some_and(|key| key != own) {
            return false;
        }
        let registered = own != 0;
        match what {
            What::Register { new, .. } | What::RegisterAnyway { new } => {
                self.keys.insert(who, new);
                self.keys.retain(|_, key| *key != 0);
                self.generation += 1;
                self.settle();
            }
            _ if !registered => return false,
            What::Reserve { kind, .. } => match self.held {
                None => self.hold(who, kind),
                Some((held, _)) => return held == kind && self.holds(who),
            },
            What::Release { kind, .. } => match self.held {
                Some((held, _)) if self.holds(who) && held != kind => return false,
                Some(_) if self.holds(who) => self.held = None,
                _ => {}
            },
            What::Clear { .. } => {
                *self = Self {
                    generation: self.generation + 1,
                    ..Self::default()
                };
            }
            What::Preempt { victim, kind, .. } => return self.preempt(who, victim, kind),
            What::Move { new, to, .. } => {
                let Some((kind, Some(holder))) = self.held else {
                    return false;
                };
                if holder != who || new == 0 || to == who {
                    return false;
                }
                self.keys.insert(to, new);
                self.hold(to, kind);
                self.generation += 1;
            }
        }
        true
    }

    fn preempt(&mut self, who: u8, victim: u64, kind: ReservationType) -> bool {
        let own = self.key(who);
        let taken = match self.held {
            Some((_, None)) => victim == 0,
            Some((_, Some(holder))) => self.key(holder) == victim,
            None => false,
        };
        let known = self.keys.values().any(|key| *key == victim);
        if !taken && !known {
            return false;
        }
        self.keys.retain(|_, key| victim != 0 && *key != victim);
        if taken {
            self.keys.insert(who, own);
            self.hold(who, kind);
        }
        self.settle();
        self.generation += 1;
        true
    }
}

#[derive(Clone, Copy, Debug)]
enum What {
    Register {
        key: u64,
        new: u64,
    },
    RegisterAnyway {
        new: u64,
    },
    Reserve {
        key: u64,
        kind: ReservationType,
    },
    Release {
        key: u64,
        kind: ReservationType,
    },
    Clear {
        key: u64,
    },
    Preempt {
        key: u64,
        victim: u64,
        kind: ReservationType,
    },
    Move {
        key: u64,
        new: u64,
        to: u8,
    },
}

impl What {
    fn key(self) -> Option<u64> {
        match self {
            Self::RegisterAnyway { .. } => None,
            Self::Register { key, .. }
            | Self::Reserve { key, .. }
            | Self::Release { key, .. }
            | Self::Clear { key }
            | Self::Preempt { key, .. }
            | Self::Move { key, .. } => Some(key),
        }
    }

    fn action(self) -> Action {
        match self {
            Self::Register { key, new } => register(key, new),
            Self::RegisterAnyway { new } => register_anyway(new),
            Self::Reserve { key, kind } => super::reserve(key, kind),
            Self::Release { key, kind } => super::release(key, kind),
            Self::Clear { key } => Action::Clear { key },
            Self::Preempt { key, victim, kind } => super::preempt(key, victim, kind),
            Self::Move { key, new, to } => Action::Move(RegisterAndMove {
                key,
                new_key: new,
                to: host(to),
                unregister: false,
                aptpl: false,
            }),
        }
    }
}

/// Few hosts and few keys, so that they meet.
fn what() -> impl Strategy<Value = What> {
    let key = || 0_u64..3;
    let kind = || proptest::sample::select(ReservationType::ALL.to_vec());
    prop_oneof![
        3 => (key(), key()).prop_map(|(key, new)| What::Register { key, new }),
        3 => key().prop_map(|new| What::RegisterAnyway { new }),
        4 => (key(), kind()).prop_map(|(key, kind)| What::Reserve { key, kind }),
        1 => (key(), kind()).prop_map(|(key, kind)| What::Release { key, kind }),
        1 => key().prop_map(|key| What::Clear { key }),
        3 => (key(), key(), kind())
            .prop_map(|(key, victim, kind)| What::Preempt { key, victim, kind }),
        1 => (key(), key(), 1_u8..5).prop_map(|(key, new, to)| What::Move { key, new, to }),
    ]
}

fn seen(all: &Reservations) -> Model {
    let number = |nexus: &Arc<NexusIdentity>| (1..5).find(|number| host(*number) == *nexus);
    let registrations = all.registrations().iter();
    Model {
        keys: registrations
            .filter_map(|one| Some((number(&one.nexus)?, one.key)))
            .collect(),
        held: all
            .reservation()
            .map(|held| (held.kind, held.holder.as_ref().and_then(number))),
        generation: all.generation(),
    }
}

fn check_invariants(all: &Reservations) {
    if let Some(held) = all.reservation() {
        assert!(
            !all.registrations().is_empty(),
            "reserved, with no registrant"
        );
        assert_eq!(held.holder.is_none(), held.kind.all_registrants());
        let holder = held.holder.as_ref();
        assert!(
            holder.is_none_or(|holder| all.is_registered(holder)),
            "holder unregistered"
        );
    }
    assert!(all.registrations().iter().all(|one| one.key != 0));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn reservations_are_as_the_model_has_them(
        steps in proptest::collection::vec((1_u8..5, what()), 1..60),
    ) {
        let mut all = Reservations::default();
        let mut model = Model::default();
        for (who, what) in steps {
            let mut next = model.clone();
            let good = next.step(who, what);
            if good {
                model = next;
            }
            let found = act(&mut all, &host(who), &what.action());
            prop_assert_eq!(found.is_ok(), good, "host {}: {:?}: {:?}", who, what, found);
            prop_assert_eq!(seen(&all), model.clone(), "host {}: {:?}", who, what);
            check_invariants(&all);
        }
    }
}
