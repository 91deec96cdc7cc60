//! DCBX of CEE (DCB Capability Exchange Protocol, Base Specification 1.01): one TLV of the OUI
//! 00-1B-21, with TLVs in it whose heads are those of LLDP.

use super::ieee::{App, from_nibbles, to_nibbles};
use super::tlv::{Organizational, TlvWriter, Tlvs, VALUE_MAX};
use crate::wire::reader::{ByteReader, Truncated};

/// Intel, whose identifier the specification has.
pub const OUI: [u8; 3] = [0x00, 0x1b, 0x21];

/// Subtype of version 1.01.
pub const SUBTYPE: u8 = 2;

const CONTROL: u8 = 1;
const PRIORITY_GROUPS: u8 = 2;
const PFC: u8 = 3;
const APPLICATION: u8 = 4;

/// Priority group whose frames go before all others, with no limit to their bandwidth.
pub const GROUP_STRICT: u8 = 15;

/// Control: which version of what an end has told the other end has taken. Both ends count changes
/// of their own in a sequence number and repeat that of the other end as the acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Control {
    /// Changes of the sender.
    pub seq_no: u32,
    /// The `seq_no` that the sender has heard last; 0 if none.
    pub ack_no: u32,
}

/// What each feature's TLV begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct FeatureFlags {
    /// The feature is in use.
    pub enabled: bool,
    /// Takes what the other end has.
    pub willing: bool,
    /// What both ends have does not go together.
    pub error: bool,
}

impl FeatureFlags {
    const fn decode(flags: u8) -> Self {
        Self {
            enabled: flags & 0x80 != 0,
            willing: flags & 0x40 != 0,
            error: flags & 0x20 != 0,
        }
    }

    fn encode(self) -> u8 {
        let bit = |is_set, at| u8::from(is_set) << at;
        bit(self.enabled, 7) | bit(self.willing, 6) | bit(self.error, 5)
    }
}

/// How priorities share the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct PriorityGroups {
    /// Of the feature.
    pub flags: FeatureFlags,
    /// The group of each priority: 0 to 7, or [`GROUP_STRICT`].
    pub groups: [u8; 8],
    /// Of each group, percent of the link; 100 in all.
    pub bandwidth: [u8; 8],
    /// How many traffic classes it can have.
    pub classes_max: u8,
}

/// For which priorities frames are held back by pauses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct CeePfc {
    /// Of the feature.
    pub flags: FeatureFlags,
    /// A bit a priority: 08h is priority 3.
    pub enabled: u8,
    /// For how many priorities at once it can be enabled.
    pub classes_max: u8,
}

/// Priorities of protocols.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct Applications {
    /// Of the feature.
    pub flags: FeatureFlags,
    /// The protocols.
    pub entries: Vec<CeeApp>,
}

/// A protocol and its priorities.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CeeApp {
    /// The protocol.
    pub protocol: u16,
    /// What `protocol` is: 0 an EtherType, 1 a port of TCP or UDP.
    pub selector: u8,
    /// Whose identifiers they are, by OUI.
    pub oui: [u8; 3],
    /// A bit a priority.
    pub priorities: u8,
}

impl CeeApp {
    /// Selector of EtherTypes.
    pub const ETHERTYPE: u8 = 0;

    /// The entry of an EtherType.
    #[must_use]
    pub const fn ethertype(protocol: u16, priorities: u8) -> Self {
        Self {
            protocol,
            selector: Self::ETHERTYPE,
            oui: OUI,
            priorities,
        }
    }

    /// The same for the other dialect, which has one priority an entry: the lowest one.
    #[must_use]
    pub const fn to_ieee(&self) -> Option<App> {
        let selector = match self.selector {
            Self::ETHERTYPE => App::ETHERTYPE,
            _ => 4,
        };
        let priority = self.priorities.trailing_zeros() as u8;
        let app = App {
            selector,
            protocol: self.protocol,
            priority,
        };
        if priority < 8 { Some(app) } else { None }
    }
}

/// What an LLDPDU says in this dialect. Of each TLV the first counts.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct CeeDcb {
    /// Control.
    pub control: Control,
    /// Priority groups.
    pub groups: Option<PriorityGroups>,
    /// PFC.
    pub pfc: Option<CeePfc>,
    /// Application priority.
    pub apps: Option<Applications>,
}

