//! LLDP on one Ethernet port (IEEE 802.1AB): who is at the other end of the cable; and DCBX in it
//! (IEEE 802.1Q Clause 38), by which both ends agree on what makes Ethernet lossless.
//!
//! | mode | receives | sends |
//! |---|---|---|
//! | off | | |
//! | listen | all, and works out what would be agreed | |
//! | send | the same | an LLDPDU each 30 s, valid for 120 s; 4 at intervals of 1 s when the link comes up or a neighbour is new; one soon after a change; one of no time to live at the end |
//!
//! An interface has one agent. Another program may be it (lldpad, or the firmware of the card), so
//! listening is the default of those who use this.
//!
//! DCBX is spoken in the dialect of IEEE, unless the neighbour has only that of CEE. It is between
//! two: where more neighbours are heard there is none, in either direction, until one is left.

use std::time::Duration;

use scsi::medium::Now;
use scsi::violation::Violation;

use crate::frames::FrameSink;
use crate::wire::ethernet::{self, EthernetHeader, Mac};
use crate::wire::lldp::{LldpError, Lldpdu};

mod cee;
mod dcbx;
mod neighbour;
mod settings;
#[cfg(test)]
mod tests;
mod transmit;

pub use dcbx::{Agreement, DcbProblem, Dcbx, Dialect};
pub use neighbour::{LldpNeighbour, NeighbourNames, OwnedIdentifier};
use neighbour::{NeighbourTable, TableChange};
pub use settings::DcbSettings;
use transmit::Transmitter;

/// Whether an agent listens, and whether it also sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum LldpMode {
    /// Neither.
    Off,
    /// It only listens: another program may send.
    #[default]
    Listen,
    /// It does both.
    Send,
}

/// What an agent is by itself. Texts are cut to what a TLV may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LldpConfig {
    /// What it does.
    pub mode: LldpMode,
    /// The address of the port, which is its Chassis ID, and what LLDPDUs are sent from.
    pub mac: Mac,
    /// The name of the interface, which is its Port ID.
    pub port_id: String,
    /// Port description; none if it is empty.
    pub port_description: String,
    /// System name; none if it is empty.
    pub system_name: String,
    /// System description; none if it is empty.
    pub system_description: String,
    /// What the port has of DCB, or is to have. Nothing is said of DCBX where it has none.
    pub dcb: Option<DcbSettings>,
}

/// What has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LldpEvent {
    /// A neighbour came, went, or told something else: see [`Lldp::neighbours`].
    Neighbours,
    /// What has come of DCBX: see [`Lldp::dcbx`].
    Dcbx,
}

/// What was counted since the machine was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LldpStatistics {
    /// LLDPDUs sent.
    pub sent: u64,
    /// LLDPDUs received.
    pub received: u64,
    /// LLDPDUs among them that broke a rule.
    pub refused: u64,
    /// LLDPDUs among them that came from our own address.
    pub from_our_address: u64,
    /// Neighbours that were forgotten as the table was full.
    pub crowded_out: u64,
    /// Neighbours that were silent for longer than they said.
    pub aged_out: u64,
}

/// The LLDP agent of one Ethernet port.
#[derive(Debug)]
pub struct Lldp {
    config: LldpConfig,
    now: Now,
    is_up: bool,
    neighbours: NeighbourTable,
    dcbx: Dcbx,
    cee: cee::SequenceNumbers,
    transmitter: Transmitter,
    has_news: bool,
    has_agreement_news: bool,
    statistics: LldpStatistics,
}

impl Lldp {
    /// An agent whose link is down.
    #[must_use]
    pub fn new(config: LldpConfig, now: Now) -> Self {
        Self {
            config,
            now,
            is_up: false,
            neighbours: NeighbourTable::default(),
            dcbx: Dcbx::NoNeighbour,
            cee: cee::SequenceNumbers::default(),
            transmitter: Transmitter::default(),
            has_news: false,
            has_agreement_news: false,
            statistics: LldpStatistics::default(),
        }
    }

    /// The group that the Ethernet port has to receive.
    #[must_use]
    pub const fn groups() -> [Mac; 1] {
        [Mac::NEAREST_BRIDGE]
    }

    /// What it is by itself.
    #[must_use]
    pub const fn config(&self) -> &LldpConfig {
        &self.config
    }

    /// What was counted.
    #[must_use]
    pub const fn statistics(&self) -> LldpStatistics {
        self.statistics
    }

    /// Who is heard, in the order in which they were heard first.
    #[must_use]
    pub fn neighbours(&self) -> &[LldpNeighbour] {
        self.neighbours.all()
    }

    /// How many records are kept of neighbours: each of them, and each application that it lists.
    /// What a message costs depends on this, not on how many came before it.
    #[must_use]
    pub fn records(&self) -> usize {
        self.neighbours().iter().map(LldpNeighbour::records).sum()
    }

    /// What has come of DCBX.
    #[must_use]
    pub const fn dcbx(&self) -> &Dcbx {
        &self.dcbx
    }

    /// The link came up or went down. What was told before it went down is forgotten.
    pub fn link(&mut self, now: Now, up: bool) {
        self.tick(now);
        if up == self.is_up {
            return;
        }
        self.is_up = up;
        self.has_news |= !self.neighbours.all().is_empty();
        self.neighbours = NeighbourTable::default();
        self.cee = cee::SequenceNumbers::default();
        self.agree();
        if up && self.config.mode == LldpMode::Send {
            self.transmitter.begin(self.now);
        } else {
            self.transmitter.stop();
        }
    }

