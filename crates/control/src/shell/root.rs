//! Commands of the root: configuration and sessions.

use super::command::{Args, Done, truth};
use super::run::Run;
use super::{Refusal, SessionFact};
use crate::tree::Tree;

/// `saveconfig`: each command has saved already.
pub(super) fn saveconfig(run: &mut Run<'_>, args: &Args) -> Done {
    let (path, generation) = (run.context.config_path, run.context.generation);
    if let Some(other) = args.get("savefile").filter(|other| *other != path) {
        let what = format!("The configuration is kept in {path}, not in {other}.");
        let way_out = format!("Copy that file, or run lunar export lio > {other}.");
        return Err(Refusal::new(what).way_out(way_out));
    }
    run.say(format!("Configuration saved to {path}"));
    run.say(format!(
        "Every change was saved when it was made; this is generation {generation}."
    ));
    Ok(())
}

/// `restoreconfig`: a file of LIO is imported, a generation of Lunar rolled back to.
pub(super) fn restoreconfig(_: &mut Run<'_>, args: &Args) -> Done {
    let file = args
        .get("savefile")
        .unwrap_or("/etc/target/saveconfig.json");
    let what = "The shell cannot restore a file.";
    let way_out = format!(
        "Use lunar import lio {file} > lunar.toml and lunar apply lunar.toml for a file of \
         targetcli, or lunar rollback N for an earlier generation."
    );
    Err(Refusal::new(what).way_out(way_out))
}

/// `clearconfig confirm=true`.
pub(super) fn clearconfig(run: &mut Run<'_>, args: &Args) -> Done {
    if !args
        .get("confirm")
        .map_or(Ok(false), |text| truth("confirm", text))?
    {
        let what = "clearconfig deletes all volumes, groups and targets.";
        return Err(Refusal::new(what).way_out("Confirm with clearconfig confirm=true."));
    }
    let old = run.edit();
    *old = Tree {
        daemon: std::mem::take(&mut old.daemon),
        api: std::mem::take(&mut old.api),
        discovery: std::mem::take(&mut old.discovery),
        // The shell knows of no switches.
        switch: std::mem::take(&mut old.switch),
        ..Tree::default()
    };
    run.say("All configuration cleared");
    Ok(())
}

/// `version`.
pub(super) fn version(run: &mut Run<'_>, _: &Args) -> Done {
    run.say(format!("lunar version {}", env!("CARGO_PKG_VERSION")));
    Ok(())
}

/// `sessions [list|detail] [sid]`.
pub(super) fn sessions(run: &mut Run<'_>, args: &Args) -> Done {
    let is_detail = match args.get("action").unwrap_or("list") {
        "list" => false,
        "detail" => true,
        other => {
            let what = format!("Unknown action {other}.");
            return Err(Refusal::new(what).way_out("Actions are list and detail."));
        }
    };
    let wanted = match args.get("sid").map(str::parse::<u64>) {
        None => None,
        Some(Ok(id)) => Some(id),
        Some(Err(_)) => return Err(Refusal::new("The sid must be a number.")),
    };
    let all = run.machine().sessions();
    let mut is_empty = true;
    for session in all
        .iter()
        .filter(|one| wanted.is_none_or(|id| id == one.id))
    {
        is_empty = false;
        tell(run, session, is_detail);
    }
    match wanted {
        Some(id) if is_empty => Err(Refusal::new(format!("No session found with sid {id}."))),
        None if is_empty => {
            run.say("(no open sessions)");
            Ok(())
        }
        _ => Ok(()),
    }
}

fn tell(run: &mut Run<'_>, session: &SessionFact, is_detail: bool) {
    let alias = match session.alias.as_str() {
        "" => &session.initiator,
        alias => alias,
    };
    run.say(format!(
        "alias: {alias}\tsid: {} type: Normal session-state: LOGGED_IN",
        session.id
    ));
    if is_detail {
        let proof = if session.is_authenticated {
            "AUTHENTICATED"
        } else {
            "NOT AUTHENTICATED"
        };
        run.say(format!("name: {} ({proof})", session.initiator));
        run.say(format!("address: {}", session.address));
        run.say(format!("target: {}", session.target));
    }
}
