//! An initiator with a scripted target on the other side, over TCP or over software iWARP.
//!
//! What the initiator sends is told in one line a PDU; its numbers are checked on the way: CmdSN
//! goes up by one with each command and stays within the window, ExpStatSN acknowledges all that
//! was sent.

mod iser;
pub(super) mod stories;
mod tcp;
mod trace;

use std::collections::VecDeque;
use std::fmt::Debug;
use std::time::Duration;

use scsi::medium::{HeapLease, Lease as _};
use scsi::residual::Residual;
use scsi::task::Attribute;
use scsi::wire::lun::Lun;

use self::iser::Iser;
pub(super) use self::tcp::AGREED;
use self::tcp::Tcp;
use self::trace::line;
use crate::initiator::config::InitiatorConfig;
use crate::initiator::error::SessionEnd;
use crate::initiator::mover::InitiatorMover;
use crate::initiator::{
    ClientCommand, Data, Done, Initiator, InitiatorEvent, IscsiFailed, IscsiRefusal,
};
use crate::parameters::Operational;
pub(super) use crate::test_support::{Sink, TARGET, bytes_of, pattern};
use crate::wire::bhs::{Bhs, Itt, Opcode, Stamps};
use crate::wire::login::LoginResponse;
use crate::wire::scsi_command::ScsiResponse;
use crate::wire::serial::{CmdSn, DataSn, StatSn};

pub(super) const INITIATOR: &str = "iqn.2026-11.org.lunar:initiator";
pub(super) const ISID: [u8; 6] = [0x80, 0, 0, 0, 0, 1];
pub(super) const LUN: Lun = Lun::from_index(1);
pub(super) const FIRST_CMD_SN: u32 = 100;
pub(super) const FIRST_STAT_SN: u32 = 500;

/// The first four make FIRST_CMD_SN, the next the identifier of a challenge.
pub(super) fn random() -> [u8; 37] {
    std::array::from_fn(|at| match at {
        0..3 => 0,
        3 => FIRST_CMD_SN as u8,
        _ => at as u8,
    })
}

pub(super) struct InitiatorRig<C: Carrier> {
    pub(super) initiator: Initiator<HeapLease, C::Mover>,
    /// The target's end, and what is between.
    pub(super) carrier: C,
    pub(super) now: Duration,
    pub(super) stat_sn: u32,
    /// CmdSN of the next command.
    pub(super) cmd_sn: u32,
    /// How many of the last commands the target has not counted.
    pub(super) uncounted: u32,
    /// How many commands may be sent beyond those that were.
    pub(super) window: u32,
    pub(super) events: VecDeque<InitiatorEvent<HeapLease>>,
}

/// Over TCP.
pub(super) type Rig = InitiatorRig<Tcp>;

/// Over RDMA.
pub(super) type IserRig = InitiatorRig<Iser>;

/// What carries the PDUs of both, and the target's end of it.
pub(super) trait Carrier: Sized {
    type Mover: InitiatorMover;

    /// What a target answers that agrees with `config`.
    const AGREED: &'static str;

    /// A connection.
    fn connect(config: InitiatorConfig) -> (Initiator<HeapLease, Self::Mover>, Self);

    /// A login has ended with these keys.
    fn agree(&mut self, keys: &Operational);

    /// A PDU comes.
    fn give(rig: &mut InitiatorRig<Self>, bhs: Bhs, data: &[u8]);

    /// What the initiator sends now: header and data of each PDU.
    fn pdus(rig: &mut InitiatorRig<Self>) -> Vec<(Bhs, Vec<u8>)>;
}

/// A session with one target, and lengths so short that traces are short.
pub(super) fn config() -> InitiatorConfig {
    let mut config = InitiatorConfig::normal(INITIATOR, ISID, TARGET);
    config.offer.keys.own_data_segment = 4096;
    config.offer.keys.max_burst = 2048;
    config.offer.keys.first_burst = 1024;
    config.offer.keys.outstanding_r2t = 2;
    config.limits.tasks = 8;
    config
}

impl<C: Carrier> InitiatorRig<C> {
    pub(super) const AGREED: &'static str = C::AGREED;

    /// Before the login.
    pub(super) fn new(config: InitiatorConfig) -> Self {
        let (initiator, carrier) = C::connect(config);
        Self {
            initiator,
            carrier,
            now: Duration::ZERO,
            stat_sn: FIRST_STAT_SN,
            cmd_sn: FIRST_CMD_SN,
            uncounted: 0,
            window: 4,
            events: VecDeque::new(),
        }
    }

    /// After the first Login Request.
    pub(super) fn begun(config: InitiatorConfig) -> Self {
        let mut rig = Self::new(config);
        rig.sent();
        rig
    }

