//! iSER at a portal: `iser_enable` and `iser_disable` of older shells, `enable_iser` of newer ones.

use super::Refusal;
use super::command::{Args, Done};
use super::node::Node;
use super::portals;
use super::run::Run;
use crate::tree::{PortalRow, Tree};

/// `iser_enable [boolean]`.
pub(super) fn iser_enable(run: &mut Run<'_>, args: &Args) -> Done {
    let wanted = args.flag("boolean", true)?;
    set(run, wanted)
}

/// `iser_disable`.
pub(super) fn iser_disable(run: &mut Run<'_>, _: &Args) -> Done {
    set(run, false)
}

/// `enable_iser [boolean]`.
pub(super) fn enable_iser(run: &mut Run<'_>, args: &Args) -> Done {
    let wanted = args.flag("boolean", true)?;
    switch(run, wanted)?;
    let now = if wanted { "True" } else { "False" };
    run.say(format!("iSER enable now: {now}"));
    Ok(())
}

fn set(run: &mut Run<'_>, wanted: bool) -> Done {
    let already = if switch(run, wanted)? { "" } else { "already " };
    let state = word(wanted);
    run.say(format!("iser operation has {already}been {state}"));
    Ok(())
}

/// Whether that is a change.
fn switch(run: &mut Run<'_>, wanted: bool) -> Result<bool, Refusal> {
    let node = run.node.clone();
    let is_so = row(&node, run.tree()).is_some_and(|row| row.iser.is_taken() == wanted);
    if is_so {
        return Ok(false);
    }
    let row = row_mut(&node, run.edit());
    let row = row.ok_or_else(|| Refusal::new("This node is not a network portal."))?;
    row.iser = wanted.into();
    Ok(true)
}

/// What `ls` says of a portal.
pub(super) fn summary(node: &Node, tree: &Tree) -> String {
    let is_on = row(node, tree).is_some_and(|row| row.iser.is_taken());
    format!("OK, iser {}", word(is_on))
}

fn word(is_on: bool) -> &'static str {
    if is_on { "enabled" } else { "disabled" }
}

fn row<'a>(node: &Node, tree: &'a Tree) -> Option<&'a PortalRow> {
    let Node::Portal(place, address) = node else {
        return None;
    };
    let mut group = portals::of_group(&place.row(tree)?.portals, place.tag).iter();
    group.find(|row| row.address == *address)
}

fn row_mut<'a>(node: &Node, tree: &'a mut Tree) -> Option<&'a mut PortalRow> {
    let Node::Portal(place, address) = node else {
        return None;
    };
    let target = tree.target.get_mut(&place.target)?;
    let mut group = portals::group_mut(&mut target.portals, place.tag).iter_mut();
    group.find(|row| row.address == *address)
}
