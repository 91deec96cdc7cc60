//! What has to be so once everybody was left alone for a while.

use std::collections::BTreeSet;
use std::time::Duration;

use fc::fabric::servers::{PortLogin, PortView};
use fc::fabric::{DropReason, Switch, SwitchLogin, Verdict};
use fc::port::{Fc4Layer, Port};
use fc::remote::RemotePort;
use fc::tests::frame;
use fc::wire::ethernet::{self, EthernetHeader};
use fc::wire::fcoe::{Eof, Sof};
use fc::wire::frame::{FrameHeader, FrameType, OxId, RCtl};
use fc::wire::names::{FcId, Wwn};
use scsi::medium::Extent;

use super::FabricWorld;
use super::chassis::number;
use super::linux::VnPort;
use super::zoning::ZonedPort;
use crate::ports::{BLOCKS, PortWorld, Use};

/// What is not as it should be.
type Wrong = String;

impl FabricWorld {
    /// Everybody is left alone until all is well.
    pub(crate) fn recover(&mut self, most: Duration) {
        let until = self.now + most;
        while let Err(wrong) = self.is_well() {
            assert!(self.now < until, "after {most:?}: {wrong}");
            self.run(STEP, |_| false);
        }
    }

    /// All stays well, and no nexus ends.
    pub(crate) fn stay(&mut self, time: Duration) {
        let nexuses = self.nexuses();
        self.run(time, |_| false);
        self.is_well()
            .unwrap_or_else(|wrong| panic!("later on: {wrong}"));
        assert_eq!(self.nexuses(), nexuses, "logins that do not last");
    }

    fn nexuses(&self) -> Vec<u64> {
        let paths = 0..self.servers.len();
        let of = |path| self.hosts.iter().map(move |host| host.nexuses(path));
        paths.flat_map(of).collect()
    }

    /// Every host writes to each target that it sees, and reads it as a whole; each step of that
    /// takes so long at the most.
    pub(crate) fn use_all(&mut self, most: Duration) {
        let is_idle = |world: &Self| world.hosts.iter().all(|host| host.busy() == 0);
        self.within(most, "end of what was begun", is_idle);
        let all = Extent::new(0, BLOCKS);
        for host in 0..self.hosts.len() {
            let paths = 0..self.servers.len();
            let paths: Vec<_> = paths.filter(|path| self.reaches(host, *path)).collect();
            for path in paths {
                for what in [Use::Write(Extent::new(0, 3)), Use::Read(all)] {
                    let good = self.hosts[host].good;
                    // Unit attentions come first, and logins may end that the target knows nothing
                    // of any more.
                    for _ in 0..8 {
                        if self.hosts[host].good == good {
                            self.recover(most);
                            self.begin(host, path, what);
                            self.within(most, "end", is_idle);
                        }
                    }
                    let done = self.hosts[host].good > good;
                    assert!(done, "host {host} cannot do {what:?} at {path}");
                }
            }
        }
    }

    /// Whether a host is to see a target.
    fn reaches(&self, host: usize, path: usize) -> bool {
        self.watch.share(self.servers.len() + host, path)
    }

    /// Whether all is as it should be, with whatever is not.
    pub(crate) fn is_well(&self) -> Result<(), Wrong> {
        let switch = self.active()?;
        let logins = self.logins(switch)?;
        registered(switch, &logins)?;
        self.forwarded(switch, &logins)?;
        for (at, login) in logins.iter().enumerate() {
            self.sees_its_own(at, login)?;
        }
        self.hosts_see_targets()?;
        self.targets_see_hosts()
    }

    /// The one switch of ours that is active.
    fn active(&self) -> Result<&Switch, Wrong> {
        let switches = self.chassis[..self.ours].iter();
        let switches = switches.filter_map(|chassis| chassis.switch.as_ref());
        let active: Vec<_> = switches.filter(|switch| switch.is_active()).collect();
        match active[..] {
            [one] => Ok(one),
            _ => Err(format!("{} switches are active", active.len())),
        }
    }

