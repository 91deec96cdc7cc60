//! README, manual and `--help` say the same, both ways.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::Command;

use control::metrics::series::{ALL, Family};
use tests::{server, tool};

use crate::{Source, sources};

/// Options with their defaults, where they have one.
type Options = BTreeMap<String, Option<String>>;

fn help(verb: &str) -> String {
    let mut command = Command::new(server::binary().unwrap());
    tool::must(command.args([verb, "--help"])).unwrap()
}

/// The verbs that have a page in the manual.
const VERBS: &[&str] = &[
    "serve", "switch", "copy", "verify", "info", "ls", "fcoeadm", "fipvlan", "fcping", "fcnsq",
    "fcrls", "dcb", "doctor", "secret", "bench", "race", "floor", "daemon", "plan", "apply", "set",
    "unset", "history", "diff", "rollback", "sessions", "drop", "stats", "metrics", "unit",
    "shell", "as", "import", "export", "api",
];

/// Pages that are not of a verb.
const TOPICS: &[&str] = &["configuration"];

fn read(path: &str) -> String {
    fs::read_to_string(tests::top().join(path)).unwrap_or_else(|cause| panic!("{path}: {cause}"))
}

/// `      --listen <HOST:PORT>` and, below it, `[default: 127.0.0.1:3260]`.
fn in_help(help: &str) -> Options {
    collect(help, |line| {
        // Deeper lines are text, which may begin with the name of another option.
        let is_short = line.starts_with("  -") && line.get(3..)?.starts_with(char::is_alphabetic);
        let short = line.get(4..).filter(|_| is_short);
        let short = short.and_then(|rest| rest.strip_prefix(", --"));
        let option = short.or_else(|| line.strip_prefix("      --"))?;
        line.get(line.len() - option.len() - 2..)
    })
}

/// ``### `--listen HOST:PORT` `` and, below it, ``Default: `127.0.0.1:3260`.``
fn in_manual(manual: &str) -> Options {
    collect(manual, |line| line.strip_prefix("### `")?.strip_suffix('`'))
}

fn collect(text: &str, heading: impl Fn(&str) -> Option<&str>) -> Options {
    let mut options = Options::new();
    let mut last = None;
    for line in text.lines() {
        if let Some(option) = heading(line) {
            let name = option.split(' ').find(|word| word.starts_with("--"));
            // `--iser[=PROVIDER]`.
            let name = name.unwrap_or(option).split('[').next();
            let name = name.unwrap_or_default().to_owned();
            // Where all fits on one line, help has the default there.
            last = Some(options.entry(name).or_insert_with(|| default_in(line)));
        } else if let Some(default) = &mut last
            && let Some(value) = default_in(line)
        {
            **default = Some(value);
        }
    }
    options
}

fn default_in(line: &str) -> Option<String> {
    let (_, help) = line.split_once("[default: ").unwrap_or_default();
    let (_, manual) = line.split_once("Default: ").unwrap_or_default();
    let value = help
        .strip_suffix(']')
        .or_else(|| Some(manual.strip_suffix('.')?.trim_matches('`')));
    value.map(str::to_owned)
}

#[test]
fn help_and_manual_have_the_same_options_and_defaults() {
    for &verb in VERBS {
        let page = format!("docs/manual/{verb}.md");
        let (help, manual) = (in_help(&help(verb)), in_manual(&read(&page)));
        assert!(help.contains_key("--help"), "{verb}: {help:?}");
        for (option, default) in &help {
            let told = manual.get(option);
            assert!(told.is_some(), "{option} is not in {page}");
            let what = format!("the default of {option}, {page} against --help");
            assert_eq!(told, Some(default), "{what}");
        }
        for option in manual.keys() {
            assert!(
                help.contains_key(option),
                "{option} is not in {verb} --help"
            );
        }
    }
}

#[test]
fn the_page_of_lunar_has_every_verb() {
    let mut command = Command::new(server::binary().unwrap());
    let help = tool::must(command.arg("--help")).unwrap();
    let page = read("docs/manual/lunar.md");
    let verbs = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let verbs = verbs.take_while(|line| !line.is_empty());
    let names = verbs.map(|line| line.split_whitespace().next().unwrap());
    let names: Vec<_> = names.collect();
    assert!(names.len() > VERBS.len(), "{names:?}");
    for name in names {
        let ways = [format!("| [{name}]({name}.md) |"), format!("| `{name}` |")];
        assert!(ways.iter().any(|way| page.contains(way)), "{name}");
    }
}

#[test]
fn every_page_of_the_manual_is_compared() {
    let pages = fs::read_dir(tests::top().join("docs/manual")).unwrap();
    for page in pages {
        let page = page.unwrap().file_name().into_string().unwrap();
        let verb = page.strip_suffix(".md").unwrap();
        let is_compared = VERBS.contains(&verb) || TOPICS.contains(&verb) || verb == "lunar";
        assert!(is_compared, "docs/manual/{page}");
    }
}

/// The keys of the configuration are the fields of its rows.
#[test]
fn the_page_of_the_configuration_has_every_key() {
    let page = read("docs/manual/configuration.md");
    let rows = ["tree.rs", "tree/portals.rs"];
    let rows = rows.map(|path| read(&format!("crates/control/src/{path}")));
    let rows = rows.concat();
    let fields = rows.lines().filter_map(|line| {
        let field = line.strip_prefix("    pub ")?.split_once(':')?.0;
        (!field.contains(' ')).then(|| field.replace('_', "-"))
    });
    let fields: BTreeSet<_> = fields.collect();
    assert!(fields.len() > 30, "{fields:?}");
    for field in fields {
        let ways = [
            format!("`{field}`"),
            format!("{field} ="),
            format!("[{field}."),
        ];
        let is_there =
            ways.iter().any(|way| page.contains(way)) || page.contains(&format!("`[{field}]`"));
        assert!(is_there, "{field}");
    }
}

