//! What a world begins with.

use std::time::Duration;

use fc::fabric::SwitchConfig;
use fc::fip::enode::FabricConfig;
use fc::port::{PortConfig, PortMode};
use fc::tests::Station;
use fc::wire::ethernet::{Mac, VlanTag};
use fc::wire::names::Wwn;
use sim::{DiskKind, Rng};

use super::chassis::Chassis;
use super::linux::Linux;
use super::watch::Mutant;
use super::zoning::{ZonedPort, Zoning};
use crate::ports::{Host, Server};

/// What a world begins with.
#[derive(Clone, Debug)]
pub(crate) struct FabricShape {
    pub(crate) targets: usize,
    pub(crate) hosts: usize,
    /// ENodes of a Linux kernel.
    pub(crate) linux: usize,
    /// Further VN_Ports of each of them.
    pub(crate) vports: usize,
    /// A station of ours that is a further N_Port (NPIV) of the ENode of the one before it.
    pub(crate) further: Option<usize>,
    pub(crate) ethernets: usize,
    pub(crate) kind: DiskKind,
    pub(crate) mtu: usize,
    /// FKA_ADV_PERIOD.
    pub(crate) period: Duration,
    /// How the ports find the VLAN of the fabric.
    pub(crate) vlan: Vlan,
    /// Whether a second switch stands by.
    pub(crate) standby: bool,
    /// Whether there is a switch of another fabric too, which is not running at first.
    pub(crate) foreign: bool,
    /// Whether our ports want this fabric and no other.
    pub(crate) pinned: bool,
    pub(crate) mutant: Option<Mutant>,
}

/// How ports of ours find the VLAN of a fabric. Kernels leave that to a program, so there are none
/// of them where there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Vlan {
    /// There is none.
    None,
    /// They were told.
    Told,
    /// They ask, by FIP.
    Asked,
}

impl FabricShape {
    /// One target, one host, one Linux kernel, one switch.
    pub(crate) const fn new() -> Self {
        Self {
            targets: 1,
            hosts: 1,
            linux: 1,
            vports: 0,
            further: None,
            ethernets: 1,
            kind: DiskKind::Memory,
            mtu: 2500,
            period: Duration::from_secs(8),
            vlan: Vlan::None,
            standby: false,
            foreign: false,
            pinned: false,
            mutant: None,
        }
    }

    /// Any.
    pub(crate) fn any(rng: &mut Rng) -> Self {
        let vlan = *rng.pick(&[Vlan::None, Vlan::None, Vlan::None, Vlan::Told, Vlan::Asked]);
        let linux = if vlan == Vlan::None { 3 } else { 1 };
        let (targets, hosts) = (1 + rng.below(2), 1 + rng.below(2));
        let is_npiv = rng.one_in(3);
        Self {
            targets,
            hosts,
            linux: rng.below(linux),
            vports: *rng.pick(&[0, 0, 1]),
            further: is_npiv.then(|| 1 + rng.below(targets + hosts - 1)),
            ethernets: 1 + rng.below(2),
            kind: *rng.pick(&[DiskKind::Apart, DiskKind::Memory]),
            mtu: *rng.pick(&[1500, 2500]),
            period: Duration::from_millis(*rng.pick(&[500, 2000, 8000, 8000])),
            vlan,
            standby: rng.one_in(3),
            foreign: rng.one_in(4),
            pinned: rng.one_in(2),
            mutant: None,
        }
    }

    /// The names of a station of ours, and its ENode.
    fn port(&self, at: usize) -> PortConfig {
        let own = PortConfig::new(mac(at), self.mtu);
        if self.further != Some(at) {
            return own;
        }
        PortConfig {
            wwpn: own.wwpn,
            further: Some(1),
            ..PortConfig::new(mac(at - 1), self.mtu)
        }
    }

    /// At which Ethernet each station is. Ports of one ENode are at the same.
    pub(super) fn places(&self, rng: &mut Rng) -> Vec<usize> {
        let count = self.targets + self.hosts + self.linux;
        let mut places: Vec<_> = (0..count).map(|_| rng.below(self.ethernets)).collect();
        if let Some(further) = self.further {
            places[further] = places[further - 1];
        }
        places
    }
}

