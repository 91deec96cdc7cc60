//! What has to be done to come from one inventory to another.

use std::net::SocketAddr;
use std::sync::Arc;

use iscsi::target::IserPortals;
use itertools::EitherOrBoth::{Both, Left, Right};
use itertools::Itertools;

use super::{FcPortRow, Inventory, TargetRow, UnitRow};

/// One difference. Hosts see all of them or none.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// A unit comes.
    AddUnit(String, Arc<UnitRow>),
    /// Another volume takes the place of a unit's, which stays the same for its hosts.
    SwapVolume(String, Arc<UnitRow>),
    /// A unit goes.
    RemoveUnit(String),
    /// What a target shows, and to whom.
    SetTarget(String, TargetRow),
    /// A target goes.
    RemoveTarget(String),
    /// A portal is listened to.
    OpenPortal(SocketAddr),
    /// A portal is no longer listened to.
    ClosePortal(SocketAddr),
    /// Which portals take iSER.
    Iser(IserPortals),
    /// What SendTargets answers with.
    Advertise(Vec<String>),
    /// A Fibre Channel port comes.
    OpenFcPort(FcPortRow),
    /// What a Fibre Channel port shows, and to whom.
    SetFcPort(FcPortRow),
    /// A Fibre Channel port goes.
    CloseFcPort(FcPortRow),
}

/// The steps from one inventory to another; none where they are equal.
#[must_use]
pub fn diff(old: &Inventory, new: &Inventory) -> Vec<Step> {
    let mut steps = Vec::new();
    units(old, new, &mut steps);
    targets(old, new, &mut steps);
    let close = without(&old.portals, &new.portals).map(Step::ClosePortal);
    steps.extend(close);
    steps.extend(without(&new.portals, &old.portals).map(Step::OpenPortal));
    if old.iser != new.iser {
        steps.push(Step::Iser(new.iser.clone()));
    }
    if old.advertise != new.advertise {
        steps.push(Step::Advertise(new.advertise.clone()));
    }
    fc_ports(old, new, &mut steps);
    steps
}

/// A unit that hosts would take for another one is another one: the old goes and a new one comes.
/// Those that go are first, so that others can have their files.
fn units(old: &Inventory, new: &Inventory, steps: &mut Vec<Step>) {
    let mut others = Vec::new();
    let add = |name: &String, row| Step::AddUnit(name.clone(), Arc::clone(row));
    let before = old.units.iter();
    for pair in before.merge_join_by(&new.units, |(old, _), (new, _)| old.cmp(new)) {
        match pair {
            Left((name, _)) => steps.push(Step::RemoveUnit(name.clone())),
            Right((name, row)) => others.push(add(name, row)),
            Both((_, before), (_, row)) if Arc::ptr_eq(before, row) || before == row => {}
            Both((_, before), (name, row)) if before.is_same_unit(row) => {
                others.push(Step::SwapVolume(name.clone(), Arc::clone(row)));
            }
            Both(_, (name, row)) => {
                steps.push(Step::RemoveUnit(name.clone()));
                others.push(add(name, row));
            }
        }
    }
    steps.append(&mut others);
}

fn targets(old: &Inventory, new: &Inventory, steps: &mut Vec<Step>) {
    let gone = old.targets.keys();
    let gone = gone.filter(|name| !new.targets.contains_key(*name));
    steps.extend(gone.cloned().map(Step::RemoveTarget));
    for (name, row) in &new.targets {
        if old.targets.get(name) != Some(row) {
            steps.push(Step::SetTarget(name.clone(), row.clone()));
        }
    }
}

fn fc_ports(old: &Inventory, new: &Inventory, steps: &mut Vec<Step>) {
    let same = |rows: &[FcPortRow], row: &FcPortRow| {
        let mut rows = rows.iter();
        rows.find(|one| (&one.port, one.port_id) == (&row.port, row.port_id))
            .cloned()
    };
    for row in &old.fc_ports {
        if same(&new.fc_ports, row).is_none() {
            steps.push(Step::CloseFcPort(row.clone()));
        }
    }
    for row in &new.fc_ports {
        match same(&old.fc_ports, row) {
            Some(before) if before == *row => {}
            Some(_) => steps.push(Step::SetFcPort(row.clone())),
            None => steps.push(Step::OpenFcPort(row.clone())),
        }
    }
}

/// What of some is not among others; each of those counts once.
fn without<'a>(
    some: &'a [SocketAddr],
    others: &[SocketAddr],
) -> impl Iterator<Item = SocketAddr> + 'a {
    let mut others = others.to_vec();
    some.iter().copied().filter(move |one| {
        let known = others.iter().position(|other| other == one);
        known.map(|at| others.swap_remove(at)).is_none()
    })
}

impl Inventory {
    /// Makes one step.
    pub fn make(&mut self, step: Step) {
        match step {
            Step::AddUnit(name, row) | Step::SwapVolume(name, row) => {
                self.units.insert(name, row);
            }
            Step::RemoveUnit(name) => drop(self.units.remove(&name)),
            Step::SetTarget(name, row) => drop(self.targets.insert(name, row)),
            Step::RemoveTarget(name) => drop(self.targets.remove(&name)),
            Step::OpenPortal(portal) => self.portals.push(portal),
            Step::ClosePortal(portal) => {
                let at = self.portals.iter().position(|one| *one == portal);
                at.map(|at| self.portals.remove(at));
            }
            Step::Iser(portals) => self.iser = portals,
            Step::Advertise(addresses) => self.advertise = addresses,
            Step::OpenFcPort(row) => self.fc_ports.push(row),
            Step::SetFcPort(row) => {
                let mut ports = self.fc_ports.iter_mut();
                if let Some(port) = ports.find(|one| one.port == row.port) {
                    *port = row;
                }
            }
            Step::CloseFcPort(row) => self.fc_ports.retain(|one| *one != row),
        }
    }
}
