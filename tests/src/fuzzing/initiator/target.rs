//! A target that says anything: mostly what could be right, sometimes with a field of the
//! script's choice.

use iscsi::parameters::Operational;
use iscsi::wire::bhs::{Bhs, Itt, Opcode, Stamps, Ttt};
use iscsi::wire::control::{AsyncMessage, NopIn, Reject, TextResponse};
use iscsi::wire::data::{DataIn, DataInStatus, R2t};
use iscsi::wire::login::LogoutResponse;
use iscsi::wire::scsi_command::ScsiResponse;
use iscsi::wire::serial::{DataSn, StatSn};
use iscsi::wire::task_management::TaskResponse;
use scsi::residual::Residual;
use scsi::wire::lun::Lun;

use super::super::script::Script;
use super::watch::{Seen, Watch};

/// Each byte of a read.
pub(super) const COMES: u8 = 0x5a;

/// What a target keeps count of.
pub(super) struct Target {
    stat_sn: StatSn,
    digests: (bool, bool),
    /// The task whose data is sent, its next DataSN or R2TSN, and its next offset.
    current: (Itt, u32, u32),
    keys: Operational,
}

impl Default for Target {
    fn default() -> Self {
        Self {
            stat_sn: StatSn(u32::MAX - 3),
            digests: (false, false),
            current: (Itt::NONE, 0, 0),
            keys: Operational::default(),
        }
    }
}

impl Target {
    pub(super) fn logged_in(&mut self, keys: &Operational) {
        self.digests = (keys.header_digest, keys.data_digest);
        self.keys = *keys;
    }

    pub(super) fn next_stat_sn(&mut self) -> StatSn {
        let number = self.stat_sn;
        self.stat_sn = number.next();
        number
    }

    /// A PDU with its digests.
    pub(super) fn bytes(&self, bhs: Bhs, data: &[u8]) -> Vec<u8> {
        iscsi::test_support::pdu(bhs, &[], data, self.digests)
    }

    /// A PDU of some kind.
    pub(super) fn pdu(&mut self, script: &mut Script<'_>, watch: &Watch) -> Vec<u8> {
        let (mut bhs, data) = match script.byte() & 15 {
            0..=2 => self.data_in(script, watch),
            3..=5 => self.r2t(script, watch),
            6..=8 => self.response(script, watch),
            9 => self.nop_in(script, watch),
            10 => self.task_response(script, watch),
            11 => self.text_response(script, watch),
            12 => self.async_message(script, watch),
            13 => self.reject(script, watch),
            14 => self.logout_response(script, watch),
            _ => (Bhs(script.array()), script.take(64).to_vec()),
        };
        if script.byte() > 244 {
            let at = script.below(48);
            bhs.0[at] = script.byte();
        }
        let mut bytes = self.bytes(bhs, &data);
        if script.byte() > 252 {
            let at = script.below(48);
            bytes[at] ^= 1;
        }
        bytes
    }

    fn stamps(&mut self, watch: &Watch, numbered: bool, script: &mut Script<'_>) -> Stamps {
        let window = script.byte();
        Stamps {
            stat_sn: if numbered {
                self.next_stat_sn()
            } else {
                self.stat_sn
            },
            exp_cmd_sn: watch.cmd_sn,
            max_cmd_sn: watch.cmd_sn.plus(u32::from(window & 15)).minus(1),
        }
    }

    /// One of the commands that were sent last, of this kind if there is one.
    fn task(watch: &Watch, write: bool, script: &mut Script<'_>) -> Option<Seen> {
        let fits = |seen: &&Seen| {
            if write {
                seen.command.write
            } else {
                seen.command.read
            }
        };
        let number = script.below(3);
        watch
            .commands
            .iter()
            .rev()
            .filter(fits)
            .nth(number)
            .copied()
    }

    /// Takes up the data of a task, where it was left or from its begin.
    fn turn_to(&mut self, itt: Itt, start: u32) -> (u32, u32) {
        if self.current.0 != itt {
            self.current = (itt, 0, start);
        }
        (self.current.1, self.current.2)
    }

