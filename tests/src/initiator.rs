//! A small iSCSI initiator without I/O, for the simulator's stories, for measuring, and for peers
//! that behave badly on purpose. It believes what the target says and checks nothing that a test
//! should check; it does ErrorRecoveryLevel 0 with one connection, without CHAP.

mod carrier;
mod login;
mod receive;

use std::collections::VecDeque;
use std::rc::Rc;

use iscsi::wire::bhs::{Bhs, Itt, Ttt};
use iscsi::wire::control::{NopOut, TextRequest};
use iscsi::wire::data::DataOut;
use iscsi::wire::framer::{Framer, crc32c, padding};
use iscsi::wire::login::{LogoutRequest, reason};
use iscsi::wire::scsi_command::ScsiCommand;
use iscsi::wire::serial::{CmdSn, DataSn, StatSn};
use iscsi::wire::task_management::TaskRequest;
use scsi::wire::lun::Lun;

pub use self::carrier::ReceiveError;
use crate::iser_end::{IserEnd, IserSettings};

/// Whom to log in as, to what, and with which keys.
#[derive(Clone, Debug)]
pub struct Settings {
    /// InitiatorName.
    pub name: String,
    /// ISID.
    pub isid: [u8; 6],
    /// TargetName; `None` for a discovery session.
    pub target: Option<String>,
    /// Operational keys to offer, in place of the usual ones of the same name.
    pub keys: Vec<(&'static str, String)>,
    /// Whether the data of reads is kept and told; a load generator has no use for it.
    pub keep_data: bool,
    /// Over iSER, in this way; else over TCP alone.
    pub iser: Option<IserSettings>,
}

impl Settings {
    /// A session of initiator `number` with `target`.
    #[must_use]
    pub fn new(number: u32, target: &str) -> Self {
        let [a, b, c, d] = number.to_be_bytes();
        Self {
            name: format!("iqn.2026-11.org.lunar.test:initiator-{number}"),
            isid: [0x80, a, b, c, d, 0],
            target: Some(target.to_owned()),
            keys: Vec::new(),
            keep_data: true,
            iser: None,
        }
    }
}

/// An initiator's end of one connection.
#[derive(Debug)]
pub struct Initiator {
    settings: Settings,
    framer: Framer,
    /// What is to be sent.
    out: Vec<u8>,
    /// What carries it, if that is not TCP alone.
    iser: Option<Box<IserEnd>>,
    replies: VecDeque<Reply>,
    tasks: Vec<Option<Task>>,
    free: Vec<u32>,
    /// What the negotiation gave.
    pub limits: Agreed,
    full_feature: bool,
    cmd_sn: CmdSn,
    max_cmd_sn: CmdSn,
    exp_stat_sn: StatSn,
    /// The PDU that is being received, with its data.
    current: Option<(Bhs, Vec<u8>)>,
    /// TSIH of the session.
    pub tsih: u16,
    /// It sends no data that it is asked for.
    pub withholds: bool,
}

/// The outcome of the negotiation, as far as it matters here.
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "the names are those of the keys")]
pub struct Agreed {
    pub header_digest: bool,
    pub data_digest: bool,
    pub initial_r2t: bool,
    pub immediate_data: bool,
    pub first_burst: u32,
    pub max_burst: u32,
    pub target_data_segment: u32,
}

impl Default for Agreed {
    fn default() -> Self {
        Self {
            header_digest: false,
            data_digest: false,
            initial_r2t: true,
            immediate_data: true,
            first_burst: 65_536,
            max_burst: 262_144,
            target_data_segment: 8192,
        }
    }
}

#[derive(Debug)]
struct Task {
    lun: Lun,
    user: u64,
    data_out: Rc<[u8]>,
    data_in: Vec<u8>,
}

/// The data of a command.
#[derive(Clone, Debug)]
pub enum Data {
    /// No data.
    None,
    /// So many bytes from the target.
    In(u32),
    /// These to the target.
    Out(Rc<[u8]>),
}

