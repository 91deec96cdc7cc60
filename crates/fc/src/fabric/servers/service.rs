//! Which service has which address, and what it is called.

use super::ServersConfig;
use crate::wire::names::{FcId, Wwn};

/// A service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Service {
    /// Name server.
    Directory,
    /// Fabric controller.
    Controller,
    /// Management server.
    Management,
    /// The controller of the F_Port that the port is logged in at.
    FPort,
}

impl Service {
    /// The one at an address.
    pub(super) const fn at(address: FcId) -> Option<Self> {
        Some(match address {
            FcId::DIRECTORY => Self::Directory,
            FcId::FABRIC_CONTROLLER => Self::Controller,
            FcId::MANAGEMENT => Self::Management,
            FcId::FABRIC_F => Self::FPort,
            _ => return None,
        })
    }
}

impl ServersConfig {
    /// The port name of a service: that of the switch, with the number of the service in the bits
    /// that a vendor may use.
    pub(super) const fn service_name(&self, address: FcId) -> Wwn {
        let [_, _, low] = address.bytes();
        Wwn(0x2000 << 48 | (low as u64) << 48 | self.switch_name.0 << 16 >> 16)
    }
}