    /// The logins of all stations, as switch and station agree on them.
    fn logins(&self, switch: &Switch) -> Result<Vec<SwitchLogin>, Wrong> {
        let mut logins = Vec::new();
        for (at, port) in self.watch.ports.iter().enumerate() {
            let login = switch.logins().find(|login| login.wwpn == port.wwpn);
            let login = login.ok_or_else(|| format!("{at} is not logged in"))?;
            let view = self.address(at);
            if view != Some((login.fc_id, login.mac)) {
                return Err(format!("{at} is {view:?}, and the switch has {login:?}"));
            }
            if usize::from(login.port.0) != self.place_of(at) {
                return Err(format!("{at} is not at {:?}", login.port));
            }
            logins.push(login.clone());
        }
        match switch.logins().count() {
            count if count == logins.len() => Ok(logins),
            count => Err(format!("{count} logins")),
        }
    }

    /// What a station takes for its address.
    fn address(&self, at: usize) -> Option<(FcId, ethernet::Mac)> {
        let (servers, hosts) = (self.servers.len(), self.hosts.len());
        let ours = if at < servers {
            self.servers[at].station.port.address()
        } else if at < servers + hosts {
            self.hosts[at - servers].station.port.address()
        } else {
            return self.vn_port(at).granted();
        };
        ours.map(|address| (address.fc_id, address.mac))
    }

    /// The forwarding table lets pass what the zones say, and nothing else.
    fn forwarded(&self, switch: &Switch, logins: &[SwitchLogin]) -> Result<(), Wrong> {
        let table = switch.forwarding();
        for (a, from) in logins.iter().enumerate() {
            for (b, to) in logins.iter().enumerate().filter(|(b, _)| *b != a) {
                let fcf = self.fcf_of(a);
                let frame = probe(from, to, fcf, self.chassis[0].config.vlan);
                let verdict = table.forward(number(self.place_of(a)), &frame);
                let is_right = match verdict {
                    Verdict::Forward(way) => {
                        self.watch.share(a, b) && way.egress == number(self.place_of(b))
                    }
                    Verdict::Dropped(DropReason::Zoned) => !self.watch.share(a, b),
                    _ => false,
                };
                if !is_right {
                    return Err(format!("from {a} to {b}: {verdict:?}"));
                }
            }
        }
        Ok(())
    }

    /// The address of the active switch at the Ethernet of a station.
    fn fcf_of(&self, at: usize) -> ethernet::Mac {
        let is_active = |chassis: &&super::chassis::Chassis| {
            let switch = chassis.switch.as_ref();
            switch.is_some_and(Switch::is_active)
        };
        let active = self.chassis[..self.ours].iter().find(is_active);
        active.map_or(ethernet::Mac::BROADCAST, |one| one.mac(self.place_of(at)))
    }

    /// A station knows ports of its zones, and no others. Hosts and Linux kernels know all of them;
    /// a target knows those that have logged in to it.
    fn sees_its_own(&self, at: usize, login: &SwitchLogin) -> Result<(), Wrong> {
        let (servers, hosts) = (self.servers.len(), self.hosts.len());
        let zone: BTreeSet<_> = self.zone_of(at).map(|port| port.wwpn).collect();
        let (seen, is_right) = if at < servers {
            let seen = known(&self.servers[at].station.port)?;
            let is_right = seen.is_subset(&zone);
            (seen, is_right)
        } else if at < servers + hosts {
            let seen = known(&self.hosts[at - servers].station.port)?;
            let is_right = seen == zone;
            (seen, is_right)
        } else {
            return self.kernel_sees(at);
        };
        if is_right {
            Ok(())
        } else {
            let own = login.fc_id;
            Err(format!("{at} ({own:?}) sees {seen:?}, not {zone:?}"))
        }
    }

    /// The others that a port is to see.
    fn zone_of(&self, at: usize) -> impl Iterator<Item = &ZonedPort> {
        let others = 0..self.watch.ports.len();
        let others = others.filter(move |other| *other != at && self.watch.share(at, *other));
        others.map(|other| &self.watch.ports[other])
    }

    /// A VN_Port of a kernel, by the number of the port.
    fn vn_port(&self, at: usize) -> &VnPort {
        let (kernel, number) = self.kernel_of(at);
        self.linux[kernel].port.vn_port(number)
    }

