//! Zone files: who sees whom, and what is said of mistakes.

mod mistakes;
mod sharing;
