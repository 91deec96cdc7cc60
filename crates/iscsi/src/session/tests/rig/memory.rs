//! A datamover without TCP and without PDUs of data: each end reaches into the memory of the other.

use std::collections::VecDeque;

use scsi::medium::{HeapLease, Lease as _, Now};
use scsi::wire::lun::Lun;

use super::trace::{line, response_line};
use super::{Carrier, RigOver};
use crate::datamover::{
    ControlPdu, Datamover, Notice, Solicited, TaskEnding, TaskSlot, WantedData,
};
use crate::parameters::Operational;
use crate::session::Session;
use crate::target::TargetLimits;
use crate::wire::bhs::{Bhs, Itt, Stamps};
use crate::wire::scsi_command::{COMPLETED, ScsiResponse};
use crate::wire::serial::{DataSn, StatSn};

/// A datamover that hands data over as it is: what a task wants is in the initiator's memory, and
/// what it gives goes there, whole.
#[derive(Debug, Default)]
pub(in crate::session::tests) struct MemoryMover {
    itts: Vec<Itt>,
    waiting: VecDeque<Message>,
    gets: Vec<(TaskSlot, Now, WantedData<HeapLease>)>,
    moved: u32,
}

#[derive(Debug)]
enum Message {
    Control(ControlPdu),
    Response(TaskSlot, TaskEnding),
    Data(TaskSlot, u32, HeapLease),
}

impl Message {
    const fn task(&self) -> Option<TaskSlot> {
        match self {
            Self::Control(_) => None,
            Self::Response(task, _) | Self::Data(task, ..) => Some(*task),
        }
    }
}

impl Datamover<HeapLease> for MemoryMover {
    fn new(_: &Operational, _: &TargetLimits) -> Self {
        Self::default()
    }

    fn notice_keys(&mut self, _: &Operational) {}

    fn allocate(&mut self, task: TaskSlot, itt: Itt, _: Lun) {
        self.itts
            .resize(self.itts.len().max(task.index() + 1), Itt::NONE);
        self.itts[task.index()] = itt;
    }

    fn deallocate(&mut self, task: TaskSlot) {
        self.retain(|other| other != task);
        self.gets.retain(|get| get.0 != task);
    }

    fn send_control(&mut self, pdu: ControlPdu) {
        self.waiting.push_back(Message::Control(pdu));
    }

    fn send_response(&mut self, task: TaskSlot, ending: TaskEnding, _: bool) {
        self.waiting.push_back(Message::Response(task, ending));
    }

    fn put_data(&mut self, task: TaskSlot, offset: u32, data: HeapLease) {
        self.waiting.push_back(Message::Data(task, offset, data));
    }

    fn get_data(&mut self, now: Now, task: TaskSlot, wanted: WantedData<HeapLease>) {
        self.gets.push((task, now, wanted));
    }

    /// All of it was asked for when it was wanted.
    fn stop_asking(&mut self, _: TaskSlot) {}

    fn drop_data(&mut self, task: TaskSlot) {
        self.gets.retain(|get| get.0 != task);
    }

    fn is_getting(&self, task: TaskSlot) -> bool {
        self.gets.iter().any(|get| get.0 == task)
    }

    fn oldest_get(&self) -> Option<Now> {
        self.gets.iter().map(|get| get.1).min()
    }

    fn take_moved(&mut self) -> u32 {
        std::mem::take(&mut self.moved)
    }

    fn ahs(&self) -> &[u8] {
        &[]
    }

    fn take_collected(&mut self) -> Option<Vec<u8>> {
        None
    }

    fn recycle(&mut self, _: Vec<u8>) {}

    fn retain(&mut self, keep: impl Fn(TaskSlot) -> bool) {
        self.waiting
            .retain(|message| message.task().is_none_or(&keep));
    }

    fn queued(&self) -> usize {
        self.waiting.len()
    }

    fn data_in_queued(&self) -> usize {
        let data = self.waiting.iter().map(|message| match message {
            Message::Data(_, _, data) => data.len(),
            _ => 0,
        });
        data.sum()
    }

    fn is_crowded(&self) -> bool {
        self.waiting.len() >= 32
    }

