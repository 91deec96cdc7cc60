//! Orders to change what is served, and what must be so when they have been carried out.

use std::collections::BTreeSet;
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex};

use engine::change::{Change, ChangeError, NewVolume};
use engine::views::{TargetViews, Views};
use iscsi::target::{NodeAccess, PortalGroup};
use scsi::unit::UnitId;
use scsi::wire::lun::Lun;

use super::{LUNS, Next, Order, Site, TARGET, config};

impl Site {
    /// Has something changed, unless something is being changed.
    pub(super) fn give_order(&mut self) {
        if self.order.is_some() {
            return;
        }
        let mut next = Next {
            units: self.units.clone(),
            luns: self.luns.clone(),
            revoked: self.revoked.clone(),
            ..Next::default()
        };
        let mut swaps = Vec::new();
        for _ in 0..1 + self.rng.below(3) {
            match self.rng.below(6) {
                0 => self.add(&mut next),
                1 => self.remove(&mut next),
                2 => self.remap(&mut next),
                3 | 4 => swaps.extend(self.swap(&mut next)),
                _ => self.revoke(&mut next),
            }
        }
        next.told = self.told(&next);
        self.tell(|| {
            format!(
                "LUNs {:?} of {:?}, revoked {:?}",
                next.luns, next.units, next.revoked
            )
        });
        self.send_order(next, swaps);
    }

    /// The LUNs that have to tell of a change: all if there are others, else those whose capacity
    /// is another.
    fn told(&self, next: &Next) -> Vec<u16> {
        if self.luns != next.luns {
            return next.luns.keys().copied().collect();
        }
        let capacity = |disk: usize| self.watch.disks[disk].disk.traits().blocks;
        let resized = |unit: &UnitId| capacity(self.units[unit]) != capacity(next.units[unit]);
        let luns = next.luns.iter().filter(|(_, unit)| resized(unit));
        luns.map(|(lun, _)| *lun).collect()
    }

    fn spare(&mut self, next: &Next) -> Option<usize> {
        let used: BTreeSet<usize> = next.units.values().copied().collect();
        let free = (0..self.watch.disks.len())
            .filter(|n| !self.watch.disks[*n].is_in && !used.contains(n));
        let free: Vec<_> = free.collect();
        (!free.is_empty()).then(|| *self.rng.pick(&free))
    }

    fn add(&mut self, next: &mut Next) {
        let lun = self.rng.below(usize::from(LUNS)) as u16;
        if next.luns.contains_key(&lun) {
            return;
        }
        let Some(disk) = self.spare(next) else { return };
        let unit = self.free.pop().unwrap_or_else(|| {
            self.slots += 1;
            UnitId::first(self.slots - 1)
        });
        next.units.insert(unit, disk);
        next.luns.insert(lun, unit);
        next.arrived.push(unit);
    }

    fn remove(&mut self, next: &mut Next) {
        let luns: Vec<_> = next.luns.keys().copied().collect();
        if luns.len() < 2 {
            return;
        }
        let unit = next.luns[self.rng.pick(&luns)];
        if next.arrived.contains(&unit) {
            return;
        }
        next.luns.retain(|_, other| *other != unit);
        next.units.remove(&unit);
        next.gone.push(unit);
    }

    /// A LUN becomes another unit's, which may have two then; a unit may have none.
    fn remap(&mut self, next: &mut Next) {
        let units: Vec<_> = next.units.keys().copied().collect();
        if !units.is_empty() {
            let lun = self.rng.below(usize::from(LUNS)) as u16;
            next.luns.insert(lun, *self.rng.pick(&units));
        }
    }

    fn swap(&mut self, next: &mut Next) -> Option<NewVolume> {
        let stay = self.units.keys().filter(|unit| {
            // Each gets one other volume at the most.
            next.units.get(unit) == self.units.get(unit)
        });
        let stay: Vec<_> = stay.copied().collect();
        if stay.is_empty() {
            return None;
        }
        let (unit, disk) = (*self.rng.pick(&stay), self.spare(next)?);
        next.units.insert(unit, disk);
        Some(NewVolume {
            unit,
            volume: self.watch.disks[disk].disk.volume(),
            name: format!("disk {disk}"),
            is_absent: false,
        })
    }

    fn revoke(&mut self, next: &mut Next) {
        let host = self.rng.below(self.hosts.len());
        match next.revoked.iter().position(|one| *one == host) {
            Some(at) => drop(next.revoked.remove(at)),
            None => next.revoked.push(host),
        }
    }

