//! Parameters of a portal group: keys that a target offers at login.

use address::Size;

use crate::shell::Refusal;
use crate::shell::run::Run;
use crate::tree::LoginRow;

/// A parameter of the target of the node; empty where Lunar chooses.
pub(super) fn get(run: &Run<'_>, key: &str) -> String {
    let row = run.node.place().and_then(|place| place.row(run.tree()));
    let Some(row) = row else {
        return String::new();
    };
    let login = row.login.clone().unwrap_or_default();
    let bytes = |size: Option<Size>| size.map(|size| size.0.to_string());
    let value = match key {
        "TargetAlias" => row.alias.clone(),
        "FirstBurstLength" => bytes(login.first_burst_length),
        "MaxBurstLength" => bytes(login.max_burst_length),
        "MaxOutstandingR2T" => login.max_outstanding_r2t.map(|number| number.to_string()),
        _ => bytes(login.max_recv_data_segment_length),
    };
    value.unwrap_or_default()
}

/// Sets a parameter of the target of the node. An empty value restores Lunar's own choice.
pub(super) fn set(run: &mut Run<'_>, key: &str, value: &str) -> Result<String, Refusal> {
    let target = run.target()?;
    let Some(row) = run.tree().target.get(&target) else {
        return Ok(String::new());
    };
    let (mut alias, mut login) = (row.alias.clone(), row.login.clone().unwrap_or_default());
    match key {
        "TargetAlias" => alias = Some(value.to_owned()).filter(|value| !value.is_empty()),
        "FirstBurstLength" => login.first_burst_length = length(key, value)?,
        "MaxBurstLength" => login.max_burst_length = length(key, value)?,
        "MaxOutstandingR2T" => login.max_outstanding_r2t = number(key, value)?,
        _ => login.max_recv_data_segment_length = length(key, value)?,
    }
    if let Some(row) = run.edit().target.get_mut(&target) {
        row.alias = alias;
        row.login = Some(login).filter(|login| *login != LoginRow::default());
    }
    Ok(get(run, key))
}

/// RFC 7143 §13.12 to §13.14 have 512 to 2^24 - 1 bytes.
fn length(key: &str, value: &str) -> Result<Option<Size>, Refusal> {
    if value.is_empty() {
        return Ok(None);
    }
    let size = value.parse::<Size>().ok();
    let size = size.filter(|size| (512..1 << 24).contains(&size.0));
    let wrong = || Refusal::new(format!("{key} is from 512 to 16777215, and not '{value}'."));
    size.map(Some).ok_or_else(wrong)
}

/// RFC 7143 §13.17 has 1 to 65535.
fn number(key: &str, value: &str) -> Result<Option<u16>, Refusal> {
    if value.is_empty() {
        return Ok(None);
    }
    let number = value.parse::<u16>().ok().filter(|number| *number > 0);
    let wrong = || Refusal::new(format!("{key} is from 1 to 65535, and not '{value}'."));
    number.map(Some).ok_or_else(wrong)
}
