//! ACLs: which initiators may log in, and which LUNs each of them sees.

use super::Refusal;
use super::access;
use super::backstores;
use super::command::{Args, Done};
use super::luns;
use super::node::{Fabric, Node, TpgPlace};
use super::run::Run;
use super::settings;
use crate::check::is_row_name;
use crate::tree::{Access, LunRow, LunRows, TargetRow};

/// `acls create wwn [add_mapped_luns]`.
pub(super) fn create(run: &mut Run<'_>, args: &Args) -> Done {
    let place = run.place()?;
    let name = initiator(run, &place, args.need("wwn")?)?;
    let is_mapped = args.flag(
        "add_mapped_luns",
        run.shell.prefs.flag("auto_add_mapped_luns"),
    )?;
    if entry_of(run, &place, &name).is_ok() {
        return Err(Refusal::new(format!(
            "A Node ACL for {name} already exists."
        )));
    }
    if let Some(row) = run.edit().target.get_mut(&place.target) {
        row.allow.push(name.clone());
    }
    run.say(format!("Created Node ACL for {name}"));
    if is_mapped {
        let row = place.row(run.tree());
        let numbers = row.map(|row| row.luns.keys().copied().collect::<Vec<_>>());
        for number in numbers.unwrap_or_default() {
            run.say(format!("Created mapped LUN {number}."));
        }
    } else {
        access::set_view(run.edit(), &place.target, &name, LunRows::new());
    }
    warn_of_chap(run, &place, &name);
    run.made(Node::Acl(place, name));
    Ok(())
}

/// A new ACL has no CHAP credentials, even if the other ACLs of the target have them.
fn warn_of_chap(run: &mut Run<'_>, place: &TpgPlace, name: &str) {
    let allow = place.row(run.tree()).map(|row| row.allow.iter());
    let mut entries = allow.into_iter().flatten();
    if entries.any(|entry| access::has_chap(run.tree(), entry)) {
        run.say(format!(
            "CHAP is not required for {name}, but for other entries of this target."
        ));
    }
}

/// The name of an initiator. A path names a file that contains its InitiatorName.
fn initiator(run: &Run<'_>, place: &TpgPlace, text: &str) -> Result<String, Refusal> {
    let name = if text.starts_with('/') {
        let read = run.machine().initiator_name(text);
        read.map_err(|why| {
            Refusal::new(format!("Cannot read an InitiatorName from {text}: {why}."))
        })?
    } else {
        text.to_owned()
    };
    let fabric = Fabric::of(&place.target);
    fabric.normal_name(&name).ok_or_else(|| {
        let (kind, example) = match fabric {
            Fabric::Iscsi => ("iSCSI", "iqn.1993-08.org.debian:01:a41f7afa2fc8"),
            _ => ("Fibre Channel", "20:00:00:00:5e:00:53:00"),
        };
        let what = format!("'{name}' is not a valid {kind} WWN.");
        Refusal::new(what).way_out(format!("Example: {example}."))
    })
}

/// The entry of `allow` that an ACL of this name is.
fn entry_of(run: &Run<'_>, place: &TpgPlace, name: &str) -> Result<String, Refusal> {
    let label = match Node::Acls(place.clone()).child(run.tree(), name) {
        Some(Node::Acl(_, label)) => label,
        _ => name.to_owned(),
    };
    let row = place.row(run.tree());
    let entry = row.and_then(|row| access::entry(run.tree(), row, &label));
    let missing = || Refusal::new(format!("There is no Node ACL {name}."));
    entry.map(str::to_owned).ok_or_else(missing)
}

/// The ACL of the node, by the name under which it is shown.
fn acl(run: &Run<'_>) -> Result<(TpgPlace, String), Refusal> {
    match &run.node {
        Node::Acl(place, label) => Ok((place.clone(), label.clone())),
        _ => Err(Refusal::new("This node is not an ACL.")),
    }
}

/// `acls delete wwn`.
pub(super) fn delete(run: &mut Run<'_>, args: &Args) -> Done {
    let place = run.place()?;
    let name = args.need("wwn")?;
    let entry = entry_of(run, &place, name)?;
    let label = access::label(run.tree(), &entry);
    access::remove(run.edit(), &place.target, &entry);
    settings::forget(run, &place.target, Some(&label));
    run.say(format!("Deleted Node ACL {name}."));
    Ok(())
}

/// `acls tag wwn_or_tag new_tag`: an initiator joins a group and sees the LUNs of the group.
pub(super) fn tag(run: &mut Run<'_>, args: &Args) -> Done {
    let place = run.place()?;
    let (name, tag) = (args.need("wwn_or_tag")?, args.need("new_tag")?);
    let entry = entry_of(run, &place, name)?;
    if tag.contains('.') || !is_row_name(tag) {
        return Err(Refusal::new(format!(
            "{tag} cannot name a group. Use letters, digits, '_' and '-'."
        )));
    }
    if run.tree().group.contains_key(tag) {
        join(run, &place, &entry, tag);
    } else {
        access::rename_group(run.edit(), &place.target, &entry, tag);
    }
    run.say(format!(
        "{name} has joined the group {tag} and sees its LUNs."
    ));
    let others = access::users(run.tree(), tag).filter(|user| *user != place.target);
    let others: Vec<_> = others.map(str::to_owned).collect();
    for other in others {
        run.say(format!(
            "{other} uses the same group, so this applies to it as well."
        ));
    }
    Ok(())
}

