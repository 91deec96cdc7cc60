//! What hosts are told, and what disks do, compared with what may be.

use std::time::Duration;

use iscsi::wire::task_management::{function, response};
use tests::initiator::Reply;

use super::Lab;
use crate::host::{Host, Task, What};
use crate::oracle::Wrong;
use sim::DiskKind;

/// What a status says of the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Good,
    /// Nothing was done.
    Refused,
    /// It was done in part, or not, or whole.
    Failed,
}

impl Verdict {
    fn of(status: u16, sense: &[u8]) -> Self {
        const CHECK_CONDITION: u16 = 0x02;
        const BUSY: u16 = 0x08;
        const RESERVATION_CONFLICT: u16 = 0x18;
        match status {
            0 => Self::Good,
            BUSY | RESERVATION_CONFLICT => Self::Refused,
            CHECK_CONDITION => match sense_key(sense) {
                // Illegal request, unit attention, data protect, miscompare.
                0x5 | 0x6 | 0x7 | 0xe => Self::Refused,
                _ => Self::Failed,
            },
            _ => Self::Failed,
        }
    }
}

/// The sense key, of either format.
#[must_use]
pub(crate) fn sense_key(sense: &[u8]) -> u8 {
    let at = if sense.first().is_some_and(|code| code & 0x7f >= 0x72) {
        1
    } else {
        2
    };
    sense.get(at).map_or(0, |byte| byte & 0x0f)
}

impl Lab {
    /// Takes what a host was told.
    pub(super) fn hear(&mut self, host: usize) {
        while let Some(reply) = self.hosts[host].poll() {
            self.tell(|| format!("host {host} hears {}", short(&reply)));
            match &reply {
                Reply::LoggedIn => self.logged_in(host),
                Reply::Done {
                    user,
                    status,
                    sense,
                    data,
                } => self.done(host, *user, Verdict::of(*status, sense), data),
                Reply::Managed(itt, response) => self.managed(host, itt.0, *response),
                Reply::Stray(itt) => panic!("host {host}: a status for {itt:?}, which has ended"),
                _ => {}
            }
            self.hosts[host].told.push_back(reply);
        }
    }

    /// What an earlier session of the host had under way is over now.
    fn logged_in(&mut self, host: usize) {
        self.hosts[host].logged_in = true;
        for task in std::mem::take(&mut self.hosts[host].lost) {
            if let Some(stamp) = task.what.stamp() {
                self.oracle.over(stamp);
            }
        }
    }

    fn done(&mut self, host: usize, user: u64, verdict: Verdict, data: &[u8]) {
        let task = self.hosts[host].tasks.remove(&user);
        let task = task.unwrap_or_else(|| panic!("host {host}: {user} was answered twice"));
        let judged = self.judge(&task, verdict, data);
        judged.unwrap_or_else(|Wrong(what)| panic!("host {host}, command {user}: {what}"));
    }

    fn judge(&mut self, task: &Task, verdict: Verdict, data: &[u8]) -> Result<(), Wrong> {
        let oracle = &mut self.oracle;
        match (&task.what, verdict) {
            (What::Write(stamp), Verdict::Good) => oracle.good(*stamp),
            (What::CompareAndWrite(stamp, begun, extent, expected), Verdict::Good) => {
                // What it found it has seen before its own write.
                oracle.read(*begun, task.unit, *extent, expected)?;
                oracle.good(*stamp)
            }
            (What::Write(stamp) | What::CompareAndWrite(stamp, ..), Verdict::Refused) => {
                oracle.refused(*stamp)
            }
            (What::Write(stamp) | What::CompareAndWrite(stamp, ..), Verdict::Failed) => {
                oracle.over(*stamp);
                Ok(())
            }
            (What::Read(begun, extent), Verdict::Good) => {
                oracle.read(*begun, task.unit, *extent, data)
            }
            _ => Ok(()),
        }
    }

    fn managed(&mut self, host: usize, itt: u32, answer: u8) {
        let ended = self.hosts[host].functions.remove(&itt);
        let ended = ended.unwrap_or_else(|| panic!("host {host}: a function answered twice"));
        if answer == response::NO_TASK && ended.code == function::ABORT_TASK {
            return self.no_task(host, &ended.ends);
        }
        let named = format!("host {host}: function {}", ended.code);
        assert_eq!(answer, response::COMPLETE, "{named}");
        for (other, user) in ended.ends {
            self.ended(other, user, other == host);
        }
        let of_own = [
            function::ABORT_TASK,
            function::ABORT_TASK_SET,
            function::CLEAR_TASK_SET,
        ];
        if !of_own.contains(&ended.code) {
            self.suspect_all();
        }
    }

    /// A function has met everybody's commands; only the target knows which of them had come.
    fn suspect_all(&mut self) {
        let hosts = self.hosts.iter_mut();
        let tasks = hosts.flat_map(|host| host.tasks.values_mut());
        tasks.for_each(|task| task.vanished = true);
    }

