//! A session with an initiator on one side and a scripted device server on the other.
//!
//! What the session sends is told in one line a PDU; its numbers are checked on the way: StatSN
//! goes up by one with each numbered PDU, MaxCmdSN never moves back.

mod iser;
mod memory;
mod stories;
mod tcp;
mod trace;

use std::collections::VecDeque;
use std::fmt::Debug;
use std::time::Duration;

use scsi::medium::{HeapLease, Lease};
use scsi::task::{Command, Completed, Function, FunctionResult, SenseBytes, Tag};
use scsi::wire::lun::Lun;
use scsi::wire::sense::Status;

pub(super) use self::memory::MemoryMover;
pub(super) use self::stories::{over_all_but_iser, over_each_datamover, over_one_datamover};
use crate::datamover::Datamover;
pub(super) use crate::datamover::iser::IserMover;
use crate::datamover::tcp::TcpMover;
use crate::parameters::{Operational, SessionPurpose};
use crate::session::{Session, SessionEvent};
use crate::target::TargetLimits;
use crate::test_support::{self, Sink, node};
pub(super) use crate::test_support::{TARGET, bytes_of, limits, pattern};
use crate::wire::bhs::{Bhs, Itt, Ttt};
use crate::wire::control::{NopOut, TextRequest};
use crate::wire::data::DataOut;
use crate::wire::framer::Framer;
use crate::wire::login::LogoutRequest;
use crate::wire::scsi_command::ScsiCommand;
use crate::wire::serial::{CmdSn, DataSn, StatSn};
use crate::wire::task_management::TaskRequest;

pub(super) const LUN: Lun = Lun::from_index(0);
pub(super) const FIRST_CMD_SN: u32 = 100;
pub(super) const FIRST_STAT_SN: u32 = 500;

/// A rig whose session's datamover is `D`.
pub(super) struct RigOver<D: Carrier> {
    pub(super) session: Session<HeapLease, D>,
    pub(super) now: Duration,
    pub(super) keys: Operational,
    pub(super) cmd_sn: u32,
    pub(super) events: VecDeque<SessionEvent<HeapLease>>,
    wire: Sink,
    framer: Framer,
    /// The initiator's end, where that is more than bytes.
    pub(super) peer: D::Peer,
    stat_sn: u32,
    pub(super) exp_cmd_sn: u32,
    pub(super) max_cmd_sn: u32,
}

/// A datamover that stories can run over.
pub(super) trait Carrier: Datamover<HeapLease> + Sized {
    /// The initiator's end.
    type Peer;

    /// The initiator's end of a connection that has agreed upon these keys, which become those of
    /// this transport.
    fn connect(keys: &mut Operational) -> Self::Peer;

    /// Gives a PDU to the session, collecting events.
    fn give(rig: &mut RigOver<Self>, bhs: Bhs, data: &[u8]);

    /// What the session sends now, one line for each; its numbers are checked.
    fn sent(rig: &mut RigOver<Self>) -> Vec<String>;
}

/// The rig that most stories run on.
pub(super) type Rig = RigOver<TcpMover<HeapLease>>;

/// The rig without PDUs of data.
pub(super) type MemoryRig = RigOver<MemoryMover>;

/// The rig over software iWARP.
pub(super) type IserRig = RigOver<IserMover<HeapLease>>;

/// Short lengths, so that traces are short: 1 KiB segments, 2 KiB bursts, 4 KiB data segments.
pub(super) fn keys() -> Operational {
    Operational {
        initial_r2t: false,
        immediate_data: true,
        peer_data_segment: 1024,
        own_data_segment: 4096,
        max_burst: 2048,
        first_burst: 1024,
        outstanding_r2t: 2,
        protocol_level: 2,
        ..Operational::default()
    }
}

impl<D: Carrier> RigOver<D> {
    pub(super) fn new() -> Self {
        Self::with(keys())
    }

    pub(super) fn with(keys: Operational) -> Self {
        Self::build(keys, SessionPurpose::Normal(node()), limits())
    }