/// What came back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// In full-feature phase.
    LoggedIn,
    /// Login Response with this Status-Class and Status-Detail.
    LoginFailed(u16),
    /// A command has ended.
    Done {
        /// As given with the command.
        user: u64,
        /// SCSI status; 0x100 and more is an iSCSI response code.
        status: u16,
        /// Sense data.
        sense: Vec<u8>,
        /// What was read.
        data: Vec<u8>,
    },
    /// Task Management Function Response: ITT and response.
    Managed(Itt, u8),
    /// NOP-In, answering ours.
    Nop(Itt, Vec<u8>),
    /// Text Response.
    Text(Vec<u8>),
    /// Logout Response.
    LoggedOut(u8),
    /// Asynchronous Message with this event.
    Async(u8),
    /// Reject with this reason.
    Reject(u8),
    /// A SCSI status for a tag of which nothing was asked.
    Stray(Itt),
}

impl Initiator {
    /// An initiator that logs in at once.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        let iser = settings.iser.clone();
        let mut new = Self {
            settings,
            iser: iser.map(|settings| Box::new(IserEnd::new(settings))),
            framer: Framer::new(login::DATA_SEGMENT),
            out: Vec::new(),
            replies: VecDeque::new(),
            tasks: Vec::new(),
            free: Vec::new(),
            limits: Agreed::default(),
            full_feature: false,
            cmd_sn: CmdSn(1),
            max_cmd_sn: CmdSn(1),
            exp_stat_sn: StatSn(0),
            current: None,
            tsih: 0,
            withholds: false,
        };
        new.send_login();
        new
    }

    /// What came back.
    pub fn poll(&mut self) -> Option<Reply> {
        self.replies.pop_front()
    }

    /// Whether commands may be sent.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.full_feature && !self.max_cmd_sn.is_before(self.cmd_sn)
    }

    /// How many commands have not ended.
    #[must_use]
    pub fn outstanding(&self) -> usize {
        self.tasks.len() - self.free.len()
    }

    /// Sends a command, whether the window is open or not. Returns its ITT.
    pub fn command(&mut self, user: u64, lun: Lun, cdb: &[u8], data: Data) -> Itt {
        self.command_with(1, user, lun, cdb, data)
    }

    /// Sends a command with an attribute as ATTR codes it.
    pub fn command_with(
        &mut self,
        attribute: u8,
        user: u64,
        lun: Lun,
        cdb: &[u8],
        data: Data,
    ) -> Itt {
        let mut padded = [0; 16];
        padded[..cdb.len()].copy_from_slice(cdb);
        let (read, write, expected, data_out) = match data {
            Data::None => (false, false, 0, Rc::from([])),
            Data::In(len) => (true, false, len, Rc::from([])),
            Data::Out(bytes) => (false, true, bytes.len() as u32, bytes),
        };
        let unsolicited = self.unsolicited(expected, write);
        let immediate = self.immediate(unsolicited);
        let itt = self.begin(Task {
            lun,
            user,
            data_out: data_out.clone(),
            data_in: Vec::new(),
        });
        let request = ScsiCommand {
            immediate: false,
            last: immediate == unsolicited,
            read,
            write,
            attribute,
            priority: 0,
            lun,
            itt,
            expected,
            cmd_sn: self.cmd_sn,
            exp_stat_sn: self.exp_stat_sn,
            cdb: padded,
        };
        self.cmd_sn = self.cmd_sn.next();
        self.push(request.encode(), &data_out[..immediate as usize]);
        if immediate < unsolicited {
            self.data_out(lun, itt, Ttt::NONE, immediate, unsolicited);
        }
        itt
    }

    fn unsolicited(&self, expected: u32, write: bool) -> u32 {
        match (write, self.limits.initial_r2t) {
            (false, _) => 0,
            (true, false) => expected.min(self.limits.first_burst),
            (true, true) => self.immediate(expected.min(self.limits.first_burst)),
        }
    }

    fn immediate(&self, unsolicited: u32) -> u32 {
        if self.limits.immediate_data {
            unsolicited.min(self.limits.target_data_segment)
        } else {
            0
        }
    }

    fn begin(&mut self, task: Task) -> Itt {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.tasks.push(None);
            self.tasks.len() as u32 - 1
        });
        self.tasks[slot as usize] = Some(task);
        Itt(slot)
    }

    /// A sequence of Data-Out with the data of a task between two offsets.
    fn data_out(&mut self, lun: Lun, itt: Itt, ttt: Ttt, from: u32, to: u32) {
        let Some(Some(task)) = self.tasks.get(itt.0 as usize) else {
            return;
        };
        let data = task.data_out.clone();
        let mut offset = from;
        for number in 0.. {
            let end = to.min(offset + self.limits.target_data_segment);
            let request = DataOut {
                last: end == to,
                lun,
                itt,
                ttt,
                exp_stat_sn: self.exp_stat_sn,
                data_sn: DataSn(number),
                offset,
            };
            self.push(request.encode(), &data[offset as usize..end as usize]);
            offset = end;
            if end == to {
                return;
            }
        }
    }

    /// Sends a task management function, immediate. Returns its ITT.
    pub fn manage(&mut self, function: u8, lun: Lun, referenced: Itt) -> Itt {
        let itt = self.begin(Task::other(lun));
        let request = TaskRequest {
            immediate: true,
            function,
            lun,
            itt,
            referenced,
            cmd_sn: self.cmd_sn,
            exp_stat_sn: self.exp_stat_sn,
            ref_cmd_sn: self.cmd_sn,
            exp_data_sn: DataSn(0),
        };
        self.push(request.encode(), &[]);
        itt
    }

    /// Forgets a command that was aborted: no response comes for it.
    pub fn abandon(&mut self, itt: Itt) {
        if self
            .tasks
            .get_mut(itt.0 as usize)
            .and_then(Option::take)
            .is_some()
        {
            self.free.push(itt.0);
        }
        if let Some(end) = &mut self.iser {
            end.forget(itt.0);
        }
    }

    /// Sends a ping, immediate.
    pub fn ping(&mut self, data: &[u8]) -> Itt {
        let itt = self.begin(Task::other(Lun([0; 8])));
        self.nop_out(itt, Ttt::NONE, data);
        itt
    }

    /// Sends a NOP-Out that asks for no answer, as if it were one.
    pub fn give_sign_of_life(&mut self) {
        self.nop_out(Itt::NONE, Ttt::NONE, &[]);
    }

    fn nop_out(&mut self, itt: Itt, ttt: Ttt, data: &[u8]) {
        let request = NopOut {
            immediate: true,
            lun: Lun([0; 8]),
            itt,
            ttt,
            cmd_sn: self.cmd_sn,
            exp_stat_sn: self.exp_stat_sn,
        };
        self.push(request.encode(), data);
    }

    /// Sends a text request, such as `SendTargets=All`.
    pub fn text(&mut self, key: &str, value: &str) {
        let itt = self.begin(Task::other(Lun([0; 8])));
        let request = TextRequest {
            immediate: true,
            last: true,
            more: false,
            lun: Lun([0; 8]),
            itt,
            ttt: Ttt::NONE,
            cmd_sn: self.cmd_sn,
            exp_stat_sn: self.exp_stat_sn,
        };
        self.push(request.encode(), format!("{key}={value}\0").as_bytes());
    }

    /// Asks to close the session.
    pub fn log_out(&mut self) {
        let itt = self.begin(Task::other(Lun([0; 8])));
        let request = LogoutRequest {
            immediate: true,
            reason: reason::CLOSE_SESSION,
            itt,
            cid: 0,
            cmd_sn: self.cmd_sn,
            exp_stat_sn: self.exp_stat_sn,
        };
        self.push(request.encode(), &[]);
    }

    /// Puts a PDU into the output, with padding and digests.
    pub fn push(&mut self, mut bhs: Bhs, data: &[u8]) {
        bhs.set_data_len(data.len() as u32);
        self.out.extend_from_slice(&bhs.0);
        if self.limits.header_digest && self.full_feature {
            self.out.extend_from_slice(&crc32c(&bhs.0));
        }
        if data.is_empty() {
            return;
        }
        let start = self.out.len();
        self.out.extend_from_slice(data);
        let padding = usize::from(padding(data.len() as u32));
        self.out.resize(self.out.len() + padding, 0);
        if self.limits.data_digest && self.full_feature {
            let digest = crc32c(&self.out[start..]);
            self.out.extend_from_slice(&digest);
        }
    }
}

impl Task {
    fn other(lun: Lun) -> Self {
        Self {
            lun,
            user: 0,
            data_out: Rc::from([]),
            data_in: Vec::new(),
        }
    }
}
