//! What `iscsi-test-cu` prints, read test by test.
//!
//! CUnit counts a skipped test as passed, and prints its verdict on the line of the test or on one
//! of its own, depending on whether the test said something before it.

/// What became of one test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// It ran and found nothing wrong.
    Passed,
    /// It did not run, or not to its end, for want of something at the target.
    Skipped,
    /// It found something wrong, or did not come to an end.
    Failed,
}

/// One test of a suite.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Test {
    /// Its name, without that of the suite.
    pub name: String,
    /// What became of it.
    pub verdict: Verdict,
    /// What it said.
    pub said: Vec<String>,
}

/// Said where the tool itself refuses to write without `-d`; it then counts that as a failure.
const NOT_ALLOWED: &str = "--dataloss flag is not set";

/// The tests in the output of one suite. A test without a verdict (the tool was killed, or died)
/// has failed.
#[must_use]
pub fn parse(output: &str) -> Vec<Test> {
    let mut tests: Vec<(String, Vec<&str>)> = Vec::new();
    for line in output.lines() {
        if line.starts_with("Run Summary:") {
            break;
        }
        if let Some((name, rest)) = test_line(line) {
            tests.push((name.to_owned(), vec![rest]));
        } else if let Some((_, said)) = tests.last_mut() {
            said.push(line);
        }
    }
    tests
        .into_iter()
        .map(|(name, said)| judge(name, &said))
        .collect()
}

/// `  Test: Simple ...passed` gives `Simple` and `passed`.
fn test_line(line: &str) -> Option<(&str, &str)> {
    line.strip_prefix("  Test: ")?.split_once(" ...")
}

fn judge(name: String, said: &[&str]) -> Test {
    let has = |text: &str| said.iter().any(|line| line.contains(text));
    let verdict = said.iter().find_map(|line| verdict(line));
    let skipped = has("[SKIPPED]") || has(NOT_ALLOWED);
    let verdict = match verdict {
        Some(Verdict::Passed) if skipped => Verdict::Skipped,
        Some(Verdict::Failed) if has(NOT_ALLOWED) => Verdict::Skipped,
        Some(verdict) => verdict,
        None => Verdict::Failed,
    };
    let said = said
        .iter()
        .map(|line| line.trim())
        .filter(|line| !line.is_empty());
    Test {
        name,
        verdict,
        said: said.map(str::to_owned).collect(),
    }
}

/// The verdict may be followed, on its line, by what the suite's clean-up has to say.
fn verdict(line: &str) -> Option<Verdict> {
    if line.starts_with("passed") {
        return Some(Verdict::Passed);
    }
    line.starts_with("FAILED").then_some(Verdict::Failed)
}

#[cfg(test)]
mod tests;
