//! What cores of a switch give each other, in each turn of one of them ([`super::cores`]).

use std::mem;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed};

use scsi::medium::Now;

use super::backlog::Backlog;
use super::core::SwitchCore;
use super::mail::{MAIL_MAX, MailItem};
use super::threads::LAST;

impl SwitchCore {
    /// Takes what other cores have given.
    pub(super) fn exchange(&mut self, now: Now) {
        match (&self.machine, &self.peer) {
            (_, None) => {}
            (Some(_), Some(_)) => self.take_mail(now),
            (None, Some(_)) => self.take_post(now),
        }
    }

    /// Takes the mail of the ports of other cores.
    fn take_mail(&mut self, now: Now) {
        let mut mail = mem::replace(&mut self.mail, Backlog::new(0));
        for at in 0..self.ports.count() {
            let Some(peer) = &self.peer else {
                break;
            };
            if peer.cores.mail[at].used() == 0 {
                continue;
            }
            peer.cores.mail[at].take(&mut mail);
            while let (Some((item, frame)), Some(machine)) = (mail.front(), &mut self.machine) {
                machine.handle_mail(now, at, *item, frame);
                mail.pop();
            }
        }
        self.mail = mail;
    }

    /// Takes what core 0 tells.
    fn take_post(&mut self, now: Now) {
        let Some(peer) = &mut self.peer else {
            return;
        };
        let newer = peer.cores.newer_table(peer.version);
        let has_control = peer.take_control();
        let post = &peer.cores.posts[peer.id];
        let ends = post.ends.load(Acquire) && self.ends.is_none();
        let anew = post.anew.swap(0, Relaxed);
        if newer.is_some() || has_control || ends {
            self.flush_ports();
        }
        if let Some(peer) = &mut self.peer {
            if let Some((version, table)) = newer {
                peer.adopt(version, table);
            }
            peer.queue_taken();
        }
        if ends {
            self.ends = Some(now + LAST);
        }
        for at in (0..self.ports.count()).filter(|at| anew & 1 << at != 0) {
            self.attach_anew(at);
        }
    }

    /// Whether a port is left unread, as the machine's core does not take its mail.
    pub(super) fn is_unmailed(&mut self, at: usize) -> bool {
        let Some(peer) = &self.peer else {
            return false;
        };
        let is_full = peer.is_mail_full(at);
        if self.backpressure.is_unmailed(at, is_full) {
            peer.tell_unmailed(at, is_full);
        }
        is_full
    }

    /// Whether the machine's table is not yet what all cores forward by.
    pub(super) fn has_newer_table(&mut self) -> bool {
        let (Some(machine), Some(peer)) = (&mut self.machine, &self.peer) else {
            return false;
        };
        !Arc::ptr_eq(&machine.switch.forwarding(), &peer.table)
    }

    /// Has all cores forward by the machine's table, and gives control frames and answers whose
    /// table is in force to ports and other threads.
    pub(super) fn publish(&mut self, now: Now) {
        let Some(machine) = &mut self.machine else {
            return;
        };
        let (Some(peer), Some(outbox)) = (&mut self.peer, &mut self.outbox) else {
            for answer in mem::take(&mut machine.answers) {
                machine.answer_order(answer, &mut self.ports);
            }
            return;
        };
        let table = machine.switch.forwarding();
        if !Arc::ptr_eq(&table, &peer.table) {
            outbox.publishes(now, peer.version);
            peer.version += 1;
            machine.next_version = peer.version + 1;
            peer.cores.publish(peer.version, &table);
            peer.table = table;
        }
        outbox.fill(machine, peer.version);
        let mut told = 0_u64;
        let in_force = outbox.release(now, peer.version, |port, bytes| {
            let home = peer.cores.homes[usize::from(port.0)];
            if home == peer.id {
                peer.queue_control(port, bytes);
            } else {
                let copy = |room: &mut [u8]| room.copy_from_slice(bytes);
                peer.cores.posts[home].control.push(bytes.len(), port, copy);
                told |= 1 << home;
            }
        });
        peer.cores.wake(told);
        while let Some(answer) = outbox.answer(in_force) {
            machine.answer_order(answer, &mut self.ports);
        }
    }

    /// Mails what the machine is to know of a port of this core.
    pub(super) fn mail(&mut self, at: usize, item: MailItem, frame: &[u8]) {
        if let Some(peer) = &mut self.peer {
            peer.mail(at, item, frame);
        }
    }

    /// What is taken of the mail, which is as large as a mailbox where there is one.
    pub(super) fn mail_place(has_mail: bool) -> Backlog<MailItem> {
        Backlog::new(if has_mail { MAIL_MAX } else { 0 })
    }
}
