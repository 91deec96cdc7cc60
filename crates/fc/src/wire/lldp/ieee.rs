//! DCBX of IEEE (IEEE 802.1Q Annex D.2): TLVs of the OUI 00-80-C2.

use super::tlv::{Organizational, TlvWriter, VALUE_MAX};
use crate::wire::reader::{ByteReader, Truncated};

/// IEEE 802.1.
pub const OUI: [u8; 3] = [0x00, 0x80, 0xc2];

const ETS: u8 = 0x09;
const ETS_RECOMMENDATION: u8 = 0x0a;
const PFC: u8 = 0x0b;
const APPLICATION_PRIORITY: u8 = 0x0c;

/// How priorities share the link: each is of a traffic class, and classes have a part of the
/// bandwidth (Enhanced Transmission Selection, IEEE 802.1Q Clause 37).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct EtsTable {
    /// Traffic class of each priority, 0 to 7.
    pub classes: [u8; 8],
    /// Of each traffic class, percent of the link; 100 in all of those that have [`TSA_ETS`].
    pub bandwidth: [u8; 8],
    /// How frames of each traffic class are selected: [`TSA_STRICT`], [`TSA_ETS`] or another.
    pub algorithms: [u8; 8],
}

/// Transmission selection algorithm: strict priority.
pub const TSA_STRICT: u8 = 0;
/// Transmission selection algorithm: credit-based shaper.
pub const TSA_SHAPER: u8 = 1;
/// Transmission selection algorithm: a part of the bandwidth.
pub const TSA_ETS: u8 = 2;

impl EtsTable {
    fn read(reader: &mut ByteReader<'_>) -> Result<Self, Truncated> {
        Ok(Self {
            classes: from_nibbles(reader.array()?).map(|class| class & 7),
            bandwidth: reader.array()?,
            algorithms: reader.array()?,
        })
    }
}

/// ETS Configuration TLV.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Ets {
    /// Takes the recommendation of the other end.
    pub willing: bool,
    /// Has the credit-based shaper.
    pub shaper: bool,
    /// How many traffic classes it can have, 1 to 8; 0 is read as 8.
    pub classes_max: u8,
    /// What is in use.
    pub table: EtsTable,
}

/// PFC Configuration TLV: for which priorities frames are held back by pauses, so that none is
/// lost for want of room (IEEE 802.1Q Clause 36).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Pfc {
    /// Takes what the other end has.
    pub willing: bool,
    /// Cannot have PFC with MACsec in use (MACsec bypass capability).
    pub mbc: bool,
    /// For how many priorities at once it can be enabled, 0 to 8.
    pub classes_max: u8,
    /// A bit a priority: 08h is priority 3.
    pub enabled: u8,
}

/// An entry of the Application Priority Table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct App {
    /// What `protocol` is: [`Self::ETHERTYPE`], 2 for TCP and SCTP ports, 3 for UDP and DCCP
    /// ports, 4 for any of them, 5 for DSCP.
    pub selector: u8,
    /// The protocol.
    pub protocol: u16,
    /// Its priority, 0 to 7.
    pub priority: u8,
}

impl App {
    /// Selector of EtherTypes.
    pub const ETHERTYPE: u8 = 1;
}

/// What an LLDPDU says in this dialect. Of each TLV the first counts.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct IeeeDcb {
    /// ETS Configuration.
    pub ets: Option<Ets>,
    /// ETS Recommendation, for the other end.
    pub recommendation: Option<EtsTable>,
    /// PFC Configuration.
    pub pfc: Option<Pfc>,
    /// Application Priority.
    pub apps: Option<Vec<App>>,
}

