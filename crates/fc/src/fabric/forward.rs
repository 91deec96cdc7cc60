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

use scsi::medium::Now;

use super::PortNumber;
use super::SwitchLogin;
use super::config::SwitchPortConfig;
use super::verdict::{DropReason, Forwarding, Verdict};
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
    /// When it logged in.
    since: Now,
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

    /// Checks a frame that came in at a port, and tells how it is to go out. Nothing is allocated
    /// nor copied. What is [`Verdict::Taken`] is for [`super::Switch::receive`], and what is
    /// dropped for some reasons ([`DropReason::is_heeded`]) for [`super::Switch::heed_drop`], so
    /// that its sender is told.
    pub fn forward(&self, ingress: PortNumber, frame: &[u8]) -> Verdict {
        self.forward_tagged(ingress, frame, None)
    }

    /// As [`Self::forward`], where `tag` is one that the kernel has taken out of the frame.
    pub fn forward_tagged(
        &self,
        ingress: PortNumber,
        frame: &[u8],
        tag: Option<VlanTag>,
    ) -> Verdict {
        match self.route(ingress, frame, tag) {
            Ok(Some(forwarding)) => Verdict::Forward(forwarding),
            Ok(None) => Verdict::Taken,
            Err(reason) => Verdict::Dropped(reason),
        }
    }

    /// The checks. `None` is what the switch takes itself.
    fn route(
        &self,
        ingress: PortNumber,
        frame: &[u8],
        tag: Option<VlanTag>,
    ) -> Result<Option<Forwarding>, DropReason> {
        let place = self.place(ingress).ok_or(DropReason::NotForUs)?;
        let (ethernet, bytes) = parse(frame, tag)?;
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
        let place = self.place(to.port).ok_or(DropReason::NoSuchPort)?;
        if bytes.len() > place.mtu {
            return Err(DropReason::TooLong);
        }
        let dst = Mac::of_port(self.fc_map, header.d_id);
        Ok(Some(Forwarding {
            egress: to.port,
            s_id: header.s_id,
            d_id: header.d_id,
            header: EthernetHeader {
                vlan: place.tag,
                ..EthernetHeader::new(place.mac, dst, ethernet::FCOE)
            },
            start: frame.len() - bytes.len(),
        }))
    }

    /// Whether a frame that came in then, and has waited at its egress, may leave: both ports have
    /// been logged in since before it came, the destination there, and share a zone. A port that
    /// has logged in anew may have the same N_Port_ID, but knows nothing of frames from before.
    ///
    /// # Errors
    /// Why it may not.
    pub fn still_allows(
        &self,
        egress: PortNumber,
        (s_id, d_id): (FcId, FcId),
        came_in: Now,
    ) -> Result<(), DropReason> {
        self.allows(egress, (s_id, d_id))?;
        let is_older = |id| self.row(id).is_some_and(|row| came_in <= row.since);
        if is_older(s_id) || is_older(d_id) {
            return Err(DropReason::NotLoggedIn);
        }
        Ok(())
    }

    /// Whether frames from the one to the other port may leave at that egress.
    ///
    /// # Errors
    /// Why they may not.
    pub fn allows(&self, egress: PortNumber, (s_id, d_id): (FcId, FcId)) -> Result<(), DropReason> {
        let from = self.row(s_id).ok_or(DropReason::NotLoggedIn)?;
        let to = self.row(d_id).filter(|to| to.port == egress);
        let to = to.ok_or(DropReason::NoSuchPort)?;
        if self.zones.join(&from.zones, &to.zones) {
            Ok(())
        } else {
            Err(DropReason::Zoned)
        }
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
    pub(super) fn insert(&mut self, login: &SwitchLogin, since: Now) {
        let fc_id = login.fc_id;
        self.remove(fc_id);
        let row = Row {
            fc_id,
            mac: login.mac,
            port: login.port,
            since,
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
        logins: impl Iterator<Item = &'a SwitchLogin>,
    ) {
        self.zones = zones;
        for login in logins {
            let since = self.row(login.fc_id).map_or(Now::ZERO, |row| row.since);
            self.insert(login, since);
        }
    }
}

/// A port by all that zones may know it by.
fn member(login: &SwitchLogin) -> ZoneMember<'_> {
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

/// The header of a frame, of which the receiver may have taken out the tag, and what follows it.
pub(super) fn parse(
    frame: &[u8],
    tag: Option<VlanTag>,
) -> Result<(EthernetHeader, &[u8]), DropReason> {
    let parsed = EthernetHeader::parse(frame);
    let (mut header, payload) = parsed.map_err(|_| DropReason::NotForUs)?;
    match (tag, header.vlan) {
        // A tag in a tag.
        (Some(_), Some(_)) => return Err(DropReason::NotForUs),
        (Some(_), None) => header.vlan = tag,
        (None, _) => {}
    }
    Ok((header, payload))
}

/// The row of the index. Two IDs with one row differ in their domain.
const fn low(fc_id: FcId) -> usize {
    (fc_id.0 & 0xffff) as usize
}

/// A priority tag has no VLAN in it.
pub(super) fn vid(tag: Option<VlanTag>) -> u16 {
    tag.map_or(0, |tag| tag.vid)
}
