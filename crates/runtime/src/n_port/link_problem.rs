//! What keeps frames of Fibre Channel from passing at an interface, and the command that mends it.

use std::io;

use ::io::ether::{EtherOpenError, LinkStatus, Place};
use fc::port::config::payload_max;
use fc::wire::frame::{MAX_PAYLOAD, MIN_PAYLOAD};

/// What is in the way at an interface.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LinkProblem {
    /// Its frames are too short for anybody to log in.
    #[error(
        "{0}: an MTU of {1} is too small for the {MIN_PAYLOAD} bytes of payload that every Fibre \
         Channel port needs: ip link set {0} mtu {MTU}"
    )]
    Narrow(String, u32),
    /// It is down, or there is nothing at its other end.
    #[error("{0}: the link is down: ip link set {0} up, or check its cable")]
    Down(String),
    /// Its frames are shorter than they could be.
    #[error(
        "{0}: an MTU of {1} limits frames to {payload} of {MAX_PAYLOAD} bytes of payload, which \
         costs speed: ip link set {0} mtu {MTU}",
        payload = payload_max(*.1 as usize)
    )]
    Short(String, u32),
}

/// What is proposed: room for full frames, by custom.
const MTU: u32 = 2500;

impl LinkProblem {
    /// The worst at a place, whose link is so. A cable has none.
    pub(super) fn at(place: &Place, link: LinkStatus) -> Option<Self> {
        let interface = place.interface()?.to_owned();
        let payload = payload_max(link.mtu as usize);
        if payload < MIN_PAYLOAD {
            Some(Self::Narrow(interface, link.mtu))
        } else if !link.up {
            Some(Self::Down(interface))
        } else if usize::from(payload) < MAX_PAYLOAD {
            Some(Self::Short(interface, link.mtu))
        } else {
            None
        }
    }

    /// Whether no frame passes.
    pub(super) const fn is_barrier(&self) -> bool {
        !matches!(self, Self::Short(..))
    }
}

/// Why there is no N_Port.
#[derive(Debug, thiserror::Error)]
pub enum NoPort {
    /// The Ethernet port cannot be had.
    #[error(transparent)]
    Ether(#[from] EtherOpenError),
    /// No frame of Fibre Channel can pass there.
    #[error(transparent)]
    Narrow(LinkProblem),
    /// The kernel's fcoe has the same names there.
    #[error(
        "{0}: the kernel has an FCoE port on {1} with the same names: remove it first with echo \
         {1} > /sys/module/libfcoe/parameters/destroy"
    )]
    Kernel(Place, String),
    /// It cannot be used as is needed.
    #[error("{0}: {1}")]
    Io(Place, #[source] io::Error),
}
