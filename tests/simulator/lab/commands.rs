//! Commands and functions that hosts send, with the oracle's knowledge.

use iscsi::wire::bhs::Itt;
use iscsi::wire::task_management::function;
use scsi::medium::Extent;
use scsi::wire::lun::Lun;
use tests::cdb::{self, Reserve};
use tests::initiator::Data;

use super::Lab;
use crate::host::{Function, What, out};
use crate::oracle::Pattern;

impl Lab {
    /// READ.
    pub(crate) fn read(&mut self, host: usize, unit: usize, extent: Extent) -> u64 {
        let begun = self.oracle.now();
        let len = extent.blocks as u32 * self.disks[unit].traits().block_size;
        let cdb = cdb::read(extent.lba, extent.blocks as u32);
        self.send(host, unit, &cdb, Data::In(len), What::Read(begun, extent))
    }

    /// WRITE, WRITE SAME or UNMAP.
    pub(crate) fn write(
        &mut self,
        host: usize,
        unit: usize,
        extent: Extent,
        pattern: Pattern,
    ) -> u64 {
        let stamp = self.oracle.begin(unit, extent, pattern);
        if self.hosts[host].fenced {
            self.oracle.refused(stamp).expect("it has just begun");
        }
        let data = self.oracle.data(stamp);
        self.tell(|| format!("{stamp:?} is of {extent:?}"));
        let (lba, blocks) = (extent.lba, extent.blocks as u32);
        let (cdb, data) = match pattern {
            Pattern::Each => {
                let cdb = cdb::write(lba, blocks, self.rng.one_in(4));
                (cdb.to_vec(), data)
            }
            Pattern::Same => (cdb::write_same(lba, blocks).to_vec(), data),
            Pattern::Zeros => {
                let (cdb, list) = cdb::unmap(lba, blocks);
                (cdb.to_vec(), list.to_vec())
            }
        };
        self.send(host, unit, &cdb, out(data), What::Write(stamp))
    }

    /// COMPARE AND WRITE, expecting what the medium holds at the moment.
    pub(crate) fn compare_and_write(&mut self, host: usize, unit: usize, extent: Extent) -> u64 {
        let held = (extent.lba..extent.end()).flat_map(|lba| self.disks[unit].block(lba));
        let expected: Vec<u8> = held.collect();
        let begun = self.oracle.now();
        let stamp = self.oracle.begin(unit, extent, Pattern::Each);
        if self.hosts[host].fenced {
            self.oracle.refused(stamp).expect("it has just begun");
        }
        let data = [expected.clone(), self.oracle.data(stamp)].concat();
        let cdb = cdb::compare_and_write(extent.lba, extent.blocks as u8);
        let what = What::CompareAndWrite(stamp, begun, extent, expected);
        self.send(host, unit, &cdb, out(data), what)
    }

    /// SYNCHRONIZE CACHE.
    pub(crate) fn flush(&mut self, host: usize, unit: usize) -> u64 {
        self.send(host, unit, &cdb::flush(), Data::None, What::Other)
    }

    /// PERSISTENT RESERVE OUT, of the type WRITE EXCLUSIVE, REGISTRANTS ONLY.
    pub(crate) fn reserve(
        &mut self,
        host: usize,
        unit: usize,
        action: Reserve,
        keys: (u64, u64),
    ) -> u64 {
        let (cdb, list) = cdb::reserve_out(action, 5, keys.0, keys.1);
        self.send(host, unit, &cdb, out(list), What::Other)
    }

    fn send(&mut self, host: usize, unit: usize, cdb: &[u8], data: Data, what: What) -> u64 {
        let attribute = *self.rng.pick(&[0, 1, 1, 1, 1, 1, 1, 2, 3]);
        let told = format!("unit {unit}, {:02x}, {what:?}", cdb[0]);
        let user = self.hosts[host].command(attribute, unit, cdb, data, what);
        let itt = self.hosts[host].tasks[&user].itt;
        self.tell(|| format!("host {host}: {user} {itt:?}, attribute {attribute}, {told}"));
        user
    }

    /// ABORT TASK.
    pub(crate) fn abort(&mut self, host: usize, user: u64) {
        let task = &self.hosts[host].tasks[&user];
        let (itt, unit) = (task.itt, task.unit);
        self.function(host, function::ABORT_TASK, unit, itt, vec![(host, user)]);
    }

    /// ABORT TASK SET.
    pub(crate) fn abort_set(&mut self, host: usize, unit: usize) {
        let ends = self.tasks_of(host, |task_unit| task_unit == unit);
        self.function(host, function::ABORT_TASK_SET, unit, Itt::NONE, ends);
    }

    /// LOGICAL UNIT RESET.
    pub(crate) fn reset_unit(&mut self, host: usize, unit: usize) {
        let ends = self.tasks_of_all(host, |task_unit| task_unit == unit);
        self.function(host, function::LOGICAL_UNIT_RESET, unit, Itt::NONE, ends);
    }

    /// CLEAR TASK SET: each nexus has its own.
    pub(crate) fn clear_set(&mut self, host: usize, unit: usize) {
        let ends = self.tasks_of(host, |task_unit| task_unit == unit);
        self.function(host, function::CLEAR_TASK_SET, unit, Itt::NONE, ends);
    }

    /// TARGET WARM RESET.
    pub(crate) fn reset_target(&mut self, host: usize) {
        let ends = self.tasks_of_all(host, |_| true);
        self.function(host, function::TARGET_WARM_RESET, 0, Itt::NONE, ends);
    }

    fn function(
        &mut self,
        host: usize,
        code: u8,
        unit: usize,
        referenced: Itt,
        ends: Vec<(usize, u64)>,
    ) {
        let Some(link) = &mut self.hosts[host].link else {
            return;
        };
        let lun = Lun::from_index(unit as u16);
        let itt = link.initiator.manage(code, lun, referenced);
        self.tell(|| format!("host {host}: function {code} ends {ends:?}"));
        let function = Function { code, ends };
        self.hosts[host].functions.insert(itt.0, function);
    }

    fn tasks_of(&self, host: usize, on: impl Fn(usize) -> bool) -> Vec<(usize, u64)> {
        let tasks = self.hosts[host].tasks.iter();
        let tasks = tasks.filter(|(_, task)| on(task.unit));
        tasks.map(|(user, _)| (host, *user)).collect()
    }

    /// The commands that a function of `host` meets: its own, and those of others that have come
    /// to the target for sure.
    fn tasks_of_all(&mut self, host: usize, on: impl Fn(usize) -> bool) -> Vec<(usize, u64)> {
        let mut all = Vec::new();
        for other in 0..self.hosts.len() {
            if other == host || self.has_sent_all(other) {
                all.extend(self.tasks_of(other, &on));
            }
        }
        all
    }

    /// Whether the target's machines have taken everything that a host has to say. What it sent
    /// behind a function may be held back until that has been done.
    pub(crate) fn has_sent_all(&mut self, host: usize) -> bool {
        let host = &mut self.hosts[host];
        let unsent = host.unsent();
        let Some(link) = &host.link else { return false };
        unsent == 0
            && host.logged_in
            && host.functions.is_empty()
            && self.world.unread(&link.wire) == 0
    }
}
