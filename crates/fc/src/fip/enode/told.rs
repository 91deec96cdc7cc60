//! What is told of a fabric, so that a condition that lasts, or comes again and again, does not
//! fill the log.

use std::collections::VecDeque;
use std::time::Duration;

use scsi::medium::Now;

use super::super::budget::{FillRate, TokenBucket};
use super::FabricNotice;

/// Notices on their way to the log.
#[derive(Debug, Default)]
pub(super) struct Notices {
    queue: VecDeque<FabricNotice>,
    /// Problems that were told and hold still, with the login during which they were met last.
    problems: VecDeque<(FabricNotice, u32)>,
    login: u32,
    bucket: TokenBucket,
}

impl Notices {
    /// The next one.
    pub(super) fn take(&mut self) -> Option<FabricNotice> {
        self.queue.pop_front()
    }

    /// The problem that was told last and holds still.
    pub(super) fn problem(&self) -> Option<&FabricNotice> {
        self.problems.back().map(|(problem, _)| problem)
    }

    /// Those that wait, and problems that are remembered.
    pub(super) fn records(&self) -> usize {
        self.queue.len() + self.problems.len()
    }

    /// Tells something, unless too much was told lately.
    pub(super) fn tell(&mut self, now: Now, notice: FabricNotice) {
        if self.queue.len() < MAX_NOTICES && self.bucket.take(now, &RATE) {
            self.queue.push_back(notice);
        }
    }

    /// Tells a problem, unless it was told before and has not gone since.
    pub(super) fn tell_problem(&mut self, now: Now, problem: FabricNotice) {
        let known = self.problems.iter_mut().find(|(told, _)| *told == problem);
        if let Some((_, login)) = known {
            *login = self.login;
            return;
        }
        if self.problems.len() >= MAX_PROBLEMS {
            self.problems.pop_front();
        }
        self.problems.push_back((problem.clone(), self.login));
        self.tell(now, problem);
    }

    /// A login is of use: of the problems there are those left that it has met itself.
    pub(super) fn served(&mut self) {
        let login = self.login;
        self.problems.retain(|(_, met)| *met == login);
        self.login = self.login.wrapping_add(1);
    }

    /// All begins anew.
    pub(super) fn forget(&mut self) {
        self.problems.clear();
    }
}

/// Notices are left out beyond this many that were not taken.
const MAX_NOTICES: usize = 64;

/// How many problems are remembered.
const MAX_PROBLEMS: usize = 64;

/// 32 lines at once, and one each 10 s.
const RATE: FillRate = FillRate {
    cost: Duration::from_secs(10),
    burst: 32,
};