    fn trim(&mut self, _: bool) {}
}

impl Session<HeapLease, MemoryMover> {
    /// The next message that leaves, with its numbers and whether it uses up a StatSN.
    fn leave(&mut self) -> Option<(Message, Stamps, bool)> {
        let message = self.connection.mover.waiting.pop_front()?;
        let (stamps, counts) = match &message {
            Message::Control(pdu) => (self.control_leaves(pdu), pdu.numbered),
            Message::Response(task, ending) => {
                let stamps = self.response_leaves(*task);
                if !ending.sense.as_slice().is_empty() {
                    self.sense_leaves(&ending.sense, stamps.stat_sn);
                }
                (stamps, true)
            }
            Message::Data(_, _, data) => {
                self.connection.mover.moved += data.len() as u32;
                (self.stamps(), false)
            }
        };
        Some((message, stamps, counts))
    }
}

impl Carrier for MemoryMover {
    type Peer = ();

    fn connect(_: &mut Operational) {}

    fn give(rig: &mut RigOver<Self>, mut bhs: Bhs, data: &[u8]) {
        bhs.set_data_len(data.len() as u32);
        rig.session.heard(rig.now, 48 + data.len());
        if !rig.session.is_open() {
            return;
        }
        rig.session.notice(Notice::Header(bhs));
        rig.poll();
        if !data.is_empty() {
            let (bytes, end) = (data, true);
            rig.session.notice(Notice::Data { bytes, end });
            rig.poll();
        }
    }

    fn sent(rig: &mut RigOver<Self>) -> Vec<String> {
        let mut lines = Vec::new();
        while let Some((message, stamps, counts)) = rig.session.leave() {
            rig.check(
                (Some(stamps.stat_sn), (stamps.exp_cmd_sn, stamps.max_cmd_sn)),
                counts,
            );
            lines.push(rig.message_line(&message));
        }
        rig.session.left(!lines.is_empty());
        lines
    }
}

impl RigOver<MemoryMover> {
    fn message_line(&self, message: &Message) -> String {
        let itt = |task: &TaskSlot| self.session.connection.mover.itts[task.index()];
        match message {
            Message::Control(pdu) => line(&pdu.bhs, &pdu.data),
            Message::Data(task, offset, data) => {
                format!("Data #{} [{offset}+{}]", itt(task).0, data.len())
            }
            Message::Response(task, ending) => {
                let pdu = ScsiResponse {
                    residual: ending.residual,
                    read_residual: ending.read_residual,
                    response: COMPLETED,
                    status: ending.status as u8,
                    qualifier: ending.qualifier,
                    itt: itt(task),
                    snack_tag: 0,
                    stamps: Stamps::default(),
                    exp_data_sn: DataSn(0),
                };
                let sense = ending.sense.as_slice();
                let data = [&[0, sense.len() as u8], sense].concat();
                response_line(&format!("#{}", pdu.itt.0), &pdu, &data)
            }
        }
    }

    /// What the session wants of the data of its tasks: `[a+b]`, b bytes from a on.
    pub(in crate::session::tests) fn wanted(&self) -> Vec<String> {
        let mover = &self.session.connection.mover;
        let line = |(task, _, wanted): &(TaskSlot, Now, WantedData<HeapLease>)| {
            let itt = mover.itts[task.index()];
            let start = wanted.offset + wanted.filled;
            format!("#{} [{start}+{}]", itt.0, wanted.end() - start)
        };
        mover.gets.iter().map(line).collect()
    }

    /// The oldest wish is fulfilled, with `data` of the whole command.
    pub(in crate::session::tests) fn fulfil(&mut self, data: &[u8]) {
        let (task, _, mut wanted) = self.session.connection.mover.gets.remove(0);
        let (start, end) = (wanted.offset + wanted.filled, wanted.end());
        wanted.fill(start, &data[start as usize..end as usize]);
        self.session.heard(self.now, data.len());
        self.session.notice(Notice::Solicited(Solicited {
            task,
            exp_stat_sn: StatSn(self.stat_sn),
            got: Some(wanted),
            fault: None,
            closed: true,
        }));
        self.poll();
    }
}
