//! The archive for distributions without packages of their own: to be unpacked into /usr/local.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use ::tests::{tool, top};
use anyhow::Result;

use super::{Platform, print};

/// Makes `lunar-VERSION-ARCH.tar.gz` out of what lies in `folder/files`; where it lies.
pub(super) fn make(
    printer: &Path,
    binary: &Path,
    platform: &Platform,
    folder: &Path,
) -> Result<PathBuf> {
    let arch = platform.triple.split('-').next().unwrap_or_default();
    let name = format!("lunar-{}-{arch}", env!("CARGO_PKG_VERSION"));
    let tree = folder.join(&name);
    let _ = fs::remove_dir_all(&tree);
    let files = folder.join("files");
    for (file, place) in PLACES {
        let [from, to] = [files.join(file), tree.join(place)];
        copy(&from, &to)?;
    }
    for page in fs::read_dir(files.join("man1"))? {
        let page = page?;
        copy(
            &page.path(),
            &tree.join("share/man/man1").join(page.file_name()),
        )?;
    }
    for file in ["lunar.toml", "lunar.conf"] {
        let place = tree.join("share/lunar").join(file);
        copy(&top().join("package").join(file), &place)?;
    }
    for file in ["README.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE"] {
        copy(&top().join(file), &tree.join("share/doc/lunar").join(file))?;
    }
    let unit = print(printer, &["unit", "--binary", "/usr/local/bin/lunar"])?;
    fs::write(tree.join("share/lunar/lunar.service"), unit)?;
    let stripped = tree.join("bin/lunar");
    copy(binary, &stripped)?;
    let strip = format!("{}strip", platform.tools);
    tool::must(Command::new(strip).arg(&stripped))?;
    let archive = folder.join(format!("{name}.tar.gz"));
    pack(folder, &name, &archive)?;
    fs::remove_dir_all(&tree)?;
    Ok(archive)
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    let folder = to.parent().unwrap_or(to);
    fs::create_dir_all(folder)?;
    fs::copy(from, to).map(|_| ()).map_err(|cause| {
        anyhow::anyhow!(
            "cannot copy {} to {}: {cause}",
            from.display(),
            to.display()
        )
    })
}

/// The same tree gives the same bytes.
fn pack(folder: &Path, name: &str, archive: &Path) -> Result<()> {
    let mut command = Command::new("tar");
    command.args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner"]);
    command.arg(format!("--mtime=@{}", epoch()));
    command.args(["--use-compress-program=gzip -n", "-cf"]);
    tool::must(command.arg(archive).arg("-C").arg(folder).arg(name))?;
    Ok(())
}

/// The time that the files of a package have: that of the commit, in seconds since 1970.
pub(super) fn epoch() -> String {
    let mut command = Command::new("git");
    command
        .args(["log", "-1", "--format=%ct"])
        .current_dir(top());
    let time = tool::must(&mut command).unwrap_or_default();
    let time = time.trim();
    if time.is_empty() { "0" } else { time }.to_owned()
}

/// What lies where, below the archive's own folder.
const PLACES: &[(&str, &str)] = &[
    ("lunar", "share/bash-completion/completions/lunar"),
    ("_lunar", "share/zsh/site-functions/_lunar"),
    ("lunar.fish", "share/fish/vendor_completions.d/lunar.fish"),
];
