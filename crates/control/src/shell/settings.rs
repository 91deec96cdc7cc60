//! `get` and `set`: groups of settings at a node, in the words of LIO.
//!
//! A setting either maps to the tree, or describes a fixed behavior of Lunar and accepts only that
//! value. A setting without a counterpart is refused by name.

mod attribute;
mod auth;
mod parameter;
mod table;

use super::command::{Args, Done, truth};
use super::node::{Fabric, Node};
use super::preferences::PREFERENCES;
use super::run::Run;
use super::{Effect, Refusal};
pub(super) use auth::{ChapPlace, HalfChap};
use table::{Meaning, Setting};

/// A group of settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Group {
    /// `attribute` of a portal group.
    TpgAttribute,
    /// `attribute` of an ACL.
    AclAttribute,
    /// `attribute` of a volume.
    VolumeAttribute,
    /// `parameter` of a portal group: keys of the login.
    Parameter,
    /// `auth` of a portal group or an ACL.
    Auth,
    /// `discovery_auth` of `/iscsi`.
    DiscoveryAuth,
    /// `global`: preferences.
    Global,
}

impl Group {
    const fn name(self) -> &'static str {
        match self {
            Self::TpgAttribute | Self::AclAttribute | Self::VolumeAttribute => "attribute",
            Self::Parameter => "parameter",
            Self::Auth => "auth",
            Self::DiscoveryAuth => "discovery_auth",
            Self::Global => "global",
        }
    }

    fn settings(self) -> Vec<Setting> {
        match self {
            Self::TpgAttribute => table::TPG.to_vec(),
            Self::AclAttribute => table::ACL.to_vec(),
            Self::VolumeAttribute => table::VOLUME.to_vec(),
            Self::Parameter => table::PARAMETER.to_vec(),
            Self::Auth => table::AUTH.to_vec(),
            Self::DiscoveryAuth => table::DISCOVERY.to_vec(),
            Self::Global => PREFERENCES.iter().map(Setting::from).collect(),
        }
    }
}

fn groups(node: &Node) -> &'static [Group] {
    let is_iscsi = |target: &str| Fabric::of(target) == Fabric::Iscsi;
    match node {
        Node::Tpg(place) if is_iscsi(&place.target) => &[
            Group::TpgAttribute,
            Group::Auth,
            Group::Parameter,
            Group::Global,
        ],
        Node::Acl(place, _) if is_iscsi(&place.target) => {
            &[Group::AclAttribute, Group::Auth, Group::Global]
        }
        Node::StorageObject(..) => &[Group::VolumeAttribute, Group::Global],
        Node::Fabric(Fabric::Iscsi) => &[Group::DiscoveryAuth, Group::Global],
        _ => &[Group::Global],
    }
}

/// Drops half-typed credentials of a target, or of one of its ACLs.
pub(super) fn forget(run: &mut Run<'_>, target: &str, label: Option<&str>) {
    let half_chap = &mut run.shell.half_chap;
    half_chap.retain(|place, _| !place.is_of(target, label));
}

/// Whether a node has this group and, if `key` is given, this setting in it.
pub(super) fn has(node: &Node, group: &str, key: Option<&str>) -> bool {
    let mut found = groups(node).iter().filter(|one| one.name() == group);
    found.any(|group| {
        let settings = group.settings();
        key.is_none_or(|key| settings.iter().any(|setting| setting.name == key))
    })
}

/// The names of the groups of a node, and those of the settings of one, for completion.
#[must_use]
pub fn names(node: &Node, group: Option<&str>) -> Vec<&'static str> {
    let all = groups(node).iter();
    match group {
        None => all.map(|one| one.name()).collect(),
        Some(group) => {
            let of_group = all.filter(|one| one.name() == group);
            let settings = of_group.flat_map(|one| one.settings());
            settings.map(|setting| setting.name).collect()
        }
    }
}

fn group(run: &Run<'_>, name: &str) -> Result<Group, Refusal> {
    let known = groups(&run.node);
    let found = known.iter().find(|one| one.name() == name).copied();
    found.ok_or_else(|| {
        let path = run.node.path();
        let names: Vec<_> = known.iter().map(|one| one.name()).collect();
        let what = format!("Unknown configuration group: {name}.");
        Refusal::new(what).way_out(format!("{path} has {}.", names.join(", ")))
    })
}

fn setting(group: Group, key: &str) -> Result<Setting, Refusal> {
    let all = group.settings();
    let found = all.iter().find(|setting| setting.name == key);
    found.cloned().ok_or_else(|| {
        let what = format!("Unknown parameter {key} in group '{}'.", group.name());
        match address::nearest(key, all.iter().map(|setting| setting.name)) {
            Some(near) => Refusal::new(what).way_out(format!("Did you mean {near}?")),
            None => Refusal::new(what).way_out("Run get with the group alone for a list."),
        }
    })
}

/// `set [group] [key=value…]`.
pub(super) fn set(run: &mut Run<'_>, args: &Args) -> Done {
    let Some(name) = args.get("group") else {
        list_groups(run);
        return Ok(());
    };
    let group = group(run, name)?;
    if args.pairs.is_empty() {
        list(run, group);
        return Ok(());
    }
    for (key, value) in &args.pairs {
        set_one(run, group, key, value)?;
    }
    finish(run, group, &args.pairs);
    Ok(())
}

