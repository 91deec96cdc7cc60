//! `lunar shell`: the words of targetcli, as a client of the daemon.

mod complete;
mod machine;
mod session;

use std::io::{self, BufRead, IsTerminal, Read};
use std::path::PathBuf;
use std::process::ExitCode;
use std::{env, fs};

use clap::Args;
use control::shell::Preferences;
use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{Config, Editor};

use crate::manage::SocketArgs;
use crate::manage::change::permission;
use crate::{VerbError, documents};
use complete::Completer;
use session::{Answer, ShellSession};

/// Change what a daemon serves in the words of targetcli
///
/// Each command is planned and applied at once, and kept. Without COMMAND it reads from the
/// terminal, or from standard input up to the first line that fails. delete and clearconfig take
/// what they name with all that follows from it; what else ends sessions or loses data needs
/// --allow.
#[derive(Debug, Args)]
pub(crate) struct ShellArgs {
    /// A command, as in lunar shell /backstores/ramdisk create name=rd1 size=1G
    #[arg(
        value_name = "COMMAND",
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    command: Vec<String>,

    /// Make one change of all lines, or none
    #[arg(long)]
    atomic: bool,

    /// Tell what would be done, and do nothing
    #[arg(long)]
    dry_run: bool,

    /// Allow sessions to end (cuts) or a row to lose data or its identity (loses=ROW); may be
    /// repeated
    #[arg(long, value_name = "cuts|loses=ROW", value_parser = permission)]
    allow: Vec<String>,

    #[command(flatten)]
    socket: SocketArgs,
}

/// Act as another program: targetcli
///
/// The same by a symbolic link to lunar that is called targetcli.
#[derive(Debug, Args)]
pub(crate) struct AsArgs {
    /// The program
    #[arg(value_name = "NAME")]
    name: String,

    /// Its arguments
    #[arg(
        value_name = "ARG",
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    args: Vec<String>,

    #[command(flatten)]
    socket: SocketArgs,
}

pub(crate) fn run(args: &ShellArgs) -> Result<ExitCode, VerbError> {
    let client = args.socket.client("shell");
    let mut session = ShellSession::new(client, preferences(), args.allow.clone());
    session.is_dry = args.dry_run;
    let done = match &args.command[..] {
        [] if io::stdin().is_terminal() => interactive(&mut session),
        [] => lines(&mut session, args.atomic),
        command => one(&mut session, &command.join(" ")),
    };
    keep(&session.shell.prefs);
    done?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn run_as(args: &AsArgs) -> Result<ExitCode, VerbError> {
    if args.name != "targetcli" {
        return Err(VerbError::usage(format!(
            "lunar cannot act as {:?}: it can as targetcli",
            args.name
        )));
    }
    let mut session = ShellSession::new(
        args.socket.client("as targetcli"),
        preferences(),
        Vec::new(),
    );
    let done = match &args.args[..] {
        [] if io::stdin().is_terminal() => interactive(&mut session),
        [] => lines(&mut session, false),
        command => one(&mut session, &command.join(" ")),
    };
    keep(&session.shell.prefs);
    done?;
    Ok(ExitCode::SUCCESS)
}

fn one(session: &mut ShellSession, line: &str) -> Result<(), VerbError> {
    show(&session.run(line)?)
}

/// Stops at the first line that fails, which is named. What lines answer that are one change is
/// told when that is made: before, what they say to have created is not there.
fn lines(session: &mut ShellSession, atomic: bool) -> Result<(), VerbError> {
    // Lines build on each other.
    session.gathers = atomic || session.is_dry;
    let undone = if session.gathers {
        "; nothing was done"
    } else {
        ""
    };
    let is_held = session.gathers && !session.is_dry;
    let mut held = Vec::new();
    for number in 1_u32.. {
        let Some(line) = line_of(&mut io::stdin().lock(), number)? else {
            break;
        };
        if line.trim().is_empty() || line.trim_start().starts_with('#') {
            continue;
        }
        let answer = session.run(&line).map_err(|error| VerbError {
            line: format!("line {number}: {}{undone}", error.line),
            ..error
        })?;
        let is_exit = answer.is_exit;
        if is_held {
            held.push(answer);
        } else {
            show(&answer)?;
        }
        if is_exit {
            break;
        }
    }
    session.commit().map_err(|error| VerbError {
        line: format!("{}{undone}", error.line),
        ..error
    })?;
    held.iter().try_for_each(show)
}

/// The next line, if there is one; a line without an end is not read to it.
fn line_of(input: &mut impl BufRead, number: u32) -> Result<Option<String>, VerbError> {
    let mut line = String::new();
    let read = input.take(LINE_MAX).read_line(&mut line);
    let read = read.map_err(|cause| VerbError::failed(format!("standard input: {cause}")))?;
    if read as u64 == LINE_MAX {
        let told = format!("line {number}: it has more than {LINE_MAX} bytes");
        return Err(VerbError::usage(told));
    }
    Ok((read > 0).then_some(line))
}

fn interactive(session: &mut ShellSession) -> Result<(), VerbError> {
    let config = Config::builder().auto_add_history(false).build();
    let editor = Editor::<Completer, FileHistory>::with_config(config);
    let mut editor = editor.map_err(VerbError::failed)?;
    let history = home().map(|home| home.join(".lunar_history"));
    if let Some(history) = &history {
        // There is none at first.
        let _ = editor.load_history(history);
    }
    loop {
        editor.set_helper(Some(session.completer()?));
        let prompt = session.prompt();
        let line = match editor.readline(&prompt) {
            Ok(line) => line,
            Err(ReadlineError::Interrupted) => continue,
            Err(_) => break,
        };
        if !control::shell::grammar::holds_secret(&line) {
            let _ = editor.add_history_entry(&line);
        }
        match session.run(&line) {
            Ok(answer) if answer.is_exit => break,
            Ok(answer) => show(&answer)?,
            Err(error) => crate::log::say(&error.line),
        }
    }
    if let Some(history) = &history {
        let _ = editor.save_history(history);
    }
    Ok(())
}

fn show(answer: &Answer) -> Result<(), VerbError> {
    if answer.text.is_empty() {
        return Ok(());
    }
    documents::print(format!("{}\n", answer.text).as_bytes()).map(drop)
}

fn home() -> Option<PathBuf> {
    env::var_os("HOME")
        .filter(|home| !home.is_empty())
        .map(PathBuf::from)
}

fn preferences_file() -> Option<PathBuf> {
    home().map(|home| home.join(".lunar_shell.json"))
}

/// What cannot be read is as if there were none: preferences are a convenience.
fn preferences() -> Preferences {
    let text = preferences_file().and_then(|path| fs::read_to_string(path).ok());
    let read = text.and_then(|text| serde_json::from_str(&text).ok());
    read.unwrap_or_default()
}

fn keep(prefs: &Preferences) {
    if *prefs == preferences() {
        return;
    }
    if let (Some(path), Ok(text)) = (preferences_file(), serde_json::to_string(prefs)) {
        let _ = fs::write(path, text);
    }
}

/// The longest line of standard input, in bytes.
const LINE_MAX: u64 = 1 << 20;