/// Puts the initiators of an ACL into a group that is there.
fn join(run: &mut Run<'_>, place: &TpgPlace, entry: &str, tag: &str) {
    let members = access::members(run.tree(), entry);
    access::remove(run.edit(), &place.target, entry);
    let tree = run.edit();
    if let Some(group) = tree.group.get_mut(tag) {
        let known = group.initiators.clone();
        let new = members.into_iter().filter(|member| !known.contains(member));
        group.initiators.extend(new);
    }
    if let Some(row) = tree.target.get_mut(&place.target)
        && !row.allow.iter().any(|one| one == tag)
    {
        row.allow.push(tag.to_owned());
    }
}

/// `acls untag tag`: the initiators of a group get ACLs of their own.
pub(super) fn untag(run: &mut Run<'_>, args: &Args) -> Done {
    let place = run.place()?;
    let tag = args.need("wwn_or_tag")?;
    let entry = entry_of(run, &place, tag)?;
    let view = place
        .row(run.tree())
        .and_then(|row| row.view.get(&entry).cloned());
    let group = run.tree().group.get(&entry).cloned();
    let Some(group) = group else {
        return Err(Refusal::new(format!("{tag} is not a group.")));
    };
    if group.chap.is_some() {
        let what =
            format!("The group {tag} has CHAP credentials, which its initiators would lose.");
        return Err(Refusal::new(what).way_out("Remove them first with set auth userid=."));
    }
    access::remove(run.edit(), &place.target, &entry);
    for name in group.initiators {
        if let Some(row) = run.edit().target.get_mut(&place.target) {
            row.allow.retain(|one| *one != name);
            row.allow.push(name.clone());
        }
        if let Some(view) = &view {
            access::set_view(run.edit(), &place.target, &name, view.clone());
        }
        run.say(format!("Created Node ACL for {name}"));
    }
    Ok(())
}

/// `create mapped_lun tpg_lun_or_backstore [write_protect]` at an ACL.
pub(super) fn map_lun(run: &mut Run<'_>, args: &Args) -> Done {
    let (place, label) = acl(run)?;
    let number = luns::number_of(args.need("mapped_lun")?)?;
    let is_protected = args.flag("write_protect", false)?;
    let mut lun = mapped_lun(run, &place, args.need("tpg_lun_or_backstore")?)?;
    if is_protected {
        lun = access::with_access(&lun, Access::ReadOnly);
    }
    let entry = entry_of(run, &place, &label)?;
    let row = place.row(run.tree()).cloned().unwrap_or_default();
    let mut seen = access::seen_by(&row, &entry).clone();
    if seen.contains_key(&number) {
        let what = format!("Mapped LUN {number} exists already.");
        return Err(Refusal::new(what).way_out(format!("Delete it first: delete {number}.")));
    }
    if seen.values().any(|one| one.volume() == lun.volume()) {
        let volume = lun.volume();
        run.say(format!(
            "Warning: {volume} is already mapped to this Node ACL."
        ));
    }
    seen.insert(number, lun);
    access::set_view(run.edit(), &place.target, &entry, seen);
    run.say(format!("Created Mapped LUN {number}."));
    run.made(Node::MappedLun(place, label, number));
    Ok(())
}

/// What to map: a LUN of the target, or a storage object, which becomes a LUN first.
fn mapped_lun(run: &mut Run<'_>, place: &TpgPlace, text: &str) -> Result<LunRow, Refusal> {
    let row = place.row(run.tree()).cloned().unwrap_or_default();
    if let Ok(number) = luns::number_of(text) {
        let missing = || Refusal::new(format!("There is no LUN {number} of the target."));
        return row.luns.get(&number).cloned().ok_or_else(missing);
    }
    let volume = backstores::named(run, text)?;
    if let Some(lun) = row.luns.values().find(|lun| lun.volume() == volume) {
        return Ok(lun.clone());
    }
    add_lun(run, place, &row, &volume)?;
    Ok(LunRow::Volume(volume))
}

/// Adds a LUN to the target. ACLs that saw all LUNs go on seeing those that they see now.
fn add_lun(run: &mut Run<'_>, place: &TpgPlace, before: &TargetRow, volume: &str) -> Done {
    let number = luns::free(&before.luns)?;
    if let Some(row) = run.edit().target.get_mut(&place.target) {
        row.luns.insert(number, LunRow::Volume(volume.to_owned()));
    }
    for entry in access::acls(run.tree(), before) {
        let seen = access::seen_by(before, entry).clone();
        access::set_view(run.edit(), &place.target, entry, seen);
    }
    access::follow_luns(run.edit(), &place.target, before);
    run.say(format!("Created LUN {number}."));
    Ok(())
}

/// `delete mapped_lun` at an ACL.
pub(super) fn unmap_lun(run: &mut Run<'_>, args: &Args) -> Done {
    let (place, label) = acl(run)?;
    let entry = entry_of(run, &place, &label)?;
    let number = luns::number_of(args.need("mapped_lun")?)?;
    let row = place.row(run.tree()).cloned().unwrap_or_default();
    let mut seen = access::seen_by(&row, &entry).clone();
    if seen.remove(&number).is_none() {
        return Err(Refusal::new(format!("There is no Mapped LUN {number}.")));
    }
    access::set_view(run.edit(), &place.target, &entry, seen);
    run.say(format!("Deleted Mapped LUN {number}."));
    Ok(())
}