    /// A command has ended by something that was answered; only its own host knows that it will not
    /// hear of it.
    pub(crate) fn ended(&mut self, host: usize, user: u64, own: bool) {
        let Some(task) = self.hosts[host].tasks.get_mut(&user) else {
            return;
        };
        task.vanished = true;
        if let Some(stamp) = task.what.stamp() {
            self.oracle.over(stamp);
        }
        if own {
            self.abandon(host, user);
        }
    }

    fn abandon(&mut self, host: usize, user: u64) {
        let host = &mut self.hosts[host];
        if let (Some(task), Some(link)) = (host.tasks.remove(&user), &mut host.link) {
            link.initiator.abandon(task.itt);
        }
    }

    /// What there is no task of was answered before, unless something else is ending it.
    fn no_task(&mut self, host: usize, ends: &[(usize, u64)]) {
        for (_, user) in ends {
            let Some(task) = self.hosts[host].tasks.get(user) else {
                continue;
            };
            let mut others = self.hosts[host].functions.values();
            let explained = task.vanished || others.any(|one| one.ends.contains(&(host, *user)));
            assert!(explained, "host {host}: {user} was lost: {task:?}");
            self.ended(host, *user, true);
        }
    }

    /// Looks whether what has come to the disks may have.
    pub(super) fn look_at_disks(&mut self) {
        for unit in self.watched() {
            for extent in self.disks[unit].take_changes() {
                for lba in extent.lba..extent.end() {
                    self.look_at(unit, lba);
                }
            }
        }
    }

    /// The units that the oracle watches.
    pub(super) fn watched(&self) -> Vec<usize> {
        let units = 0..self.disks.len();
        units
            .filter(|unit| !self.unwatched.contains(unit))
            .collect()
    }

    fn look_at(&mut self, unit: usize, lba: u64) {
        let block = self.disks[unit].block(lba);
        let before = &mut self.shadows[unit][lba as usize];
        if self.disks[unit].kind() == DiskKind::Memory && *before == block {
            return;
        }
        let before = std::mem::replace(before, block.clone());
        let landed = self.oracle.landed(unit, lba, &before, &block);
        landed.unwrap_or_else(|Wrong(what)| panic!("{what}"));
    }

    /// Lets everything come to its end, and looks whether all that was acknowledged is there and
    /// all that was asked was answered.
    pub(crate) fn finish(&mut self) {
        self.quiesce();
        for host in 0..self.hosts.len() {
            self.give_up_vanished(host);
        }
        self.quiesce();
        for (number, host) in self.hosts.iter().enumerate() {
            let waits = (&host.tasks, &host.functions);
            let is_idle = host.tasks.is_empty() && host.functions.is_empty();
            assert!(is_idle, "host {number} waits for {waits:?}");
        }
        for unit in self.watched() {
            for lba in 0..self.disks[unit].traits().blocks {
                let block = self.disks[unit].block(lba);
                let held = self.oracle.holds(unit, lba, &block);
                held.unwrap_or_else(|Wrong(what)| panic!("in the end: {what}"));
            }
        }
    }

    /// A host was fenced: whatever it has under way is over, and nothing more comes of it.
    pub(crate) fn fence(&mut self, host: usize) {
        self.hosts[host].fenced = true;
        let users: Vec<_> = self.hosts[host].tasks.keys().copied().collect();
        for user in users {
            self.ended(host, user, false);
        }
    }

    /// Aborts what others have ended, as a host does when its time is over.
    pub(crate) fn give_up_vanished(&mut self, host: usize) {
        let tasks = self.hosts[host].tasks.iter();
        let vanished = tasks.filter(|(_, task)| task.vanished);
        let vanished: Vec<_> = vanished.map(|(user, _)| *user).collect();
        for user in vanished {
            self.abort(host, user);
        }
    }

    /// Lets everything come to its end, logs everybody out, and looks whether anything is left at
    /// the target of anybody.
    pub(crate) fn leave(&mut self) {
        self.finish();
        self.log_out_all();
        self.is_left_by_all();
    }

    /// Logs everybody out.
    pub(crate) fn log_out_all(&mut self) {
        self.hosts.iter_mut().for_each(Host::log_out);
        self.quiesce();
    }

    /// Looks whether anything is left at the target.
    pub(crate) fn is_left_by_all(&mut self) {
        // Over iSER it is left to hosts to close the connection, for some time.
        if self.hosts.iter().any(|host| host.settings.iser.is_some()) {
            self.world.pass(Duration::from_millis(101));
            self.quiesce();
        }
        for (core, held) in self.world.census().into_iter().enumerate() {
            assert_eq!(held, sim::CoreUsage::default(), "left on core {core}");
        }
    }
}

fn short(reply: &Reply) -> String {
    match reply {
        Reply::Done {
            user,
            status,
            sense,
            data,
        } => format!(
            "{user} ended: status {status:02x}, sense {sense:02x?}, {} bytes",
            data.len()
        ),
        other => format!("{other:?}"),
    }
}
