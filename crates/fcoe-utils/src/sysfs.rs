//! sysfs, or a folder that is laid out like it.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// A directory of sysfs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SysfsDir(PathBuf);

/// Where Linux mounts it.
pub const ROOT: &str = "/sys";

impl SysfsDir {
    /// The root, as a rule [`ROOT`].
    #[must_use]
    pub fn root(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// A directory below this one, which may not exist. `name` may have several components.
    #[must_use]
    pub fn child(&self, name: impl AsRef<Path>) -> Self {
        Self(self.0.join(name))
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The last component of its path.
    #[must_use]
    pub fn name(&self) -> String {
        let name = self.0.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }

    /// Whether it exists, or what a link points at.
    #[must_use]
    pub fn exists(&self) -> bool {
        self.0.exists()
    }

    /// The directory that a link stands for.
    #[must_use]
    pub fn resolved(&self) -> Option<Self> {
        fs::canonicalize(&self.0).ok().map(Self)
    }

    /// The first line of an attribute, without white space at its end. `None` where the attribute
    /// is missing or unreadable. A unit's INQUIRY data is among what sysfs shows, so control
    /// characters become `?`.
    #[must_use]
    pub fn text(&self, attribute: &str) -> Option<String> {
        let bytes = self.bytes(attribute)?;
        let text = String::from_utf8_lossy(&bytes);
        let line = text.lines().next().unwrap_or_default().trim_end();
        Some(line.replace(|c: char| c.is_control(), "?"))
    }

    /// An attribute that is one number, decimal or hexadecimal with `0x`.
    #[must_use]
    pub fn number(&self, attribute: &str) -> Option<u64> {
        let text = self.text(attribute)?;
        match text.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).ok(),
            None => text.parse().ok(),
        }
    }

    /// The first 4,096 bytes of an attribute; no attribute of text has more.
    pub(crate) fn bytes(&self, attribute: &str) -> Option<Vec<u8>> {
        let file = File::open(self.0.join(attribute)).ok()?;
        let mut bytes = Vec::new();
        file.take(ATTRIBUTE_MAX).read_to_end(&mut bytes).ok()?;
        Some(bytes)
    }

    /// Writes to an attribute.
    ///
    /// # Errors
    /// The attribute is missing, or the kernel refuses what is written.
    pub fn write(&self, attribute: &str, text: &str) -> io::Result<()> {
        let path = self.0.join(attribute);
        let mut file = OpenOptions::new().write(true).open(path)?;
        file.write_all(text.as_bytes())
    }

    /// Its directories, and links to directories, whose names begin with `prefix`; `eth9` before
    /// `eth10`.
    #[must_use]
    pub fn children(&self, prefix: &str) -> Vec<Self> {
        let entries = fs::read_dir(&self.0).into_iter().flatten().flatten();
        let matching = entries.filter(|entry| has_prefix(&entry.file_name(), prefix));
        let mut children: Vec<_> = matching
            .map(|entry| Self(entry.path()))
            .filter(|child| child.0.is_dir())
            .collect();
        children.sort_by_cached_key(|child| natural_key(&child.name()));
        children
    }
}

/// Bytes of a page, the most that sysfs gives of an attribute of text (and that PCI has of
/// configuration space).
const ATTRIBUTE_MAX: u64 = 4096;

fn has_prefix(name: &OsStr, prefix: &str) -> bool {
    name.as_encoded_bytes().starts_with(prefix.as_bytes())
}

/// A name without its digits, then its numbers, then the name itself.
fn natural_key(name: &str) -> (String, Vec<u64>, String) {
    let is_digit = |c: char| c.is_ascii_digit();
    let words = name.replace(is_digit, "");
    let numbers = name.split(|c: char| !is_digit(c));
    let numbers = numbers.filter_map(|digits| digits.parse().ok());
    (words, numbers.collect(), name.to_owned())
}
