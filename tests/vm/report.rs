//! What came of the cells, in the words of `cargo test`, which `./check` counts.

use std::error::Error;
use std::fmt;
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Why a variation cannot run here: not a failure, but an error on the way to the report.
#[derive(Debug)]
pub(crate) struct NotRun(pub(crate) String);

impl fmt::Display for NotRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for NotRun {}

/// What came of them so far.
#[derive(Default)]
pub(crate) struct Report(Mutex<Counts>);

#[derive(Default)]
struct Counts {
    passed: usize,
    /// Names and reasons.
    failed: Vec<(String, String)>,
    not_run: Vec<(String, String)>,
}

impl Report {
    fn change(&self, change: impl FnOnce(&mut Counts)) {
        // A lane that died in here left the counts whole.
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }

    pub(crate) fn passed(&self, name: &str, took: Duration) {
        println!("test {name} ... ok ({:.1} s)", took.as_secs_f32());
        self.change(|counts| counts.passed += 1);
    }

    pub(crate) fn failed(&self, name: &str, reason: &str, took: Duration) {
        println!(
            "test {name} ... FAILED ({:.1} s): {reason}",
            took.as_secs_f32()
        );
        self.change(|counts| counts.failed.push((name.to_owned(), reason.to_owned())));
    }

    /// A cell or variation that cannot run here: it has neither passed nor failed.
    pub(crate) fn not_run(&self, name: &str, reason: &str) {
        println!("test {name} ... not run");
        self.change(|counts| counts.not_run.push((name.to_owned(), reason.to_owned())));
    }

    /// Prints the sums, and the reasons of what has not passed.
    pub(crate) fn end(self) -> ExitCode {
        let counts = self.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        if !counts.failed.is_empty() {
            println!("\nfailures:");
            for (name, reason) in &counts.failed {
                println!("  {name}: {reason}");
            }
        }
        for (name, reason) in &counts.not_run {
            println!("not run: {name}: {reason}");
        }
        let verdict = if counts.failed.is_empty() {
            "ok"
        } else {
            "FAILED"
        };
        let (passed, failed) = (counts.passed, counts.failed.len());
        let not_run = counts.not_run.len();
        println!("\ntest result: {verdict}. {passed} passed; {failed} failed; {not_run} not run");
        if counts.failed.is_empty() {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        }
    }
}
