//! sysfs, or a folder that is laid out like it, with attributes laid over it that are not the
//! kernel's: ports of this program are shown in the same form.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A directory of sysfs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SysfsDir {
    path: PathBuf,
    /// Attributes by their paths.
    laid_over: Arc<BTreeMap<PathBuf, String>>,
}

/// Where Linux mounts it.
pub const ROOT: &str = "/sys";

impl SysfsDir {
    /// The root, as a rule [`ROOT`].
    #[must_use]
    pub fn root(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            laid_over: Arc::default(),
        }
    }

    /// The same with these attributes laid over it, each of a path below this directory and a text.
    #[must_use]
    pub fn with(&self, attributes: impl IntoIterator<Item = (String, String)>) -> Self {
        let attributes = attributes.into_iter();
        let attributes = attributes.map(|(name, text)| (self.path.join(name), text));
        let mut laid_over = BTreeMap::clone(&self.laid_over);
        laid_over.extend(attributes);
        Self {
            path: self.path.clone(),
            laid_over: Arc::new(laid_over),
        }
    }

    /// A directory below this one, which may not exist. `name` may have several components.
    #[must_use]
    pub fn child(&self, name: impl AsRef<Path>) -> Self {
        self.at(self.path.join(name))
    }

    fn at(&self, path: PathBuf) -> Self {
        Self {
            path,
            laid_over: Arc::clone(&self.laid_over),
        }
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The last component of its path.
    #[must_use]
    pub fn name(&self) -> String {
        let name = self.path.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }

    /// Whether it exists, or what a link points at.
    #[must_use]
    pub fn exists(&self) -> bool {
        self.path.exists() || self.below().next().is_some()
    }

    /// The directory that a link stands for.
    #[must_use]
    pub fn resolved(&self) -> Option<Self> {
        fs::canonicalize(&self.path).ok().map(|path| self.at(path))
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
        let path = self.path.join(attribute);
        if let Some(text) = self.laid_over.get(&path) {
            return Some(text.clone().into_bytes());
        }
        let file = File::open(path).ok()?;
        let mut bytes = Vec::new();
        file.take(ATTRIBUTE_MAX).read_to_end(&mut bytes).ok()?;
        Some(bytes)
    }

    /// Writes to an attribute.
    ///
    /// # Errors
    /// The attribute is missing, or the kernel refuses what is written.
    pub fn write(&self, attribute: &str, text: &str) -> io::Result<()> {
        let path = self.path.join(attribute);
        let mut file = OpenOptions::new().write(true).open(path)?;
        file.write_all(text.as_bytes())
    }

    /// Its directories, and links to directories, whose names begin with `prefix`; `eth9` before
    /// `eth10`.
    #[must_use]
    pub fn children(&self, prefix: &str) -> Vec<Self> {
        let entries = fs::read_dir(&self.path).into_iter().flatten().flatten();
        let on_disk = entries
            .map(|entry| entry.path())
            .filter(|path| path.is_dir());
        let laid_over = self.below().filter_map(|path| self.directory(path));
        let all: BTreeSet<_> = on_disk.chain(laid_over).collect();
        let has_prefix = |path: &PathBuf| {
            let name = path.file_name();
            name.is_some_and(|name| has_prefix(name, prefix))
        };
        let matching = all.into_iter().filter(has_prefix);
        let mut children: Vec<_> = matching.map(|path| self.at(path)).collect();
        children.sort_by_cached_key(|child| natural_key(&child.name()));
        children
    }

    /// The paths of attributes that are laid over it.
    fn below(&self) -> impl Iterator<Item = &Path> {
        let from = self.laid_over.range(self.path.clone()..);
        let paths = from.map(|(path, _)| path.as_path());
        paths.take_while(|path| path.starts_with(&self.path))
    }

    /// The directory of this one that an attribute deeper down is in.
    fn directory(&self, attribute: &Path) -> Option<PathBuf> {
        let mut rest = attribute.strip_prefix(&self.path).ok()?.components();
        let first = rest.next()?;
        rest.next()?;
        Some(self.path.join(first))
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
