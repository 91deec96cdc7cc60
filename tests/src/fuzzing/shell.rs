//! Lines of the shell, as users type them, over a small tree. The gate accepts every candidate.

use std::cell::Cell;
use std::net::{IpAddr, Ipv4Addr};

use control::document;
use control::shell::{Context, Machine, Node, Outcome, SessionFact, Shell, VolumeFact};
use control::tree::Tree;

/// The most lines of an input. Each one is checked against the whole tree.
const LINES: usize = 40;

/// See docs/fuzzing.md.
pub fn shell(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let machine = FixedMachine::default();
    let mut shell = Shell::default();
    let mut tree = small_tree();
    for line in text.lines().take(LINES) {
        let context = Context {
            tree: &tree,
            machine: &machine,
            generation: 1,
            config_path: "/etc/lunar/lunar.toml",
            width: 80,
        };
        let before = format!("{shell:?}");
        match shell.run(line, &context) {
            Ok(outcome) => {
                holds_no_secret(&outcome, &shell, &tree);
                tree = outcome.change.unwrap_or(tree);
                let written = document::write(&tree);
                assert_eq!(
                    document::parse(&written).as_ref(),
                    Ok(&tree),
                    "{line:?}: {written}"
                );
            }
            Err(refusal) => {
                assert!(!refusal.what.is_empty());
                assert_eq!(format!("{shell:?}"), before, "{line:?}");
            }
        }
    }
    paths_lead_to_their_nodes(&shell, &tree);
}

/// Short secrets also occur by chance, in names for instance, and a name that was typed before may
/// be typed again as a secret.
fn holds_no_secret(outcome: &Outcome, shell: &Shell, before: &Tree) {
    let known = document::write(before);
    let is_secret = |text: &str| text.len() > 15 && !known.contains(text);
    let typed = outcome
        .secrets
        .iter()
        .filter(|typed| is_secret(&typed.secret));
    for typed in typed {
        let candidate = outcome.change.as_ref().map(document::write);
        let prefs = format!("{:?}", shell.prefs);
        let places = [Some(outcome.answer.clone()), candidate, Some(prefs)];
        let is_held = |place: &String| place.contains(&typed.secret);
        assert!(!places.iter().flatten().any(is_held), "{}", typed.name);
    }
}

fn paths_lead_to_their_nodes(shell: &Shell, tree: &Tree) {
    let mut nodes = vec![Node::Root];
    while let Some(node) = nodes.pop() {
        let path = node.path();
        let found = shell.node_at(tree, &path);
        assert!(found.is_ok_and(|found| found.path() == path), "{path}");
        nodes.extend(node.children(tree));
    }
}

/// One row of each kind, with a view and everything that a group may have.
fn small_tree() -> Tree {
    document::parse(SMALL).unwrap_or_default()
}

const SMALL: &str = r#"version = 1

[volume.a]
address = "ram:1M"

[volume.b]
address = "null:1G"
block-size = 4096

[group.cluster]
initiators = ["iqn.2026-11.org.example:h1", "iqn.2026-11.org.example:h2"]
chap = { user = "cluster", secret = "state:cluster" }

[target."iqn.2026-11.org.example:san"]
portals = { 1 = ["10.10.1.3:3260"], 6 = ["[::]:3260"] }
luns = { 0 = "a", 1 = { volume = "b", access = "ro" } }
allow = ["cluster", "iqn.2026-11.org.example:h3"]

[target."iqn.2026-11.org.example:san".view.cluster]
5 = "b"

[target."20:00:ac:de:48:23:45:67"]
portals = ["fcoe:int0"]
luns = { 0 = "a" }
allow = ["*"]
"#;

/// A machine with one interface, whose serial numbers count up.
#[derive(Default)]
struct FixedMachine {
    serials: Cell<u64>,
}

impl Machine for FixedMachine {
    fn volume(&self, name: &str) -> Option<VolumeFact> {
        (name == "a").then_some(VolumeFact {
            size: Some(1 << 20),
            is_present: true,
        })
    }

    fn sessions(&self) -> Vec<SessionFact> {
        Vec::new()
    }

    fn interfaces(&self) -> Vec<(String, [u8; 6])> {
        vec![("int0".to_owned(), [0xac, 0xde, 0x48, 0x23, 0x45, 0x67])]
    }

    fn addresses(&self) -> Option<Vec<IpAddr>> {
        Some(vec![Ipv4Addr::new(10, 10, 1, 3).into()])
    }

    fn iqn_base(&self) -> String {
        "iqn.2026-11.org.example.host".to_owned()
    }

    fn serial(&self) -> String {
        self.serials.set(self.serials.get() + 1);
        format!("{:012x}", self.serials.get())
    }

    fn initiator_name(&self, path: &str) -> Result<String, String> {
        match path {
            "/etc/iscsi/initiatorname.iscsi" => Ok("iqn.2026-11.org.example:h4".to_owned()),
            _ => Err("there is no such file".to_owned()),
        }
    }
}
