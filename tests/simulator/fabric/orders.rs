//! What is done to switches, and to all stations at once.

use std::time::Duration;

use super::FabricWorld;
use super::shape::Vlan;
use super::watch::Mutant;
use super::zoning::Zoning;
use crate::ports::PortWorld;

impl FabricWorld {
    /// Kernels in point-to-point mode have their cables taken out and put in again, as they hear no
    /// FCF before; how many there were.
    pub(crate) fn relink_point_to_point(&mut self) -> usize {
        let first = self.servers.len() + self.hosts.len();
        let is_lost = |at: &usize| self.linux[at - first].port.is_point_to_point();
        let lost: Vec<_> = (first..self.stations()).filter(is_lost).collect();
        for at in &lost {
            self.link(*at, false);
            self.link(*at, true);
        }
        lost.len()
    }

    /// A switch is started, with the zones of now and the N_Port_IDs that were written down.
    pub(crate) fn start_switch(&mut self, number: usize) {
        self.tell(|| format!("switch {number} starts"));
        let chassis = &mut self.chassis[number];
        if number < self.ours {
            let zoning = self.watch.ordered.as_ref().unwrap_or(&self.watch.zoning);
            chassis.config.zones = zoning.file.clone();
            chassis.config.ids.clone_from(&self.ids);
        }
        chassis.start(self.now, &mut self.rng);
        self.touched.insert(self.stations() + number);
    }

    /// A switch is killed.
    pub(crate) fn kill_switch(&mut self, number: usize) {
        self.tell(|| format!("switch {number} is killed"));
        self.chassis[number].kill();
        self.answer();
    }

    /// A switch is told to end, and has sent its last.
    pub(crate) fn end_switch(&mut self, number: usize) {
        self.tell(|| format!("switch {number} is to end"));
        let now = self.now;
        if let Some(switch) = &mut self.chassis[number].switch {
            switch.shut_down(now);
        }
        self.touched.insert(self.stations() + number);
        self.run(Duration::from_millis(1), |_| false);
        self.kill_switch(number);
    }

    /// The switch will have this FC-MAP when it is started anew.
    pub(crate) fn set_fc_map(&mut self, number: usize, fc_map: [u8; 3]) {
        self.chassis[number].config.fc_map = fc_map;
    }

    /// The switch will have this VLAN when it is started anew, if ports ask for it.
    pub(crate) fn set_vlan(&mut self, number: usize, vid: u16) {
        if self.vlan == Vlan::Asked {
            self.chassis[number].config.vlan = Some(vid);
        }
    }

    /// A switch's cable is taken out or put in.
    pub(crate) fn link_switch(&mut self, number: usize, ethernet: usize, up: bool) {
        self.tell(|| format!("switch {number} at {ethernet} has its link up: {up}"));
        self.chassis[number].link(self.now, ethernet, up);
        self.touched.insert(self.stations() + number);
    }

    /// Zones by lot are ordered, and then answered.
    pub(crate) fn rezone(&mut self) {
        let zoning = Zoning::any(&self.watch.ports, &mut self.rng);
        self.tell(|| format!("zones {zoning:?}"));
        for chassis in &mut self.chassis[..self.ours] {
            let takes = Duration::from_micros(self.rng.below(3000) as u64);
            let runs = chassis.switch.is_some();
            chassis.order = runs.then(|| (self.now + takes, zoning.clone()));
        }
        self.watch.ordered = Some(zoning);
        if self.mutant == Some(Mutant::AnswersFirst) {
            self.accept_zones();
        }
        self.answer();
        let is_answered = |world: &Self| world.watch.ordered.is_none();
        self.within(Duration::from_millis(10), "answer to zones", is_answered);
    }

    /// Zones are answered when no switch has still to take them up.
    pub(super) fn answer(&mut self) {
        let ours = &self.chassis[..self.ours];
        if ours.iter().all(|chassis| chassis.order.is_none()) {
            self.accept_zones();
        }
    }

    pub(super) fn accept_zones(&mut self) {
        if let Some(zoning) = self.watch.ordered.take() {
            self.tell(|| "the zones are answered".to_owned());
            self.watch.zoning = zoning;
        }
    }
}
