//! fcping: ECHO (FC-LS-3) to another port, with times.

use std::time::Duration;

use fc::wire::els::{Code, Els};
use fc::wire::names::FcId;

use crate::link_errors::host_of;
use crate::local_port::{FRAME_MAX, LocalPort, max_frame};
use crate::sysfs::SysfsDir;
use crate::transport::FcTransport;

/// Bytes of the code in an ECHO, of the number at the front of its data, and of the data at most.
const CODE_LEN: u32 = 4;
const NUMBER_LEN: usize = 4;
/// The most data of an ECHO.
pub const SIZE_MAX: u32 = FRAME_MAX - CODE_LEN;
/// The least, which has room for the number.
pub const SIZE_MIN: u32 = NUMBER_LEN as u32;
/// What fcping sends unless told otherwise.
pub const SIZE: u32 = 32;

/// How much data each side allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EchoSizes {
    /// What was asked for.
    pub asked: u32,
    /// What our port allows.
    pub source: u32,
    /// What the other one allows, [`SIZE`] where this machine does not know it.
    pub target: u32,
}

impl EchoSizes {
    /// For an ECHO from a local port to an address.
    #[must_use]
    pub fn new(sysfs: &SysfsDir, from: &LocalPort, to: FcId, asked: u32) -> Self {
        Self {
            asked,
            source: from.max_frame.saturating_sub(CODE_LEN),
            target: remote_size(sysfs, from, to),
        }
    }

    /// What is sent.
    #[must_use]
    pub fn used(self) -> u32 {
        self.asked.min(self.source).min(self.target).max(SIZE_MIN)
    }

    /// The lines of fcping about it.
    #[must_use]
    pub fn told(self, from: FcId, to: FcId) -> String {
        let allowed = |by: &str, id: FcId, size: u32| {
            format!(
                "Maximum ECHO data allowed by the {by} (0x{:06x}) : {size} bytes.\n",
                id.0
            )
        };
        let used = self.used();
        allowed("Fabric", FABRIC_CONTROLLER, SIZE_MAX)
            + &allowed("Source", from, self.source)
            + &allowed("Target", to, self.target)
            + &format!(
                "Maximum ECHO data requested from user input (-s) : {} (default {SIZE}) bytes.\n\
                 Actual FC ELS ECHO data size used : {used} bytes.\n\
                 Actual FC ELS ECHO payload size used : {} bytes (including {CODE_LEN} bytes ECHO \
                 command).\n",
                self.asked,
                used + CODE_LEN
            )
    }
}

const FABRIC_CONTROLLER: FcId = FcId(0xff_fffd);

/// What a port allows: all for well-known addresses; of a remote port its frame size, as far as the
/// local one knows it. In another fabric another port may have the same address.
fn remote_size(sysfs: &SysfsDir, from: &LocalPort, to: FcId) -> u32 {
    if (0xff_fc01..=0xff_fcfe).contains(&to.0) || to.0 >= 0xff_fff0 {
        return SIZE_MAX;
    }
    let ports = sysfs.child("class/fc_remote_ports").children("rport-");
    let known = ports.iter().find(|port| {
        let is_its = host_of(&port.name()).as_ref() == Some(&from.host);
        is_its && port.number("port_id") == Some(to.0.into())
    });
    known.map_or(SIZE, |port| max_frame(port).saturating_sub(CODE_LEN))
}

/// ECHOs to one port, and what came of them.
#[derive(Debug)]
pub struct Pings {
    to: FcId,
    size: u32,
    sent: u32,
    received: u32,
    errors: u32,
    /// Of those that came back.
    time: Duration,
}

/// What came of one.
#[derive(Debug)]
pub struct EchoOutcome {
    /// The line of fcping.
    pub line: String,
    /// It came back as it was sent.
    pub is_accepted: bool,
    /// What came back, if anything did.
    pub answer: Option<Vec<u8>>,
    /// No later one can do better: the driver refuses it, or the port is gone.
    pub is_last: bool,
}

