//! The full-feature phase: an initiator that sends PDUs of every kind, right and wrong, in any
//! pieces, over a device server that ends commands late, badly, in any order, or only at the end.

mod device;
mod initiator;
mod iser;
mod watch;

use std::time::Duration;

use iscsi::parameters::{Operational, SessionPurpose, TaskReporting};
use iscsi::session::{Session, SessionEvent};
use iscsi::target::TargetLimits;
use iscsi::test_support::{self, Sink, limits};
use iscsi::wire::serial::CmdSn;
use scsi::medium::HeapLease;
use scsi::violation::Violation;
use scsi::wire::lun::Lun;

use self::device::Device;
use self::initiator::Initiator;
pub use self::iser::iser_target;
use self::watch::Watch;
use super::script::Script;

const FIRST_CMD_SN: u32 = 0xffff_fffa;
const FIRST_STAT_SN: u32 = 0xffff_fff0;

/// See docs/fuzzing.md.
pub fn session(data: &[u8]) {
    let mut script = Script::new(data);
    let keys = keys(&mut script);
    let mut play = Play::new(keys, &mut script);
    while !script.is_over() && play.open {
        play.act(&mut script);
    }
    play.end();
}

/// A session between the two of them.
struct Play {
    session: Session<HeapLease>,
    now: Duration,
    initiator: Initiator,
    device: Device,
    watch: Watch,
    sink: Sink,
    /// It has not ended.
    open: bool,
}

impl Play {
    fn new(keys: Operational, script: &mut Script<'_>) -> Self {
        let flags = script.byte();
        let limits = TargetLimits {
            window: script.pick(&[128, 1, 4, 16, 17, 64]),
            held_bytes: script.pick(&[65_536, 0, 512, 4096]),
            ..limits()
        };
        let purpose = if flags & 7 == 7 {
            SessionPurpose::Discovery(vec![test_support::node()])
        } else {
            SessionPurpose::Normal(test_support::node())
        };
        let parameters = test_support::parameters(keys, purpose, (FIRST_STAT_SN, FIRST_CMD_SN));
        let config = test_support::config(limits);
        Self {
            session: Session::new(parameters, config, Duration::ZERO),
            now: Duration::ZERO,
            initiator: Initiator::new(keys),
            device: Device::new(limits.window),
            watch: Watch::new(keys, limits.window),
            sink: Sink::default(),
            open: true,
        }
    }

    fn act(&mut self, script: &mut Script<'_>) {
        match script.byte() & 15 {
            0..=6 => {
                let bytes = self.initiator.pdu(script, &self.watch);
                let step = 1 + usize::from(script.byte()) * 16;
                self.give(&bytes, step);
            }
            7 => {
                let len = script.below(256);
                self.give(script.take(len), 1 + script.below(64));
            }
            8 | 9 => self.transmit(script.pick(&[0, 1, 512, 4096])),
            10 => {
                self.now += Duration::from_millis(script.half().into());
                self.session.timeout(self.now);
            }
            11 if script.byte() > 250 => {
                self.session.request_logout(self.now, script.byte().into());
            }
            11 => self.session.attention(Lun::from_index(0), script.half()),
            _ => self.device.act(script, &mut self.session),
        }
        self.events();
    }

    /// Bytes arrive in pieces; what the session does not take it is given again.
    fn give(&mut self, bytes: &[u8], step: usize) {
        for piece in bytes.chunks(step) {
            let mut rest = piece;
            while !rest.is_empty() && self.open {
                let used = self.session.receive(self.now, rest);
                self.watch.given(&rest[..used]);
                rest = &rest[used..];
                if self.events() == 0 && used == 0 {
                    assert!(self.session.is_stalled(), "bytes are left without a reason");
                    self.transmit(0);
                }
            }
        }
    }

    fn events(&mut self) -> usize {
        let mut count = 0;
        while let Some(event) = self.session.poll() {
            count += 1;
            assert!(count < 1024, "events without end");
            self.event(event);
        }
        count
    }

