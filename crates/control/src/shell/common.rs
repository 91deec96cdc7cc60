//! Commands that every node has: `help`, `status`, `info`, `refresh`, `exit`.

use super::command::{Args, Command, Done, commands_at};
use super::run::Run;
use super::summary::{details, summary};
use super::{Effect, Refusal};

/// `help [command]`.
pub(super) fn help(run: &mut Run<'_>, args: &Args) -> Done {
    let commands = commands_at(&run.node);
    match args.get("command") {
        Some(word) => help_of(run, &commands, word),
        None => {
            list(run, &commands);
            Ok(())
        }
    }
}

fn help_of(run: &mut Run<'_>, commands: &[&Command], word: &str) -> Done {
    let Some(command) = commands.iter().find(|one| one.name == word) else {
        let what = format!("Cannot find help topic {word}.");
        let near = address::nearest(word, commands.iter().map(|one| one.name));
        return Err(Refusal::new(what).way_out(match near {
            Some(near) => format!("Did you mean {near}?"),
            None => "Run help for a list of commands.".to_owned(),
        }));
    };
    run.say(format!("{}\n    {}", command.syntax(), command.purpose));
    Ok(())
}

fn list(run: &mut Run<'_>, commands: &[&Command]) {
    let path = run.node.path();
    run.say("[PATH] COMMAND [value…] [key=value…]");
    run.say(format!("Commands at {path}:"));
    for command in commands {
        run.say(format!("  - {}", command.syntax()));
    }
    run.say("Run help COMMAND for what a command does.");
}

/// `status`.
pub(super) fn status(run: &mut Run<'_>, _: &Args) -> Done {
    let path = run.node.path();
    let state = summary(&run.node, run.context);
    run.say(format!("Status for {path}: {state}"));
    Ok(())
}

/// `info`.
pub(super) fn info(run: &mut Run<'_>, args: &Args) -> Done {
    status(run, args)?;
    for line in details(&run.node, run.context) {
        run.say(line);
    }
    Ok(())
}

/// `refresh`.
pub(super) fn refresh(_: &mut Run<'_>, _: &Args) -> Done {
    Ok(())
}

/// `exit`.
pub(super) fn exit(run: &mut Run<'_>, _: &Args) -> Done {
    run.end_with(Effect::Exit);
    Ok(())
}
