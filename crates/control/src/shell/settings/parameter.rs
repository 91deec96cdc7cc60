//! Parameters of a portal group: keys that a target offers at login.

use crate::login_keys;
use crate::shell::Refusal;
use crate::shell::run::Run;
use crate::tree::LoginRow;

/// A parameter of the target of the node: its own, or what Lunar offers without one.
pub(super) fn get(run: &Run<'_>, key: &str) -> String {
    let row = run.node.place().and_then(|place| place.row(run.tree()));
    let Some(row) = row else {
        return String::new();
    };
    let Some(known) = login_keys::find(key) else {
        return row.alias.clone().unwrap_or_default();
    };
    let own = row.login.as_ref().and_then(|login| known.get(login));
    own.unwrap_or_else(|| login_keys::default(known.name))
}

/// Sets a parameter of the target of the node. An empty value restores Lunar's own choice.
pub(super) fn set(run: &mut Run<'_>, key: &str, value: &str) -> Result<String, Refusal> {
    let target = run.target()?;
    let Some(row) = run.tree().target.get(&target) else {
        return Ok(String::new());
    };
    let (mut alias, mut login) = (row.alias.clone(), row.login.clone().unwrap_or_default());
    match login_keys::find(key) {
        Some(known) => known.set(&mut login, value).map_err(|misfit| {
            let what = format!("{key} is {}, and not '{value}'.", misfit.values);
            Refusal::new(what).way_out(sentence(misfit.why))
        })?,
        None => alias = Some(value.to_owned()).filter(|value| !value.is_empty()),
    }
    if let Some(row) = run.edit().target.get_mut(&target) {
        row.alias = alias;
        row.login = Some(login).filter(|login| *login != LoginRow::default());
    }
    Ok(get(run, key))
}

/// A reason, as the shell says it.
fn sentence(why: &str) -> String {
    let mut letters = why.chars();
    let first = letters.next().map(|first| first.to_ascii_uppercase());
    format!(
        "{}{}.",
        first.map(String::from).unwrap_or_default(),
        letters.as_str()
    )
}
