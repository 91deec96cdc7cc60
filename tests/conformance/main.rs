//! All tests of libiscsi's `iscsi-test-cu`, suite by suite, over two paths, against a normal, a
//! read-only and a removable LUN, on each ring; and five of them, which none of these can pass,
//! against null volumes. `tests/src/conformance.rs` says how.
//!
//! `--ring RING` (may be repeated) picks the rings; `--at ADDRESS` tries another target, whatever
//! it is, as a normal LUN.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use anyhow::{Result, bail};
use tests::conformance::{Conformance, Report};
use tests::tool;

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(cause) => {
            eprintln!("conformance: {cause:#}");
            ExitCode::FAILURE
        }
    }
}

/// Whether all is well.
fn run() -> Result<bool> {
    tool::present(&["iscsi-test-cu"])?;
    let conformance = Conformance::new(None)?;
    match arguments()? {
        Arguments::At(address) => Ok(told(&format!("at {address}"), &conformance.at(&address)?)),
        Arguments::Rings(rings) => {
            let mut good = true;
            for ring in rings {
                good &= told(&format!("on ring {ring}"), &conformance.on_ring(&ring)?);
            }
            Ok(good)
        }
    }
}

/// Prints a report; returns whether it is good.
fn told(place: &str, report: &Report) -> bool {
    println!("iscsi-test-cu {place}\n{report}");
    report.good()
}

enum Arguments {
    At(String),
    Rings(Vec<String>),
}

fn arguments() -> Result<Arguments> {
    let args: Vec<_> = std::env::args().skip(1).collect();
    let mut rings = Vec::new();
    for pair in args.chunks(2) {
        match pair {
            [arg, value] if arg == "--at" => return Ok(Arguments::At(value.clone())),
            [arg, value] if arg == "--ring" => rings.push(value.clone()),
            _ => bail!("{pair:?} is not known: --ring RING, --at ADDRESS"),
        }
    }
    if rings.is_empty() {
        rings = vec!["uring".to_owned(), "epoll".to_owned()];
    }
    Ok(Arguments::Rings(rings))
}
