//! Pages of the manual, out of the text that is in `docs/manual`.

use clap::{Command, CommandFactory};

use super::roff::{ManualPage, escape, verbatim};
use crate::cli::Cli;

/// The page of a verb, or that of lunar itself.
pub(super) fn page(verb: Option<&str>) -> Option<String> {
    let name = verb.unwrap_or(LUNAR.0);
    let (_, text) = [LUNAR]
        .iter()
        .chain(&VERBS)
        .find(|(known, _)| *known == name)?;
    let (page, common) = (ManualPage::parse(text), ManualPage::parse(LUNAR.1));
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
        section(title, common.section(title).unwrap_or_default());
    }
    match page.section("Examples") {
        Some(examples) => section("Examples", examples),
        None => section("Examples", &verbatim(&page.commands.join("\n"))),
    }
    section("See also", &see_also(name));
    Some(out)
}

fn title(name: &str) -> String {
    if name == LUNAR.0 {
        name.to_owned()
    } else {
        format!("lunar-{name}")
    }
}

/// The first line of `--help`.
fn about(name: &str) -> String {
    let lunar = Cli::command();
    let command = lunar.find_subcommand(name).unwrap_or(&lunar);
    let about = command.get_about().map(ToString::to_string);
    about.unwrap_or_default()
}

fn see_also(name: &str) -> String {
    let pages = [LUNAR].into_iter().chain(VERBS).map(|(page, _)| page);
    let others = pages.filter(|page| *page != name);
    let others: Vec<_> = others
        .map(|page| format!("\\fB{}\\fR(1)", escape(&title(page))))
        .collect();
    format!("{}\n", others.join(", "))
}

/// Whether it has a page of its own.
pub(super) fn has_page(name: &str) -> bool {
    VERBS.iter().any(|(verb, _)| *verb == name)
}

/// Whether there is such a verb, which need not have a page of its own.
pub(super) fn is_verb(name: &str) -> bool {
    let lunar = Cli::command();
    lunar
        .get_subcommands()
        .map(Command::get_name)
        .any(|verb| verb == name)
}

const LUNAR: (&str, &str) = ("lunar", include_str!("../../../../docs/manual/lunar.md"));

const VERBS: [(&str, &str); 9] = [
    ("serve", include_str!("../../../../docs/manual/serve.md")),
    ("copy", include_str!("../../../../docs/manual/copy.md")),
    ("verify", include_str!("../../../../docs/manual/verify.md")),
    ("bench", include_str!("../../../../docs/manual/bench.md")),
    ("race", include_str!("../../../../docs/manual/race.md")),
    ("floor", include_str!("../../../../docs/manual/floor.md")),
    ("info", include_str!("../../../../docs/manual/info.md")),
    ("ls", include_str!("../../../../docs/manual/ls.md")),
    ("secret", include_str!("../../../../docs/manual/secret.md")),
];
