//! A port that is logged in to the fabric, as its services know it.

use std::sync::Arc;
use std::time::Duration;

use scsi::medium::Now;

use super::controller::Notices;
use super::directory::PortObjects;
use super::service::Service;
use crate::fabric::PortNumber;
use crate::fabric::login::EnodeKey;
use crate::fabric::zones::{Membership, ZoneMember};
use crate::wire::ct::name_server::{Fc4Types, FeatureBits, SymbolicName};
use crate::wire::ethernet::Mac;
use crate::wire::frame::MIN_PAYLOAD;
use crate::wire::names::{FcId, Wwn};

/// A login to the fabric.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortLogin {
    /// The N_Port_ID that was given.
    pub fc_id: FcId,
    /// Port name.
    pub wwpn: Wwn,
    /// Node name.
    pub wwnn: Wwn,
    /// The name of the F_Port.
    pub f_port_name: Wwn,
    /// The port of the switch.
    pub port: PortNumber,
    /// What people call that port.
    pub place: Arc<str>,
    /// The address of its ENode.
    pub enode: Mac,
    /// The most bytes of payload in a frame to it.
    pub max_payload: u16,
}

impl PortLogin {
    /// The ENode, and where it is heard.
    pub(super) const fn station(&self) -> EnodeKey {
        (self.port, self.enode)
    }

    /// By what zones may know it.
    #[must_use]
    pub fn zone_member(&self) -> ZoneMember<'_> {
        ZoneMember {
            wwpn: self.wwpn,
            wwnn: self.wwnn,
            fc_id: self.fc_id,
            place: &self.place,
        }
    }
}

/// A port, for those who look at the fabric.
#[derive(Clone, Debug)]
pub struct PortView<'a> {
    /// Its login to the fabric.
    pub login: &'a PortLogin,
    /// Its symbolic port name.
    pub symbolic_port: &'a SymbolicName,
    /// The symbolic name of its node, as it registered it.
    pub symbolic_node: &'a SymbolicName,
    /// FC-4 types that it registered.
    pub types: Fc4Types,
    /// Features of these types.
    pub features: &'a FeatureBits,
}

/// A port with all that is kept of it.
#[derive(Debug)]
pub(super) struct RegisteredPort {
    pub(super) login: PortLogin,
    pub(super) membership: Membership,
    /// Under the zones before, while ports are told of those that hold.
    pub(super) before: Option<Membership>,
    pub(super) objects: PortObjects,
    pub(super) notices: Notices,
    logins: ServiceLogins,
    remarked: Option<Now>,
}

/// To which services it is logged in: the most bytes of payload in a frame from there.
#[derive(Clone, Copy, Debug, Default)]
struct ServiceLogins {
    directory: Option<u16>,
    controller: Option<u16>,
    management: Option<u16>,
}

impl RegisteredPort {
    pub(super) fn new(login: PortLogin, membership: Membership) -> Self {
        Self {
            login,
            membership,
            before: None,
            objects: PortObjects::default(),
            notices: Notices::default(),
            logins: ServiceLogins::default(),
            remarked: None,
        }
    }

    pub(super) const fn fc_id(&self) -> FcId {
        self.login.fc_id
    }

    /// Whether it is logged in to a service.
    pub(super) fn has_login(&mut self, service: Service) -> bool {
        self.login_of(service).is_some_and(|login| login.is_some())
    }

    /// It logs in to a service, or out; `false` if there are no logins to it.
    pub(super) fn set_login(&mut self, service: Service, payload_max: Option<u16>) -> bool {
        let slot = self.login_of(service);
        slot.map(|slot| *slot = payload_max).is_some()
    }

    /// The most bytes of payload in a frame from a service to it: whole words.
    pub(super) fn frame_max(&mut self, service: Option<Service>) -> usize {
        let login = service.and_then(|service| *self.login_of(service)?);
        let bytes = login.unwrap_or(u16::MAX).min(self.login.max_payload);
        usize::from(bytes.max(MIN_PAYLOAD) & !3)
    }

    /// The F_Port has no logins but the one to the fabric.
    const fn login_of(&mut self, service: Service) -> Option<&mut Option<u16>> {
        match service {
            Service::Directory => Some(&mut self.logins.directory),
            Service::Controller => Some(&mut self.logins.controller),
            Service::Management => Some(&mut self.logins.management),
            Service::FPort => None,
        }
    }

    /// Whether something may be told of it again.
    pub(super) fn may_be_remarked(&mut self, now: Now) -> bool {
        let may_be = self.remarked.is_none_or(|last| now >= last + REMARKS);
        if may_be {
            self.remarked = Some(now);
        }
        may_be
    }
}

/// From one remark on a port to the next.
const REMARKS: Duration = Duration::from_secs(1);
