//! The fast path: from which port a frame may come, to which it goes, and with which addresses.
//!
//! The table is a value. The switch changes its own; a core that forwards has a snapshot, and
//! replaces it when the switch says that there is another. What a frame costs does not depend on
//! how many ports are logged in: the lower half of an N_Port_ID is the number of a row, and two
//! ports may speak with each other if the sorted lists of their zones have one in common.
//!
//! Checks are made in the order of [`DropReason`]. FIP, and FCoE to the services of the fabric, go
//! to the switch with no regard to zones.

use std::sync::Arc;

use super::FabricLogin;
use super::PortNumber;
use super::config::SwitchPortConfig;
use super::verdict::{ADDRESSES_LEN, DropReason, Forwarding, TAG_LEN, Verdict};
use super::zones::{Membership, ZoneMember, Zones};
use crate::wire::ethernet::{self, EthernetHeader, Mac, VlanTag};
use crate::wire::fcoe;
use crate::wire::frame::FrameHeader;
use crate::wire::names::FcId;

/// A VN_Port that is logged in.
#[derive(Clone, Debug)]
struct Row {
    fc_id: FcId,
    mac: Mac,
    port: PortNumber,
    zones: Arc<Membership>,
}

/// A port of the switch.
#[derive(Clone, Copy, Debug)]
struct Place {
    mac: Mac,
    mtu: usize,
    tag: Option<VlanTag>,
}

/// Which frames are forwarded, and how: an immutable snapshot for those that hold an `Arc` of it.
#[derive(Clone, Debug)]
pub struct ForwardTable {
    fc_map: [u8; 3],
    zones: Arc<Zones>,
    /// By the lower half of the N_Port_ID: the number of a row, and 1; 0 for none.
    index: Box<[u16]>,
    rows: Vec<Option<Row>>,
    free: Vec<u16>,
    places: Vec<Option<Place>>,
}

/// Where a frame goes, by the checks.
struct Route {
    egress: PortNumber,
    place: Place,
    d_id: FcId,
}

impl ForwardTable {
    pub(super) fn new(fc_map: [u8; 3], zones: Arc<Zones>) -> Self {
        Self {
            fc_map,
            zones,
            index: vec![0; 1 << 16].into(),
            rows: Vec::new(),
            free: Vec::new(),
            places: Vec::new(),
        }
    }

    /// Checks a frame that came in at a port, and rewrites it if it is to go out. Nothing is
    /// allocated. What is [`Verdict::Taken`] is for [`super::Switch::receive`], and so is what is
    /// dropped as [`DropReason::NotLoggedIn`], so that its sender is told.
    pub fn forward(&self, ingress: PortNumber, frame: &mut [u8]) -> Verdict {
        match self.route(ingress, frame) {
            Ok(Some(route)) => Verdict::Forward(self.rewrite(&route, frame)),
            Ok(None) => Verdict::Taken,
            Err(reason) => Verdict::Dropped(reason),
        }
    }

    /// The checks. `None` is what the switch takes itself.
    fn route(&self, ingress: PortNumber, frame: &[u8]) -> Result<Option<Route>, DropReason> {
        let place = self.place(ingress).ok_or(DropReason::NotForUs)?;
        let (ethernet, bytes) = EthernetHeader::parse(frame).map_err(|_| DropReason::NotForUs)?;
        if ethernet.ethertype == ethernet::FIP {
            return Ok(None);
        }
        self.is_for_us(place, &ethernet)?;
        let header = fcoe::inspect(bytes)?.header;
        let source = self.source(ingress, &ethernet, &header)?;
        if header.d_id.is_well_known() && header.d_id != FcId::BROADCAST {
            return Ok(None);
        }
        let to = self.row(header.d_id).ok_or(DropReason::NoSuchPort)?;
        if !self.zones.join(&source.zones, &to.zones) {
            return Err(DropReason::Zoned);
        }
        let place = *self.place(to.port).ok_or(DropReason::NoSuchPort)?;
        if bytes.len() > place.mtu {
            return Err(DropReason::TooLong);
        }
        Ok(Some(Route {
            egress: to.port,
            place,
            d_id: header.d_id,
        }))
    }

    fn is_for_us(&self, place: &Place, ethernet: &EthernetHeader) -> Result<(), DropReason> {
        if ethernet.ethertype != ethernet::FCOE {
            return Err(DropReason::NotForUs);
        }
        if ethernet.dst == FLOGI_MAC {
            return Err(DropReason::PointToPoint);
        }
        if ethernet.dst != place.mac || vid(ethernet.vlan) != vid(place.tag) {
            return Err(DropReason::NotForUs);
        }
        Ok(())
    }