/// Targets and hosts, which are not started yet.
pub(super) fn ports(shape: &FabricShape, rng: &mut Rng) -> (Vec<Server>, Vec<Host>) {
    let config = |at: usize| {
        let mut config = shape.port(at);
        config.tag = (shape.vlan == Vlan::Told).then(|| tag(VID));
        let fabric = shape.pinned.then_some(FABRIC_NAME);
        config.mode = PortMode::Fabric(FabricConfig {
            fabric,
            discovers_vlan: shape.vlan == Vlan::Asked,
            ..FabricConfig::default()
        });
        config
    };
    let server = |at| Server::new(at, config(at), shape.kind, rng);
    let servers: Vec<_> = (0..shape.targets).map(server).collect();
    let wwpns: Vec<Wwn> = servers.iter().map(|server| server.config.wwpn).collect();
    let host = |at| Host::new(config(shape.targets + at), &wwpns, rng);
    let hosts = (0..shape.hosts).map(host).collect();
    (servers, hosts)
}

/// The ports by their names: those of the stations, which are at these places, then further ones of
/// the kernels.
pub(super) fn names(shape: &FabricShape, places: &[usize]) -> Vec<ZonedPort> {
    let ours = (0..shape.targets + shape.hosts).map(|at| shape.port(at));
    let kernels = (0..shape.linux).map(|at| PortConfig::new(kernel_mac(at), shape.mtu));
    let all = ours.chain(kernels);
    let names = |config: PortConfig| (config.wwpn, config.wwnn);
    let further = (0..shape.linux).flat_map(|at| vports(at, shape.vports));
    let kernels = &places[shape.targets + shape.hosts..];
    let of_kernels = kernels.iter().flat_map(|place| vec![*place; shape.vports]);
    let places = places.iter().copied().chain(of_kernels);
    let port = |((wwpn, wwnn), place)| ZonedPort {
        wwpn,
        wwnn,
        fc_id: None,
        place,
    };
    let names = all.map(names).chain(further);
    names.zip(places).map(port).collect()
}

/// The switches, which are not started yet.
pub(super) fn switches(shape: &FabricShape) -> Vec<Chassis> {
    let of = |number: u8, config| Chassis::new(number, config, shape.ethernets, shape.mtu);
    let config = SwitchConfig {
        standby: shape.standby,
        vlan: (shape.vlan != Vlan::None).then_some(VID),
        fka_adv_period: shape.period,
        switch_name: Some(SWITCH_NAME),
        fabric_name: Some(FABRIC_NAME),
        zones: Zoning::open().file,
        ..SwitchConfig::default()
    };
    let mut switches = vec![of(0, config.clone())];
    if shape.standby {
        switches.push(of(1, config.clone()));
    }
    if shape.foreign {
        let foreign = SwitchConfig {
            domain: 9,
            vlan: None,
            standby: false,
            switch_name: None,
            fabric_name: None,
            ..config
        };
        switches.push(of(2, foreign));
    }
    switches
}

pub(super) fn linux(at: usize, shape: &FabricShape) -> Station<Linux> {
    Station::new(kernel_mac(at), kernel(at, (shape.mtu, shape.vports)))
}

pub(super) fn kernel(at: usize, (mtu, further): (usize, usize)) -> Linux {
    let PortConfig { wwpn, wwnn, .. } = PortConfig::new(kernel_mac(at), mtu);
    Linux::new(kernel_mac(at), mtu, (wwpn, wwnn), &vports(at, further))
}

/// The names of the further VN_Ports of a kernel.
fn vports(at: usize, count: usize) -> Vec<(Wwn, Wwn)> {
    let name = |number: usize| {
        let low = (at << 8 | number) as u64;
        (
            Wwn(0x2001_0200_00ff_0000 | low),
            Wwn(0x1001_0200_00ff_0000 | low),
        )
    };
    (0..count).map(name).collect()
}

const fn mac(at: usize) -> Mac {
    Mac([2, 0, 0, 0, 1, at as u8])
}

const fn kernel_mac(at: usize) -> Mac {
    Mac([2, 0, 0, 0, 2, at as u8])
}

/// The tag of a VLAN.
pub(super) const fn tag(vid: u16) -> VlanTag {
    VlanTag {
        priority: 3,
        dei: false,
        vid,
    }
}

/// The VLAN of the fabric at first.
const VID: u16 = 152;

const SWITCH_NAME: Wwn = Wwn(0x1000_0200_0000_0001);
pub(super) const FABRIC_NAME: Wwn = Wwn(0x2064_0200_0000_0001);
