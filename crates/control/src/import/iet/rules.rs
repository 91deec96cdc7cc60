//! `initiators.allow` of ietd: a target or `ALL`, then addresses and names with commas between.

use std::collections::HashMap;

use crate::import::ImportProblem;
use crate::import::draft::{Draft, Initiator};
use crate::import::words::{Comments, Line, key_and_rest, lines};

/// The lines of the file, by target.
pub(super) struct Rules {
    of: HashMap<String, Vec<Line>>,
    all: Vec<Line>,
}

impl Rules {
    pub(super) fn parse(text: &str) -> Result<Self, ImportProblem> {
        let mut rules = Self {
            of: HashMap::new(),
            all: Vec::new(),
        };
        for line in lines(text, Comments::WholeLines) {
            let (target, list) = key_and_rest(&line.text);
            let list = Line {
                number: line.number,
                text: list.to_owned(),
            };
            if target.eq_ignore_ascii_case("all") {
                rules.all.push(list);
                continue;
            }
            let name = address::normalise_iscsi_name(target).map_err(|error| {
                let what = format!("a line of initiators.allow begins with a target: {error}");
                ImportProblem::new(line.number, what, "write the target's IQN, or ALL")
            })?;
            rules.of.entry(name).or_default().push(list);
        }
        Ok(rules)
    }

    /// Who may log in to a target; `None` is every initiator. The first line that is about the
    /// target decides, as that cannot admit more initiators than ietd does.
    pub(super) fn of(&mut self, draft: &mut Draft, target: &str) -> Option<Vec<Initiator>> {
        let own = self.of.remove(target).unwrap_or_default();
        let first_of_all = self.all.first().cloned();
        let mut lines: Vec<Line> = own.into_iter().chain(first_of_all).collect();
        lines.sort_by_key(|line| line.number);
        let (mut names, mut everybody) = (Vec::new(), false);
        for (at, line) in lines.iter().enumerate() {
            if at > 0 {
                let text = format!("initiators.allow: {target} {}", line.text);
                let why = "an earlier line says who may log in";
                draft.leave(line.number, text, why);
                continue;
            }
            everybody |= Self::read(draft, target, line, &mut names);
        }
        (!everybody).then_some(names)
    }

    /// Reads addresses and names; the answer is whether every initiator is meant.
    fn read(draft: &mut Draft, target: &str, line: &Line, names: &mut Vec<Initiator>) -> bool {
        let entries = line
            .text
            .split(',')
            .map(str::trim)
            .filter(|one| !one.is_empty());
        let mut everybody = false;
        for entry in entries {
            if entry.eq_ignore_ascii_case("all") {
                everybody = true;
            } else if let Ok(name) = address::normalise_iscsi_name(entry) {
                let line = line.number;
                names.push(Initiator { line, name });
            } else {
                let text = format!("initiators.allow: {target} {entry}");
                let why = "initiators are known by name here, not by IP address or pattern: this \
                           one is not admitted";
                draft.leave(line.number, text, why);
            }
        }
        everybody
    }

    /// Names the lines of targets that there are not.
    pub(super) fn leave_rest(self, draft: &mut Draft) {
        for line in self.all.iter().skip(1) {
            let text = format!("initiators.allow: ALL {}", line.text);
            draft.leave(line.number, text, "an earlier line says who may log in");
        }
        for (target, lines) in self.of {
            for line in lines {
                let text = format!("initiators.allow: {target} {}", line.text);
                draft.leave(line.number, text, "ietd.conf has no such target");
            }
        }
    }
}