impl Pings {
    /// To an address, with so many bytes of data.
    #[must_use]
    pub const fn new(to: FcId, size: u32) -> Self {
        Self {
            to,
            size,
            sent: 0,
            received: 0,
            errors: 0,
            time: Duration::ZERO,
        }
    }

    /// Sends the next one. `clock` tells the time since any moment.
    pub fn ping(
        &mut self,
        transport: &mut impl FcTransport,
        clock: impl Fn() -> Duration,
    ) -> EchoOutcome {
        self.sent = self.sent.wrapping_add(1);
        let data = self.data();
        let request = Els::Echo(data.clone()).encode();
        let begun = clock();
        // Some ports answer with more than they were sent.
        match transport.els(self.to, &request, request.len() + SPARE) {
            Ok(answer) => {
                let time = clock().saturating_sub(begun);
                let verdict = self.received(&answer, &data, time);
                let ms = time.as_secs_f64() * 1000.0;
                EchoOutcome {
                    line: format!("echo {:>4} {verdict:<30} {ms:>6.3} ms", self.sent),
                    is_accepted: verdict == ACCEPTED,
                    answer: Some(answer),
                    is_last: false,
                }
            }
            Err(cause) => {
                self.errors += 1;
                let cause_kind = cause.kind();
                EchoOutcome {
                    line: format!("echo {:>4} error: {cause}", self.sent),
                    is_accepted: false,
                    answer: None,
                    is_last: cause_kind == std::io::ErrorKind::ConnectionAborted
                        || cause_kind == std::io::ErrorKind::InvalidInput,
                }
            }
        }
    }

    /// Number, then a pattern.
    fn data(&self) -> Vec<u8> {
        let mut data = self.sent.to_be_bytes().to_vec();
        data.extend((0..self.size as usize - NUMBER_LEN).map(|at| at as u8));
        data
    }

    fn received(&mut self, answer: &[u8], data: &[u8], time: Duration) -> String {
        self.received += 1;
        self.time += time;
        let same = answer
            .get(CODE_LEN as usize..)
            .is_some_and(|got| got.starts_with(data));
        let verdict = match answer.first().map(|code| Code(*code)) {
            Some(Code::LS_ACC) if same => return ACCEPTED.to_owned(),
            Some(Code::LS_ACC) => "accept data mismatches".to_owned(),
            Some(Code::LS_RJT) => "REJECT received".to_owned(),
            Some(code) => format!("op {:x} received", code.0),
            None => "nothing received".to_owned(),
        };
        self.errors += 1;
        verdict
    }

    /// Whether all came back as they should.
    #[must_use]
    pub const fn is_success(&self) -> bool {
        self.errors == 0 && self.received == self.sent
    }

    /// The last line of fcping.
    #[must_use]
    pub fn summary(&self) -> String {
        let lost = f64::from(self.sent - self.received) * 100.0 / f64::from(self.sent.max(1));
        let average = self.time.as_secs_f64() * 1000.0 / f64::from(self.received.max(1));
        format!(
            "{} frames sent, {} received {} errors, {lost:.3}% loss, avg. rt time {average:.3} ms",
            self.sent, self.received, self.errors
        )
    }
}

/// The verdict of fcping on what comes back as it was sent.
const ACCEPTED: &str = "accepted";

/// Room for what an answer has besides.
const SPARE: usize = 32;

/// Bytes as fcping dumps them: 16 a line, in groups of four.
#[must_use]
pub fn hex_dump(bytes: &[u8]) -> String {
    let mut out = format!("response length {}\n", bytes.len());
    for (line, number) in bytes.chunks(16).zip(0..) {
        let groups = line.chunks(4).map(|group| {
            let digits = group.iter().map(|byte| format!("{byte:02x}"));
            digits.collect::<String>()
        });
        let groups: Vec<_> = groups.collect();
        out.push_str(&format!("{:>6x} {}\n", number * 16, groups.join(" ")));
    }
    out.push('\n');
    out
}
