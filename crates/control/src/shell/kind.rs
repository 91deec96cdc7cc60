//! Kinds of backstores, which follow from the address of a volume.

use address::Address;

use crate::check::address_of;
use crate::tree::VolumeRow;

/// A folder below `/backstores`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackstoreKind {
    /// `address`: any other address.
    Address,
    /// `fileio`: `file:PATH`.
    FileIo,
    /// `iblock`, in newer shells `block`: `block:DEVICE`.
    IBlock,
    /// `null`: `null:SIZE`.
    Null,
    /// `pscsi`, which exists only so that its absence can be explained.
    Pscsi,
    /// `rd_mcp`, in newer shells `ramdisk`: `ram:SIZE`.
    RdMcp,
}

impl BackstoreKind {
    /// The kinds that volumes can have.
    pub const SHOWN: [Self; 5] = [
        Self::Address,
        Self::FileIo,
        Self::IBlock,
        Self::Null,
        Self::RdMcp,
    ];

    /// Its name in a path.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Address => "address",
            Self::FileIo => "fileio",
            Self::IBlock => "iblock",
            Self::Null => "null",
            Self::Pscsi => "pscsi",
            Self::RdMcp => "rd_mcp",
        }
    }

    /// The kind of this name, old or new.
    #[must_use]
    pub fn named(word: &str) -> Option<Self> {
        match word {
            "block" => Some(Self::IBlock),
            "ramdisk" => Some(Self::RdMcp),
            _ => {
                let mut all = Self::SHOWN.into_iter().chain([Self::Pscsi]);
                all.find(|kind| kind.name() == word)
            }
        }
    }

    /// The kind of a volume.
    #[must_use]
    pub fn of(row: &VolumeRow) -> Self {
        match address_of(row) {
            Ok(Address::Ram(_)) => Self::RdMcp,
            Ok(Address::Null(_)) => Self::Null,
            Ok(Address::File(_)) => Self::FileIo,
            Ok(Address::Block(_)) => Self::IBlock,
            _ => Self::Address,
        }
    }

    /// The medium of a volume, as `ls` displays it.
    #[must_use]
    pub fn medium(row: &VolumeRow) -> String {
        match address_of(row) {
            Ok(Address::Ram(_)) => "ramdisk".to_owned(),
            Ok(Address::Null(_)) => "null".to_owned(),
            Ok(Address::File(file)) => file.path.display().to_string(),
            Ok(Address::Block(block)) => block.device.display().to_string(),
            _ => row.address.clone(),
        }
    }
}
