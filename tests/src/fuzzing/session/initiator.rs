//! An initiator that sends what its script says. It knows what was negotiated, which CmdSN is next
//! and which R2Ts came, so that much of it is right if the script does not say otherwise.

use iscsi::parameters::Operational;
use iscsi::test_support::pdu;
use iscsi::wire::ahs;
use iscsi::wire::bhs::{Bhs, Itt, Ttt};
use iscsi::wire::control::{NopOut, TextRequest};
use iscsi::wire::data::{DataOut, SnackRequest};
use iscsi::wire::framer::DIGEST_LEN;
use iscsi::wire::login::LogoutRequest;
use iscsi::wire::scsi_command::ScsiCommand;
use iscsi::wire::serial::{CmdSn, DataSn, StatSn};
use iscsi::wire::task_management::TaskRequest;
use scsi::wire::lun::Lun;

use super::FIRST_CMD_SN;
use super::watch::Watch;
use crate::fuzzing::script::Script;

/// See [`super`].
#[derive(Debug)]
pub(super) struct Initiator {
    keys: Operational,
    cmd_sn: u32,
    /// Of the last write: its tag, and how much of its data was sent unasked, in how many PDUs.
    write: (Itt, u32, u32),
    /// Data-Out PDUs sent in answer to the last R2T.
    answers: (Ttt, u32),
    fresh: u32,
}

/// Texts of a text request.
const TEXTS: &[&str] = &[
    "SendTargets=All\0",
    "SendTargets=\0",
    "SendTargets=iqn.2026-11.org.lunar:test\0",
    "MaxRecvDataSegmentLength=512\0",
    "MaxRecvDataSegmentLength=65536\0",
    "X-org.test.key=1\0",
    "InitiatorAlias=alias\0",
    "MaxBurstLength=512\0",
    "SendTargets",
    "",
];

/// Data that may come with a command.
const LENGTHS: &[u32] = &[0, 512, 1, 511, 1024, 2048, 4096];

/// Functions of task management.
const ABORT_TASK: u8 = 1;
const TARGET_WARM_RESET: u8 = 6;

impl Initiator {
    pub(super) const fn new(keys: Operational) -> Self {
        Self {
            keys,
            cmd_sn: FIRST_CMD_SN,
            write: (Itt::NONE, 0, 0),
            answers: (Ttt::NONE, 0),
            fresh: 0x7000_0000,
        }
    }

    /// The next PDU as the script has it.
    pub(super) fn pdu(&mut self, script: &mut Script<'_>, watch: &Watch) -> Vec<u8> {
        match script.byte() & 15 {
            0..=4 => self.command(script),
            5..=7 => self.solicited(script, watch),
            8 => self.unsolicited(script),
            9 | 10 => self.task(script),
            11 => self.ping(script),
            12 => self.text(script),
            13 => self.logout(script),
            14 => self.snack(script),
            _ => self.anything(script),
        }
    }

    /// Bytes of a PDU, with its digests; a wrong data digest where `spoilt` says so.
    fn bytes(&self, bhs: Bhs, ahs: &[u8], data: &[u8], spoilt: bool) -> Vec<u8> {
        let digests = (self.keys.header_digest, self.keys.data_digest);
        let mut bytes = pdu(bhs, ahs, data, digests);
        if spoilt && digests.1 && !data.is_empty() {
            let digest = bytes.len() - DIGEST_LEN;
            bytes[digest] ^= 1;
        }
        bytes
    }

    /// CmdSN: the next one; or one that is left out, or was there already. Those for immediate
    /// delivery use none up.
    fn number(&mut self, script: &mut Script<'_>) -> (bool, CmdSn) {
        let how = script.byte();
        let immediate = how & 0x80 != 0;
        let ahead = match how & 0x7f {
            number @ 100..=120 => u32::from(number - 100),
            121..=123 => u32::MAX,
            124 => script.word(),
            _ => 0,
        };
        let number = self.cmd_sn.wrapping_add(ahead);
        if !immediate && ahead == 0 {
            self.cmd_sn = number.wrapping_add(1);
        }
        (immediate, CmdSn(number))
    }

    fn itt(script: &mut Script<'_>) -> Itt {
        match script.byte() {
            255 => Itt::NONE,
            tag => Itt(u32::from(tag & 0x3f)),
        }
    }

