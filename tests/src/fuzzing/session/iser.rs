//! The full-feature phase over RDMA: the same initiator and device server, and a queue pair.

use std::time::Duration;

use iscsi::datamover::iser::IserMover;
use iscsi::parameters::{Operational, SessionPurpose, TaskReporting, Transport};
use iscsi::session::{Session, SessionEvent};
use iscsi::target::TargetLimits;
use iscsi::test_support::{self, limits};
use iscsi::wire::bhs::{Bhs, Opcode};
use iscsi::wire::framer::padding;
use iscsi::wire::iser::{AdvertisedBuffers, ControlMessage, Hello, IserHeader};
use iscsi::wire::scsi_command::ScsiCommand;
use rdma::verbs::{Access, Completion, QueuePairEnd};
use scsi::medium::HeapLease;
use scsi::violation::Violation;
use scsi::wire::lun::Lun;

use self::pair::Pair;
use super::device::Device;
use super::initiator::Initiator;
use super::watch::Watch;
use super::{FIRST_CMD_SN, FIRST_STAT_SN};
use crate::fuzzing::script::Script;

mod pair;

/// See docs/fuzzing.md.
pub fn iser_target(data: &[u8]) {
    let mut script = Script::new(data);
    let mut play = IserPlay::new(&mut script);
    while !script.is_over() && play.open {
        play.act(&mut script);
    }
    play.end();
}

/// A session between the two of them.
struct IserPlay {
    session: Session<HeapLease, IserMover<HeapLease>>,
    keys: Operational,
    pair: Pair,
    now: Duration,
    initiator: Initiator,
    device: Device,
    watch: Watch,
    open: bool,
}

/// What is sent can be read.
const IS_READ: &str = "a message that can be read";

const HELLO: IserHeader = IserHeader::Hello(Hello {
    max_version: 10,
    min_version: 10,
    ird: 4,
});

/// A Base Offset behind which 64 bits come to their end.
const BASES: &[u64] = &[0, 0xffff_8880_0827_d000, u64::MAX - 1000];

impl IserPlay {
    fn new(script: &mut Script<'_>) -> Self {
        let keys = keys(script);
        let pair = Pair::new(script);
        let limits = TargetLimits {
            window: script.pick(&[128, 1, 4, 16, 17, 64]),
            held_bytes: script.pick(&[65_536, 0, 512, 4096]),
            ..limits()
        };
        let purpose = SessionPurpose::Normal(test_support::node());
        let parameters = test_support::parameters(keys, purpose, (FIRST_STAT_SN, FIRST_CMD_SN));
        let config = test_support::config(limits);
        let mut play = Self {
            session: Session::new(parameters, config, Duration::ZERO),
            keys,
            pair,
            now: Duration::ZERO,
            initiator: Initiator::new(keys),
            device: Device::new(limits.window),
            watch: Watch::new(keys, limits.window),
            open: true,
        };
        if keys.iser.hello_required && script.byte() < 250 {
            play.give(HELLO.encode().to_vec());
        }
        play
    }

    fn act(&mut self, script: &mut Script<'_>) {
        match script.byte() & 15 {
            0..=5 => {
                let pdu = self.initiator.pdu(script, &self.watch);
                let insists = script.byte() == 0xa5;
                if insists || self.is_short_enough(&pdu) {
                    let message = self.message(script, &pdu);
                    self.give(message);
                }
            }
            6 if script.byte() > 250 => {
                let len = script.below(256);
                self.give(script.take(len).to_vec());
            }
            6..=9 => self.pair.complete(script.below(256), true),
            10 => {
                self.now += Duration::from_millis(script.half().into());
                self.session.timeout(self.now);
            }
            11 if script.byte() > 250 => {
                let end = Completion::Ended(QueuePairEnd::Requested);
                self.pair.told.push_back(end);
            }
            11 => self.session.attention(Lun::from_index(0), script.half()),
            _ => self.device.act(script, &mut self.session),
        }
        self.take_in();
        self.transmit();
    }

    /// Whether it has no more data than was agreed upon, and additional header segments only where
    /// they may be: all else ends the session.
    fn is_short_enough(&self, pdu: &[u8]) -> bool {
        let bhs = pdu.first_chunk().map(|bytes| Bhs(*bytes));
        bhs.is_none_or(|bhs| {
            let may_extend = bhs.opcode() == Opcode::ScsiCommand;
            bhs.data_len() <= self.keys.own_data_segment && (may_extend || bhs.ahs_len() == 0)
        })
    }

    /// A PDU behind a header that is right, if the script does not say otherwise.
    fn message(&mut self, script: &mut Script<'_>, pdu: &[u8]) -> Vec<u8> {
        let flags = script.byte();
        if flags == 0xa5 {
            let hello = IserHeader::Hello(Hello {
                max_version: script.byte(),
                min_version: script.byte(),
                ird: script.half(),
            });
            return hello.encode().to_vec();
        }
        let bhs = pdu.first_chunk().map(|bytes| Bhs(*bytes));
        let command = bhs.filter(|bhs| bhs.opcode() == Opcode::ScsiCommand);
        let mut buffers = match command {
            Some(bhs) => self.advertise(&bhs, script),
            None => AdvertisedBuffers::default(),
        };
        match flags {
            0xa6 => buffers.read = None,
            0xa7 => buffers.write = None,
            _ => {}
        }
        [&IserHeader::Control(buffers).encode()[..], pdu].concat()
    }