    fn event(&mut self, event: SessionEvent<HeapLease>) {
        match event {
            SessionEvent::Execute(command) => {
                assert!(self.open, "a command after the end");
                self.device.execute(&command);
            }
            SessionEvent::DataOut { tag, offset, data } => self.device.data_out(tag, offset, &data),
            SessionEvent::Manage { id, lun, function } => self.device.manage(id, lun, function),
            SessionEvent::ColdReset => {}
            SessionEvent::Close(Violation { rule, .. }) => {
                assert!(!rule.is_empty());
                self.end_once();
            }
            SessionEvent::LoggedOut => self.end_once(),
            SessionEvent::Remark(Violation { rule, .. }) => assert!(!rule.is_empty()),
        }
    }

    fn end_once(&mut self) {
        assert!(self.open, "it ends twice");
        self.open = false;
    }

    fn transmit(&mut self, limit: usize) {
        self.sink.limit = limit;
        while self.session.transmit(&mut self.sink) {
            let bytes = std::mem::take(&mut self.sink.bytes);
            self.watch.heard(&bytes);
            if limit > 0 {
                break;
            }
        }
    }

    /// Lets the device server end everything that it has.
    fn settle(&mut self) {
        while self.device.finish_one(&mut self.session) {
            self.events();
        }
        self.transmit(0);
    }

    /// Brings everything to an end, after which all places of the window are free again.
    fn end(&mut self) {
        self.settle();
        if self.open && self.watch.is_between() {
            self.fill_gaps();
        }
        if self.open && self.watch.is_between() {
            self.reset();
        }
        if self.open && self.watch.is_between() {
            self.watch.all_free();
        }
        self.device.is_idle();
    }

    /// Sends the commands that never came, so that those after them are carried out: all that can
    /// be waiting have a CmdSN of the window as it is now. A ping tells how wide that is, as
    /// nothing may have been answered yet.
    fn fill_gaps(&mut self) {
        self.say(Initiator::ping_now);
        let end = self.watch.max();
        for _ in 0..300 {
            self.now += Duration::from_secs(3);
            self.session.timeout(self.now);
            self.events();
            self.say(Initiator::ping_now);
            if !self.open || self.watch.is_closed() {
                return;
            }
            let before = self.watch.expected();
            self.say(Initiator::ping_in_turn);
            let next = before.wrapping_add(1);
            let filled = end.is_before(CmdSn(self.watch.expected()));
            let busy = self.device.was_busy();
            if !self.open || filled && self.watch.expected() == next && !busy {
                return;
            }
        }
    }

    fn reset(&mut self) {
        self.say(Initiator::warm_reset);
        self.now += Duration::from_secs(3);
        self.session.timeout(self.now);
        self.events();
        self.settle();
        if self.open {
            self.say(Initiator::ping_now);
        }
    }

    fn say(&mut self, what: fn(&mut Initiator, &Watch) -> Vec<u8>) {
        let bytes = what(&mut self.initiator, &self.watch);
        self.give(&bytes, usize::MAX);
        self.settle();
    }
}

fn keys(script: &mut Script<'_>) -> Operational {
    let flags = script.byte();
    let more = script.byte();
    let flag = |bit: u8| flags >> bit & 1 != 0;
    let max_burst = script.pick(&[2048, 512, 262_144]);
    Operational {
        header_digest: flag(0),
        data_digest: flag(1),
        initial_r2t: flag(2),
        immediate_data: !flag(3),
        pdu_in_order: flag(4),
        sequence_in_order: flag(5),
        peer_data_segment: if flag(6) { 512 } else { 1024 },
        own_data_segment: if flag(7) { 512 } else { 4096 },
        max_burst,
        first_burst: script.pick(&[1024, 512, 65_536]).min(max_burst),
        outstanding_r2t: script.pick(&[2, 1, 8]),
        protocol_level: 1 + (more & 1),
        task_reporting: match more >> 1 & 3 {
            0 => TaskReporting::Rfc3720,
            1 => TaskReporting::ResponseFence,
            _ => TaskReporting::FastAbort,
        },
        ..Operational::default()
    }
}
