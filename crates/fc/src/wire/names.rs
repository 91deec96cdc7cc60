//! FC-FS-3: what ports are called. Address identifiers of 24 bits and worldwide names of 64.

use std::fmt;
use std::str::FromStr;

/// An N_Port_ID or another address identifier: 24 bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct FcId(pub u32);

impl FcId {
    /// No address yet, as in the S_ID of a first FLOGI.
    pub const UNIDENTIFIED: Self = Self(0);
    /// Management server, which FDMI is spoken with.
    pub const MANAGEMENT: Self = Self(0xff_fffa);
    /// Directory (name) server.
    pub const DIRECTORY: Self = Self(0xff_fffc);
    /// Fabric controller: state changes are registered with it and come from it.
    pub const FABRIC_CONTROLLER: Self = Self(0xff_fffd);
    /// The F_Port that an N_Port logs in to.
    pub const FABRIC_F: Self = Self(0xff_fffe);
    /// All ports.
    pub const BROADCAST: Self = Self(0xff_ffff);

    /// Whether a service of the fabric has it, and no N_Port: FFFC00h and above (FC-FS-3).
    #[must_use]
    pub const fn is_well_known(self) -> bool {
        self.0 >= 0xff_fc00
    }

    /// From the three bytes of a frame.
    #[must_use]
    pub const fn from_bytes([a, b, c]: [u8; 3]) -> Self {
        Self(u32::from_be_bytes([0, a, b, c]))
    }

    /// As the three bytes of a frame.
    #[must_use]
    pub const fn bytes(self) -> [u8; 3] {
        let [_, a, b, c] = self.0.to_be_bytes();
        [a, b, c]
    }
}

/// As `fcoeadm` prints it: `0x00D100`.
impl fmt::Display for FcId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{:06X}", self.0)
    }
}

impl fmt::Debug for FcId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:06x}", self.0)
    }
}

/// A worldwide name: of a port (WWPN) or of a node (WWNN).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Wwn(pub u64);

/// `20:00:52:54:00:78:41:00`.
impl fmt::Display for Wwn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        colons(&self.0.to_be_bytes(), f)
    }
}

impl fmt::Debug for Wwn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A string that is not a worldwide name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a worldwide name has 16 hexadecimal digits, as in 20:00:52:54:00:78:41:00")]
pub struct NotAWwn;

/// With colons or without, with or without `0x` or `naa.`, in either case.
impl FromStr for Wwn {
    type Err = NotAWwn;

    fn from_str(text: &str) -> Result<Self, NotAWwn> {
        let bare = ["0x", "0X", "naa."]
            .iter()
            .find_map(|head| text.strip_prefix(head));
        match bytes(bare.unwrap_or(text)) {
            Some(bytes) => Ok(Self(u64::from_be_bytes(bytes))),
            None => Err(NotAWwn),
        }
    }
}

/// Bytes as two digits each, with colons between.
pub(super) fn colons(bytes: &[u8], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    bytes.iter().enumerate().try_for_each(|(at, byte)| {
        let colon = if at == 0 { "" } else { ":" };
        write!(f, "{colon}{byte:02x}")
    })
}

/// What [`colons`] writes; or the digits alone.
pub(super) fn bytes<const N: usize>(text: &str) -> Option<[u8; N]> {
    let step = match text.len() {
        len if len == 2 * N => 2,
        len if len + 1 == 3 * N => 3,
        _ => return None,
    };
    let mut bytes = [0; N];
    for (byte, group) in bytes.iter_mut().zip(text.as_bytes().chunks(step)) {
        let [high, low, colon @ ..] = group else {
            return None;
        };
        if !matches!(colon, [] | [b':']) {
            return None;
        }
        let digit = |digit: &u8| char::from(*digit).to_digit(16);
        *byte = (digit(high)? << 4 | digit(low)?) as u8;
    }
    Some(bytes)
}
