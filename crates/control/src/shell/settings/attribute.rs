//! Attributes of portal groups and volumes that stand for something in the tree.

use crate::shell::access;
use crate::shell::command::truth;
use crate::shell::node::Node;
use crate::shell::run::Run;
use crate::shell::{Effect, Refusal};
use crate::tree::TargetRow;

const AUTHENTICATION: &str = "authentication";
const CACHE: &str = "cache_dynamic_acls";
const PROTECT: &str = "demo_mode_write_protect";
const EVERYBODY: &str = "generate_node_acls";

/// An attribute of the portal group of the node.
pub(super) fn get(run: &Run<'_>, key: &str) -> String {
    let Some((target, row)) = target(run) else {
        return String::new();
    };
    let tree = run.tree();
    let flag = match key {
        AUTHENTICATION => row.allow.iter().any(|entry| access::has_chap(tree, entry)),
        EVERYBODY => access::everybody(tree, row).is_some(),
        PROTECT => !writes(run, &target, row),
        _ => run.shell.prefs.kept(&target, key) == Some("1"),
    };
    digit(flag)
}

fn digit(flag: bool) -> String {
    u8::from(flag).to_string()
}

fn target<'a>(run: &'a Run<'_>) -> Option<(String, &'a TargetRow)> {
    let place = run.node.place()?;
    Some((place.target.clone(), place.row(run.tree())?))
}

/// Whether initiators without an ACL may write, or could if they were allowed to log in. The
/// default of LIO is that they may not.
fn writes(run: &Run<'_>, target: &str, row: &TargetRow) -> bool {
    match access::everybody(run.tree(), row) {
        Some(_) => access::everybody_writes(run.tree(), row),
        None => run.shell.prefs.kept(target, PROTECT) == Some("0"),
    }
}

/// Sets an attribute of the portal group of the node and returns its displayed value.
pub(super) fn set(run: &mut Run<'_>, key: &str, value: &str) -> Result<String, Refusal> {
    let flag = truth(key, value)?;
    let target = run.target()?;
    match key {
        AUTHENTICATION if flag => check_chap(run, &target)?,
        AUTHENTICATION => drop_chap(run, &target)?,
        EVERYBODY => {
            let row = run.tree().target.get(&target);
            let write = row.is_some_and(|row| writes(run, &target, row));
            access::set_everybody(run.edit(), &target, flag, write);
        }
        PROTECT => {
            keep(run, &target, key, flag);
            let row = run.tree().target.get(&target);
            if row.is_some_and(|row| access::everybody(run.tree(), row).is_some()) {
                access::set_everybody(run.edit(), &target, true, !flag);
            }
        }
        _ => keep(run, &target, key, flag),
    }
    Ok(digit(flag))
}

fn keep(run: &mut Run<'_>, target: &str, key: &str, flag: bool) {
    run.shell.prefs.keep(target, key, &digit(flag));
    run.end_with(Effect::Preferences);
}

/// `authentication=1` holds when every ACL has credentials. It is refused otherwise, because the
/// tree has no way to require CHAP without a secret.
fn check_chap(run: &Run<'_>, target: &str) -> Result<(), Refusal> {
    let allow = run.tree().target.get(target).map(|row| &row.allow);
    let mut entries = allow.into_iter().flatten();
    let path = run.node.path();
    let Some(entry) = entries.find(|entry| !access::has_chap(run.tree(), entry)) else {
        return if allow.is_some_and(|allow| !allow.is_empty()) {
            Ok(())
        } else {
            let what = "CHAP needs credentials at an ACL, and this TPG has no ACL yet.";
            let way_out = format!("Create one with {path}/acls create NAME, then set auth there.");
            Err(Refusal::new(what).way_out(way_out))
        };
    };
    let label = access::label(run.tree(), entry);
    let who = access::in_words(run.tree(), entry);
    let at = if who == label {
        format!("{path}/acls/{label}")
    } else {
        path
    };
    let what = format!("No CHAP credentials are set for {who}.");
    let way_out = format!("Set them first: {at} set auth userid=NAME password=SECRET.");
    Err(Refusal::new(what).way_out(way_out))
}

/// `authentication=0` removes the credentials of all ACLs: a group that has them requires CHAP.
fn drop_chap(run: &mut Run<'_>, target: &str) -> Result<(), Refusal> {
    let row = run.tree().target.get(target);
    let allow = row.into_iter().flat_map(|row| &row.allow);
    let with_chap = allow.filter(|entry| access::has_chap(run.tree(), entry));
    let entries: Vec<_> = with_chap.cloned().collect();
    for entry in &entries {
        if let Some(other) = access::users(run.tree(), entry).find(|user| *user != target) {
            let what =
                format!("{other} requires the CHAP credentials of the group {entry} as well.");
            return Err(Refusal::new(what)
                .way_out("Use lunar unset group.NAME.chap to remove them for all targets."));
        }
        if let Some(group) = run.edit().group.get_mut(entry) {
            access::drop_chap(group);
        }
        access::settle(run.edit(), target, entry);
    }
    if !entries.is_empty() {
        let number = entries.len();
        run.say(format!(
            "CHAP is no longer required; entries whose credentials were removed: {number}."
        ));
    }
    Ok(())
}

/// Summarizes the effect of all settings of a line.
pub(super) fn finish(run: &mut Run<'_>, has: &dyn Fn(&str) -> bool) {
    if let Some(told) = who_may(run).filter(|_| has(PROTECT) || has(EVERYBODY)) {
        run.say(told);
    }
    if has(CACHE) {
        run.say("cache_dynamic_acls has no effect, because Lunar does not create dynamic ACLs.");
    }
}

fn who_may(run: &Run<'_>) -> Option<String> {
    let (target, row) = target(run)?;
    let tree = run.tree();
    let Some(entry) = access::everybody(tree, row) else {
        let told = "Only initiators with an ACL may log in. \
             demo_mode_write_protect takes effect with generate_node_acls=1.";
        return Some(told.to_owned());
    };
    let who = if access::has_chap(tree, entry) {
        "Everybody with the CHAP secret"
    } else {
        "Everybody"
    };
    let what = if access::everybody_writes(tree, row) {
        "may log in, and everybody may write"
    } else {
        "may log in, but only read"
    };
    Some(format!("{who} {what}: {target}."))
}

/// `block_size` of the volume of the node.
pub(super) fn get_volume(run: &Run<'_>) -> String {
    let row = match &run.node {
        Node::StorageObject(_, name) => run.tree().volume.get(name),
        _ => None,
    };
    let size = row.and_then(|row| row.block_size);
    size.map_or_else(|| "that of the volume".to_owned(), |size| size.to_string())
}

/// Sets `block_size` of the volume of the node.
pub(super) fn set_volume(run: &mut Run<'_>, key: &str, value: &str) -> Result<String, Refusal> {
    let size = match value {
        "512" => 512,
        "4096" => 4096,
        _ => {
            return Err(Refusal::new(format!(
                "{key} is 512 or 4096, and not '{value}'."
            )));
        }
    };
    if let Node::StorageObject(_, name) = run.node.clone()
        && let Some(row) = run.edit().volume.get_mut(&name)
    {
        row.block_size = Some(size);
    }
    Ok(size.to_string())
}
