//! LUNs of a target.

use super::Refusal;
use super::access;
use super::backstores;
use super::command::{Args, Done};
use super::node::Node;
use super::run::Run;
use crate::tree::{LunNumber, LunRow, LunRows, TargetRow, Tree};

/// `luns create storage_object [lun] [add_mapped_luns]`.
pub(super) fn create(run: &mut Run<'_>, args: &Args) -> Done {
    let place = run.place()?;
    let is_mapped = args.flag(
        "add_mapped_luns",
        run.shell.prefs.flag("auto_add_mapped_luns"),
    )?;
    let volume = backstores::named(run, args.need("storage_object")?)?;
    let row = place.row(run.tree()).cloned().unwrap_or_default();
    let number = match args.get("lun") {
        Some(text) => number_of(text)?,
        None => free(&row.luns)?,
    };
    if let Some(known) = row.luns.get(&number) {
        let what = format!("LUN {number} already exists: {}.", known.volume());
        return Err(Refusal::new(what));
    }
    if args.get("lun").is_none() {
        run.say(format!("Selected LUN {number}."));
    }
    if let Some(row) = run.edit().target.get_mut(&place.target) {
        row.luns.insert(number, LunRow::Volume(volume.clone()));
    }
    run.say(format!("Successfully created LUN {number}."));
    show_to_all(run, &place.target, &row, number, is_mapped)?;
    run.made(Node::Lun(place, number));
    Ok(())
}

/// Updates the views after a LUN was added. With `is_mapped` every ACL gets the LUN, otherwise none
/// does. Initiators without an ACL always get it, read-only if they may only read.
fn show_to_all(
    run: &mut Run<'_>,
    target: &str,
    before: &TargetRow,
    number: LunNumber,
    is_mapped: bool,
) -> Done {
    for entry in access::acls(run.tree(), before) {
        let label = access::label(run.tree(), entry);
        let mut luns = access::seen_by(before, entry).clone();
        if is_mapped {
            let mapped = if luns.contains_key(&number) {
                free(&luns)?
            } else {
                number
            };
            let lun = run
                .tree()
                .target
                .get(target)
                .and_then(|row| row.luns.get(&number));
            luns.extend(lun.map(|lun| (mapped, lun.clone())));
            run.say(format!("Created mapped LUN {mapped} in node ACL {label}"));
        }
        access::set_view(run.edit(), target, entry, luns);
    }
    access::follow_luns(run.edit(), target, before);
    Ok(())
}

/// `luns delete lun`.
pub(super) fn delete(run: &mut Run<'_>, args: &Args) -> Done {
    let place = run.place()?;
    let number = number_of(args.need("lun")?)?;
    let has = |row: &TargetRow| row.luns.contains_key(&number);
    if !place.row(run.tree()).is_some_and(has) {
        return Err(Refusal::new(format!("There is no LUN {number}.")));
    }
    take(run.edit(), &place.target, number);
    run.say(format!("Deleted LUN {number}."));
    Ok(())
}

/// Removes a LUN from a target and from the ACLs to which it is mapped.
pub(super) fn take(tree: &mut Tree, target: &str, number: LunNumber) {
    let Some(row) = tree.target.get_mut(target) else {
        return;
    };
    let before = row.clone();
    let Some(gone) = row.luns.remove(&number) else {
        return;
    };
    let mut others = row.luns.values();
    if others.all(|lun| lun.volume() != gone.volume()) {
        let is_gone = |lun: &LunRow| lun.volume() == gone.volume();
        access::drop_from_views(tree, target, &is_gone);
    }
    access::follow_luns(tree, target, &before);
}

/// The LUNs of a volume, by target.
pub(super) fn showing<'a>(
    tree: &'a Tree,
    volume: &'a str,
) -> impl Iterator<Item = (String, LunNumber)> + use<'a> {
    tree.target.iter().flat_map(move |(name, row)| {
        let luns = row
            .luns
            .iter()
            .filter(move |(_, lun)| lun.volume() == volume);
        luns.map(|(number, _)| (name.clone(), *number))
    })
}

/// A LUN as it is typed: `0`, `lun0`, `mapped_lun0`.
pub(super) fn number_of(text: &str) -> Result<LunNumber, Refusal> {
    let digits = text.trim_start_matches("mapped_").trim_start_matches("lun");
    let number = digits.parse::<LunNumber>().ok();
    number
        .filter(|number| number.0 <= address::LUN_MAX)
        .ok_or_else(|| {
            let what = format!("{text} is not a LUN number.");
            Refusal::new(what).way_out(format!("LUNs are numbered from 0 to {}.", address::LUN_MAX))
        })
}

/// The first number that is free.
pub(super) fn free(luns: &LunRows) -> Result<LunNumber, Refusal> {
    let mut all = (0..=address::LUN_MAX).map(LunNumber);
    let free = all.find(|number| !luns.contains_key(number));
    free.ok_or_else(|| Refusal::new("All LUNs are taken."))
}