/// Names of series in a text, without what Prometheus adds to those of histograms.
fn series_in(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let named = words.filter(|word| word.starts_with("lunar_") && !word.ends_with('_'));
    let name = |word: &str| word.strip_suffix("_bucket").unwrap_or(word).to_owned();
    named.map(name).collect()
}

/// The page of metrics has every series that there is and no other; the dashboard and the alerts
/// use none that is not there.
#[test]
fn series_of_the_manual_the_dashboard_and_the_alerts_are_there() {
    let families = ALL.iter();
    let there: BTreeSet<_> = families.map(Family::told).collect();
    assert_eq!(series_in(&read("docs/manual/metrics.md")), there);
    let dashboard = read("docs/grafana/lunar.json");
    serde_json::from_str::<serde_json::Value>(&dashboard).unwrap();
    for used in [&dashboard, &read("docs/grafana/alerts.yml")] {
        let used = series_in(used);
        assert!(used.len() > 5, "{used:?}");
        assert_eq!(used.difference(&there).collect::<Vec<_>>(), [""; 0]);
    }
}

#[test]
fn options_that_the_readme_names_are_there() {
    let readme = read("README.md");
    for &verb in VERBS {
        let help = in_help(&help(verb));
        let call = format!("lunar {verb}");
        for line in readme.lines().filter(|line| line.contains(&call)) {
            for word in line.split(' ').filter(|word| word.starts_with("--")) {
                let option = word.trim_matches(|c: char| !c.is_alphanumeric() && c != '-');
                assert!(help.contains_key(option), "README names {verb} {option}");
            }
        }
    }
}

#[test]
fn the_readme_has_the_two_commands() {
    let readme = read("README.md");
    for command in ["cargo run --release -- serve ram:1G", "./check"] {
        assert!(
            readme.lines().any(|line| line.trim() == command),
            "{command}"
        );
    }
}

/// The names before a colon or parenthesis: of `ram:SIZE`, or `concat(ADDR,…)`.
fn names<'a>(texts: impl Iterator<Item = &'a str>) -> BTreeSet<&'a str> {
    let name = |text: &'a str| {
        let end = text.find([':', '('])?;
        let name = &text[..end];
        let lower = name.chars().all(|c| c.is_ascii_lowercase());
        (lower && !name.is_empty() && text.len() > end + 1).then_some(name)
    };
    texts.filter_map(name).collect()
}

#[test]
fn help_manual_and_readme_have_the_addresses_that_can_be_opened() {
    let built: BTreeSet<_> = address::built().into_iter().collect();

    let manual = read("docs/manual/serve.md");
    let rows = manual.lines().filter_map(|line| line.strip_prefix("| `"));
    assert_eq!(names(rows), built, "the table in docs/manual/serve.md");

    let help = help("serve");
    let (_, addresses) = help.split_once("Addresses: ").unwrap();
    let (addresses, _) = addresses.split_once("Usage:").unwrap();
    assert_eq!(names(addresses.split_whitespace()), built, "--help");

    let readme = read("README.md");
    let (_, line) = readme.split_once("**Composed volumes**").unwrap();
    let (line, _) = line.split_once("nested").unwrap();
    let named = line.split('`').skip(1).step_by(2);
    assert_eq!(named.collect::<BTreeSet<_>>(), built, "README.md");
}

/// The pages for people: all of `docs`, and two beside it.
fn documents() -> Vec<String> {
    let mut documents = vec!["README.md".to_owned(), "CONTRIBUTING.md".to_owned()];
    for dir in ["docs", "docs/manual"] {
        for page in fs::read_dir(tests::top().join(dir)).unwrap() {
            let page = page.unwrap().file_name().into_string().unwrap();
            if page.ends_with(".md") {
                documents.push(format!("{dir}/{page}"));
            }
        }
    }
    documents
}

#[test]
fn documents_name_sources_that_are_there() {
    let all = sources();
    let mut named = 0;
    for document in documents() {
        for path in sources_in(&read(&document)) {
            // Inside a crate its folder goes without saying.
            let end = format!("/{path}");
            let known = |source: &Source| source.path == path || source.path.ends_with(&end);
            assert!(all.iter().any(known), "{document} names {path}");
            named += 1;
        }
    }
    assert!(named > 10, "paths are found");
}

/// The `folder/file.rs` of a document.
fn sources_in(text: &str) -> Vec<String> {
    let spans = text.split('`').skip(1).step_by(2);
    let paths = spans.filter(|span| span.contains('/') && span.ends_with(".rs"));
    paths.map(str::to_owned).collect()
}

#[test]
fn documents_point_at_files_that_are_there() {
    for document in documents() {
        let text = read(&document);
        let dir = tests::top().join(&document);
        let dir = dir.parent().unwrap();
        let links = text.split("](").skip(1);
        for link in links.filter_map(|rest| rest.split(')').next()) {
            let path = link.split('#').next().unwrap_or_default();
            if path.is_empty() || path.contains("://") {
                continue;
            }
            assert!(dir.join(path).exists(), "{document} points at {path}");
        }
    }
}
