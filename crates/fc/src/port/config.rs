//! What an N_Port is told before it begins.

use std::ops::RangeInclusive;
use std::time::Duration;

use scsi::medium::Now;

use super::fip::FipMachine;
use crate::fip::enode::{Enode, EnodeConfig, FabricConfig};
use crate::fip::{self, Fip, Mode};
use crate::remote::{LocalPort, Partners, PeerAddress, PrliOffer, Role};
use crate::wire::ethernet::{self, EthernetHeader, Mac, VlanTag};
use crate::wire::fcoe;
use crate::wire::names::Wwn;

/// An N_Port by itself.
#[derive(Clone, Debug)]
pub struct PortConfig {
    /// The address of the Ethernet port, or another one that it receives; FIP is sent from it.
    pub mac: Mac,
    /// Port name.
    pub wwpn: Wwn,
    /// Node name.
    pub wwnn: Wwn,
    /// The MTU of the Ethernet, in bytes.
    pub mtu: usize,
    /// How it finds others.
    pub mode: PortMode,
    /// In a fabric, its number among the further N_Ports of its ENode (NPIV): another port with the
    /// same [`Self::mac`] logs in by FLOGI, and this one by FDISC.
    pub further: Option<u16>,
    /// What the name server of a fabric shows to people, of 200 bytes at most.
    pub symbolic_name: String,
    /// The tag that frames carry and must have come with; `None` where there is no VLAN, or an
    /// interface of the VLAN's own takes care of it.
    pub tag: Option<VlanTag>,
    /// With which ports there may be a login.
    pub partners: Partners,
    /// What is offered by PRLI.
    pub offer: PrliOffer,
    /// E_D_TOV: how long a frame may be on its way. A login goes by the longer one of both ends. In
    /// a fabric it is the fabric's.
    pub e_d_tov: Duration,
    /// Bounds.
    pub limits: PortLimits,
}

/// How an N_Port gets its N_Port_ID and finds others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortMode {
    /// Without a fabric.
    Vn2Vn(Mode),
    /// By an FCF and its name server.
    Fabric(FabricConfig),
}

/// VN2VN with any number of ports.
impl Default for PortMode {
    fn default() -> Self {
        Self::Vn2Vn(Mode::Multipoint)
    }
}

impl PortMode {
    /// The groups that the Ethernet port has to receive.
    #[must_use]
    pub const fn groups(&self) -> &'static [Mac] {
        match self {
            Self::Vn2Vn(_) => const { &Fip::groups() },
            Self::Fabric(_) => const { &Enode::groups() },
        }
    }
}

/// Bounds on what others can cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortLimits {
    /// Maximum number of remote ports that have or may get a nexus. Other ports known to FIP use
    /// no slot; a port without a free slot logs in when one is free.
    pub remotes: usize,
    /// Link services that wait to be transmitted. What is to be answered beyond that is dropped, as
    /// if it had been lost.
    pub controls: usize,
}

impl Default for PortLimits {
    fn default() -> Self {
        Self {
            remotes: 4096,
            controls: 4096,
        }
    }
}

/// The default of E_D_TOV (FC-FS-3).
pub const E_D_TOV: Duration = Duration::from_secs(2);

/// What E_D_TOV may be: PLOGI tells it in milliseconds, and with much more than the default nothing
/// would ever be found lost, and what a peer leaves undone would be kept for as long. Of a longer
/// one of the other end's so much is believed.
pub const E_D_TOVS: RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_secs(10);

impl PortConfig {
    /// With the names that Linux gives a port on this Ethernet address, and all else by default: it
    /// logs in with whomever it finds.
    #[must_use]
    pub fn new(mac: Mac, mtu: usize) -> Self {
        Self {
            mac,
            wwpn: Wwn(0x2000 << 48 | mac.number()),
            wwnn: Wwn(0x1000 << 48 | mac.number()),
            mtu,
            mode: PortMode::default(),
            further: None,
            symbolic_name: concat!("Lunar v", env!("CARGO_PKG_VERSION")).to_owned(),
            tag: None,
            partners: Partners::Any,
            offer: PrliOffer::default(),
            e_d_tov: E_D_TOV,
            limits: PortLimits::default(),
        }
    }

    fn max_fcoe(&self) -> u16 {
        fip::max_fcoe(self.mtu)
    }

    pub(super) fn fip(&self, role: Role, now: Now, random: [u8; 8]) -> FipMachine {
        match self.mode {
            PortMode::Vn2Vn(mode) => {
                let fip = Fip::new(self.vn2vn(mode, role), now, random);
                FipMachine::Vn2Vn(Box::new(fip.tagged(self.tag)))
            }
            PortMode::Fabric(fabric) => {
                let config = EnodeConfig {
                    mac: self.mac,
                    wwpn: self.wwpn,
                    wwnn: self.wwnn,
                    max_fcoe: self.max_fcoe(),
                    fabric,
                };
                let enode = Enode::new(config, self.tag, now, random);
                FipMachine::Fabric(Box::new(enode.further(self.further)))
            }
        }
    }

    fn vn2vn(&self, mode: Mode, role: Role) -> fip::FipConfig {
        fip::FipConfig {
            mac: self.mac,
            wwpn: self.wwpn,
            wwnn: self.wwnn,
            max_fcoe: self.max_fcoe(),
            mode,
            target: role == Role::Target,
            initiator: role == Role::Initiator,
        }
    }

    pub(super) fn local(&self, role: Role) -> LocalPort {
        LocalPort {
            role,
            address: PeerAddress::default(),
            wwpn: self.wwpn,
            wwnn: self.wwnn,
            in_fabric: matches!(self.mode, PortMode::Fabric(_)),
            tag: self.tag,
            payload_max: payload_max(self.mtu),
            e_d_tov: self.e_d_tov,
            r_a_tov: self.e_d_tov * 2,
            offer: self.offer,
            partners: self.partners.clone(),
        }
    }
}

/// The most bytes of payload in a frame on an Ethernet of this MTU: whole words, up to
/// [`MAX_PAYLOAD`]. No port logs in with less than [`MIN_PAYLOAD`].
///
/// [`MAX_PAYLOAD`]: crate::wire::frame::MAX_PAYLOAD
/// [`MIN_PAYLOAD`]: crate::wire::frame::MIN_PAYLOAD
#[must_use]
pub const fn payload_max(mtu: usize) -> u16 {
    fip::max_fcoe(mtu) - overhead()
}

/// Bytes of an FCoE frame behind the Ethernet header that are not payload.
const fn overhead() -> u16 {
    let header = EthernetHeader::new(Mac::BROADCAST, Mac::BROADCAST, ethernet::FCOE);
    (fcoe::frame_len(&header, 0) - header.len()) as u16
}