    fn command(&mut self, script: &mut Script<'_>) -> Vec<u8> {
        let (immediate, cmd_sn) = self.number(script);
        let flags = script.byte();
        let itt = Self::itt(script);
        let expected = match script.byte() {
            0 => script.word(),
            bytes => u32::from(bytes & 0x3f) * 512 + u32::from(bytes >> 6),
        };
        let command = ScsiCommand {
            immediate,
            last: flags & 0x80 == 0,
            read: flags & 1 != 0,
            write: flags & 2 != 0,
            attribute: flags >> 4 & 7,
            priority: 0,
            lun: Lun::from_index(u16::from(flags >> 2 & 1)),
            itt,
            expected,
            cmd_sn,
            exp_stat_sn: StatSn(0),
            cdb: [0x2a; 16],
        };
        let more = script.byte();
        let mut segments = Vec::new();
        if more & 0x40 != 0 {
            ahs::put_bidirectional_read(&mut segments, script.word());
        }
        if more & 0x20 != 0 {
            ahs::put_extended_cdb(&mut segments, script.take(usize::from(more & 0x1f)));
        }
        let data_len = LENGTHS[usize::from(more) % LENGTHS.len()];
        if command.write {
            self.write = (itt, data_len, 0);
        }
        let data = vec![0xc0; data_len as usize];
        self.bytes(command.encode(), &segments, &data, more & 0x80 != 0)
    }

    /// Data that an R2T asked for.
    fn solicited(&mut self, script: &mut Script<'_>, watch: &Watch) -> Vec<u8> {
        let back = script.below(8);
        let Some(r2t) = watch.r2ts.iter().rev().nth(back) else {
            return self.unsolicited(script);
        };
        let how = script.byte();
        if self.answers.0 != r2t.ttt {
            self.answers = (r2t.ttt, 0);
        }
        let (_, answered) = self.answers;
        let most = self.keys.own_data_segment.min(r2t.desired);
        let (skipped, len) = match how & 3 {
            0 => (0, most),
            1 => (answered * most, most),
            2 => (u32::from(script.half()), u32::from(script.half() & 0xfff)),
            _ => (script.word(), most),
        };
        self.answers.1 += 1;
        let data_out = DataOut {
            last: how & 4 == 0,
            lun: r2t.lun,
            itt: r2t.itt,
            ttt: r2t.ttt,
            exp_stat_sn: StatSn(0),
            data_sn: DataSn(if how & 8 == 0 { answered } else { 0 }),
            offset: r2t.offset.wrapping_add(skipped),
        };
        let data = vec![0xd0; len as usize];
        self.bytes(data_out.encode(), &[], &data, how & 16 != 0)
    }

    /// Data that follows the last write unasked.
    fn unsolicited(&mut self, script: &mut Script<'_>) -> Vec<u8> {
        let how = script.byte();
        let (itt, offset, sn) = self.write;
        let len = LENGTHS[usize::from(how >> 4) % LENGTHS.len()];
        self.write = (itt, offset.wrapping_add(len), sn + 1);
        let data_out = DataOut {
            last: how & 1 != 0,
            lun: Lun::from_index(0),
            itt,
            ttt: if how & 2 == 0 {
                Ttt::NONE
            } else {
                Ttt(script.word())
            },
            exp_stat_sn: StatSn(0),
            data_sn: DataSn(if how & 4 == 0 { sn } else { script.word() }),
            offset: if how & 8 == 0 { offset } else { script.word() },
        };
        self.bytes(data_out.encode(), &[], &vec![0xe0; len as usize], false)
    }

    fn task(&mut self, script: &mut Script<'_>) -> Vec<u8> {
        let (immediate, cmd_sn) = self.number(script);
        let function = match script.byte() {
            code @ 0..=0x7f => code & 15,
            _ => ABORT_TASK,
        };
        let request = TaskRequest {
            immediate,
            function,
            lun: Lun::from_index(u16::from(script.byte() & 1)),
            itt: Itt(0x100 + script.below(8) as u32),
            referenced: Self::itt(script),
            cmd_sn,
            exp_stat_sn: StatSn(0),
            ref_cmd_sn: CmdSn(cmd_sn.0.wrapping_sub(script.byte().into())),
            exp_data_sn: DataSn(0),
        };
        self.bytes(request.encode(), &[], &[], false)
    }