    fn data_in(&mut self, script: &mut Script<'_>, watch: &Watch) -> (Bhs, Vec<u8>) {
        let Some(seen) = Self::task(watch, false, script) else {
            return self.nop_in(script, watch);
        };
        let expected = seen.command.expected;
        let (sn, offset) = self.turn_to(seen.command.itt, 0);
        let most = expected.saturating_sub(offset).min(self.keys.max_burst);
        let len = match script.byte() {
            0..=200 => most.min(self.keys.own_data_segment),
            byte => u32::from(byte),
        };
        let ends = offset.saturating_add(len) >= expected && script.byte() < 200;
        let left = expected.saturating_sub(offset.saturating_add(len));
        let pdu = DataIn {
            last: true,
            acknowledge: script.byte() > 250,
            status: ends.then_some(DataInStatus {
                status: 0,
                residual: residual(left),
            }),
            lun: Lun([0; 8]),
            itt: seen.command.itt,
            ttt: Ttt::NONE,
            stamps: self.stamps(watch, ends, script),
            data_sn: DataSn(sn),
            offset,
        };
        self.current = (seen.command.itt, sn + 1, offset.saturating_add(len));
        (pdu.encode(), vec![COMES; len as usize])
    }

    fn r2t(&mut self, script: &mut Script<'_>, watch: &Watch) -> (Bhs, Vec<u8>) {
        let Some(seen) = Self::task(watch, true, script) else {
            return self.nop_in(script, watch);
        };
        let keys = &self.keys;
        let expected = seen.command.expected;
        let immediate = if keys.immediate_data {
            keys.first_burst.min(keys.peer_data_segment)
        } else {
            0
        };
        // Over RDMA all goes along, or none.
        let goes_along = !keys.transport.is_rdma() || expected <= immediate;
        let immediate = if goes_along { immediate } else { 0 };
        let first = if keys.initial_r2t {
            immediate
        } else {
            keys.first_burst
        };
        let max_burst = keys.max_burst;
        let (sn, offset) = self.turn_to(seen.command.itt, first.min(expected));
        let desired = match script.byte() {
            0..=200 => expected.saturating_sub(offset).min(max_burst),
            byte => u32::from(byte),
        };
        let pdu = R2t {
            lun: seen.command.lun,
            itt: seen.command.itt,
            ttt: Ttt(u32::from(script.byte()) << 8 | sn),
            stamps: self.stamps(watch, false, script),
            r2t_sn: DataSn(sn),
            offset,
            desired,
        };
        self.current = (seen.command.itt, sn + 1, offset.saturating_add(desired));
        (pdu.encode(), Vec::new())
    }

    fn response(&mut self, script: &mut Script<'_>, watch: &Watch) -> (Bhs, Vec<u8>) {
        let number = script.below(4);
        let seen = watch.commands.iter().rev().nth(number);
        let Some(seen) = seen.copied() else {
            return self.nop_in(script, watch);
        };
        let status = script.pick(&[0, 2, 8, 0, 0x28, 0x18]);
        let moved = if self.current.0 == seen.command.itt {
            self.current.2
        } else {
            0
        };
        let left = seen.command.expected.saturating_sub(moved);
        let pdu = ScsiResponse {
            residual: if script.byte() < 200 {
                residual(left)
            } else {
                Residual::Overflow(5)
            },
            read_residual: Residual::Exact,
            response: u8::from(script.byte() > 240),
            status,
            qualifier: script.half(),
            itt: seen.command.itt,
            snack_tag: 0,
            stamps: self.stamps(watch, true, script),
            exp_data_sn: DataSn(0),
        };
        let data = match status {
            2 => script.pick(&[&[0, 4, 0x70, 0, 6, 0][..], &[0, 99, 1], &[0], &[]]),
            _ => &[],
        };
        (pdu.encode(), data.to_vec())
    }

