//! What a change may do, by what its author allowed.

use super::{GateError, Outcome};
use crate::plan::Allowed;
use crate::tree::Tree;

/// A loss is allowed by name: a slip in it is told, where no loss comes too.
pub(super) fn are_rows(allowed: &Allowed, trees: [&Tree; 2]) -> Result<(), GateError> {
    let is_row = |name: &str| {
        let sections = ["volume", "group", "target", "switch"];
        let dotted = name.split_once('.').filter(|(of, _)| sections.contains(of));
        trees.iter().any(|tree| {
            let has = |name| {
                tree.volume.contains_key(name)
                    || tree.group.contains_key(name)
                    || tree.target.contains_key(name)
                    || tree.switch.contains_key(name)
            };
            has(name) || dotted.is_some_and(|(_, name)| has(name))
        })
    };
    let unknown = allowed.loses.iter().find(|name| !is_row(name));
    unknown.map_or(Ok(()), |name| Err(GateError::NoRow(name.clone())))
}

/// Refuses what is worse than was allowed.
pub(super) fn permit(outcome: &Outcome, allowed: &Allowed) -> Result<(), GateError> {
    if outcome.plan.refused(allowed).next().is_none() {
        return Ok(());
    }
    let way_out = outcome.plan.way_out();
    let outcome = Box::new(outcome.clone());
    Err(GateError::Refused { outcome, way_out })
}
