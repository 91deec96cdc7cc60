//! One world after the other: trees go through the gate, and every answer of it is looked at.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::time::SystemTime;

use control::document::{parse, write};
use control::gate::{Author, Candidate, ChangeRequest, Gate, GateError};
use control::plan::{Allowed, Impact, Plan};
use control::tree::Tree;
use sim::Rng;

use super::server::{Defect, Memory, SimServer};
use super::told::Judge;
use super::{Site, trees};
use crate::seeds::with_seeds;

const EMPTY: &str = "version = 1\n";

/// A world, and the gate before it.
struct Trial {
    rng: Rng,
    site: Rc<RefCell<Site>>,
    gate: Gate<Memory, SimServer>,
    defect: Option<Defect>,
    /// Changes that were made, and those that were refused.
    made: [usize; 2],
}

impl Trial {
    fn new(seed: u64, defect: Option<Defect>) -> Self {
        let site = Rc::new(RefCell::new(Site::new(seed, defect)));
        let store = Memory::new(EMPTY);
        let server = SimServer(Rc::clone(&site));
        Self {
            rng: Rng::new(seed ^ 0x7472_6565),
            gate: Gate::new(store, server, 0, EMPTY.to_owned(), Tree::default()),
            site,
            defect,
            made: [0; 2],
        }
    }

    /// So many changes, and what comes of them.
    fn run(&mut self, changes: usize) {
        for _ in 0..changes {
            {
                let mut site = self.site.borrow_mut();
                site.some_wander(300);
                if !self.rng.one_in(4) {
                    site.settle();
                }
            }
            self.change();
        }
        let mut site = self.site.borrow_mut();
        site.settle();
        site.check_end();
    }

    fn change(&mut self) {
        self.site.borrow_mut().fabrics.wander(&mut self.rng);
        let (candidate, new) = self.candidate();
        let old = self.gate.tree().clone();
        let request = ChangeRequest {
            candidate,
            based_on: None,
            allowed: self.allowed(&old, &new),
            absent_ok: false,
            dry_run: false,
            api_too: true,
        };
        let facts = self.site.borrow_mut().facts();
        self.site.borrow_mut().witness(&facts);
        let plan = self.ask(&request);
        self.made[usize::from(plan.is_none())] += 1;
        let is_made = plan.is_some();
        assert_eq!(self.gate.tree(), if is_made { &new } else { &old });
        let mut plan = plan.unwrap_or_default();
        self.spoil(&mut plan);
        let mut site = self.site.borrow_mut();
        assert_eq!(site.tree, *self.gate.tree());
        site.settle();
        let judge = Judge {
            site: &site,
            plan: &plan,
            old: &old,
            new: self.gate.tree(),
        };
        judge.judge();
        site.fabrics.judge(&plan);
        if self.rng.one_in(3) {
            site.look_around();
        }
        drop(site);
        self.is_over();
    }

    /// Has the gate make a change; `None` where it refuses.
    fn ask(&mut self, request: &ChangeRequest) -> Option<Plan> {
        let author = Author {
            who: "somebody".to_owned(),
            from: "a test".to_owned(),
            by: "chance".to_owned(),
        };
        match self.gate.change(request, &author, SystemTime::UNIX_EPOCH) {
            Ok(outcome) => {
                let all: Vec<_> = outcome.plan.refused(&request.allowed).collect();
                assert!(all.is_empty(), "made though not allowed: {all:?}");
                Some(outcome.plan)
            }
            Err(GateError::Refused { outcome, .. }) => {
                assert!(outcome.worst > Impact::Told, "{}", outcome.plan);
                None
            }
            Err(GateError::Failed(_)) => None,
            Err(error) => panic!("{error}"),
        }
    }

    /// Rows, a document, or an earlier generation.
    fn candidate(&mut self) -> (Candidate, Tree) {
        let kept = self.gate.store().generations();
        let kept: Vec<_> = kept.into_iter().collect();
        if !kept.is_empty() && self.rng.one_in(6) {
            let number = *self.rng.pick(&kept);
            let text = self.gate.store().known(number);
            let tree = parse(&text).expect("a document that was served");
            return (Candidate::Generation(number), tree);
        }
        let tree = trees::after(&mut self.rng, self.gate.tree());
        let candidate = match self.rng.below(4) {
            0 => Candidate::Text(write(&tree)),
            _ => Candidate::Tree(tree.clone().into()),
        };
        (candidate, tree)
    }

    /// Mostly everything.
    fn allowed(&mut self, old: &Tree, new: &Tree) -> Allowed {
        if self.rng.one_in(8) {
            return Allowed::default();
        }
        let volumes = old.volume.keys().chain(new.volume.keys());
        Allowed {
            cuts: true,
            loses: volumes.map(|name| format!("volume.{name}")).collect(),
        }
    }

    /// Nothing is left to do.
    fn is_over(&mut self) {
        let request = ChangeRequest {
            candidate: Candidate::Text(write(self.gate.tree())),
            based_on: Some(self.gate.generation()),
            allowed: Allowed::default(),
            absent_ok: false,
            dry_run: true,
            api_too: true,
        };
        let plan = self.ask(&request).expect("a dry run");
        assert!(plan.is_empty(), "{plan}");
    }

    /// Tells a plan wrongly.
    fn spoil(&self, plan: &mut Plan) {
        for row in &mut plan.differences {
            let is_wrong = match self.defect {
                Some(Defect::QuietRemap) => row.impact == Impact::Told,
                Some(Defect::QuietCuts) => row.impact == Impact::Cuts,
                _ => false,
            };
            if is_wrong {
                row.impact = Impact::Quiet;
                row.hosts.clear();
            }
            if self.defect == Some(Defect::NamesOthers) && row.impact > Impact::Quiet {
                row.hosts.push("iqn.2026-11.org.example:nobody".to_owned());
            }
        }
    }
}

const CHANGES: usize = 8;

#[test]
fn hosts_see_what_the_plan_has_told() {
    let made = Cell::new([0, 0]);
    with_seeds("gate", 500, |seed| {
        let mut trial = Trial::new(seed, None);
        trial.run(CHANGES);
        let [well, refused] = made.get();
        made.set([well + trial.made[0], refused + trial.made[1]]);
    });
    let [well, refused] = made.get();
    eprintln!("{well} changes were made, {refused} refused");
    assert!(well > refused);
}

/// Worlds that found nothing would prove nothing.
#[test]
fn worlds_find_what_is_wrong_with_a_server_and_a_plan() {
    let defects = [
        Defect::ForgetsViews,
        Defect::ForgetsReadOnly,
        Defect::ForgetsNames,
        Defect::ForgetsSwaps,
        Defect::RestartsSwitches,
        Defect::QuietRemap,
        Defect::QuietCuts,
        Defect::NamesOthers,
    ];
    for defect in defects {
        let fails = |seed| {
            let run = || Trial::new(seed, Some(defect)).run(CHANGES);
            catch_unwind(AssertUnwindSafe(run)).is_err()
        };
        assert!((0..100).any(fails), "nothing finds {defect:?}");
    }
}