    /// The VN_Port that a frame is from, if it may say so.
    fn source(
        &self,
        ingress: PortNumber,
        ethernet: &EthernetHeader,
        header: &FrameHeader,
    ) -> Result<&Row, DropReason> {
        let row = self.row(header.s_id).ok_or(DropReason::NotLoggedIn)?;
        if row.port == ingress && row.mac == ethernet.src {
            Ok(row)
        } else {
            Err(DropReason::Spoofed)
        }
    }

    fn row(&self, fc_id: FcId) -> Option<&Row> {
        let number = self.index.get(low(fc_id)).copied()?.checked_sub(1)?;
        let row = self.rows.get(usize::from(number))?.as_ref();
        row.filter(|row| row.fc_id == fc_id)
    }

    fn place(&self, port: PortNumber) -> Option<&Place> {
        self.places.get(usize::from(port.0))?.as_ref()
    }

    /// Puts the addresses of the way out in place of those of the way in, and the tag.
    fn rewrite(&self, route: &Route, frame: &mut [u8]) -> Forwarding {
        let was_tagged = frame[ADDRESSES_LEN..].starts_with(&ethernet::VLAN.to_be_bytes());
        let start = match route.place.tag {
            None if was_tagged => TAG_LEN,
            _ => 0,
        };
        let head = &mut frame[start..];
        head[..6].copy_from_slice(&Mac::of_port(self.fc_map, route.d_id).0);
        head[6..ADDRESSES_LEN].copy_from_slice(&route.place.mac.0);
        let insert = route.place.tag.filter(|_| !was_tagged);
        if let Some(tag) = route.place.tag.filter(|_| was_tagged) {
            let tci = ADDRESSES_LEN + 2..ADDRESSES_LEN + TAG_LEN;
            head[tci].copy_from_slice(&tag.encode().to_be_bytes());
        }
        Forwarding {
            egress: route.egress,
            start,
            insert,
        }
    }
}

/// Changes, which the switch makes to its own table.
impl ForwardTable {
    pub(super) fn set_place(&mut self, port: PortNumber, config: Option<&SwitchPortConfig>) {
        let number = usize::from(port.0);
        if self.places.len() <= number {
            self.places.resize(number + 1, None);
        }
        self.places[number] = config.map(|config| Place {
            mac: config.mac,
            mtu: config.mtu,
            tag: config.tag,
        });
    }

    /// A VN_Port has logged in.
    pub(super) fn insert(&mut self, login: &FabricLogin) {
        let fc_id = login.fc_id;
        self.remove(fc_id);
        let row = Row {
            fc_id,
            mac: login.mac,
            port: login.port,
            zones: Arc::new(self.zones.membership(&member(login))),
        };
        let number = match self.free.pop() {
            Some(number) => number,
            None => {
                self.rows.push(None);
                (self.rows.len() - 1) as u16
            }
        };
        self.rows[usize::from(number)] = Some(row);
        self.index[low(fc_id)] = number + 1;
    }

    /// It is not logged in any more.
    pub(super) fn remove(&mut self, fc_id: FcId) {
        if self.row(fc_id).is_none() {
            return;
        }
        let number = std::mem::take(&mut self.index[low(fc_id)]) - 1;
        self.rows[usize::from(number)] = None;
        self.free.push(number);
    }

    /// The zones are others, for all of the ports that are logged in.
    pub(super) fn set_zones<'a>(
        &mut self,
        zones: Arc<Zones>,
        logins: impl Iterator<Item = &'a FabricLogin>,
    ) {
        self.zones = zones;
        for login in logins {
            self.insert(login);
        }
    }
}

/// A port by all that zones may know it by.
fn member(login: &FabricLogin) -> ZoneMember<'_> {
    ZoneMember {
        wwpn: login.wwpn,
        wwnn: login.wwnn,
        fc_id: login.fc_id,
        place: &login.place,
    }
}

/// S_ID and D_ID of an FCoE frame, as far as it goes.
pub(super) fn pair(frame: &[u8]) -> Option<(FcId, FcId)> {
    let (_, bytes) = EthernetHeader::parse(frame).ok()?;
    let header = FrameHeader::parse(bytes.get(fcoe::HEAD_LEN..)?).ok()?;
    Some((header.s_id, header.d_id))
}

/// Where Linux sends an FLOGI without FIP (`FC_FCOE_FLOGI_MAC`), whatever FC-MAP the fabric has.
const FLOGI_MAC: Mac = Mac::of_port(Mac::FC_MAP, FcId::FABRIC_F);

/// The row of the index. Two IDs with one row differ in their domain.
const fn low(fc_id: FcId) -> usize {
    (fc_id.0 & 0xffff) as usize
}

/// A priority tag has no VLAN in it.
pub(super) fn vid(tag: Option<VlanTag>) -> u16 {
    tag.map_or(0, |tag| tag.vid)
}
