//! Pages of the manual, as man(1) shows them.
#![expect(clippy::unwrap_used, reason = "a test ends by panicking")]

use std::io::Write;
use std::process::{Command, Stdio};

const VERBS: [&str; 9] = [
    "serve", "copy", "verify", "bench", "race", "floor", "info", "ls", "secret",
];

fn lunar(args: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_lunar"))
        .args(args)
        .output();
    let output = output.unwrap();
    assert!(output.status.success(), "{args:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The text of a section, up to the next one.
fn section<'a>(page: &'a str, title: &str) -> &'a str {
    let (_, rest) = page
        .split_once(&format!(".SH {title}\n"))
        .unwrap_or_else(|| panic!("no {title} in {page}"));
    rest.split("\n.SH ").next().unwrap()
}

#[test]
fn every_page_has_the_sections_of_a_page() {
    for verb in VERBS {
        let page = lunar(&["manual", verb]);
        let head = page.lines().next().unwrap();
        let title = format!(".TH LUNAR\\-{} 1 \"\" \"lunar ", verb.to_uppercase());
        assert!(head.starts_with(&title), "{head}");
        for title in [
            "NAME",
            "SYNOPSIS",
            "DESCRIPTION",
            "OPTIONS",
            "EXIT STATUS",
            "ENVIRONMENT",
            "FILES",
            "EXAMPLES",
            "SEE ALSO",
        ] {
            assert!(!section(&page, title).trim().is_empty(), "{verb}: {title}");
        }
        assert!(
            section(&page, "SYNOPSIS").contains(&format!("lunar {verb} ")),
            "{page}"
        );
        assert!(
            section(&page, "EXAMPLES").contains(&format!("lunar {verb} ")),
            "{page}"
        );
        let example = section(&page, "SEE ALSO");
        assert!(
            !example.contains(&format!("lunar\\-{verb}\\fR")),
            "{example}"
        );
    }
}

/// `###  --option VALUE` of the help, which tests of the source compare with the manual.
#[test]
fn every_option_is_on_its_page() {
    for verb in VERBS {
        let (page, help) = (lunar(&["manual", verb]), lunar(&[verb, "--help"]));
        let options = help
            .lines()
            .filter_map(|line| line.strip_prefix("      --"));
        let options = options.map(|line| line.split([' ', '[']).next().unwrap());
        for option in options.filter(|option| !option.is_empty()) {
            let written = format!("\\fB\\-\\-{}\\fR", option.replace('-', "\\-"));
            assert!(page.contains(&written), "{verb}: {option}\n{page}");
        }
    }
}

#[test]
fn the_options_of_addresses_are_on_the_page_of_serve() {
    let page = lunar(&["manual", "serve"]);
    for option in [
        "?replacement=TIME",
        "?digests=crc32c",
        "?sessions=N",
        "?key=HEX",
    ] {
        assert!(page.contains(option), "{option}");
    }
}

#[test]
fn nothing_of_markdown_is_left() {
    for verb in VERBS.iter().chain(&["lunar"]) {
        let page = lunar(&["manual", verb]);
        for (number, line) in page.lines().enumerate() {
            let wrong = ["`", "](", "**", "|---"]
                .iter()
                .find(|left| line.contains(*left));
            assert_eq!(wrong, None, "{verb} {}: {line}", number + 1);
            let is_macro = line.starts_with(['.', '\'']);
            let known = [
                ".TH ", ".SH ", ".SS ", ".PP", ".IP", ".TP", ".RS", ".RE", ".nf", ".fi", ".sp",
            ];
            assert!(
                !is_macro || known.iter().any(|known| line.starts_with(known)),
                "{verb}: {line}"
            );
        }
    }
}

#[test]
fn lunar_has_a_page_too() {
    let page = lunar(&["manual"]);
    assert!(page.starts_with(".TH LUNAR 1 "), "{page}");
    for alike in ["lunar", "completion", "manual"] {
        assert_eq!(page, lunar(&["manual", alike]), "{alike}");
    }
    let (name, verbs) = (section(&page, "NAME"), section(&page, "DESCRIPTION"));
    assert!(name.contains("FCoE"), "{name}");
    assert!(VERBS.iter().all(|verb| verbs.contains(verb)), "{verbs}");
}

/// Where groff is there: it finds nothing to say against a page.
#[test]
fn groff_reads_every_page_without_a_warning() {
    for verb in VERBS.iter().chain(&["lunar"]) {
        let groff = Command::new("groff")
            .args(["-man", "-Tutf8", "-Kutf8", "-ww", "-z"])
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let Ok(mut groff) = groff else {
            return eprintln!("SKIPPED: no groff");
        };
        let mut page = groff.stdin.take().unwrap();
        page.write_all(lunar(&["manual", verb]).as_bytes()).unwrap();
        drop(page);
        let output = groff.wait_with_output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        let told: Vec<_> = told
            .lines()
            .filter(|line| !line.contains("cannot adjust"))
            .collect();
        assert!(told.is_empty(), "{verb}: {told:?}");
    }
}

#[test]
fn help_and_version_are_had_by_the_words_of_other_programs() {
    assert_eq!(lunar(&["help"]), lunar(&["--help"]));
    assert_eq!(lunar(&["help", "serve"]), lunar(&["serve", "--help"]));
    assert_eq!(lunar(&["version"]), lunar(&["--version"]));
    let first = lunar(&["--help"]);
    assert!(
        first.lines().next().unwrap().contains("iSCSI and FCoE"),
        "{first}"
    );
}
