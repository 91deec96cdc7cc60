//! A device that does what the script says, within its contract.

use std::collections::{BTreeMap, BTreeSet};

use fc::remote::RemoteId;
use fc::target::{FcpTarget, FcpTargetEvent};
use fc::tests::good;
use scsi::medium::{HeapLease, Lease};
use scsi::task::{Command, FunctionResult, Tag};

use crate::fuzzing::script::Script;

#[derive(Default)]
pub(super) struct Device {
    open: BTreeMap<(RemoteId, Tag), Open>,
    functions: BTreeSet<(RemoteId, u32)>,
}

/// A command under way.
struct Open {
    expected_in: u32,
    expected_out: u32,
    sent: u32,
    asked: u32,
    /// What was lent to receive into.
    lent: Option<(u32, usize)>,
}

impl Device {
    /// What the target tells it.
    pub(super) fn told(&mut self, up: &BTreeSet<RemoteId>, event: FcpTargetEvent<HeapLease>) {
        match event {
            FcpTargetEvent::Execute { remote, command } => {
                assert!(up.contains(&remote), "a command without a nexus");
                self.execute(remote, &command);
            }
            FcpTargetEvent::DataOut {
                remote,
                tag,
                offset,
                data,
            } => {
                let open = self.open.get_mut(&(remote, tag));
                let lent = open.and_then(|open| open.lent.take());
                assert_eq!(
                    lent,
                    Some((offset, data.len())),
                    "data that was asked for, once"
                );
            }
            FcpTargetEvent::Manage { remote, id, .. } => {
                assert!(up.contains(&remote), "a function without a nexus");
                let is_new = self.functions.insert((remote, id));
                // Those that the target wants for itself have one name.
                assert!(is_new || id == u32::MAX, "{id} twice at once");
            }
        }
    }

    fn execute(&mut self, remote: RemoteId, command: &Command) {
        let open = Open {
            expected_in: command.expected_in,
            expected_out: command.expected_out,
            sent: 0,
            asked: 0,
            lent: None,
        };
        let before = self.open.insert((remote, command.tag), open);
        assert!(before.is_none(), "{:?} twice at once", command.tag);
    }

    /// A nexus is lost.
    pub(super) fn lose(&mut self, remote: RemoteId) {
        self.open.retain(|(one, _), _| *one != remote);
        self.functions.retain(|(one, _)| *one != remote);
    }

    /// Does something for one of the commands, or ends a function.
    pub(super) fn step(&mut self, script: &mut Script<'_>, target: &mut FcpTarget<HeapLease>) {
        let at = script.below(4);
        let Some((&(remote, tag), open)) = self.open.iter_mut().nth(at) else {
            return self.end_functions(target);
        };
        let most = usize::from(script.half() & 0x1fff) + 1;
        match script.below(4) {
            0 if open.sent < open.expected_in => {
                let len = most
                    .min((open.expected_in - open.sent) as usize)
                    .min(1 << 18);
                let data = HeapLease::from_bytes(vec![0xa5; len]);
                target.send_data_in(remote, tag, open.sent, data);
                open.sent += len as u32;
            }
            1 if open.lent.is_none() && open.asked < open.expected_out => {
                let len = most
                    .min((open.expected_out - open.asked) as usize)
                    .min(1 << 18);
                open.lent = Some((open.asked, len));
                let into = HeapLease::from_bytes(vec![0; len]);
                target.receive_data_out(remote, tag, open.asked, into);
                open.asked += len as u32;
            }
            2 => {
                target.aborted(remote, tag);
                self.open.remove(&(remote, tag));
            }
            _ if open.lent.is_none() => self.end(target, (remote, tag)),
            _ => {}
        }
    }

    /// Ends everything.
    pub(super) fn end_all(&mut self, target: &mut FcpTarget<HeapLease>) {
        self.end_functions(target);
        let ready = self.open.iter().filter(|(_, open)| open.lent.is_none());
        let ready: Vec<_> = ready.map(|(name, _)| *name).collect();
        for name in ready {
            self.end(target, name);
        }
    }

    fn end_functions(&mut self, target: &mut FcpTarget<HeapLease>) {
        for (remote, id) in std::mem::take(&mut self.functions) {
            target.managed(remote, id, FunctionResult::Complete);
        }
    }

    fn end(&mut self, target: &mut FcpTarget<HeapLease>, (remote, tag): (RemoteId, Tag)) {
        if let Some(open) = self.open.remove(&(remote, tag)) {
            let completed = good(open.sent.into(), open.asked.into());
            target.complete(remote, tag, &completed);
        }
    }
}
