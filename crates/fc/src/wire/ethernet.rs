//! IEEE 802.3 and 802.1Q: the header of an Ethernet frame, and the addresses that FC-BB-6 and
//! IEEE 802.1AB use.

use std::fmt;
use std::str::FromStr;

use super::names::{self, FcId};
use super::reader::{ByteReader, Truncated};

/// EtherType of FCoE.
pub const FCOE: u16 = 0x8906;

/// EtherType of FIP.
pub const FIP: u16 = 0x8914;

/// EtherType of LLDP (IEEE 802.1AB §7.2).
pub const LLDP: u16 = 0x88cc;

/// EtherType of a tag (802.1Q C-TAG).
pub const VLAN: u16 = 0x8100;

/// Bytes of the shortest frame, without frame check sequence.
pub const MIN_LEN: usize = 60;

/// An Ethernet address.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Mac(pub [u8; 6]);

impl Mac {
    /// All-ENode-MACs: what FCFs tell to all ENodes.
    pub const ALL_ENODE: Self = Self([0x01, 0x10, 0x18, 0x01, 0x00, 0x01]);
    /// All-FCF-MACs: what ENodes and FCFs tell to all FCFs.
    pub const ALL_FCF: Self = Self([0x01, 0x10, 0x18, 0x01, 0x00, 0x02]);
    /// All-VN2VN-ENode-MACs.
    pub const ALL_VN2VN_ENODE: Self = Self([0x01, 0x10, 0x18, 0x01, 0x00, 0x04]);
    /// All-PT2PT-ENode-MACs.
    pub const ALL_PT2PT_ENODE: Self = Self([0x01, 0x10, 0x18, 0x01, 0x00, 0x05]);
    /// Nearest bridge: the group that LLDP goes to, and which no bridge forwards (IEEE 802.1AB
    /// §7.1).
    pub const NEAREST_BRIDGE: Self = Self([0x01, 0x80, 0xc2, 0x00, 0x00, 0x0e]);
    /// All stations.
    pub const BROADCAST: Self = Self([0xff; 6]);

    /// FC-MAP of fabrics: the upper half of addresses that a fabric provides.
    pub const FC_MAP: [u8; 3] = [0x0e, 0xfc, 0x00];
    /// FC-MAP of VN2VN.
    pub const VN2VN_FC_MAP: [u8; 3] = [0x0e, 0xfd, 0x00];

    /// The address that a VN_Port has by its FC-ID: `map` is [`Self::FC_MAP`] or
    /// [`Self::VN2VN_FC_MAP`].
    #[must_use]
    pub const fn of_port([a, b, c]: [u8; 3], fc_id: FcId) -> Self {
        let [d, e, f] = fc_id.bytes();
        Self([a, b, c, d, e, f])
    }

    /// The lower 48 bits of a number, as names are made of it.
    #[must_use]
    pub const fn number(self) -> u64 {
        let [a, b, c, d, e, f] = self.0;
        u64::from_be_bytes([0, 0, a, b, c, d, e, f])
    }

    /// Whether it names a group.
    #[must_use]
    pub const fn is_multicast(self) -> bool {
        self.0[0] & 1 != 0
    }
}

/// `52:54:00:78:41:00`.
impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        names::colons(&self.0, f)
    }
}

impl fmt::Debug for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A string that is not an Ethernet address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an Ethernet address has 12 hexadecimal digits, as in 52:54:00:78:41:00")]
pub struct NotAMac;

impl FromStr for Mac {
    type Err = NotAMac;

    fn from_str(text: &str) -> Result<Self, NotAMac> {
        names::bytes(text).map(Self).ok_or(NotAMac)
    }
}

/// What an 802.1Q tag says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VlanTag {
    /// Priority code point, 0 to 7; 3 by custom for FCoE and FIP.
    pub priority: u8,
    /// Drop eligible.
    pub dei: bool,
    /// VLAN identifier, 12 bits; 0 is none.
    pub vid: u16,
}

impl VlanTag {
    /// From the tag control information.
    #[must_use]
    pub const fn decode(tci: u16) -> Self {
        Self {
            priority: (tci >> 13) as u8,
            dei: tci & 0x1000 != 0,
            vid: tci & 0x0fff,
        }
    }

    /// The tag control information.
    #[must_use]
    pub const fn encode(self) -> u16 {
        (self.priority as u16) << 13 | (self.dei as u16) << 12 | self.vid & 0x0fff
    }
}

/// What stands before the payload of an Ethernet frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EthernetHeader {
    /// To whom.
    pub dst: Mac,
    /// From whom.
    pub src: Mac,
    /// The tag, if the frame carries one itself.
    pub vlan: Option<VlanTag>,
    /// What the payload is.
    pub ethertype: u16,
}

impl EthernetHeader {
    /// Bytes without a tag.
    pub const BARE_LEN: usize = 14;

    /// Bytes with a tag.
    pub const TAGGED_LEN: usize = 18;

    /// The header of a frame without a tag.
    #[must_use]
    pub const fn new(src: Mac, dst: Mac, ethertype: u16) -> Self {
        Self {
            dst,
            src,
            vlan: None,
            ethertype,
        }
    }

    /// Bytes that it takes.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "it is never empty")]
    pub const fn len(&self) -> usize {
        match self.vlan {
            None => Self::BARE_LEN,
            Some(_) => Self::TAGGED_LEN,
        }
    }

    /// The header of a frame, and its payload with what pads it.
    ///
    /// # Errors
    /// The frame is shorter than its header.
    pub fn parse(frame: &[u8]) -> Result<(Self, &[u8]), Truncated> {
        let mut reader = ByteReader(frame);
        let (dst, src) = (Mac(reader.array()?), Mac(reader.array()?));
        let mut ethertype = reader.u16()?;
        let mut vlan = None;
        if ethertype == VLAN {
            vlan = Some(VlanTag::decode(reader.u16()?));
            ethertype = reader.u16()?;
        }
        let header = Self {
            dst,
            src,
            vlan,
            ethertype,
        };
        Ok((header, reader.0))
    }

    /// The same of a frame out of which the receiver may have taken a tag. That one says which VLAN
    /// the frame came by, unless its identifier is 0.
    ///
    /// # Errors
    /// The frame is shorter than its header.
    pub fn parse_received(
        frame: &[u8],
        taken_out: Option<VlanTag>,
    ) -> Result<(Self, &[u8]), Truncated> {
        let (mut header, payload) = Self::parse(frame)?;
        let taken_out = taken_out.filter(|tag| tag.vid != 0);
        header.vlan = taken_out.or(header.vlan);
        Ok((header, payload))
    }

    /// The VLAN that its tag says; 0 for none.
    #[must_use]
    pub const fn vid(&self) -> u16 {
        match self.vlan {
            Some(tag) => tag.vid,
            None => 0,
        }
    }

    /// Writes it at the front of `frame`, which must be long enough, and gives the rest.
    pub fn put<'a>(&self, frame: &'a mut [u8]) -> &'a mut [u8] {
        let (header, payload) = frame.split_at_mut(self.len());
        header[..6].copy_from_slice(&self.dst.0);
        header[6..12].copy_from_slice(&self.src.0);
        if let Some(tag) = self.vlan {
            header[12..14].copy_from_slice(&VLAN.to_be_bytes());
            header[14..16].copy_from_slice(&tag.encode().to_be_bytes());
        }
        let at = self.len() - 2;
        header[at..].copy_from_slice(&self.ethertype.to_be_bytes());
        payload
    }
}
