//! `cargo xtask package`: a package for Debian, and an archive for other distributions.
//!
//! Pages of the manual, completions and the unit are printed by `lunar` itself, so there is one
//! source of each. cargo-deb makes the package of `[package.metadata.deb]` in crates/lunar.

mod archive;
mod needs;

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use ::tests::{tool, top};
use anyhow::{Context, Result, bail, ensure};

/// Make a .deb and a .tar.gz of lunar in target/package
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Also for aarch64, which needs gcc-aarch64-linux-gnu and the target of rustup
    #[arg(long)]
    aarch64: bool,
}

/// What a package is for.
struct Platform {
    /// As Rust names it.
    triple: &'static str,
    /// Programs of the C toolchain begin with it.
    tools: &'static str,
}

const X86_64: Platform = Platform {
    triple: "x86_64-unknown-linux-gnu",
    tools: "",
};

const AARCH64: Platform = Platform {
    triple: "aarch64-unknown-linux-gnu",
    tools: "aarch64-linux-gnu-",
};

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let deb = tool::run(Command::new("cargo-deb").arg("--version"), LIMIT);
    if !deb.is_ok_and(|ran| ran.good()) {
        bail!("cargo-deb is missing: cargo install --locked cargo-deb");
    }
    let host = host()?;
    // What the packages of all platforms have in common is printed by a binary that runs here.
    let printer = build(&host)?;
    let folder = top().join("target/package");
    fs::create_dir_all(&folder)?;
    documents(&printer, &folder.join("files"))?;
    let others = (arguments.aarch64 && host.triple != AARCH64.triple).then_some(AARCH64);
    for platform in [host].into_iter().chain(others) {
        let binary = build(&platform)?;
        needs::check(&binary, &format!("{}objdump", platform.tools))?;
        package(&platform, &folder)?;
        let archive = archive::make(&printer, &binary, &platform, &folder)?;
        println!("{}", archive.display());
    }
    Ok(())
}

/// The platform of this machine; its own tools have no prefix.
fn host() -> Result<Platform> {
    let known = [X86_64, AARCH64].into_iter();
    let mut of_this = known.filter(|platform| platform.triple.starts_with(std::env::consts::ARCH));
    let platform = of_this.next();
    let platform = platform.context("packages are made on x86-64 and aarch64 only")?;
    Ok(Platform {
        tools: "",
        ..platform
    })
}

/// Builds `lunar`; where it lies. That of this machine is the one of `./check`.
fn build(platform: &Platform) -> Result<PathBuf> {
    let is_other = !platform.tools.is_empty();
    let mut command = Command::new("cargo");
    // What cargo tells this program of itself would make build scripts run again.
    let is_told = |name: &OsString| {
        let name = name.as_encoded_bytes();
        name.starts_with(b"CARGO_PKG_") || name.starts_with(b"CARGO_MANIFEST_")
    };
    let names = std::env::vars_os().map(|(name, _)| name);
    for name in names.filter(is_told) {
        command.env_remove(name);
    }
    command.args(["build", "--release", "--locked", "-p", "lunar"]);
    if is_other {
        let upper = platform.triple.to_uppercase().replace('-', "_");
        let linker = format!("CARGO_TARGET_{upper}_LINKER");
        command.env(linker, format!("{}gcc", platform.tools));
        command.args(["--target", platform.triple]);
    }
    let status = command.current_dir(top()).status();
    let status = status.context("cannot start cargo")?;
    ensure!(
        status.success(),
        "lunar does not build for {0}: rustup target add {0}, and its C compiler",
        platform.triple
    );
    let triple = if is_other { platform.triple } else { "" };
    Ok(top().join("target").join(triple).join("release/lunar"))
}

/// What `lunar` says with these arguments.
fn print(printer: &Path, arguments: &[&str]) -> Result<String> {
    tool::must(Command::new(printer).args(arguments))
}

/// Pages of the manual, completions, the unit.
fn documents(printer: &Path, files: &Path) -> Result<()> {
    let _ = fs::remove_dir_all(files);
    fs::create_dir_all(files.join("man1"))?;
    for name in pages()? {
        let verb = (name != "lunar").then_some(name.as_str());
        let arguments: Vec<_> = ["manual"].into_iter().chain(verb).collect();
        let title = verb.map_or("lunar".to_owned(), |verb| format!("lunar-{verb}"));
        let page = files.join(format!("man1/{title}.1"));
        fs::write(page, print(printer, &arguments)?)?;
    }
    for (shell, file) in [("bash", "lunar"), ("zsh", "_lunar"), ("fish", "lunar.fish")] {
        fs::write(files.join(file), print(printer, &["completion", shell])?)?;
    }
    fs::write(files.join("lunar.service"), print(printer, &["unit"])?)?;
    Ok(())
}

/// The names of the pages: each has a file.
fn pages() -> Result<Vec<String>> {
    let mut names = Vec::new();
    for file in fs::read_dir(top().join("docs/manual"))? {
        let name = file?.file_name().to_string_lossy().into_owned();
        names.extend(name.strip_suffix(".md").map(str::to_owned));
    }
    names.sort();
    Ok(names)
}

fn package(platform: &Platform, folder: &Path) -> Result<()> {
    let mut command = Command::new("cargo");
    command.args(["deb", "-p", "lunar", "--no-build", "--strip"]);
    // As users of cargo-deb may have it without its own.
    command.arg("--compress-system");
    command.arg("--output").arg(folder).current_dir(top());
    // The same source gives the same package.
    command.env("SOURCE_DATE_EPOCH", archive::epoch());
    // It finds the tools of another platform by their names.
    if !platform.tools.is_empty() {
        command.args(["--target", platform.triple]);
    }
    let status = command.status().context("cannot start cargo-deb")?;
    ensure!(status.success(), "cargo-deb has failed");
    Ok(())
}

const LIMIT: std::time::Duration = std::time::Duration::from_secs(10);
