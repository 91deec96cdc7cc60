//! The C library that a binary needs, against what its package says.

#[cfg(test)]
mod tests;

use std::fs;
use std::path::Path;
use std::process::Command;

use ::tests::{tool, top};
use anyhow::{Context, Result, ensure};

/// Compares the newest symbol that a binary needs of the C library with `depends`.
pub(super) fn check(binary: &Path, objdump: &str) -> Result<()> {
    let symbols = tool::must(Command::new(objdump).arg("-T").arg(binary))?;
    let newest = newest(&symbols).context("the binary needs no C library")?;
    let manifest = fs::read_to_string(top().join("crates/lunar/Cargo.toml"))?;
    let told = told(&manifest).context("depends has no libc6 (>= VERSION)")?;
    ensure!(
        newest <= told,
        "{} needs C library {}.{}, and depends in crates/lunar/Cargo.toml says {}.{}",
        binary.display(),
        newest.0,
        newest.1,
        told.0,
        told.1
    );
    Ok(())
}

/// Of lines such as `0000000000000000      DF *UND*  0000000000000000 (GLIBC_2.34) stat64`.
fn newest(symbols: &str) -> Option<(u32, u32)> {
    let versions = symbols.split("GLIBC_").skip(1);
    versions.filter_map(version).max()
}

fn told(manifest: &str) -> Option<(u32, u32)> {
    let (_, version_on) = manifest.split_once("libc6 (>= ")?;
    version(version_on)
}

/// What a text begins with.
fn version(text: &str) -> Option<(u32, u32)> {
    let end = text.find(|c: char| c != '.' && !c.is_ascii_digit());
    let mut numbers = text[..end.unwrap_or(text.len())].split('.');
    let mut number = || numbers.next()?.parse().ok();
    Some((number()?, number()?))
}