    fn nop_in(&mut self, script: &mut Script<'_>, watch: &Watch) -> (Bhs, Vec<u8>) {
        let asked = watch
            .others
            .iter()
            .rev()
            .find(|bhs| bhs.opcode() == Opcode::NopOut);
        let itt = match asked {
            Some(bhs) if script.flag() => bhs.itt(),
            _ => Itt::NONE,
        };
        let pdu = NopIn {
            lun: Lun([0; 8]),
            itt,
            ttt: script.pick(&[Ttt(1), Ttt::NONE]),
            stamps: self.stamps(watch, itt != Itt::NONE, script),
        };
        (pdu.encode(), Vec::new())
    }

    fn task_response(&mut self, script: &mut Script<'_>, watch: &Watch) -> (Bhs, Vec<u8>) {
        let asked = watch.others.iter().rev();
        let number = script.below(2);
        let asked = asked
            .filter(|bhs| bhs.opcode() == Opcode::TaskRequest)
            .nth(number);
        let pdu = TaskResponse {
            response: script.pick(&[0, 1, 2, 5, 7, 255, 3]),
            information: script.array(),
            itt: asked.map_or_else(|| watch.tag(number), Bhs::itt),
            stamps: self.stamps(watch, true, script),
        };
        (pdu.encode(), Vec::new())
    }

    fn text_response(&mut self, script: &mut Script<'_>, watch: &Watch) -> (Bhs, Vec<u8>) {
        let asked = watch.others.iter().rev();
        let asked = asked.filter(|bhs| bhs.opcode() == Opcode::TextRequest);
        let last = script.flag();
        let pdu = TextResponse {
            last,
            more: !last && script.flag(),
            lun: Lun([0; 8]),
            itt: asked.map(Bhs::itt).next().unwrap_or(Itt(5)),
            ttt: if last {
                Ttt::NONE
            } else {
                Ttt(script.byte().into())
            },
            stamps: self.stamps(watch, true, script),
        };
        let text = script.pick(&[
            "TargetName=iqn.2026-11.org.lunar:a\0",
            "TargetAddress=192.0.2.1:3260,1\0",
            "TargetAddress=[::1\0",
            "MaxRecvDataSegmentLength=1024\0",
            "MaxRecvDataSegmentLength=0\0",
            "",
            "X",
        ]);
        (pdu.encode(), text.as_bytes().to_vec())
    }

    fn async_message(&mut self, script: &mut Script<'_>, watch: &Watch) -> (Bhs, Vec<u8>) {
        let pdu = AsyncMessage {
            lun: Lun::from_index(script.byte().into()),
            stamps: self.stamps(watch, true, script),
            event: script.pick(&[0, 5, 4, 1, 2, 3, 255]),
            vendor_code: script.byte(),
            parameters: [script.half(), script.half(), script.half()],
        };
        let data: &[u8] = script.pick(&[&[0, 2, 0x70, 0][..], &[9, 9, 9], &[]]);
        (pdu.encode(), data.to_vec())
    }

    fn reject(&mut self, script: &mut Script<'_>, watch: &Watch) -> (Bhs, Vec<u8>) {
        let pdu = Reject {
            reason: script.byte() & 15,
            stamps: self.stamps(watch, true, script),
            data_sn: DataSn(0),
        };
        let number = script.below(4);
        let header = match watch.commands.iter().rev().nth(number) {
            Some(seen) if script.flag() => seen.command.encode(),
            _ => match watch.others.iter().rev().nth(number) {
                Some(other) => *other,
                None => Bhs(script.array()),
            },
        };
        (pdu.encode(), header.0.to_vec())
    }

    fn logout_response(&mut self, script: &mut Script<'_>, watch: &Watch) -> (Bhs, Vec<u8>) {
        let mut asked = watch.others.iter().rev();
        let asked = asked.find(|bhs| bhs.opcode() == Opcode::LogoutRequest);
        let pdu = LogoutResponse {
            response: script.byte() & 3,
            itt: asked.map_or_else(|| watch.tag(script.below(4)), Bhs::itt),
            stamps: self.stamps(watch, true, script),
            time_to_wait: script.half(),
            time_to_retain: script.half(),
        };
        (pdu.encode(), Vec::new())
    }
}

const fn residual(left: u32) -> Residual {
    match left {
        0 => Residual::Exact,
        left => Residual::Underflow(left),
    }
}