fn set_one(run: &mut Run<'_>, group: Group, key: &str, value: &str) -> Done {
    let setting = setting(group, key)?;
    let shown = match setting.meaning {
        Meaning::Always(values) => {
            let same = values.iter().find(|one| one.eq_ignore_ascii_case(value));
            same.map(|one| (*one).to_owned()).ok_or_else(|| {
                let what = format!(
                    "{key} cannot be set to '{value}': in Lunar it is always {}.",
                    values[0]
                );
                Refusal::new(what)
            })?
        }
        Meaning::Never(why) => {
            return Err(Refusal::new(format!("Lunar has no counterpart for {key}.")).way_out(why));
        }
        Meaning::Tree => set_in_tree(run, group, key, value)?,
    };
    run.say(format!("Parameter {key} is now '{shown}'."));
    Ok(())
}

/// Sets a setting that maps to the tree and returns its displayed value.
fn set_in_tree(run: &mut Run<'_>, group: Group, key: &str, value: &str) -> Result<String, Refusal> {
    match group {
        Group::TpgAttribute => attribute::set(run, key, value),
        Group::VolumeAttribute => attribute::set_volume(run, key, value),
        Group::Parameter => parameter::set(run, key, value),
        Group::Auth => auth::set(run, key, value),
        Group::Global => set_global(run, key, value),
        Group::AclAttribute | Group::DiscoveryAuth => Ok(value.to_owned()),
    }
}

fn value(run: &Run<'_>, group: Group, setting: &Setting) -> Option<String> {
    match (&setting.meaning, group) {
        (Meaning::Always(values), _) => Some(values[0].to_owned()),
        (Meaning::Tree, Group::TpgAttribute) => Some(attribute::get(run, setting.name)),
        (Meaning::Tree, Group::VolumeAttribute) => Some(attribute::get_volume(run)),
        (Meaning::Tree, Group::Parameter) => Some(parameter::get(run, setting.name)),
        (Meaning::Tree, Group::Auth) => Some(auth::get(run, setting.name)),
        (Meaning::Tree, Group::Global) => Some(run.shell.prefs.value(setting.name).to_owned()),
        (Meaning::Never(_), _) | (Meaning::Tree, Group::AclAttribute | Group::DiscoveryAuth) => {
            None
        }
    }
}

/// Adds what can only be said after all settings of the line.
fn finish(run: &mut Run<'_>, group: Group, pairs: &[(String, String)]) {
    let has = |key: &str| pairs.iter().any(|(known, _)| known == key);
    match group {
        Group::TpgAttribute => attribute::finish(run, &has),
        Group::Auth => auth::finish(run),
        _ => {}
    }
}

fn set_global(run: &mut Run<'_>, key: &str, value: &str) -> Result<String, Refusal> {
    let default = PREFERENCES
        .iter()
        .find(|row| row.name == key)
        .map(|row| row.default);
    let value = match default {
        Some("true" | "false") => truth(key, value)?.to_string(),
        _ => {
            let number = value.parse::<u16>();
            number
                .map_err(|_| Refusal::new(format!("{key}: '{value}' is not a number.")))?
                .to_string()
        }
    };
    run.shell.prefs.global.insert(key.to_owned(), value.clone());
    run.end_with(Effect::Preferences);
    Ok(value)
}

/// `get [group] [parameter…]`.
pub(super) fn get(run: &mut Run<'_>, args: &Args) -> Done {
    let Some(name) = args.get("group") else {
        list_groups(run);
        return Ok(());
    };
    let group = group(run, name)?;
    if args.values.is_empty() {
        list(run, group);
    }
    for key in &args.values {
        let setting = setting(group, key)?;
        match (value(run, group, &setting), &setting.meaning) {
            (Some(value), Meaning::Always(_)) => run.say(format!("{key}={value} [ro]")),
            (Some(value), _) => run.say(format!("{key}={value}")),
            (None, Meaning::Never(why)) => {
                return Err(
                    Refusal::new(format!("Lunar has no counterpart for {key}.")).way_out(*why)
                );
            }
            (None, _) => {}
        }
    }
    Ok(())
}

fn list_groups(run: &mut Run<'_>) {
    let names: Vec<_> = groups(&run.node).iter().map(|one| one.name()).collect();
    run.say("AVAILABLE CONFIGURATION GROUPS\n==============================");
    run.say(names.join(" "));
}

fn list(run: &mut Run<'_>, group: Group) {
    let title = format!("{} CONFIG GROUP", group.name().to_uppercase());
    run.say(format!("{title}\n{}", "=".repeat(title.len())));
    for setting in group.settings() {
        let Some(value) = value(run, group, &setting) else {
            continue;
        };
        let fixed = match setting.meaning {
            Meaning::Always(_) => " [ro]",
            _ => "",
        };
        run.say(format!(
            "{}={value}{fixed}\n    {}",
            setting.name, setting.purpose
        ));
    }
}