    /// After the security stage, in which the target asked for no authentication.
    pub(super) fn negotiating(config: InitiatorConfig) -> Self {
        let mut rig = Self::begun(config);
        rig.login(0, Some(1), "TargetPortalGroupTag=1|AuthMethod=None|");
        rig.sent();
        rig
    }

    /// After the target has chosen CHAP.
    pub(super) fn challenging(config: InitiatorConfig) -> Self {
        let mut rig = Self::begun(config);
        rig.login(0, None, "AuthMethod=CHAP|");
        rig.sent();
        rig
    }

    /// After a login without authentication, in which the target answered this.
    pub(super) fn logged_in(config: InitiatorConfig, answer: &str) -> Self {
        let mut rig = Self::negotiating(config);
        rig.login(1, Some(3), answer);
        match rig.event() {
            Some(InitiatorEvent::LoggedIn) => {}
            other => panic!("{other:?} where the session was expected"),
        }
        let keys = rig.keys();
        rig.carrier.agree(&keys);
        rig
    }

    pub(super) fn open() -> Self {
        Self::logged_in(config(), C::AGREED)
    }

    /// A READ was sent.
    pub(super) fn reading(id: u64, len: usize) -> Self {
        let mut rig = Self::open();
        rig.read(id, len);
        rig.sent();
        rig
    }

    /// A WRITE was sent, and what of its data goes without being asked for.
    pub(super) fn writing(id: u64, len: usize) -> Self {
        let mut rig = Self::open();
        rig.write(id, len);
        rig.sent();
        rig
    }

    /// A command without data was sent.
    pub(super) fn testing(id: u64) -> Self {
        let mut rig = Self::open();
        rig.test_unit(id);
        rig.sent();
        rig
    }

    /// After a login in which some of the answers were others.
    pub(super) fn with(config: InitiatorConfig, changes: &[(&str, &str)]) -> Self {
        let answer = changes
            .iter()
            .fold(C::AGREED.to_owned(), |answer, (from, to)| {
                assert!(answer.contains(from), "{from}");
                answer.replace(from, to)
            });
        Self::logged_in(config, &answer)
    }

    pub(super) fn keys(&self) -> Operational {
        self.initiator.outcome().unwrap().keys
    }

    /// The numbers of a PDU that carries a status.
    pub(super) fn next_stamps(&mut self) -> Stamps {
        let stamps = self.stamps();
        self.stat_sn = self.stat_sn.wrapping_add(1);
        stamps
    }

    pub(super) fn stamps(&self) -> Stamps {
        Stamps {
            stat_sn: StatSn(self.stat_sn),
            exp_cmd_sn: CmdSn(self.cmd_sn.wrapping_sub(self.uncounted)),
            max_cmd_sn: CmdSn(self.cmd_sn.wrapping_add(self.window).wrapping_sub(1)),
        }
    }

    pub(super) fn login_pdu(&mut self, current: u8, next: Option<u8>) -> LoginResponse {
        LoginResponse {
            transit: next.is_some(),
            more: false,
            current,
            next: next.unwrap_or(0),
            version_max: 0,
            version_active: 0,
            isid: ISID,
            tsih: u16::from(next == Some(3)) * 9,
            itt: Itt(0xfff0),
            stamps: self.next_stamps(),
            status: 0,
        }
    }

    /// A Login Response; `|` stands for null.
    pub(super) fn login(&mut self, current: u8, next: Option<u8>, text: &str) {
        let pdu = self.login_pdu(current, next);
        self.send_text(pdu.encode(), text);
    }

    pub(super) fn send_text(&mut self, bhs: Bhs, text: &str) {
        let text = text.replace('|', "\0");
        self.send(bhs, text.as_bytes());
    }

    pub(super) fn send(&mut self, bhs: Bhs, data: &[u8]) {
        C::give(self, bhs, data);
    }

    fn poll(&mut self) {
        while let Some(event) = self.initiator.poll() {
            self.events.push_back(event);
        }
    }

    pub(super) fn event(&mut self) -> Option<InitiatorEvent<HeapLease>> {
        self.poll();
        self.events.pop_front()
    }

    pub(super) fn quiet(&mut self) {
        self.poll();
        assert!(self.events.is_empty(), "{:?}", self.events);
    }

    pub(super) fn done(&mut self) -> Done<HeapLease> {
        match self.event() {
            Some(InitiatorEvent::Done(done)) => done,
            other => panic!("{other:?} where a status was expected"),
        }
    }

    pub(super) fn failed(&mut self) -> IscsiFailed<HeapLease> {
        match self.event() {
            Some(InitiatorEvent::Failed(failed)) => failed,
            other => panic!("{other:?} where a failure was expected"),
        }
    }