    /// The port has other settings of DCB now.
    pub fn set_dcb(&mut self, now: Now, dcb: Option<DcbSettings>) {
        self.tick(now);
        if dcb != self.config.dcb {
            self.config.dcb = dcb;
            self.agree();
            self.transmitter.soon(self.now);
        }
    }

    /// Takes the payload of an Ethernet frame of EtherType LLDP. One that has a tag, or is not to
    /// the nearest bridge, is none of this agent's and left alone.
    ///
    /// # Errors
    /// The rule that it broke. It has been ignored, and all goes on.
    pub fn receive(
        &mut self,
        now: Now,
        ethernet: &EthernetHeader,
        payload: &[u8],
    ) -> Result<(), Violation> {
        self.tick(now);
        let is_ours = ethernet.dst == Mac::NEAREST_BRIDGE && ethernet.vid() == 0;
        if !self.is_up || self.config.mode == LldpMode::Off || !is_ours {
            return Ok(());
        }
        self.statistics.received += 1;
        let taken = self.take(ethernet.src, payload);
        self.statistics.refused += u64::from(taken.is_err());
        taken
    }

    fn take(&mut self, src: Mac, payload: &[u8]) -> Result<(), Violation> {
        let message = Lldpdu::parse(payload).map_err(violation)?;
        if src == self.config.mac {
            self.statistics.from_our_address += 1;
            return Err(OTHER_AGENT);
        }
        match self.neighbours.take(self.now, src, &message) {
            TableChange::Same => return Ok(()),
            TableChange::New { crowded_out } => {
                self.statistics.crowded_out += u64::from(crowded_out);
                self.transmitter.hurry(self.now);
            }
            TableChange::Other => {}
        }
        self.has_news = true;
        self.agree();
        Ok(())
    }

    /// When [`Self::expire`] has something to do.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Now> {
        let aging = self.neighbours.next_deadline().into_iter();
        aging.chain(self.transmitter.next_deadline()).min()
    }

    /// Does what is due.
    pub fn expire(&mut self, now: Now) {
        self.tick(now);
        let gone = self.neighbours.expire(self.now);
        if gone > 0 {
            self.statistics.aged_out += gone;
            self.has_news = true;
            self.agree();
        }
        if self.transmitter.is_due(self.now) {
            self.compose();
        }
    }

    /// What happened next.
    pub fn poll(&mut self) -> Option<LldpEvent> {
        if std::mem::take(&mut self.has_news) {
            return Some(LldpEvent::Neighbours);
        }
        std::mem::take(&mut self.has_agreement_news).then_some(LldpEvent::Dcbx)
    }

    /// Writes what is to be sent, if there is room.
    pub fn transmit(&mut self, out: &mut impl FrameSink) {
        let header = EthernetHeader::new(self.config.mac, Mac::NEAREST_BRIDGE, ethernet::LLDP);
        self.statistics.sent += u64::from(self.transmitter.write(&header, out));
    }

    /// Tells the neighbours that this agent ends, if it has told them anything: what waits then to
    /// be sent is the last.
    pub fn shut_down(&mut self, now: Now) {
        self.tick(now);
        let has_told = self.statistics.sent > 0 && self.is_up;
        self.transmitter.stop();
        if has_told && self.config.mode == LldpMode::Send {
            let last = self.lldpdu_begin(0).end();
            self.transmitter.put(last);
        }
        self.config.mode = LldpMode::Off;
    }

    /// Works out what DCBX comes to. Whatever changes of it is told soon.
    fn agree(&mut self) {
        let heard = dcbx::agree(&self.config, self.neighbours.all(), &self.cee);
        let acknowledged = self.cee.hear(self.neighbours.all());
        if heard != self.dcbx {
            self.dcbx = heard;
            self.has_agreement_news = true;
            self.transmitter.soon(self.now);
        } else if acknowledged {
            self.transmitter.soon(self.now);
        }
    }

    /// Time never goes back, whatever the clock says.
    fn tick(&mut self, now: Now) {
        self.now = self.now.max(now);
    }
}

fn violation(error: LldpError) -> Violation {
    let rule = match error {
        LldpError::Truncated => "an LLDPDU whose first three TLVs are truncated",
        LldpError::Order => {
            "an LLDPDU that does not begin with Chassis ID, Port ID and Time To Live"
        }
        LldpError::Length => "an LLDPDU with a Chassis ID, Port ID or Time To Live of wrong length",
        LldpError::Twice => "an LLDPDU with a second Chassis ID, Port ID or Time To Live",
    };
    Violation {
        rule,
        clause: "IEEE 802.1AB §9.2.7.7.1",
    }
}

const OTHER_AGENT: Violation = Violation {
    rule: "an LLDPDU from our own MAC address: another agent sends at this interface, or there is \
           a loop; run one agent",
    clause: "IEEE 802.1AB §9.1",
};

/// How often an LLDPDU is sent, and how long it is valid (IEEE 802.1AB §9.2.5).
const INTERVAL: Duration = Duration::from_secs(30);
const TTL_S: u16 = 120;
/// How many are sent in fast succession at first, and how soon one after the other.
const FAST_COUNT: u8 = 4;
const FAST_INTERVAL: Duration = Duration::from_secs(1);
/// At the most so many at once, and then one a second (txCreditMax).
const CREDIT: u32 = 5;
/// Neighbours that are kept.
const NEIGHBOURS_MAX: usize = 16;
