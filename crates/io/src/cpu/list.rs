//! CPU lists, as taskset(1) takes them.

use std::fmt;
use std::str::FromStr;

use rustix::thread::CpuSet;

/// A list of processors as taskset and cpusets take it: numbers and ranges, `0,2-5`; a range takes
/// a stride, `0-14:2`. The order is kept, and none is in it twice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CpuList(Vec<usize>);

/// Why a text is not a list of processors.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CpuListError {
    /// A part that is neither a number nor a range.
    #[error("{0:?} is no list of CPUs: give numbers and ranges, as in 0,2-5")]
    Malformed(String),
    /// A range ends before it begins.
    #[error("the range {0} of CPUs is empty: give the lower number first")]
    Backwards(String),
    /// A number that the kernel's masks do not have here.
    #[error("CPU {0} is too high: at most {most}", most = CpuSet::MAX_CPU - 1)]
    TooHigh(usize),
    /// A processor twice.
    #[error("CPU {0} is listed twice: list each once")]
    Twice(usize),
}

impl CpuList {
    /// The numbers, in the order of the list.
    #[must_use]
    pub fn numbers(&self) -> &[usize] {
        &self.0
    }

    fn extend(&mut self, part: &str) -> Result<(), CpuListError> {
        let malformed = || CpuListError::Malformed(part.to_owned());
        let number = |text: &str| text.parse::<usize>().map_err(|_| malformed());
        let (range, stride) = match part.split_once(':') {
            Some((range, stride)) if range.contains('-') => (range, number(stride)?),
            Some(_) => return Err(malformed()),
            None => (part, 1),
        };
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last) = (number(first)?, number(last)?);
        if stride == 0 {
            return Err(malformed());
        }
        if last < first {
            return Err(CpuListError::Backwards(part.to_owned()));
        }
        if last >= CpuSet::MAX_CPU {
            return Err(CpuListError::TooHigh(last));
        }
        for cpu in (first..=last).step_by(stride) {
            if self.0.contains(&cpu) {
                return Err(CpuListError::Twice(cpu));
            }
            self.0.push(cpu);
        }
        Ok(())
    }
}

impl FromStr for CpuList {
    type Err = CpuListError;

    fn from_str(text: &str) -> Result<Self, CpuListError> {
        let mut list = Self(Vec::new());
        let mut parts = text.split(',');
        parts.try_for_each(|part| list.extend(part))?;
        Ok(list)
    }
}

impl From<Vec<usize>> for CpuList {
    fn from(cpus: Vec<usize>) -> Self {
        Self(cpus)
    }
}

/// Neighbors that follow each other stand as a range.
impl fmt::Display for CpuList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut comma = "";
        for run in self.0.chunk_by(|one, next| one + 1 == *next) {
            match run {
                [first, .., last] => write!(f, "{comma}{first}-{last}")?,
                _ => write!(f, "{comma}{}", run[0])?,
            }
            comma = ",";
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
