//! Import: trees out of the configuration files of other SCSI targets.
//!
//! | format | program | file |
//! |---|---|---|
//! | [`Format::Lio`] | LIO of the Linux kernel, by targetcli or rtslib | `/etc/target/saveconfig.json` |
//! | [`Format::Tgt`] | tgtd, by tgt-admin | `/etc/tgt/targets.conf` |
//! | [`Format::Ctld`] | ctld of FreeBSD | `/etc/ctl.conf`, or its form in UCL |
//! | [`Format::Iet`] | ietd, the iSCSI Enterprise Target | `/etc/iet/ietd.conf`, `initiators.allow` |
//! | [`Format::Scst`] | SCST, by scstadmin | `/etc/scst.conf` |
//! | [`Format::Chiscsi`] | chiscsi of Chelsio | `/etc/chelsio-iscsi/chiscsi.conf` |
//!
//! An importer is a pure function from text to [`Imported`]: it opens no file and no device. Three
//! rules hold for all of them:
//!
//! - Nothing is dropped silently. A line or attribute that has no counterpart is in
//!   [`Imported::left_out`], unless this program does by itself exactly what it asks for.
//! - Access is never wider than before. A restriction that a tree cannot express (by IP address,
//!   for example) closes the target, and is left out by name.
//! - Secrets stand in [`Imported::secrets`], and nowhere else: the tree refers to them as
//!   `state:NAME`, and no message repeats one.
//!
//! A text is at most 4 MiB long and its blocks at most 32 deep, so an import is bounded in time,
//! memory and stack.

mod block;
mod chiscsi;
mod ctld;
mod draft;
mod iet;
mod json;
mod lio;
mod login;
mod row;
mod scst;
mod tgt;
mod words;

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::Serialize;
use zeroize::Zeroizing;

use crate::tree::Tree;
pub use lio::{Exported, export_lio};

/// A configuration file of another target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `saveconfig.json` of targetcli and rtslib.
    Lio,
    /// `targets.conf` of tgt-admin.
    Tgt,
    /// `ctl.conf` of ctld.
    Ctld,
    /// `ietd.conf` of the iSCSI Enterprise Target.
    Iet,
    /// `scst.conf` of scstadmin.
    Scst,
    /// `chiscsi.conf` of Chelsio's target.
    Chiscsi,
}

/// What became of a file.
#[derive(Clone, Default, PartialEq)]
pub struct Imported {
    /// What it describes, as a tree of its own.
    pub tree: Tree,
    /// The secrets that the tree names as `state:NAME`, by NAME.
    pub secrets: BTreeMap<String, Zeroizing<String>>,
    /// What has no counterpart, in the order of the file.
    pub left_out: Vec<LeftOut>,
    /// What to know about the tree as a whole, each once.
    pub notes: Vec<String>,
}

/// A part of a configuration that is not carried over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LeftOut {
    /// The line, from 1; 0 where the source is a tree.
    pub line: usize,
    /// The line's own words, or the path of an attribute and its value. Secrets are `***`.
    pub text: String,
    /// Why it is left out, and what takes its place if something does.
    pub why: String,
    /// The value is the other program's own default, so probably not a choice.
    pub is_default: bool,
}

/// Why a text is not such a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("line {line}: {what}: {way_out}")]
pub struct ImportProblem {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong.
    pub what: String,
    /// What to do about it.
    pub way_out: String,
}

/// The tree that a file of another target describes.
///
/// # Errors
///
/// The text is not in this format; the first line at which that shows.
pub fn import(format: Format, text: &str) -> Result<Imported, ImportProblem> {
    check_length(text)?;
    match format {
        Format::Lio => lio::import(text),
        Format::Tgt => tgt::import(text),
        Format::Ctld => ctld::import(text),
        Format::Iet => iet::import(text, None),
        Format::Scst => scst::import(text),
        Format::Chiscsi => chiscsi::import(text),
    }
    .map(in_order)
}

/// The tree that `ietd.conf` describes together with `initiators.allow`, which says who may log in.
///
/// # Errors
///
/// One of the texts is not in its format; the first line at which that shows.
pub fn import_iet(text: &str, initiators_allow: &str) -> Result<Imported, ImportProblem> {
    check_length(text)?;
    check_length(initiators_allow)?;
    iet::import(text, Some(initiators_allow)).map(in_order)
}

fn check_length(text: &str) -> Result<(), ImportProblem> {
    if text.len() <= TEXT_MAX {
        return Ok(());
    }
    Err(ImportProblem {
        line: 1,
        what: format!("the file has {} bytes", text.len()),
        way_out: "an import reads up to 4 MiB".to_owned(),
    })
}

/// Importers meet lines in the order of their meaning; a reader wants that of the file.
fn in_order(mut imported: Imported) -> Imported {
    imported.left_out.sort_by_key(|left| left.line);
    // A setting of a target that each of its LUNs would have had is one line.
    imported.left_out.dedup();
    imported
}

impl Format {
    /// Every format.
    pub const ALL: [Self; 6] = [
        Self::Lio,
        Self::Tgt,
        Self::Ctld,
        Self::Iet,
        Self::Scst,
        Self::Chiscsi,
    ];

    /// Its name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Lio => "lio",
            Self::Tgt => "tgt",
            Self::Ctld => "ctld",
            Self::Iet => "iet",
            Self::Scst => "scst",
            Self::Chiscsi => "chiscsi",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// An unknown format name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a format")]
pub struct UnknownFormat(pub String);

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(text: &str) -> Result<Self, UnknownFormat> {
        let known = Self::ALL.into_iter().find(|format| format.name() == text);
        known.ok_or_else(|| UnknownFormat(text.to_owned()))
    }
}

/// Without the secrets.
impl fmt::Debug for Imported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Imported")
            .field("tree", &self.tree)
            .field("secrets", &self.secrets.keys())
            .field("left_out", &self.left_out)
            .field("notes", &self.notes)
            .finish()
    }
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line > 0 {
            write!(f, "line {}: ", self.line)?;
        }
        write!(f, "{}: {}", self.text, self.why)
    }
}

impl ImportProblem {
    fn new(line: usize, what: impl Into<String>, way_out: impl Into<String>) -> Self {
        Self {
            line,
            what: what.into(),
            way_out: way_out.into(),
        }
    }
}

/// The longest text: a `saveconfig.json` with 4,000 LUNs, about 1 KiB each.
const TEXT_MAX: usize = 4 << 20;

/// How deep blocks may stand in blocks. The deepest of the formats, `saveconfig.json`, needs 9.
const DEPTH_MAX: usize = 32;

/// A note of all formats but LIO's, whose designators follow from the serial number.
const NEW_DISKS: &str = "hosts see new disks: each has an identity of its own here, and only \
                         serial numbers, vendors and products that the file names are kept";

const BY_ADDRESS: &str = "initiators are known by name here, not by IP address: the target is \
                          closed until allow, or the group of its user, says which";

const NO_USER: &str =
    "a user is a name and a secret: the target is closed until allow says who may log in";

const LUN_NUMBER: &str = "a LUN is a number from 0 to 16383";

#[cfg(test)]
mod tests;