    fn ping(&mut self, script: &mut Script<'_>) -> Vec<u8> {
        let (immediate, cmd_sn) = self.number(script);
        let ping = NopOut {
            immediate,
            lun: Lun::from_index(0),
            itt: Self::itt(script),
            ttt: if script.flag() { Ttt(1) } else { Ttt::NONE },
            cmd_sn,
            exp_stat_sn: StatSn(0),
        };
        let data = vec![0xf0; script.byte().into()];
        self.bytes(ping.encode(), &[], &data, script.byte() > 250)
    }

    fn text(&mut self, script: &mut Script<'_>) -> Vec<u8> {
        let (immediate, cmd_sn) = self.number(script);
        let flags = script.byte();
        let request = TextRequest {
            immediate,
            last: flags & 1 == 0,
            more: flags & 2 != 0,
            lun: Lun::from_index(0),
            itt: Self::itt(script),
            ttt: if flags & 4 == 0 {
                Ttt::NONE
            } else {
                Ttt(script.byte().into())
            },
            cmd_sn,
            exp_stat_sn: StatSn(0),
        };
        let text = match TEXTS.get(usize::from(flags >> 3)) {
            Some(text) => text.as_bytes(),
            None => {
                let len = script.below(256);
                script.take(len)
            }
        };
        self.bytes(request.encode(), &[], text, false)
    }

    fn logout(&mut self, script: &mut Script<'_>) -> Vec<u8> {
        let (immediate, cmd_sn) = self.number(script);
        let request = LogoutRequest {
            immediate,
            reason: script.byte() & 3,
            itt: Self::itt(script),
            cid: 7 + u16::from(script.byte() & 1),
            cmd_sn,
            exp_stat_sn: StatSn(0),
        };
        self.bytes(request.encode(), &[], &[], false)
    }

    fn snack(&mut self, script: &mut Script<'_>) -> Vec<u8> {
        let snack = SnackRequest {
            kind: script.byte() & 3,
            lun: Lun::from_index(0),
            itt: Self::itt(script),
            ttt: Ttt::NONE,
            exp_stat_sn: StatSn(0),
            first: script.byte().into(),
            count: script.byte().into(),
        };
        self.bytes(snack.encode(), &[], &[], false)
    }

    /// Any header and any data, with digests that are right.
    fn anything(&mut self, script: &mut Script<'_>) -> Vec<u8> {
        let bhs = Bhs(script.array());
        let ahs_len = 4 * script.below(4);
        let mut ahs = script.take(ahs_len).to_vec();
        ahs.resize(ahs_len, 0);
        let data_len = script.byte();
        let data = script.take(data_len.into());
        self.bytes(bhs, &ahs, data, false)
    }

    fn fresh(&mut self) -> Itt {
        self.fresh += 1;
        Itt(self.fresh)
    }

    fn plain_ping(&mut self, immediate: bool, watch: &Watch) -> Vec<u8> {
        let ping = NopOut {
            immediate,
            lun: Lun::from_index(0),
            itt: self.fresh(),
            ttt: Ttt::NONE,
            cmd_sn: CmdSn(watch.expected()),
            exp_stat_sn: StatSn(0),
        };
        self.bytes(ping.encode(), &[], &[], false)
    }

    /// A ping for immediate delivery, whose answer tells the window.
    pub(super) fn ping_now(&mut self, watch: &Watch) -> Vec<u8> {
        self.plain_ping(true, watch)
    }

    /// A ping with the CmdSN that the target waits for.
    pub(super) fn ping_in_turn(&mut self, watch: &Watch) -> Vec<u8> {
        self.plain_ping(false, watch)
    }

    pub(super) fn warm_reset(&mut self, watch: &Watch) -> Vec<u8> {
        let request = TaskRequest {
            immediate: true,
            function: TARGET_WARM_RESET,
            lun: Lun::from_index(0),
            itt: self.fresh(),
            referenced: Itt::NONE,
            cmd_sn: CmdSn(watch.expected()),
            exp_stat_sn: StatSn(0),
            ref_cmd_sn: CmdSn(0),
            exp_data_sn: DataSn(0),
        };
        self.bytes(request.encode(), &[], &[], false)
    }
}
