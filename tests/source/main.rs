//! Tests of the source itself: rules that matter and that nobody should have to watch over.
#![forbid(unsafe_code)]
#![cfg(test)]

mod arrows;
mod documents;
mod licences;
mod sources;
mod tidy;
mod vulnerabilities;
