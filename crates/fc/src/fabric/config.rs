//! What a switch is told about itself and about its ports.

use std::sync::Arc;
use std::time::Duration;

use super::zones::Zones;
use crate::wire::ethernet::{Mac, VlanTag};
use crate::wire::names::{FcId, Wwn};

/// A port of the switch, counted from 0 in the order in which ports were added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortNumber(pub u16);

/// A switch.
#[derive(Clone, Debug)]
pub struct SwitchConfig {
    /// Domain_ID, the upper byte of all N_Port_IDs: 1 to 239. Another value is taken as the
    /// nearest.
    pub domain: u8,
    /// Priority in Advertisements. An ENode prefers the FCF of the lowest.
    pub priority: u8,
    /// FKA_ADV_PERIOD: how often ENodes and FCFs tell that they are there. 250 ms to 90 s; other
    /// values are taken as the nearest.
    pub fka_adv_period: Duration,
    /// FC-MAP: the upper half of the addresses that VN_Ports are granted. Its group bit is clear.
    pub fc_map: [u8; 3],
    /// Fabric_Name. By default 2h, the VLAN in 12 bits, and the address of the first port.
    pub fabric_name: Option<Wwn>,
    /// Switch_Name. By default 1000h and the address of the first port. A standby needs the names
    /// of the switch that it stands by for.
    pub switch_name: Option<Wwn>,
    /// The VLAN of the fabric, 1 to 4,094, which VLAN Notifications tell. By default that of the
    /// port's tag, or 0: no VLAN.
    pub vlan: Option<u16>,
    /// Which ports see each other.
    pub zones: Arc<Zones>,
    /// Whether it is one of two switches of the same names. It listens for 2.5 periods before it
    /// becomes active, and heeds what the other one says.
    pub standby: bool,
    /// The lower half of the first N_Port_ID, from 0100h to FEFFh: a random one, where `ids` cannot
    /// be kept, so that a switch that is started again does not give to others what is in use.
    pub first_low: u16,
    /// N_Port_IDs that were given before, by WWPN: see [`super::SwitchEvent::IdsChanged`].
    pub ids: Vec<(Wwn, FcId)>,
}

/// Domain 1, closed zones, and what FC-BB-6 has as default.
impl Default for SwitchConfig {
    fn default() -> Self {
        Self {
            domain: 1,
            priority: 128,
            fka_adv_period: Duration::from_secs(8),
            fc_map: Mac::FC_MAP,
            fabric_name: None,
            switch_name: None,
            vlan: None,
            zones: Arc::new(Zones::closed()),
            standby: false,
            first_low: 0x0100,
            ids: Vec::new(),
        }
    }
}

/// A port of a switch: an FCF-MAC on an Ethernet of its own.
#[derive(Clone, Debug)]
pub struct SwitchPortConfig {
    /// What people call it, as in `eth0` or `cable:a`.
    pub place: Arc<str>,
    /// The FCF-MAC.
    pub mac: Mac,
    /// The longest payload of an Ethernet frame there, in bytes.
    pub mtu: usize,
    /// The tag that FCoE and FIP carry there. VLAN Requests come without one all the same.
    pub tag: Option<VlanTag>,
    /// Whether the other switch of a pair may be heard here. On a cable there is no place for it,
    /// so what comes there in its name is forged. Where no port may, silence is counted at all.
    pub hears_partner: bool,
}

impl SwitchPortConfig {
    /// The VLAN of the port's frames; 0 if they carry no tag.
    pub(super) fn vid(&self) -> u16 {
        self.tag.map_or(0, |tag| tag.vid)
    }
}
