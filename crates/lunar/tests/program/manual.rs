//! Pages of the manual, as man(1) shows them.

use std::io::Write;
use std::process::{Command, Stdio};

use crate::rig::{Run, lunar};

const VERBS: [&str; 17] = [
    "serve", "switch", "copy", "verify", "bench", "race", "floor", "info", "ls", "secret",
    "fcoeadm", "fipvlan", "fcping", "fcnsq", "fcrls", "dcb", "doctor",
];

fn printed(line: &str) -> String {
    let ran = lunar(line).ran();
    assert_eq!(ran.code, Some(0), "{line}: {}", ran.err);
    ran.out
}

/// The page of a verb, or of lunar itself.
fn page(verb: &str) -> String {
    printed(&format!("manual {verb}"))
}

/// The text of a section, up to the next one.
fn section<'a>(page: &'a str, title: &str) -> &'a str {
    let (_, rest) = page
        .split_once(&format!(".SH {title}\n"))
        .unwrap_or_else(|| panic!("no {title} in {page}"));
    rest.split("\n.SH ").next().unwrap()
}

#[test]
fn every_file_of_the_manual_is_printed() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/manual");
    for file in std::fs::read_dir(folder).unwrap() {
        let file = file.unwrap().file_name().into_string().unwrap();
        let name = file.strip_suffix(".md").unwrap();
        let name = if name == "lunar" { "" } else { name };
        assert!(page(name).starts_with(".TH LUNAR"), "{file}");
    }
}

#[test]
fn every_page_has_the_sections_of_a_page() {
    for verb in VERBS {
        let page = page(verb);
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
        for title in ["SYNOPSIS", "EXAMPLES"] {
            assert!(
                section(&page, title).contains(&format!("lunar {verb} ")),
                "{page}"
            );
        }
        let example = section(&page, "SEE ALSO");
        assert!(
            !example.contains(&format!("lunar\\-{verb}\\fR")),
            "{example}"
        );
    }
}

/// They have no help, whose first line is the name of a page.
#[test]
fn pages_that_are_not_of_a_verb_say_what_they_are_about() {
    let (page, lunars) = (page("configuration"), page(""));
    let about = |page| {
        let (_, about) = section(page, "NAME").split_once(" \\- ").unwrap();
        about.to_owned()
    };
    assert_ne!(about(&page), about(&lunars));
    assert!(section(&page, "NAME").contains("daemon"), "{page}");
}

#[test]
fn files_of_a_verb_stand_beside_those_of_all() {
    let page = page("shell");
    let files = section(&page, "FILES");
    for file in [".lunar_history", "/etc/machine\\-id"] {
        assert!(files.contains(file), "{files}");
    }
}

/// `###  --option VALUE` of the help, which tests of the source compare with the manual.
#[test]
fn every_option_is_on_its_page() {
    for verb in VERBS {
        let (page, help) = (page(verb), printed(&format!("{verb} --help")));
        let is_option = |line: &&str| line.starts_with("  -") || line.starts_with("      --");
        let words = help
            .lines()
            .filter(is_option)
            .flat_map(str::split_whitespace);
        for option in words.filter(|word| word.starts_with('-')) {
            let name = option.split([',', '[', '=']).next().unwrap();
            let written = name.replace('-', "\\-");
            let ways = ["\\fR", ","].map(|end| format!("{written}{end}"));
            let is_there = ways.iter().any(|way| page.contains(way));
            assert!(is_there, "{verb}: {option}\n{page}");
        }
    }
}

#[test]
fn the_options_of_addresses_are_on_the_page_of_serve() {
    let page = page("serve");
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
        let page = page(verb);
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
    let lunars = page("");
    assert!(lunars.starts_with(".TH LUNAR 1 "), "{lunars}");
    for alike in ["lunar", "completion", "manual"] {
        assert_eq!(lunars, page(alike), "{alike}");
    }
    let (name, verbs) = (section(&lunars, "NAME"), section(&lunars, "DESCRIPTION"));
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
        let mut input = groff.stdin.take().unwrap();
        input.write_all(page(verb).as_bytes()).unwrap();
        drop(input);
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
    assert_eq!(printed("help"), printed("--help"));
    assert_eq!(printed("help serve"), printed("serve --help"));
    assert_eq!(printed("version"), printed("--version"));
    let first = printed("--help");
    assert!(
        first.lines().next().unwrap().contains("iSCSI and FCoE"),
        "{first}"
    );
}