    /// With keys that differ from [`keys`].
    pub(super) fn agreed(change: impl FnOnce(&mut Operational)) -> Self {
        let mut keys = keys();
        change(&mut keys);
        Self::with(keys)
    }

    /// With limits that differ from [`limits`].
    pub(super) fn limited(change: impl FnOnce(&mut TargetLimits)) -> Self {
        let mut limits = limits();
        change(&mut limits);
        Self::build(keys(), SessionPurpose::Normal(node()), limits)
    }

    pub(super) fn discovery() -> Self {
        Self::build(keys(), SessionPurpose::Discovery(vec![node()]), limits())
    }

    pub(super) fn build(
        mut keys: Operational,
        purpose: SessionPurpose,
        limits: TargetLimits,
    ) -> Self {
        let peer = D::connect(&mut keys);
        let numbers = (FIRST_STAT_SN, FIRST_CMD_SN);
        let parameters = test_support::parameters(keys, purpose, numbers);
        let config = test_support::config(limits);
        let mut framer = Framer::new(1 << 20);
        framer.set_digests(keys.header_digest, keys.data_digest);
        Self {
            session: Session::new(parameters, config, Duration::ZERO),
            now: Duration::ZERO,
            keys,
            cmd_sn: FIRST_CMD_SN,
            events: VecDeque::new(),
            wire: Sink::default(),
            framer,
            peer,
            stat_sn: FIRST_STAT_SN,
            exp_cmd_sn: FIRST_CMD_SN,
            max_cmd_sn: FIRST_CMD_SN - 1,
        }
    }

    pub(super) fn send(&mut self, bhs: Bhs, data: &[u8]) {
        D::give(self, bhs, data);
    }

    fn poll(&mut self) {
        while let Some(event) = self.session.poll() {
            self.events.push_back(event);
        }
    }

    pub(super) fn next_cmd_sn(&mut self) -> CmdSn {
        let number = CmdSn(self.cmd_sn);
        self.cmd_sn += 1;
        number
    }

    pub(super) fn skip_cmd_sn(&mut self) -> CmdSn {
        self.next_cmd_sn()
    }

    /// A READ of `expected` bytes.
    pub(super) fn read(&mut self, itt: u32, expected: u32) -> Command {
        let bhs = self.read_pdu(itt, expected);
        self.send(bhs.encode(), &[]);
        self.executed()
    }

    /// A READ of which something is changed before it is sent.
    pub(super) fn send_read(
        &mut self,
        itt: u32,
        expected: u32,
        change: impl FnOnce(&mut ScsiCommand),
    ) {
        let mut pdu = self.read_pdu(itt, expected);
        change(&mut pdu);
        self.send(pdu.encode(), &[]);
    }

    pub(super) fn read_pdu(&mut self, itt: u32, expected: u32) -> ScsiCommand {
        let cmd_sn = self.next_cmd_sn();
        ScsiCommand {
            immediate: false,
            last: true,
            read: true,
            write: false,
            attribute: 1,
            priority: 0,
            lun: LUN,
            itt: Itt(itt),
            expected,
            cmd_sn,
            exp_stat_sn: StatSn(self.stat_sn),
            cdb: [0x28, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0],
        }
    }

    /// A WRITE of `expected` bytes; without `last`, unsolicited data follows.
    pub(super) fn write_pdu(&mut self, itt: u32, expected: u32, last: bool) -> ScsiCommand {
        let mut pdu = self.read_pdu(itt, expected);
        pdu.read = false;
        pdu.write = true;
        pdu.last = last;
        pdu.cdb[0] = 0x2a;
        pdu
    }

    /// A WRITE with immediate data.
    pub(super) fn write(&mut self, itt: u32, expected: u32, last: bool, data: &[u8]) -> Command {
        let pdu = self.write_pdu(itt, expected, last);
        self.send(pdu.encode(), data);
        self.executed()
    }

