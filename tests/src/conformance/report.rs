//! What came of it, as a table and a list of what is wrong.

use std::collections::BTreeMap;
use std::fmt;

use super::suites::{Lun, Suite, Unable};
use crate::cunit::{Test, Verdict};

/// The tests of each suite on one LUN.
pub(super) type Outcomes = BTreeMap<String, Vec<Test>>;

/// How many lines of what a failed test said are shown.
const SAID: usize = 4;

/// What came of all runs together.
#[derive(Debug)]
pub struct Report {
    luns: Vec<Lun>,
    rows: Vec<Row>,
    total: Row,
    wrong: Vec<String>,
    unable: usize,
}

/// One suite: how many of its tests passed, failed and were skipped, on each LUN.
#[derive(Debug, Default)]
struct Row {
    name: String,
    tests: usize,
    counts: Vec<BTreeMap<Verdict, usize>>,
    /// How many passed on one LUN at least and failed on none.
    good: usize,
}

impl Report {
    /// Merges what came of each LUN. A test of `unable` must not pass there: it would be unable no
    /// longer.
    pub(super) fn new(suites: &[Suite], runs: &[(Lun, Outcomes)], unable: &[Unable]) -> Self {
        let mut report = Self {
            luns: runs.iter().map(|(lun, _)| *lun).collect(),
            rows: Vec::new(),
            total: Row::new("total", runs.len()),
            wrong: Vec::new(),
            unable: 0,
        };
        for suite in suites {
            let mut row = Row::new(&suite.name, runs.len());
            for (at, name) in suite.tests.iter().enumerate() {
                let name = format!("{}.{name}", suite.name);
                let tests = runs.iter().map(|(lun, all)| Outcome {
                    lun: *lun,
                    test: &all[&suite.name][at],
                    unable: unable.iter().any(|unable| unable.is(&name, *lun)),
                });
                let tests: Vec<_> = tests.collect();
                row.add(&tests);
                report.judge(&name, &tests);
            }
            report.total.merge(&row);
            report.rows.push(row);
        }
        let known = |unable: &&Unable| suites.iter().any(|suite| suite.has(&unable.name));
        let gone = unable.iter().filter(|unable| !known(unable));
        report
            .wrong
            .extend(gone.map(|unable| format!("{} of unable.txt is no test", unable.name)));
        report
    }

    /// Whether no test failed and each passed somewhere, but those that are unable to.
    #[must_use]
    pub fn good(&self) -> bool {
        self.wrong.is_empty()
    }

    /// What is wrong.
    #[must_use]
    pub fn wrong(&self) -> &[String] {
        &self.wrong
    }

    fn judge(&mut self, name: &str, outcomes: &[Outcome<'_>]) {
        for Outcome { lun, test, unable } in outcomes {
            match (test.verdict, unable) {
                (Verdict::Failed, false) => {
                    let said = gist(&test.said).join("\n        ");
                    let told = format!("{name} failed on {lun}:\n        {said}");
                    self.wrong.push(told);
                }
                (Verdict::Passed, true) => self
                    .wrong
                    .push(format!("{name} passes on {lun}: take it off unable.txt")),
                _ => {}
            }
        }
        if has(outcomes, Verdict::Passed) || has(outcomes, Verdict::Failed) {
            return;
        }
        if outcomes.iter().all(|outcome| outcome.unable) {
            self.unable += 1;
            return;
        }
        let said = outcomes.iter().map(|outcome| {
            let said = outcome.test.said.join("; ");
            format!("\n        {}: {said}", outcome.lun)
        });
        let said: String = said.collect();
        self.wrong.push(format!("{name} passed nowhere:{said}"));
    }
}

/// What became of a test on one LUN.
struct Outcome<'a> {
    lun: Lun,
    test: &'a Test,
    /// It cannot pass there.
    unable: bool,
}

impl Outcome<'_> {
    /// What fails because it is unable to pass has found nothing out.
    fn verdict(&self) -> Verdict {
        match self.test.verdict {
            Verdict::Failed if self.unable => Verdict::Skipped,
            verdict => verdict,
        }
    }
}

fn has(outcomes: &[Outcome<'_>], verdict: Verdict) -> bool {
    outcomes.iter().any(|outcome| outcome.verdict() == verdict)
}

/// The lines of a failed test that tell why.
fn gist(said: &[String]) -> Vec<&str> {
    let tells = |line: &&str| line.contains("[FAILED]") || line.contains(" - CU_");
    let lines = said.iter().map(String::as_str);
    let telling: Vec<_> = lines.clone().filter(tells).take(SAID).collect();
    if telling.is_empty() {
        return lines.take(SAID).collect();
    }
    telling
}

impl Suite {
    fn has(&self, name: &str) -> bool {
        name.strip_prefix(&self.name)
            .and_then(|rest| rest.strip_prefix('.'))
            .is_some_and(|test| self.tests.iter().any(|known| known == test))
    }
}

impl Row {
    fn new(name: &str, luns: usize) -> Self {
        Self {
            name: name.to_owned(),
            counts: vec![BTreeMap::new(); luns],
            ..Self::default()
        }
    }

    fn add(&mut self, outcomes: &[Outcome<'_>]) {
        self.tests += 1;
        for (counts, outcome) in self.counts.iter_mut().zip(outcomes) {
            *counts.entry(outcome.verdict()).or_default() += 1;
        }
        let is_good = has(outcomes, Verdict::Passed) && !has(outcomes, Verdict::Failed);
        self.good += usize::from(is_good);
    }

    fn merge(&mut self, other: &Self) {
        self.tests += other.tests;
        self.good += other.good;
        for (sum, counts) in self.counts.iter_mut().zip(&other.counts) {
            for (verdict, count) in counts {
                *sum.entry(*verdict).or_default() += count;
            }
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<22}{:>6}", "passed/failed/skipped", "tests")?;
        for lun in &self.luns {
            write!(f, "{lun:>13}")?;
        }
        writeln!(f, "{:>7}", "good")?;
        for row in self.rows.iter().chain([&self.total]) {
            writeln!(f, "{row}")?;
        }
        for wrong in &self.wrong {
            writeln!(f, "  * {wrong}")?;
        }
        let result = if self.good() { "ok" } else { "FAILED" };
        let bad = self.total.tests - self.total.good - self.unable;
        let Self { total, unable, .. } = self;
        write!(
            f,
            "test result: {result}. {} passed; {bad} failed; {unable} unable",
            total.good
        )
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<22}{:>6}", self.name, self.tests)?;
        for counts in &self.counts {
            let of = |verdict| counts.get(&verdict).copied().unwrap_or(0);
            let verdicts = [Verdict::Passed, Verdict::Failed, Verdict::Skipped];
            let [passed, failed, skipped] = verdicts.map(of);
            write!(f, "{:>13}", format!("{passed}/{failed}/{skipped}"))?;
        }
        write!(f, "{:>7}", self.good)
    }
}
