//! Transcripts as they are typed, with their answers, over a gate that takes every candidate.
//!
//! `RENEW=1 cargo test -p control shell` writes the answers anew.

mod lines;
mod machine;

use std::path::PathBuf;

use super::{Context, Outcome, Refusal, Shell};
use crate::check::check;
use crate::document;
use crate::tree::{Access, LunNumber, Tree};
use machine::Sample;

/// A shell with the tree behind it.
struct Session {
    shell: Shell,
    tree: Tree,
    generation: u64,
    width: usize,
    machine: Sample,
    /// Whether a candidate with problems fails the test.
    is_checked: bool,
}

impl Session {
    fn new(tree: Tree) -> Self {
        Self {
            shell: Shell::default(),
            tree,
            generation: 1,
            width: 80,
            machine: Sample::default(),
            is_checked: true,
        }
    }

    fn run(&mut self, line: &str) -> Result<Outcome, Refusal> {
        let context = Context {
            tree: &self.tree,
            machine: &self.machine,
            generation: self.generation,
            config_path: "/etc/lunar/lunar.toml",
            width: self.width,
        };
        let outcome = self.shell.run(line, &context)?;
        if let Some(tree) = &outcome.change {
            self.generation += 1;
            self.tree = tree.clone();
            let problems = check(tree).problems;
            assert!(
                !self.is_checked || problems.is_empty(),
                "{line}: {problems:?}"
            );
            let text = document::write(tree);
            assert_eq!(document::parse(&text).as_ref(), Ok(tree), "{line}: {text}");
        }
        Ok(outcome)
    }

    /// What a user sees of a line.
    fn shown(&mut self, line: &str) -> String {
        match self.run(line) {
            Ok(outcome) => outcome.answer,
            Err(refusal) => format!("error: {refusal}"),
        }
    }

    /// A transcript with the answers of this session: lines with a prompt are typed, comments stay,
    /// and `# width N` sets the width of the terminal.
    fn replay(&mut self, story: &str) -> String {
        let mut text = String::new();
        for line in story.lines() {
            if let Some(width) = line.strip_prefix("# width ") {
                self.width = width.parse().unwrap();
            }
            let typed = typed(line);
            if typed.is_none() && !line.starts_with('#') {
                continue;
            }
            let Some(typed) = typed else {
                text += &format!("{line}\n");
                continue;
            };
            text += &format!("{}{typed}\n", self.shell.prompt(&self.tree));
            let answer = match typed {
                "toml" => document::write(&self.tree),
                _ => self.shown(typed),
            };
            if !answer.is_empty() {
                text += &format!("{}\n", answer.trim_end());
            }
        }
        text
    }
}

/// What stands behind a prompt.
fn typed(line: &str) -> Option<&str> {
    let (prompt, typed) = line.split_once("> ")?;
    (prompt.starts_with('/') && !prompt.contains(' ')).then_some(typed)
}

fn transcript(name: &str) {
    let dir = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src/shell/tests/transcripts");
    let path = dir.join(format!("{name}.txt"));
    let story = std::fs::read_to_string(&path).unwrap();
    let seen = Session::new(Tree::default()).replay(&story);
    // No story changes with a release.
    let seen = seen.replace(env!("CARGO_PKG_VERSION"), "VERSION");
    if std::env::var_os("RENEW").is_some() {
        std::fs::write(&path, seen).unwrap();
        return;
    }
    let diff = similar::TextDiff::from_lines(&story, &seen);
    assert!(
        story == seen,
        "{}",
        diff.unified_diff().header(name, "seen")
    );
}

#[test]
fn seed_000() {
    transcript("seed-000");
}

#[test]
fn seed_001() {
    transcript("seed-001");
}

#[test]
fn attributes() {
    transcript("attributes");
}

#[test]
fn masks() {
    transcript("masks");
}

#[test]
fn chap() {
    transcript("chap");
}

#[test]
fn moving_about() {
    transcript("moving-about");
}

#[test]
fn backstores_and_portal_groups() {
    transcript("backstores-and-portal-groups");
}

#[test]
fn iser() {
    transcript("iser");
}

#[test]
fn wrong_input() {
    transcript("wrong-input");
}

/// Every line of `ls` in seed 001 that shows what Lunar has is shown the same.
#[test]
fn ls_looks_as_in_seed_001() {
    let seen = Session::new(Tree::default()).replay(include_str!("tests/transcripts/seed-001.txt"));
    for line in SEED_001.lines() {
        assert!(seen.lines().any(|one| one == line), "{line}\n{seen}");
    }
}