    /// A WRITE of `expected` bytes with immediate data, and memory for all of it.
    pub(super) fn granted(&mut self, itt: u32, expected: u32, last: bool, data: &[u8]) -> Tag {
        let tag = self.write(itt, expected, last, data).tag;
        self.grant(tag, 0, expected as usize);
        tag
    }

    pub(super) fn data_out(
        &mut self,
        itt: u32,
        ttt: Ttt,
        sn: u32,
        at: u32,
        last: bool,
        data: &[u8],
    ) {
        let pdu = DataOut {
            last,
            lun: LUN,
            itt: Itt(itt),
            ttt,
            exp_stat_sn: StatSn(self.stat_sn),
            data_sn: DataSn(sn),
            offset: at,
        };
        self.send(pdu.encode(), data);
    }

    pub(super) fn task_pdu(&self, itt: u32, function: u8) -> TaskRequest {
        TaskRequest {
            immediate: true,
            function,
            lun: LUN,
            itt: Itt(itt),
            referenced: Itt::NONE,
            cmd_sn: CmdSn(self.cmd_sn),
            exp_stat_sn: StatSn(self.stat_sn),
            ref_cmd_sn: CmdSn(0),
            exp_data_sn: DataSn(0),
        }
    }

    pub(super) fn manage(&mut self, itt: u32, function: u8) {
        let pdu = self.task_pdu(itt, function);
        self.send(pdu.encode(), &[]);
    }

    pub(super) fn abort(&mut self, itt: u32, referenced: u32, ref_cmd_sn: u32) {
        let mut pdu = self.task_pdu(itt, 1);
        pdu.referenced = Itt(referenced);
        pdu.ref_cmd_sn = CmdSn(ref_cmd_sn);
        self.send(pdu.encode(), &[]);
    }

    pub(super) fn nop_pdu(&self, itt: Itt) -> NopOut {
        NopOut {
            immediate: true,
            lun: Lun([0; 8]),
            itt,
            ttt: Ttt::NONE,
            cmd_sn: CmdSn(self.cmd_sn),
            exp_stat_sn: StatSn(self.stat_sn),
        }
    }

    pub(super) fn ping(&mut self, itt: u32, data: &[u8]) {
        let pdu = self.nop_pdu(Itt(itt));
        self.send(pdu.encode(), data);
    }

    pub(super) fn text_pdu(&self, itt: u32) -> TextRequest {
        TextRequest {
            immediate: true,
            last: true,
            more: false,
            lun: Lun([0; 8]),
            itt: Itt(itt),
            ttt: Ttt::NONE,
            cmd_sn: CmdSn(self.cmd_sn),
            exp_stat_sn: StatSn(self.stat_sn),
        }
    }

    pub(super) fn text(&mut self, itt: u32, text: &str) {
        let pdu = self.text_pdu(itt);
        self.send(pdu.encode(), text.as_bytes());
    }

    pub(super) fn logout_pdu(&self, itt: u32, reason: u8) -> LogoutRequest {
        LogoutRequest {
            immediate: true,
            reason,
            itt: Itt(itt),
            cid: 7,
            cmd_sn: CmdSn(self.cmd_sn),
            exp_stat_sn: StatSn(self.stat_sn),
        }
    }

    /// The next event, which must be a command.
    pub(super) fn executed(&mut self) -> Command {
        match self.events.pop_front() {
            Some(SessionEvent::Execute(command)) => command,
            other => panic!("{other:?} where a command was expected"),
        }
    }

    pub(super) fn event(&mut self) -> Option<SessionEvent<HeapLease>> {
        self.poll();
        self.events.pop_front()
    }

    /// The next event, which must be a task management function.
    pub(super) fn managing(&mut self) -> (u32, Function) {
        match self.event() {
            Some(SessionEvent::Manage { id, function, .. }) => (id, function),
            other => panic!("{other:?} where task management was expected"),
        }
    }

    /// The next event, which must be a task management function; it is carried out, and these
    /// commands end aborted.
    pub(super) fn obeys(&mut self, aborted: &[Tag]) -> Function {
        let (id, function) = self.managing();
        aborted.iter().for_each(|tag| self.aborted(*tag));
        self.managed(id, FunctionResult::Complete);
        function
    }

