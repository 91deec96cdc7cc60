//! Completion scripts, made from the command line's own description, and manual pages, made from
//! the text in `docs/manual`, which a test compares with it.

mod roff;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::CommandFactory;
use clap_complete::Shell;

use crate::VerbError;
use crate::cli::{self, Cli};
use roff::{ManualPage, escape, verbatim};

pub(crate) fn completion(shell: Shell) -> Result<ExitCode, VerbError> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "lunar", &mut script);
    print(&script)
}

pub(crate) fn manual(verb: Option<&str>) -> Result<ExitCode, VerbError> {
    // Verbs without a page of their own are in that of lunar.
    let has_page = |name: &str| PAGES.iter().any(|(page, _)| *page == name);
    let own = verb.filter(|verb| has_page(verb) || !cli::verbs().iter().any(|known| known == verb));
    match page(own) {
        Some(page) => print(page.as_bytes()),
        None => Err(VerbError::usage(format!(
            "unknown verb {:?}: choose from {}",
            verb.unwrap_or_default(),
            cli::verbs().join(", ")
        ))),
    }
}

/// Prints to standard output.
pub(crate) fn print(text: &[u8]) -> Result<ExitCode, VerbError> {
    let mut out = io::stdout().lock();
    printed(out.write_all(text).and_then(|()| out.flush()))
}

/// Prints an object for scripts.
pub(crate) fn print_json(object: &impl serde::Serialize) -> Result<ExitCode, VerbError> {
    let text = serde_json::to_string(object)
        .map_err(|cause| VerbError::failed(format!("cannot write JSON: {cause}")))?;
    print(format!("{text}\n").as_bytes())
}

/// What became of something that was printed.
pub(crate) fn printed(result: io::Result<()>) -> Result<ExitCode, VerbError> {
    match result {
        Ok(()) => Ok(ExitCode::SUCCESS),
        // `lunar manual | head` is not a failure.
        Err(cause) if cause.kind() == io::ErrorKind::BrokenPipe => Ok(ExitCode::SUCCESS),
        Err(cause) => Err(VerbError::failed(format!("cannot write: {cause}"))),
    }
}

/// The page of a verb, or that of lunar itself.
fn page(verb: Option<&str>) -> Option<String> {
    let name = verb.unwrap_or(LUNAR);
    let (_, text) = PAGES.iter().find(|(known, _)| *known == name)?;
    let (page, common) = (ManualPage::parse(text), ManualPage::parse(PAGES[0].1));
    let title = title(name);
    let mut out = format!(
        ".TH {} 1 \"\" \"lunar {}\" \"Lunar Manual\"\n.SH NAME\n{} \\- {}\n.SH SYNOPSIS\n{}",
        escape(&title.to_uppercase()),
        env!("CARGO_PKG_VERSION"),
        escape(&title),
        escape(&about(name)),
        verbatim(&page.synopsis)
    );
    let mut section = |title: &str, text: &str| {
        if !text.is_empty() {
            out.push_str(&format!(".SH {}\n{text}", title.to_uppercase()));
        }
    };
    for (title, text) in &page.sections {
        match title.as_str() {
            "" => section("Description", text),
            "Examples" | "Environment" | "Files" => {}
            title => section(title, text),
        }
    }
    section("Exit status", &page.exit_codes);
    for title in ["Environment", "Files"] {
        let own = page.section(title).filter(|_| name != LUNAR);
        let texts = own.into_iter().chain(common.section(title));
        section(title, &texts.collect::<String>());
    }
    match page.section("Examples") {
        Some(examples) => section("Examples", examples),
        None => section("Examples", &verbatim(&page.commands.join("\n"))),
    }
    section("See also", &see_also(name));
    Some(out)
}

fn title(name: &str) -> String {
    if name == LUNAR {
        name.to_owned()
    } else {
        format!("lunar-{name}")
    }
}

/// The first line of `--help`, which pages that are not of a verb do not have.
fn about(name: &str) -> String {
    if let Some((_, about)) = TOPICS.iter().find(|(topic, _)| *topic == name) {
        return (*about).to_owned();
    }
    let lunar = Cli::command();
    let command = lunar.find_subcommand(name).unwrap_or(&lunar);
    let about = command.get_about().map(ToString::to_string);
    about.unwrap_or_default()
}

fn see_also(name: &str) -> String {
    let others = PAGES.iter().filter(|(page, _)| *page != name);
    let others = others.map(|(page, _)| format!("\\fB{}\\fR(1)", escape(&title(page))));
    format!("{}\n", others.collect::<Vec<_>>().join(", "))
}

const LUNAR: &str = "lunar";

/// Pages that are not of a verb.
const TOPICS: &[(&str, &str)] = &[("configuration", "What a daemon serves, as one file")];

/// The page of lunar itself, and those of verbs.
const PAGES: &[(&str, &str)] = &[
    (LUNAR, include_str!("../../../docs/manual/lunar.md")),
    ("serve", include_str!("../../../docs/manual/serve.md")),
    ("switch", include_str!("../../../docs/manual/switch.md")),
    ("copy", include_str!("../../../docs/manual/copy.md")),
    ("verify", include_str!("../../../docs/manual/verify.md")),
    ("bench", include_str!("../../../docs/manual/bench.md")),
    ("race", include_str!("../../../docs/manual/race.md")),
    ("floor", include_str!("../../../docs/manual/floor.md")),
    ("doctor", include_str!("../../../docs/manual/doctor.md")),
    ("info", include_str!("../../../docs/manual/info.md")),
    ("ls", include_str!("../../../docs/manual/ls.md")),
    ("fcoeadm", include_str!("../../../docs/manual/fcoeadm.md")),
    ("fipvlan", include_str!("../../../docs/manual/fipvlan.md")),
    ("dcb", include_str!("../../../docs/manual/dcb.md")),
    ("fcping", include_str!("../../../docs/manual/fcping.md")),
    ("fcnsq", include_str!("../../../docs/manual/fcnsq.md")),
    ("fcrls", include_str!("../../../docs/manual/fcrls.md")),
    ("secret", include_str!("../../../docs/manual/secret.md")),
    ("daemon", include_str!("../../../docs/manual/daemon.md")),
    ("plan", include_str!("../../../docs/manual/plan.md")),
    ("apply", include_str!("../../../docs/manual/apply.md")),
    ("set", include_str!("../../../docs/manual/set.md")),
    ("unset", include_str!("../../../docs/manual/unset.md")),
    ("history", include_str!("../../../docs/manual/history.md")),
    ("diff", include_str!("../../../docs/manual/diff.md")),
    ("rollback", include_str!("../../../docs/manual/rollback.md")),
    ("sessions", include_str!("../../../docs/manual/sessions.md")),
    ("drop", include_str!("../../../docs/manual/drop.md")),
    ("stats", include_str!("../../../docs/manual/stats.md")),
    ("unit", include_str!("../../../docs/manual/unit.md")),
    ("shell", include_str!("../../../docs/manual/shell.md")),
    ("as", include_str!("../../../docs/manual/as.md")),
    ("import", include_str!("../../../docs/manual/import.md")),
    ("export", include_str!("../../../docs/manual/export.md")),
    (
        "configuration",
        include_str!("../../../docs/manual/configuration.md"),
    ),
    ("api", include_str!("../../../docs/manual/api.md")),
    ("metrics", include_str!("../../../docs/manual/metrics.md")),
];
