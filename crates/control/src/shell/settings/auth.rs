//! CHAP of an ACL, or of initiators without one. The secret is handed to the caller, and the tree
//! holds a reference to it.

use crate::secret::SecretSource;
use crate::shell::Refusal;
use crate::shell::access;
use crate::shell::node::{Node, TpgPlace};
use crate::shell::run::Run;
use crate::tree::{ChapRow, GroupRow};

/// Identifies a pair of credentials.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::shell) struct ChapPlace {
    target: String,
    label: String,
    is_mutual: bool,
}

/// Credentials while only one half of them was typed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::shell) struct HalfChap {
    user: Option<String>,
    secret: Option<SecretSource>,
}

impl ChapPlace {
    /// Whether it is of a target, and of this ACL of it if `label` is given.
    pub(super) fn is_of(&self, target: &str, label: Option<&str>) -> bool {
        self.target == target && label.is_none_or(|label| self.label == label)
    }
}

impl HalfChap {
    /// The credentials, once both halves are there.
    fn row(&self) -> Option<ChapRow> {
        let (user, secret) = self.user.clone().zip(self.secret.clone())?;
        Some(ChapRow { user, secret })
    }
}

impl From<&ChapRow> for HalfChap {
    fn from(row: &ChapRow) -> Self {
        Self {
            user: Some(row.user.clone()),
            secret: Some(row.secret.clone()),
        }
    }
}

/// The portal group of the node, and the entry of `allow` whose CHAP is set there.
fn entry(run: &Run<'_>) -> Result<(TpgPlace, String), Refusal> {
    let place = run.place()?;
    let row = place.row(run.tree());
    if let Node::Acl(_, label) = &run.node {
        let entry = row.and_then(|row| access::entry(run.tree(), row, label));
        let missing = || Refusal::new(format!("There is no Node ACL {label}."));
        return entry
            .map(|entry| (place.clone(), entry.to_owned()))
            .ok_or_else(missing);
    }
    let entry = row.and_then(|row| access::everybody(run.tree(), row));
    let entry = entry.map(str::to_owned).ok_or_else(|| {
        let what =
            "auth of a TPG applies to initiators without an ACL, and generate_node_acls is 0.";
        Refusal::new(what).way_out("Use acls/NAME set auth for a single initiator.")
    })?;
    Ok((place, entry))
}

fn row_of(group: &mut GroupRow, is_mutual: bool) -> &mut Option<ChapRow> {
    if is_mutual {
        &mut group.mutual
    } else {
        &mut group.chap
    }
}

fn chap_of(run: &Run<'_>, entry: &str, is_mutual: bool) -> Option<ChapRow> {
    let mut group = run.tree().group.get(entry)?.clone();
    row_of(&mut group, is_mutual).take()
}

/// A user name, or where its secret is; never the secret.
pub(super) fn get(run: &Run<'_>, key: &str) -> String {
    let Ok((place, entry)) = entry(run) else {
        return String::new();
    };
    let half = half(run, &chap_place(run, &place, &entry, key), &entry);
    let value = if key.ends_with("password") {
        half.secret.map(|source| source.to_string())
    } else {
        half.user
    };
    value.unwrap_or_default()
}

fn chap_place(run: &Run<'_>, place: &TpgPlace, entry: &str, key: &str) -> ChapPlace {
    ChapPlace {
        target: place.target.clone(),
        label: access::label(run.tree(), entry),
        is_mutual: key.starts_with("mutual_"),
    }
}

/// The credentials of the tree, or the half that was typed before.
fn half(run: &Run<'_>, place: &ChapPlace, entry: &str) -> HalfChap {
    let row = chap_of(run, entry, place.is_mutual);
    let typed = || run.shell.half_chap.get(place).cloned().unwrap_or_default();
    row.as_ref().map_or_else(typed, HalfChap::from)
}

/// Sets one half of a pair of credentials and returns its displayed value. An empty value removes
/// both halves.
pub(super) fn set(run: &mut Run<'_>, key: &str, value: &str) -> Result<String, Refusal> {
    let (place, entry) = entry(run)?;
    let chap_place = chap_place(run, &place, &entry, key);
    let mut half = half(run, &chap_place, &entry);
    if value.is_empty() {
        run.shell.half_chap.remove(&chap_place);
        put(run, &place, &entry, chap_place.is_mutual, None);
        return Ok(String::new());
    }
    let is_secret = key.ends_with("password");
    if is_secret {
        let name = run.keep_secret("chap", value);
        half.secret = Some(SecretSource::State(name));
    } else {
        half.user = Some(value.to_owned());
    }
    let can_count = !chap_place.is_mutual || access::has_chap(run.tree(), &entry);
    match half.row().filter(|_| can_count) {
        Some(chap) => {
            run.shell.half_chap.remove(&chap_place);
            put(run, &place, &entry, chap_place.is_mutual, Some(chap));
            put_waiting(run, chap_place)?;
        }
        None => drop(run.shell.half_chap.insert(chap_place, half)),
    }
    Ok(if is_secret { "********" } else { value }.to_owned())
}

/// Mutual credentials wait until the initiator has credentials: a target proves itself only to
/// initiators that do (RFC 7143 §12.1.3).
fn put_waiting(run: &mut Run<'_>, own: ChapPlace) -> Result<(), Refusal> {
    let mutual = ChapPlace {
        is_mutual: true,
        ..own
    };
    let waiting = run.shell.half_chap.get(&mutual).and_then(HalfChap::row);
    if waiting.is_some() {
        let (place, entry) = entry(run)?;
        run.shell.half_chap.remove(&mutual);
        put(run, &place, &entry, true, waiting);
    }
    Ok(())
}

fn put(run: &mut Run<'_>, place: &TpgPlace, entry: &str, is_mutual: bool, chap: Option<ChapRow>) {
    let group = access::own_group(run.edit(), &place.target, entry);
    if let Some(row) = run.edit().group.get_mut(&group) {
        *row_of(row, is_mutual) = chap;
        if row.chap.is_none() {
            access::drop_chap(row);
        }
    }
    access::settle(run.edit(), &place.target, &group);
}

/// Summarizes the effect of all settings of a line.
pub(super) fn finish(run: &mut Run<'_>) {
    let Ok((place, entry)) = entry(run) else {
        return;
    };
    let label = access::label(run.tree(), &entry);
    let is_own = |half: &ChapPlace| half.is_of(&place.target, Some(&label));
    if run.shell.half_chap.keys().any(is_own) {
        run.say("The credentials take effect once userid and password are both set.");
    }
    let who = access::in_words(run.tree(), &entry);
    run.say(if access::has_chap(run.tree(), &entry) {
        format!("CHAP is required for {who}{}.", weakest(run, &entry))
    } else {
        format!("CHAP is not required for {who}.")
    });
    let others = access::users(run.tree(), &entry).filter(|user| *user != place.target);
    let others: Vec<_> = others.map(str::to_owned).collect();
    for other in others {
        run.say(format!(
            "{other} uses the same group, so this applies to it as well."
        ));
    }
}

/// Names the minimum hash when the group uses the default. Initiators that support only MD5 cannot
/// log in then, so the answer mentions it.
fn weakest(run: &Run<'_>, entry: &str) -> &'static str {
    let group = run.tree().group.get(entry);
    match group.and_then(|group| group.chap_min) {
        None => ", with SHA-256 or better",
        Some(_) => "",
    }
}