    /// The next event, which must be Data-Out.
    pub(super) fn got_data(&mut self) -> (Tag, u32, Vec<u8>) {
        match self.event() {
            Some(SessionEvent::DataOut { tag, offset, data }) => (tag, offset, bytes_of(&data)),
            other => panic!("{other:?} where Data-Out was expected"),
        }
    }

    /// The next event, which must be an end or a remark: the rule that was broken.
    pub(super) fn rule(&mut self) -> &'static str {
        match self.event() {
            Some(SessionEvent::Remark(told) | SessionEvent::Close(told))
                if !told.clause.is_empty() =>
            {
                told.rule
            }
            other => panic!("{other:?} where a violation with its clause was expected"),
        }
    }

    pub(super) fn quiet(&mut self) {
        self.poll();
        assert!(self.events.is_empty(), "{:?}", self.events);
    }

    pub(super) fn grant(&mut self, tag: Tag, offset: u32, len: usize) {
        let lease = HeapLease::from_bytes(vec![0xee; len]);
        self.session.receive_data_out(tag, offset, lease);
        self.poll();
    }

    pub(super) fn data_in(&mut self, tag: Tag, offset: u32, data: &[u8]) {
        let lease = HeapLease::from_bytes(data.to_vec());
        self.session.send_data_in(tag, offset, lease);
    }

    /// A READ ends well with this many bytes of the pattern.
    pub(super) fn answer(&mut self, tag: Tag, len: usize) {
        self.data_in(tag, 0, &pattern(len));
        self.good(tag, len as u64, 0);
    }

    pub(super) fn good(&mut self, tag: Tag, length_in: u64, length_out: u64) {
        self.complete(tag, Status::Good, &[], length_in, length_out);
    }

    pub(super) fn complete(
        &mut self,
        tag: Tag,
        status: Status,
        sense: &[u8],
        length_in: u64,
        length_out: u64,
    ) {
        let completed = Completed {
            status,
            sense: SenseBytes::new(sense),
            qualifier: 0,
            length_in,
            length_out,
        };
        self.session.complete(tag, &completed);
        self.poll();
    }

    pub(super) fn managed(&mut self, id: u32, result: FunctionResult) {
        self.session.managed(id, result);
        self.poll();
    }

    pub(super) fn aborted(&mut self, tag: Tag) {
        self.session.aborted(tag);
        self.poll();
    }

    pub(super) fn wait(&mut self, seconds: u64) {
        self.now += Duration::from_secs(seconds);
        self.session.timeout(self.now);
        self.poll();
    }

    /// What the session sends now, one line a PDU.
    pub(super) fn sent(&mut self) -> Vec<String> {
        D::sent(self)
    }

    /// What the session sends now is this, one line a PDU.
    #[track_caller]
    pub(super) fn sends<T: Debug>(&mut self, pdus: T)
    where
        Vec<String>: PartialEq<T>,
    {
        assert_eq!(self.sent(), pdus);
    }

    #[track_caller]
    pub(super) fn sends_nothing(&mut self) {
        self.sends([""; 0]);
    }

    fn check(&mut self, stamps: trace::Counted, counts: bool) {
        if let Some(stat_sn) = stamps.0 {
            assert_eq!(stat_sn, StatSn(self.stat_sn), "StatSN");
        }
        self.stat_sn = self.stat_sn.wrapping_add(u32::from(counts));
        let (exp, max) = stamps.1;
        assert!(
            !exp.is_before(CmdSn(self.exp_cmd_sn)),
            "ExpCmdSN moved back"
        );
        assert!(
            !max.is_before(CmdSn(self.max_cmd_sn)),
            "MaxCmdSN moved back"
        );
        assert!(!max.next().is_before(exp), "MaxCmdSN below ExpCmdSN - 1");
        self.exp_cmd_sn = exp.0;
        self.max_cmd_sn = max.0;
    }
}
