//! Rows of groups, targets and the process, and how a row differs from another.

use std::collections::{BTreeMap, BTreeSet};

use fc::wire::names::Wwn;
use serde::Serialize;
use toml_edit::Item;

use super::iser::{IserChange, effect_of_daemon};
use super::sight::{Sight, has, is_called};
use super::{Difference, Impact, Plan, RowChange, SessionFact};
use crate::tree::{TargetRow, Tree, pairs};

/// What holds for the process.
pub(super) fn whole(old: &Tree, new: &Tree, plan: &mut Plan) {
    let mut row = |name: &str, what: Vec<String>, effect: Option<&str>| {
        if !what.is_empty() {
            plan.differences.push(Difference {
                change: RowChange::Changed,
                row: name.to_owned(),
                what,
                impact: Impact::Quiet,
                effect: effect.map(str::to_owned),
                hosts: Vec::new(),
            });
        }
    };
    row(
        "daemon",
        between(Some(&old.daemon), Some(&new.daemon)),
        Some(effect_of_daemon(&old.daemon, &new.daemon)),
    );
    row("api", between(Some(&old.api), Some(&new.api)), None);
    row(
        "discovery",
        between(Some(&old.discovery), Some(&new.discovery)),
        None,
    );
}

pub(super) fn groups(old: &Tree, new: &Tree, sight: &Sight<'_>, plan: &mut Plan) {
    for (name, before, after) in pairs(&old.group, &new.group) {
        if before == after {
            plan.stays += 1;
            continue;
        }
        // Where `allow` names an initiator that is called so, it names the group as soon as that is
        // there, and no longer than that.
        let concerns = |fact: &SessionFact| {
            let is_in = |tree| has(tree, name, &fact.initiator);
            is_in(old) || is_in(new) || is_called(name, &fact.initiator)
        };
        let row = format!("group.{name}");
        plan.differences
            .extend(seen(&row, before, after, sight, concerns));
    }
}

pub(super) fn targets(old: &Tree, new: &Tree, sight: &Sight<'_>, plan: &mut Plan) {
    let iser = IserChange::new(old, new);
    for (name, before, after) in pairs(&old.target, &new.target) {
        if before == after {
            plan.stays += 1;
            continue;
        }
        let row = format!("target.{name}");
        let concerns = |fact: &SessionFact| fact.target == *name;
        let mut differences = seen(&row, before, after, sight, concerns);
        if name.parse::<Wwn>().is_ok() {
            unseen(before, after, &mut differences[0]);
        } else if let (Some(before), Some(after)) = (before, after) {
            if before.login != after.login {
                // A session keeps what was negotiated at its login.
                add_effect(
                    &mut differences[0],
                    "login keys count from the next login on",
                );
            }
            if let Some(effect) = iser.effect(before, after) {
                add_effect(&mut differences[0], &effect);
            }
        }
        plan.differences.extend(differences);
    }
}

/// Tells one more thing that comes of it.
fn add_effect(difference: &mut Difference, more: &str) {
    difference.effect = Some(match difference.effect.take() {
        None => more.to_owned(),
        Some(effect) => format!("{effect}; {more}"),
    });
}

/// Logins of Fibre Channel are not told of: what could end them or change their LUNs counts as if
/// there were some.
fn unseen(before: Option<&TargetRow>, after: Option<&TargetRow>, difference: &mut Difference) {
    let shown = |row: &TargetRow| (row.luns.clone(), row.view.clone());
    let (impact, effect) = match (before, after) {
        (None, _) => return,
        // Nobody can be logged in.
        (Some(before), _) if before.allow.is_empty() => return,
        (Some(before), Some(after))
            if before.portals == after.portals
                && before.allow.iter().all(|name| after.allow.contains(name)) =>
        {
            if shown(before) == shown(after) && before.allow == after.allow {
                return;
            }
            (Impact::Told, "LUNs have changed, for whoever is logged in")
        }
        _ => (Impact::Cuts, "logins of Fibre Channel may end"),
    };
    difference.impact = impact;
    difference.effect = Some(effect.to_owned());
}

