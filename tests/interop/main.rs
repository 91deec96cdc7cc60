//! Stories.
#![forbid(unsafe_code)]