const SEED_001: &str = "\
o- / ..................................................................... [...]
  o- backstores .......................................................... [...]
  | o- fileio ............................................... [0 Storage Object]
  | o- iblock ............................................... [0 Storage Object]
  | o- rd_mcp ............................................... [1 Storage Object]
  |   o- rd1 ............................................... [ramdisk activated]
  o- iscsi .......................................................... [1 Target]
  | o- iqn.2003-01.org.linux-iscsi.node-1.aarch64:sn.385e783e5040 ...... [1 TPG]
  |   o- tpgt1 ....................................................... [enabled]
  |     o- acls ....................................................... [0 ACLs]
  |     o- luns ........................................................ [1 LUN]
  |     | o- lun0 ....................................... [rd_mcp/rd1 (ramdisk)]
  |     o- portals .................................................. [1 Portal]
  |       o- 10.10.1.3:3260 ................................. [OK, iser enabled]
  o- tcm_fc ........................................................ [0 Targets]";

/// A mask that somebody wrote into the file is not widened by commands elsewhere.
#[test]
fn a_view_that_was_written_by_hand_stays() {
    let text = r#"version = 1
[volume.a]
address = "ram:1M"
[volume.b]
address = "ram:1M"
[volume.c]
address = "ram:1M"
[group.guests]
initiators = ["*"]
[target."iqn.2026-11.org.example:t"]
luns = { 0 = "a", 1 = { volume = "b", access = "ro" } }
allow = ["guests", "iqn.2026-11.org.example:h"]
view = { guests = { 7 = "c" } }
"#;
    let mut session = Session::new(document::parse(text).unwrap());
    let at = "/iscsi/iqn.2026-11.org.example:t/tpgt1";
    let guests = |session: &Session| {
        let row = &session.tree.target["iqn.2026-11.org.example:t"];
        assert!(row.allow.contains(&"guests".to_owned()));
        format!("{:?}", row.view["guests"])
    };
    let before = guests(&session);
    for line in [
        "luns create c",
        "luns delete 0",
        "set attribute generate_node_acls=1",
    ] {
        session
            .run(&format!("{at}/{line}").replace("/set", " set"))
            .unwrap();
        assert_eq!(guests(&session), before, "{line}");
    }
    let line = format!("{at}/acls/iqn.2026-11.org.example:h create 5 lun1");
    session.run(&line).unwrap();
    let view = &session.tree.target["iqn.2026-11.org.example:t"].view["acl-h"];
    assert_eq!(view[&LunNumber(5)].access(), Access::ReadOnly);
    session
        .run(&format!("{at} set attribute demo_mode_write_protect=1"))
        .unwrap();
    assert!(guests(&session).contains("ReadOnly") && guests(&session).contains("LunNumber(7)"));
    session.run("/backstores/rd_mcp delete c").unwrap();
    assert_eq!(guests(&session), "{}");
}

#[test]
fn no_secret_is_in_the_tree_or_in_an_answer() {
    let mut session = Session::new(Tree::default());
    let secret = "a-secret-of-16-chars";
    let target = "/iscsi/iqn.2026-11.org.example:t/tpgt1";
    let name = "iqn.2026-11.org.example:h";
    for line in [
        "/iscsi create iqn.2026-11.org.example:t".to_owned(),
        format!("{target}/acls create {name}"),
    ] {
        session.run(&line).unwrap();
    }
    let line = format!("{target}/acls/{name} set auth userid=u password={secret}");
    assert!(super::grammar::holds_secret(&line));
    let outcome = session.run(&line).unwrap();
    assert!(!outcome.answer.contains(secret), "{}", outcome.answer);
    assert!(!document::write(&session.tree).contains(secret));
    assert!(!format!("{outcome:?} {:?}", session.shell).contains(secret));
    let [kept] = &outcome.secrets[..] else {
        panic!("{outcome:?}");
    };
    assert_eq!(kept.secret, secret);
    let group = &session.tree.group["acl-h"];
    let source = group.chap.as_ref().unwrap().secret.to_string();
    assert_eq!(source, format!("state:{}", kept.name));
}

#[test]
fn a_line_that_is_refused_changes_nothing() {
    let mut session = Session::new(Tree::default());
    session.run("/iscsi create").unwrap();
    let before = format!("{:?}", session.shell);
    session
        .run("set attribute cache_dynamic_acls=1 netif_timeout=2")
        .unwrap_err();
    assert_eq!(format!("{:?}", session.shell), before);
}