    /// How it ended, which is the last event.
    pub(super) fn end(&mut self) -> SessionEnd {
        let end = match self.event() {
            Some(InitiatorEvent::Ended(end)) => end,
            other => panic!("{other:?} where the end was expected"),
        };
        self.quiet();
        assert!(self.sent().is_empty(), "nothing is sent after the end");
        assert_eq!(self.initiator.next_deadline(), None);
        end
    }

    /// The rule that was broken.
    pub(super) fn rule(&mut self) -> &'static str {
        match self.end() {
            SessionEnd::Violated(violation) => violation.rule,
            other => panic!("{other:?} where a violation was expected"),
        }
    }

    pub(super) fn wait(&mut self, seconds: u64) {
        self.now += Duration::from_secs(seconds);
        self.initiator.expire(self.now);
        self.poll();
    }

    /// What the initiator sends now: header and data of each PDU.
    pub(super) fn pdus(&mut self) -> Vec<(Bhs, Vec<u8>)> {
        let pdus = C::pdus(self);
        for (bhs, _) in &pdus {
            self.check_numbers(bhs);
        }
        pdus
    }

    fn check_numbers(&mut self, bhs: &Bhs) {
        let begun = self.stat_sn != FIRST_STAT_SN;
        let exp_stat_sn = if begun { self.stat_sn } else { 0 };
        assert_eq!(bhs.exp_stat_sn(), StatSn(exp_stat_sn), "{bhs:?}");
        if bhs.opcode() == Opcode::DataOut {
            return;
        }
        assert_eq!(bhs.cmd_sn(), CmdSn(self.cmd_sn), "{bhs:?}");
        if !bhs.is_immediate() {
            assert_eq!(bhs.opcode(), Opcode::ScsiCommand);
            assert!(self.window > 0, "a command beyond the window");
            self.window -= 1;
            self.cmd_sn += 1;
        }
    }

    /// What the initiator sends now, one line a PDU.
    pub(super) fn sent(&mut self) -> Vec<String> {
        let pdus = self.pdus();
        pdus.iter().map(|(bhs, data)| line(bhs, data)).collect()
    }

    /// What the initiator sends now is this, one line a PDU.
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

    pub(super) fn command(&self, id: u64, data: Data<HeapLease>) -> ClientCommand<HeapLease> {
        let opcode = if matches!(data, Data::Out(_)) {
            0x2a
        } else {
            0x28
        };
        let mut cdb = [0; 16];
        cdb[0] = opcode;
        ClientCommand {
            id,
            lun: LUN,
            cdb,
            attribute: Attribute::Simple,
            data,
            deadline: None,
        }
    }

    /// Why a command without data is not taken.
    pub(super) fn refused(&mut self, id: u64) -> IscsiRefusal {
        let command = self.command(id, Data::None);
        let refused = self.initiator.execute(self.now, command);
        refused.expect_err("it is refused").why
    }

    fn execute(&mut self, id: u64, data: Data<HeapLease>) {
        let command = self.command(id, data);
        self.initiator.execute(self.now, command).unwrap();
    }

    pub(super) fn read(&mut self, id: u64, len: usize) {
        let into = HeapLease::from_bytes(vec![0xee; len]);
        self.execute(id, Data::In(into));
    }

    pub(super) fn write(&mut self, id: u64, len: usize) {
        let from = HeapLease::from_bytes(pattern(len));
        self.execute(id, Data::Out(from));
    }

    pub(super) fn test_unit(&mut self, id: u64) {
        self.execute(id, Data::None);
    }

    pub(super) fn response_pdu(&mut self, itt: u32, status: u8) -> ScsiResponse {
        ScsiResponse {
            residual: Residual::Exact,
            read_residual: Residual::Exact,
            response: 0,
            status,
            qualifier: 0,
            itt: Itt(itt),
            snack_tag: 0,
            stamps: self.next_stamps(),
            exp_data_sn: DataSn(0),
        }
    }

    pub(super) fn respond(&mut self, itt: u32, status: u8) {
        self.respond_by(itt, status, &[]);
    }

    /// A response with this data segment.
    pub(super) fn respond_by(&mut self, itt: u32, status: u8, data: &[u8]) {
        let pdu = self.response_pdu(itt, status);
        self.send(pdu.encode(), data);
    }

    /// A response of which something is changed before it is sent.
    pub(super) fn respond_with(
        &mut self,
        itt: u32,
        status: u8,
        change: impl FnOnce(&mut ScsiResponse),
    ) {
        let mut pdu = self.response_pdu(itt, status);
        change(&mut pdu);
        self.send(pdu.encode(), &[]);
    }
}