/// A row by which initiators see LUNs, or do not. Where sessions end, what others are told of the
/// same row follows.
fn seen<T: Serialize>(
    row: &str,
    before: Option<&T>,
    after: Option<&T>,
    sight: &Sight<'_>,
    concerns: impl Fn(&SessionFact) -> bool,
) -> Vec<Difference> {
    let cut = sight.cut(&concerns);
    let cut = (!cut.is_empty()).then_some((Impact::Cuts, "sessions end", cut));
    let noticed = cut.into_iter().chain(told(sight.told(&concerns)));
    let difference = |impact, effect, hosts| Difference {
        change: change(before, after),
        row: row.to_owned(),
        what: Vec::new(),
        impact,
        effect,
        hosts,
    };
    let mut all: Vec<_> = noticed
        .map(|(impact, effect, hosts)| difference(impact, Some(effect.to_owned()), hosts))
        .collect();
    if all.is_empty() {
        all.push(difference(Impact::Quiet, None, Vec::new()));
    }
    all[0].what = between(before, after);
    all
}

/// Which initiators are told of LUNs, and of what.
fn told([luns, access]: [Vec<String>; 2]) -> Option<(Impact, &'static str, Vec<String>)> {
    let effect = match (luns.is_empty(), access.is_empty()) {
        (true, true) => return None,
        (false, true) => "LUNs have changed",
        (true, false) => "write protection has changed",
        (false, false) => "LUNs and write protection have changed",
    };
    let hosts: BTreeSet<_> = luns.into_iter().chain(access).collect();
    Some((Impact::Told, effect, hosts.into_iter().collect()))
}

pub(super) fn change<T>(before: Option<&T>, after: Option<&T>) -> RowChange {
    match (before, after) {
        (None, _) => RowChange::Added,
        (_, None) => RowChange::Removed,
        _ => RowChange::Changed,
    }
}

/// How two rows differ, value by value. A row that goes is named, and that is enough.
pub(super) fn between<T: Serialize>(before: Option<&T>, after: Option<&T>) -> Vec<String> {
    let (Some(after), old) = (after, before.map(values).unwrap_or_default()) else {
        return Vec::new();
    };
    let new = values(after);
    let keys: BTreeSet<_> = old.keys().chain(new.keys()).collect();
    let told = keys
        .into_iter()
        .filter_map(|key| match (old.get(key), new.get(key)) {
            (before, after) if before == after => None,
            (Some(Written::Many(before)), Some(Written::Many(after))) => {
                Some(of_list(key, before, after))
            }
            (Some(before), Some(after)) => {
                Some(format!("{key} = {} -> {}", before.text(), after.text()))
            }
            (None, Some(after)) if before.is_none() => Some(format!("{key} = {}", after.text())),
            (None, Some(after)) => Some(format!("+ {key} = {}", after.text())),
            (Some(before), None) => Some(format!("- {key} = {}", before.text())),
            (None, None) => None,
        });
    told.collect()
}

fn of_list(key: &str, before: &[String], after: &[String]) -> String {
    let gone = before
        .iter()
        .filter(|one| !after.contains(one))
        .map(|one| format!(" - {one}"));
    let come = after
        .iter()
        .filter(|one| !before.contains(one))
        .map(|one| format!(" + {one}"));
    let all: String = gone.chain(come).collect();
    if all.is_empty() {
        format!("{key} in another order")
    } else {
        format!("{key}:{all}")
    }
}

/// A value as it is written in a document.
#[derive(PartialEq)]
enum Written {
    One(String),
    Many(Vec<String>),
}

impl Written {
    fn text(&self) -> String {
        match self {
            Self::One(text) => text.clone(),
            Self::Many(all) => format!("[{}]", all.join(", ")),
        }
    }
}

/// The values of a row by their keys: `limit.iops`.
fn values<T: Serialize>(row: &T) -> BTreeMap<String, Written> {
    let document = toml_edit::ser::to_document(row).unwrap_or_default();
    let mut all = BTreeMap::new();
    collect("", document.as_item(), &mut all);
    all
}

fn collect(path: &str, item: &Item, all: &mut BTreeMap<String, Written>) {
    // A view of nothing is not no view.
    if let Some(table) = item.as_table_like()
        && (path.is_empty() || !table.is_empty())
    {
        for (name, inner) in table.iter() {
            let dot = if path.is_empty() { "" } else { "." };
            collect(&format!("{path}{dot}{name}"), inner, all);
        }
        return;
    }
    let text = |value: &toml_edit::Value| value.to_string().trim().to_owned();
    let written = match item.as_array() {
        Some(array) => Written::Many(array.iter().map(text).collect()),
        None => Written::One(item.as_value().map_or("{}".to_owned(), text)),
    };
    all.insert(path.to_owned(), written);
}