impl IeeeDcb {
    /// Takes a TLV of an organization. Whether it is one of this dialect, even if it was too short
    /// and is not counted.
    pub fn take(&mut self, tlv: &Organizational<'_>) -> bool {
        let mut reader = ByteReader(tlv.info);
        match (tlv.oui, tlv.subtype) {
            (OUI, ETS) => first(&mut self.ets, || read_ets(&mut reader)),
            (OUI, ETS_RECOMMENDATION) => first(&mut self.recommendation, || {
                reader.skip(1)?;
                EtsTable::read(&mut reader)
            }),
            (OUI, PFC) => first(&mut self.pfc, || read_pfc(&mut reader)),
            (OUI, APPLICATION_PRIORITY) => first(&mut self.apps, || {
                reader.skip(1)?;
                Ok(reader.0.as_chunks().0.iter().map(read_app).collect())
            }),
            _ => return false,
        }
        true
    }

    /// Appends the TLVs that there are.
    pub fn put(&self, to: &mut TlvWriter) {
        if let Some(ets) = &self.ets {
            let flags = u8::from(ets.willing) << 7 | u8::from(ets.shaper) << 6;
            put_table(to, ETS, flags | ets.classes_max & 7, &ets.table);
        }
        if let Some(table) = &self.recommendation {
            put_table(to, ETS_RECOMMENDATION, 0, table);
        }
        if let Some(pfc) = &self.pfc {
            let flags = u8::from(pfc.willing) << 7 | u8::from(pfc.mbc) << 6;
            let info = [flags | pfc.classes_max & 0x0f, pfc.enabled];
            to.put_organizational(OUI, PFC, &[&info]);
        }
        if let Some(apps) = &self.apps {
            let entries: Vec<u8> = apps.iter().take(APPS_MAX).flat_map(app_bytes).collect();
            to.put_organizational(OUI, APPLICATION_PRIORITY, &[&[0], &entries]);
        }
    }
}

/// Entries that a TLV has room for.
pub const APPS_MAX: usize = (VALUE_MAX - 5) / 3;

/// What came before it counts, and what is too short does not.
fn first<T>(place: &mut Option<T>, read: impl FnOnce() -> Result<T, Truncated>) {
    if place.is_none() {
        *place = read().ok();
    }
}

fn read_ets(reader: &mut ByteReader<'_>) -> Result<Ets, Truncated> {
    let flags = reader.u8()?;
    Ok(Ets {
        willing: flags & 0x80 != 0,
        shaper: flags & 0x40 != 0,
        classes_max: match flags & 7 {
            0 => 8,
            classes => classes,
        },
        table: EtsTable::read(reader)?,
    })
}

fn read_pfc(reader: &mut ByteReader<'_>) -> Result<Pfc, Truncated> {
    let flags = reader.u8()?;
    Ok(Pfc {
        willing: flags & 0x80 != 0,
        mbc: flags & 0x40 != 0,
        classes_max: flags & 0x0f,
        enabled: reader.u8()?,
    })
}

const fn read_app([flags, high, low]: &[u8; 3]) -> App {
    App {
        selector: *flags & 7,
        protocol: u16::from_be_bytes([*high, *low]),
        priority: *flags >> 5,
    }
}

const fn app_bytes(app: &App) -> [u8; 3] {
    let [high, low] = app.protocol.to_be_bytes();
    [(app.priority & 7) << 5 | app.selector & 7, high, low]
}

fn put_table(to: &mut TlvWriter, subtype: u8, flags: u8, table: &EtsTable) {
    let classes = to_nibbles(table.classes);
    let parts: [&[u8]; 4] = [&[flags], &classes, &table.bandwidth, &table.algorithms];
    to.put_organizational(OUI, subtype, &parts);
}

/// Two to a byte, the first in its upper half.
pub(super) fn from_nibbles(bytes: [u8; 4]) -> [u8; 8] {
    std::array::from_fn(|at| bytes[at / 2] >> (4 * (1 - at % 2)) & 0x0f)
}

/// As [`from_nibbles`] reads them.
pub(super) fn to_nibbles(values: [u8; 8]) -> [u8; 4] {
    std::array::from_fn(|at| (values[2 * at] & 0x0f) << 4 | values[2 * at + 1] & 0x0f)
}
