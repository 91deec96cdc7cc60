//! The ways to the volume of a race, and what `lunar serve` is told for them.

use std::path::Path;

use super::network;

/// A transport of `--over`, and the options that its address is given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RacedTransport {
    kind: TransportKind,
    /// Behind the `?`; empty if there are none.
    options: String,
}

/// What carries SCSI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TransportKind {
    Iscsi,
    Iser,
    Fcoe,
}

/// The words of `--over`.
const WORDS: [(&str, TransportKind); 3] = [
    ("iscsi", TransportKind::Iscsi),
    ("iser", TransportKind::Iser),
    ("fcoe", TransportKind::Fcoe),
];

impl RacedTransport {
    /// Parses `iscsi`, or `iscsi?digests=crc32c`. The address is what judges the options.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let (word, options) = text.split_once('?').unwrap_or((text, ""));
        let found = WORDS.iter().find(|(known, _)| *known == word);
        let (_, kind) = found.ok_or("give iscsi, iser or fcoe, as in iscsi,iser?crc=off")?;
        Ok(Self {
            kind: *kind,
            options: options.to_owned(),
        })
    }

    /// The address of the volume by this way, if this is one that was told.
    pub(super) fn address(&self, told: &str) -> Option<String> {
        let scheme = match self.kind {
            TransportKind::Iscsi => "iscsi://",
            TransportKind::Iser => "iser://",
            TransportKind::Fcoe => "fcoe://",
        };
        told.starts_with(scheme).then(|| match &*self.options {
            "" => told.to_owned(),
            options => format!("{told}?{options}"),
        })
    }

    /// Whether CRCs are waived, which takes both ends.
    fn waives_crc(&self) -> bool {
        self.kind == TransportKind::Iser && self.options.split('&').any(|one| one == "crc=off")
    }
}

/// What `lunar serve` is told for these ways.
pub(super) fn serve_options(over: &[RacedTransport], private: bool, folder: &Path) -> Vec<String> {
    let has = |kind| over.iter().any(|way| way.kind == kind);
    let mut options = Vec::new();
    let mut option = |name: &str, value: String| options.extend([name.to_owned(), value]);
    if has(TransportKind::Iscsi) || has(TransportKind::Iser) {
        let portal = if private {
            format!("{}:3260", network::TARGET)
        } else {
            "127.0.0.1:0".to_owned()
        };
        option("--listen", portal);
    }
    if has(TransportKind::Fcoe) {
        let place = if private {
            network::INTERFACE.to_owned()
        } else {
            format!("cable:{}", folder.join("cable").display())
        };
        option("--fcoe", place);
    }
    if over.iter().any(RacedTransport::waives_crc) {
        option("--iser-crc", "off".to_owned());
    }
    if has(TransportKind::Iser) {
        options.push("--iser".to_owned());
    }
    options
}

#[cfg(test)]
mod tests;
