//! Commands that are answered from what is known, and those that take a parameter list first.

use super::begin::too_long;
use super::finish::completed;
use super::tasks::{TaskEnd, TaskSlot};
use super::{DeviceOutput, DeviceServer, TaskJob};
use crate::commands::{CommandRow, Handler, Length, LocalFacts, Query, QueryResult};
use crate::medium::{Extent, Lease, MediumOp, SEGMENT_BYTES};
use crate::owner::UnitChange;
use crate::task::Command;
use crate::wire::cdb::opcode;
use crate::wire::sense::Format;

/// The longest parameter list that is taken in.
const PARAMETER_BYTES: u32 = SEGMENT_BYTES as u32;

impl<L: Lease> DeviceServer<L> {
    pub(super) fn query(
        &mut self,
        slot: TaskSlot,
        handler: fn(&Query<'_>) -> QueryResult,
        parameters: &[u8],
    ) {
        let task = &self.tasks[slot as usize];
        let Some(nexus) = self.nexus(task.nexus) else {
            return;
        };
        let at = task.at as usize;
        let local = LocalFacts {
            attention: nexus.units[at].attentions.first(),
            is_read_only: nexus.units[at].is_read_only,
        };
        let answer = handler(&Query {
            cdb: task.cdb(),
            parameters,
            unit: Some(self.state(task.unit)),
            nexus: &nexus.nexus,
            lun: nexus.units[at].lun,
            now: self.now,
            local: &local,
        });
        if matches!(answer, QueryResult::Data(_)) {
            self.clear_told(slot, local.attention);
        }
        self.answer(slot, answer);
    }

    /// What parameter data told needs no unit attention any more (SPC-5 §6.33, §6.39).
    fn clear_told(&mut self, slot: TaskSlot, reported: Option<u16>) {
        let task = &self.tasks[slot as usize];
        let (opcode, at) = (task.row.opcode, task.at as usize);
        let Some(nexus) = self
            .nexuses
            .get_mut(task.nexus.0 as usize)
            .and_then(Option::as_mut)
        else {
            return;
        };
        match (opcode, reported) {
            (opcode::REQUEST_SENSE, Some(code)) => nexus.units[at].attentions.clear(code),
            (opcode::REPORT_LUNS, _) => nexus.forget_luns_changed(),
            _ => {}
        }
    }

    fn answer(&mut self, slot: TaskSlot, answer: QueryResult) {
        match answer {
            QueryResult::Good => self.finish(slot, TaskEnd::Good),
            QueryResult::Fail(failure) => self.fail(slot, failure),
            QueryResult::Data(data) => self.answer_data(slot, data),
            QueryResult::Change(change) => self.change(slot, change, false),
            QueryResult::ChangeAndFlush(change) => self.change(slot, change, true),
        }
    }

    /// Sends parameter data, and GOOD.
    pub(super) fn answer_data(&mut self, slot: TaskSlot, data: Vec<u8>) {
        let task = &mut self.tasks[slot as usize];
        let data = cut(task.row, &task.cdb, data);
        task.length_in = data.len() as u64;
        self.send(slot, 0, L::from_bytes(data));
        self.finish(slot, TaskEnd::Good);
    }

    fn change(&mut self, slot: TaskSlot, change: UnitChange, flush: bool) {
        self.tasks[slot as usize].job = TaskJob::Change { flush };
        self.ask_for_task(slot, change);
    }

    /// The owner agreed.
    pub(super) fn changed(&mut self, slot: TaskSlot, flush: bool) {
        if flush {
            self.operate(
                slot,
                0,
                MediumOp::Flush {
                    extent: Extent::new(0, 0),
                },
            );
        } else {
            self.finish(slot, TaskEnd::Good);
        }
    }

    pub(super) fn query_without_unit(&mut self, command: &Command, row: &'static CommandRow) {
        let (Handler::Query(handler), Some(nexus)) = (row.handler, self.nexus(command.nexus))
        else {
            return;
        };
        let answer = handler(&Query {
            cdb: command.cdb.get(..row.usage.len()).unwrap_or(&command.cdb),
            parameters: &[],
            unit: None,
            nexus: &nexus.nexus,
            lun: command.lun,
            now: self.now,
            local: &LocalFacts::default(),
        });
        let (ending, length) = match answer {
            QueryResult::Data(data) => (TaskEnd::Good, self.send_without_task(command, row, data)),
            QueryResult::Fail(failure) => (TaskEnd::Failed(failure), 0),
            _ => (TaskEnd::Good, 0),
        };
        if row.opcode == opcode::REPORT_LUNS
            && let Some(nexus) = self.nexus_mut(command.nexus)
        {
            nexus.forget_luns_changed();
        }
        self.complete_at_once(command, completed(ending, Format::Fixed, (length, 0)));
    }

    fn send_without_task(&mut self, command: &Command, row: &CommandRow, data: Vec<u8>) -> u64 {
        let mut data = cut(row, &command.cdb, data);
        let length = data.len() as u64;
        data.truncate(command.expected_in as usize);
        if !data.is_empty() {
            self.outputs.push_back(DeviceOutput::SendDataIn {
                nexus: command.nexus,
                tag: command.tag,
                offset: 0,
                data: L::from_bytes(data),
            });
        }
        length
    }

    /// Has the transport send the parameter list of a task.
    pub(super) fn receive_parameters(&mut self, slot: TaskSlot, length: u32) {
        let task = &mut self.tasks[slot as usize];
        if length > PARAMETER_BYTES {
            let sense = too_long(task.row);
            return self.fail(slot, sense);
        }
        task.length_out = u64::from(length);
        task.job = TaskJob::Parameters;
        match length.min(task.expected_out) as usize {
            0 => self.parameters_received(slot, &L::from_bytes(Vec::new())),
            length => self.receive(slot, 0, L::from_bytes(vec![0; length])),
        }
    }

    pub(super) fn parameters_received(&mut self, slot: TaskSlot, data: &L) {
        let mut parameters = vec![0; data.len()];
        data.copy_out(0, &mut parameters);
        match self.tasks[slot as usize].row.handler {
            Handler::Parameters(_, handler) => self.query(slot, handler, &parameters),
            Handler::Medium(medium) => self.begin_with_parameters(slot, medium, &parameters),
            Handler::Query(_) => {}
        }
    }
}

/// Parameter data as far as ALLOCATION LENGTH lets it go. What has no such field is sent whole.
fn cut(row: &CommandRow, cdb: &[u8], mut data: Vec<u8>) -> Vec<u8> {
    if let Length::Allocation(_) = row.length {
        data.truncate(row.allocation_length(cdb) as usize);
    }
    data
}