impl CeeDcb {
    /// What a TLV of an organization says, if it is of this dialect and has a control TLV, without
    /// which the specification has it ignored.
    #[must_use]
    pub fn parse(tlv: &Organizational<'_>) -> Option<Self> {
        if (tlv.oui, tlv.subtype) != (OUI, SUBTYPE) {
            return None;
        }
        let mut control = None;
        let mut dcb = Self::default();
        for inner in Tlvs::new(tlv.info) {
            let mut reader = ByteReader(inner.value);
            match inner.kind {
                CONTROL => keep_first(&mut control, read_control(&mut reader)),
                PRIORITY_GROUPS => keep_first(&mut dcb.groups, read_groups(&mut reader)),
                PFC => keep_first(&mut dcb.pfc, read_pfc(&mut reader)),
                APPLICATION => keep_first(&mut dcb.apps, read_apps(&mut reader)),
                _ => {}
            }
        }
        dcb.control = control?;
        Some(dcb)
    }

    /// Appends the TLV. Entries that it has no room for are left out.
    pub fn put(&self, to: &mut TlvWriter) {
        let mut inner = TlvWriter::default();
        let [seq_no, ack_no] = [self.control.seq_no, self.control.ack_no].map(u32::to_be_bytes);
        inner.put(CONTROL, &[&[0; 2], &seq_no, &ack_no]);
        if let Some(groups) = &self.groups {
            let (head, ids) = (head(groups.flags), to_nibbles(groups.groups));
            let parts: [&[u8]; 4] = [&head, &ids, &groups.bandwidth, &[groups.classes_max]];
            inner.put(PRIORITY_GROUPS, &parts);
        }
        if let Some(pfc) = &self.pfc {
            inner.put(PFC, &[&head(pfc.flags), &[pfc.enabled, pfc.classes_max]]);
        }
        if let Some(apps) = &self.apps {
            let entries = apps.entries.iter().take(APPS_MAX);
            let entries: Vec<u8> = entries.flat_map(app_bytes).collect();
            inner.put(APPLICATION, &[&head(apps.flags), &entries]);
        }
        to.put_organizational(OUI, SUBTYPE, &[&inner.into_bytes()]);
    }
}

/// Entries that there is room for beside all other TLVs: those take 4 + 12 + 19 + 8 + 6 bytes.
pub const APPS_MAX: usize = (VALUE_MAX - 49) / 6;

fn keep_first<T>(place: &mut Option<T>, read: Result<T, Truncated>) {
    if place.is_none() {
        *place = read.ok();
    }
}

/// Of operating and greatest version, both 0, flags and subtype.
fn head(flags: FeatureFlags) -> [u8; 4] {
    [0, 0, flags.encode(), 0]
}

fn read_head(reader: &mut ByteReader<'_>) -> Result<FeatureFlags, Truncated> {
    let [_, _, flags, _] = reader.array()?;
    Ok(FeatureFlags::decode(flags))
}

fn read_control(reader: &mut ByteReader<'_>) -> Result<Control, Truncated> {
    reader.skip(2)?;
    let (seq_no, ack_no) = (reader.u32()?, reader.u32()?);
    Ok(Control { seq_no, ack_no })
}

fn read_groups(reader: &mut ByteReader<'_>) -> Result<PriorityGroups, Truncated> {
    Ok(PriorityGroups {
        flags: read_head(reader)?,
        groups: from_nibbles(reader.array()?),
        bandwidth: reader.array()?,
        classes_max: reader.u8()?,
    })
}

fn read_pfc(reader: &mut ByteReader<'_>) -> Result<CeePfc, Truncated> {
    Ok(CeePfc {
        flags: read_head(reader)?,
        enabled: reader.u8()?,
        classes_max: reader.u8()?,
    })
}

fn read_apps(reader: &mut ByteReader<'_>) -> Result<Applications, Truncated> {
    Ok(Applications {
        flags: read_head(reader)?,
        entries: reader.0.as_chunks().0.iter().map(read_app).collect(),
    })
}

/// Protocol, six bits of the OUI over two of the selector, the rest of the OUI, priorities.
const fn read_app(&[high, low, first, second, third, priorities]: &[u8; 6]) -> CeeApp {
    CeeApp {
        protocol: u16::from_be_bytes([high, low]),
        selector: first & 3,
        oui: [first & !3, second, third],
        priorities,
    }
}

const fn app_bytes(app: &CeeApp) -> [u8; 6] {
    let ([high, low], [first, second, third]) = (app.protocol.to_be_bytes(), app.oui);
    let first = first & !3 | app.selector & 3;
    [high, low, first, second, third, app.priorities]
}