    fn send_order(&mut self, next: Next, mut swaps: Vec<NewVolume>) {
        swaps.retain(|swap| next.units.contains_key(&swap.unit));
        let arrived = next.arrived.iter();
        let arrivals = arrived.filter_map(|unit| {
            let disk = &self.watch.disks[*next.units.get(unit)?].disk;
            Some(sim::new_unit(*unit, disk))
        });
        let map = next.luns.iter();
        let map = map.map(|(lun, unit)| (Lun::from_index(*lun), *unit));
        let shown = TargetViews::iscsi(TARGET, &[PortalGroup::everywhere()], &map.collect(), &[]);
        let mut views = Views::default();
        views.insert(TARGET.into(), shown);
        let allowed = self.hosts.iter().enumerate();
        let allowed = allowed.filter(|(number, _)| !next.revoked.contains(number));
        let names = allowed.map(|(_, host)| host.port.settings.name.clone());
        let access = NodeAccess::only(names.collect());
        let result = Arc::new(Mutex::new(None));
        let told = Arc::clone(&result);
        let change = Change {
            arrivals: arrivals.collect(),
            swaps,
            departures: next.gone.clone(),
            inherited: Vec::new(),
            views: Arc::new(views),
            config: Arc::new(config(access)),
            partners: Vec::new(),
            listen: Vec::new(),
            close: Vec::new(),
            listen_by_devices: Vec::new(),
            close_devices: Vec::new(),
            done: Box::new(move |result| *told.lock().expect("no panic") = Some(result)),
        };
        let begun = self.tick;
        for disk in next.units.values() {
            self.watch.disks[*disk].is_in = true;
        }
        for (number, host) in self.hosts.iter_mut().enumerate() {
            host.revoked_at = host.revoked_at.filter(|_| next.revoked.contains(&number));
        }
        // From now on a LUN may lead to the old disk or the new.
        let before = std::mem::replace(&mut self.luns, next.luns.clone());
        let units = std::mem::replace(&mut self.units, next.units.clone());
        self.map_from(begun);
        (self.luns, self.units) = (before, units);
        self.order = Some(Order {
            result,
            next,
            begun,
        });
        self.world.change(change);
        self.watch.look();
        self.look_at_orders();
    }

    pub(super) fn look_at_orders(&mut self) {
        let result = self.order.as_ref();
        let result = result.and_then(|order| order.result.lock().expect("no panic").take());
        if let Some(result) = result
            && let Some(order) = self.order.take()
        {
            match result {
                Ok(()) => self.made(order),
                Err(ChangeError::Busy(_)) => self.refused(&order),
                Err(error) => panic!("{error}"),
            }
        }
        let is_over = |(_, told): &mut (Vec<u32>, Receiver<()>)| told.try_recv().is_ok();
        if let Some((stamps, _)) = self.dropping.take_if(is_over) {
            for stamp in stamps {
                self.watch.over(stamp);
            }
        }
    }

    /// What was replaced is out of use now, for whoever begins something.
    fn made(&mut self, order: Order) {
        self.made[0] += 1;
        let (now, next) = (self.tick, order.next);
        self.tell(|| format!("made: {:?}", next.luns));
        for one in &mut self.history {
            if one.from < order.begun || one.from == 0 {
                one.until = one.until.min(now);
            }
        }
        (self.luns, self.units) = (next.luns, next.units);
        self.revoked = next.revoked;
        self.free
            .extend(next.gone.iter().map(|unit| unit.successor()));
        self.map_from(now);
        self.leave_unused();
        for host in &mut self.hosts {
            for lun in &next.told {
                host.must_hear(*lun, order.begun, now);
            }
        }
        self.note_revoked();
        for number in self.revoked.clone() {
            for stamp in self.hosts[number].stamps() {
                self.watch.over(stamp);
            }
        }
    }

    fn note_revoked(&mut self) {
        for number in &self.revoked {
            let revoked_at = &mut self.hosts[*number].revoked_at;
            *revoked_at = Some(revoked_at.unwrap_or(self.tick));
        }
    }

    fn refused(&mut self, order: &Order) {
        self.made[1] += 1;
        let now = self.tick;
        self.tell(|| "refused".to_owned());
        for one in &mut self.history {
            if one.from >= order.begun {
                one.until = one.until.min(now);
            }
        }
        self.note_revoked();
        let arrived = order.next.arrived.iter();
        self.free.extend(arrived.map(|unit| unit.successor()));
        self.map_from(now);
        self.leave_unused();
    }

    /// Disks that are behind no unit must not change.
    fn leave_unused(&mut self) {
        for (number, one) in self.watch.disks.iter_mut().enumerate() {
            one.is_in = self.units.values().any(|disk| *disk == number);
        }
    }

    /// Ends some session.
    pub(super) fn give_drop(&mut self) {
        let sessions = self.world.sessions();
        if self.dropping.is_some() || sessions.is_empty() {
            return;
        }
        let session = self.rng.pick(&sessions).clone();
        let mut hosts = self.hosts.iter();
        let host = hosts.find(|host| host.port.settings.name == session.initiator.name);
        let stamps = host.map_or_else(Vec::new, super::Host::stamps);
        let told = self.world.drop_session(session.tsih);
        self.dropping = Some((stamps, told));
    }
}
