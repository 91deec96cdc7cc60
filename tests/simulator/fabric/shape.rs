//! What a world begins with.

use std::time::Duration;

use fc::fabric::SwitchConfig;
use fc::fip::enode::FabricConfig;
use fc::port::{PortConfig, PortMode};
use fc::tests::Station;
use fc::wire::ethernet::Mac;
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
    pub(crate) ethernets: usize,
    pub(crate) kind: DiskKind,
    pub(crate) mtu: usize,
    /// FKA_ADV_PERIOD.
    pub(crate) period: Duration,
    /// Whether a second switch stands by.
    pub(crate) standby: bool,
    /// Whether there is a switch of another fabric too, which is not running at first.
    pub(crate) foreign: bool,
    /// Whether our ports want this fabric and no other.
    pub(crate) pinned: bool,
    pub(crate) mutant: Option<Mutant>,
}

impl FabricShape {
    /// One target, one host, one Linux kernel, one switch.
    pub(crate) const fn new() -> Self {
        Self {
            targets: 1,
            hosts: 1,
            linux: 1,
            ethernets: 1,
            kind: DiskKind::Memory,
            mtu: 2500,
            period: Duration::from_secs(8),
            standby: false,
            foreign: false,
            pinned: false,
            mutant: None,
        }
    }

    /// Any.
    pub(crate) fn any(rng: &mut Rng) -> Self {
        Self {
            targets: 1 + rng.below(2),
            hosts: 1 + rng.below(2),
            linux: rng.below(3),
            ethernets: 1 + rng.below(2),
            kind: *rng.pick(&[DiskKind::Apart, DiskKind::Memory]),
            mtu: *rng.pick(&[1500, 2500]),
            period: Duration::from_millis(*rng.pick(&[500, 2000, 8000, 8000])),
            standby: rng.one_in(3),
            foreign: rng.one_in(4),
            pinned: rng.one_in(2),
            mutant: None,
        }
    }
}

/// Targets and hosts, which are not started yet.
pub(super) fn ports(shape: &FabricShape, rng: &mut Rng) -> (Vec<Server>, Vec<Host>) {
    let config = |at: usize| {
        let mut config = PortConfig::new(mac(at), shape.mtu);
        let fabric = shape.pinned.then_some(FABRIC_NAME);
        config.mode = PortMode::Fabric(FabricConfig {
            fabric,
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

/// The stations by their names.
pub(super) fn names(shape: &FabricShape) -> Vec<ZonedPort> {
    let ours = (0..shape.targets + shape.hosts).map(mac);
    let all = ours.chain((0..shape.linux).map(kernel_mac));
    let port = |mac| {
        let config = PortConfig::new(mac, shape.mtu);
        ZonedPort {
            wwpn: config.wwpn,
            wwnn: config.wwnn,
            fc_id: None,
        }
    };
    all.map(port).collect()
}

/// The switches, which are not started yet.
pub(super) fn switches(shape: &FabricShape) -> Vec<Chassis> {
    let of = |number: u8, config| Chassis::new(number, config, shape.ethernets, shape.mtu);
    let config = SwitchConfig {
        standby: shape.standby,
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
            standby: false,
            switch_name: None,
            fabric_name: None,
            ..config
        };
        switches.push(of(2, foreign));
    }
    switches
}

pub(super) fn linux(at: usize, mtu: usize) -> Station<Linux> {
    Station::new(kernel_mac(at), kernel(at, mtu))
}

pub(super) fn kernel(at: usize, mtu: usize) -> Linux {
    let PortConfig { wwpn, wwnn, .. } = PortConfig::new(kernel_mac(at), mtu);
    Linux::new(kernel_mac(at), mtu, (wwpn, wwnn))
}

const fn mac(at: usize) -> Mac {
    Mac([2, 0, 0, 0, 1, at as u8])
}

const fn kernel_mac(at: usize) -> Mac {
    Mac([2, 0, 0, 0, 2, at as u8])
}

const SWITCH_NAME: Wwn = Wwn(0x1000_0200_0000_0001);
pub(super) const FABRIC_NAME: Wwn = Wwn(0x2064_0200_0000_0001);