    fn advertise(&mut self, bhs: &Bhs, script: &mut Script<'_>) -> AdvertisedBuffers {
        let pdu = ScsiCommand::decode(bhs);
        let unsolicited = if pdu.last {
            bhs.data_len()
        } else {
            self.keys.first_burst
        };
        let unsolicited = unsolicited.min(pdu.expected);
        let rest = if self.keys.iser.offset_skips_unsolicited() {
            pdu.expected - unsolicited
        } else {
            pdu.expected
        };
        let base = script.pick(BASES);
        let itt = pdu.itt.0;
        *self.pair.commands.entry(itt).or_default() += 1;
        let mut offer = |may, len: u32| self.pair.offer(itt, may, base, len.into());
        AdvertisedBuffers {
            write: (pdu.write && rest > 0).then(|| offer(Access::Read, rest)),
            read: pdu.read.then(|| offer(Access::Write, pdu.expected)),
        }
    }

    fn give(&mut self, message: Vec<u8>) {
        if let Ok((IserHeader::Control(_), rest)) = IserHeader::split(&message)
            && let Ok(pdu) = ControlMessage::split(rest)
        {
            let padding = &[0; 3][..usize::from(padding(pdu.bhs.data_len()))];
            let bytes = [&pdu.bhs.0, pdu.ahs, pdu.data, padding].concat();
            self.watch.given(&bytes);
        }
        self.pair.told.push_back(Completion::Received {
            bytes: message,
            invalidated: None,
        });
    }

    fn take_in(&mut self) {
        while !self.session.receive(self.now, &mut self.pair) {
            if self.events() == 0 {
                assert!(
                    self.session.is_stalled(),
                    "a message waits without a reason"
                );
                self.transmit();
                self.pair.complete(0, false);
            }
        }
        self.events();
    }

    fn events(&mut self) -> usize {
        let mut count = 0;
        while let Some(event) = self.session.poll() {
            count += 1;
            assert!(count < 1024, "events without end");
            match event {
                SessionEvent::Execute(command) => {
                    assert!(self.open, "a command after the end");
                    self.device.execute(&command);
                }
                SessionEvent::DataOut { tag, offset, data } => {
                    self.device.data_out(tag, offset, &data);
                }
                SessionEvent::Manage { id, lun, function } => {
                    self.device.manage(id, lun, function);
                }
                SessionEvent::ColdReset => {}
                SessionEvent::Close(Violation { rule, clause }) => {
                    assert!(!rule.is_empty() && !clause.is_empty());
                    assert!(std::mem::take(&mut self.open), "it ends twice");
                }
                SessionEvent::LoggedOut => {
                    assert!(std::mem::take(&mut self.open), "it ends twice");
                }
                SessionEvent::Remark(Violation { rule, .. }) => assert!(!rule.is_empty()),
            }
        }
        count
    }

    fn transmit(&mut self) -> bool {
        let any = self.session.transmit(&mut self.pair);
        self.session.has_put_out(any);
        for message in std::mem::take(&mut self.pair.messages) {
            if let Ok((IserHeader::Control(buffers), rest)) = IserHeader::split(&message) {
                assert_eq!(buffers, AdvertisedBuffers::default());
                self.watch.heard(rest);
                self.is_short(rest);
            }
        }
        self.events();
        any
    }

    /// What the initiator did not ask for fits into a small receive.
    fn is_short(&self, pdu: &[u8]) {
        let pdu = ControlMessage::split(pdu).expect(IS_READ);
        let is_asked = matches!(pdu.bhs.opcode(), Opcode::TextResponse | Opcode::NopIn);
        assert!(is_asked || pdu.data.len() <= 128, "{pdu:?}");
    }

    /// Brings everything to an end: no read, no data and no command is left.
    fn end(&mut self) {
        let mut idle = 0;
        while idle < 3 {
            let had_jobs = self.device.finish_one(&mut self.session);
            self.take_in();
            let has_posted = self.transmit();
            let was_busy = had_jobs || has_posted || !self.pair.is_idle();
            self.pair.complete(0, false);
            self.pair.complete(1, false);
            self.take_in();
            idle = if was_busy { 0 } else { idle + 1 };
        }
        self.device.is_idle();
        assert!(self.pair.is_idle());
        assert_eq!(self.session.data_in_queued(), 0);
    }
}

/// What a login over RDMA may agree upon.
fn keys(script: &mut Script<'_>) -> Operational {
    let mut keys = super::keys(script);
    let flags = script.byte();
    (keys.header_digest, keys.data_digest) = (false, false);
    keys.initial_r2t = true;
    if keys.task_reporting == TaskReporting::FastAbort {
        keys.task_reporting = TaskReporting::ResponseFence;
    }
    keys.transport = Transport::Iser {
        data_segment: keys.own_data_segment,
    };
    keys.iser.rdma_extensions = true;
    keys.iser.target_data_segment = keys.own_data_segment;
    keys.iser.initiator_data_segment = keys.peer_data_segment;
    keys.iser.solicited_only = [None, Some(true), Some(false), None][usize::from(flags & 3)];
    keys.iser.unexpected_pdus = script.pick(&[None, Some(0), Some(2), Some(5)]);
    keys.iser.hello_required = flags & 0x70 == 0x70;
    keys
}