    /// The kernel that a port is of, and which of its VN_Ports that is.
    fn kernel_of(&self, at: usize) -> (usize, usize) {
        match at.checked_sub(self.stations()) {
            None => (at - self.servers.len() - self.hosts.len(), 0),
            Some(further) => (further / self.vports, 1 + further % self.vports),
        }
    }

    /// At which Ethernet a port is.
    fn place_of(&self, at: usize) -> usize {
        self.watch.ports[at].place
    }

    fn kernel_sees(&self, at: usize) -> Result<(), Wrong> {
        let zone: BTreeSet<_> = self
            .zone_of(at)
            .filter_map(|port| Some((port.fc_id?, port.wwpn)))
            .collect();
        let view = &self.vn_port(at).local_port;
        let seen: BTreeSet<_> = view.seen.iter().map(|(id, name)| (*id, *name)).collect();
        if !view.is_settled() || seen != zone {
            return Err(format!("{at} sees {seen:?}, not {zone:?}"));
        }
        let is_seen = |id: &FcId| view.seen.contains_key(id);
        if view.logged_in.iter().all(is_seen) {
            Ok(())
        } else {
            Err(format!("{at} is logged in to {:?}", view.logged_in))
        }
    }

    /// Hosts are logged in to the targets that they see, and to no others.
    fn hosts_see_targets(&self) -> Result<(), Wrong> {
        self.each_path(|host, path| self.hosts[host].is_up(path), "host")
    }

    /// Targets have logins of the hosts that they see, and of no others.
    fn targets_see_hosts(&self) -> Result<(), Wrong> {
        let is_up = |host: usize, path: usize| {
            let wwpn = self.hosts[host].station.port.wwpn();
            let remote = self.servers[path].station.port.find(wwpn);
            remote.is_some_and(RemotePort::is_up)
        };
        self.each_path(is_up, "target")
    }

    fn each_path(&self, is_up: impl Fn(usize, usize) -> bool, whose: &str) -> Result<(), Wrong> {
        for host in 0..self.hosts.len() {
            for path in 0..self.servers.len() {
                let (reaches, is_up) = (self.reaches(host, path), is_up(host, path));
                if reaches != is_up {
                    return Err(format!("{whose}: host {host} and target {path}: {is_up}"));
                }
            }
        }
        Ok(())
    }
}

/// Remote ports that a port of ours knows, once it has asked the services all that it asks.
fn known<F: Fc4Layer>(port: &Port<F>) -> Result<BTreeSet<Wwn>, Wrong> {
    if port.is_linking(Wwn(0)) {
        return Err(format!("{} is looking", port.wwpn()));
    }
    Ok(port.remotes().map(RemotePort::wwpn).collect())
}

/// The services of the fabric know those that are logged in.
fn registered(switch: &Switch, logins: &[SwitchLogin]) -> Result<(), Wrong> {
    let names = |port: &PortLogin| (port.fc_id, port.wwpn, port.wwnn);
    let served: BTreeSet<_> = switch.registered().map(|port| names(port.login)).collect();
    let logins = logins.iter();
    let there: BTreeSet<_> = logins.map(|one| (one.fc_id, one.wwpn, one.wwnn)).collect();
    if served != there {
        return Err(format!("the services have {served:?}, not {there:?}"));
    }
    let is_anonymous = |port: &PortView<'_>| port.features.of(FrameType::FCP) == 0;
    match switch.registered().find(is_anonymous) {
        None => Ok(()),
        Some(port) => Err(format!("{:?} has not registered", port.login)),
    }
}

/// A frame from one port to another.
fn probe(from: &SwitchLogin, to: &SwitchLogin, fcf: ethernet::Mac, vlan: Option<u16>) -> Vec<u8> {
    let ethernet = EthernetHeader {
        vlan: vlan.map(super::shape::tag),
        ..EthernetHeader::new(from.mac, fcf, ethernet::FCOE)
    };
    let kind = (RCtl::UNSOLICITED_COMMAND, FrameType::FCP);
    let header = FrameHeader::request(kind, (from.fc_id, to.fc_id), OxId(1));
    frame(&ethernet, (Sof::I3, Eof::T), &header, &[0; 32])
}

/// How often it is looked whether all is well.
const STEP: Duration = Duration::from_millis(500);
