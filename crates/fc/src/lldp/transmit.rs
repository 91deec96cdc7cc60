//! When an LLDPDU is sent (IEEE 802.1AB §9.2.2), and what stands in it.

use scsi::medium::Now;

use super::dcbx::{Dcbx, Dialect};
use super::{CREDIT, FAST_COUNT, FAST_INTERVAL, INTERVAL, Lldp, TTL_S};
use crate::frames::FrameSink;
use crate::wire::ethernet::{EthernetHeader, MIN_LEN};
use crate::wire::lldp::tlv::{self, TlvWriter};
use crate::wire::lldp::{self, Identifier};

/// When the next LLDPDU is due, and the one that waits for room.
#[derive(Debug, Default)]
pub(super) struct Transmitter {
    next: Option<Now>,
    /// LLDPDUs that are left of a fast succession, the next one among them.
    fast: u8,
    /// When all credit is there again.
    pub(super) credit_full_at: Now,
    waiting: Option<Vec<u8>>,
}

impl Transmitter {
    /// The link came up.
    pub(super) const fn begin(&mut self, now: Now) {
        self.next = Some(now);
        self.fast = FAST_COUNT;
    }

    /// Nothing more is sent.
    pub(super) fn stop(&mut self) {
        self.next = None;
        self.waiting = None;
    }

    /// What was told has changed. Nothing happens where nothing is sent.
    pub(super) fn soon(&mut self, now: Now) {
        self.next = self.next.map(|next| next.min(now));
    }

    /// A neighbour is new: it is to know of us soon. A succession that has begun is not begun
    /// again, or neighbours that come without end would have us send each second.
    pub(super) fn hurry(&mut self, now: Now) {
        if self.fast == 0 {
            self.fast = FAST_COUNT;
            self.soon(now);
        }
    }

    pub(super) const fn next_deadline(&self) -> Option<Now> {
        self.next
    }

    /// Whether an LLDPDU is to be sent now, which is then paid for. What was told is repeated when
    /// it is time again.
    pub(super) fn is_due(&mut self, now: Now) -> bool {
        if self.next.is_none_or(|next| next > now) {
            return false;
        }
        let credit_from = self
            .credit_full_at
            .saturating_sub(FAST_INTERVAL * (CREDIT - 1));
        if credit_from > now {
            self.next = Some(credit_from);
            return false;
        }
        self.credit_full_at = self.credit_full_at.max(now) + FAST_INTERVAL;
        self.fast = self.fast.saturating_sub(1);
        let pause = if self.fast > 0 {
            FAST_INTERVAL
        } else {
            INTERVAL
        };
        self.next = Some(now.saturating_add(pause));
        true
    }

    /// This one is to be sent, in place of one that has found no room yet.
    pub(super) fn put(&mut self, bytes: Vec<u8>) {
        self.waiting = Some(bytes);
    }

    /// Whether one was written.
    pub(super) fn write(&mut self, header: &EthernetHeader, out: &mut impl FrameSink) -> bool {
        let Some(bytes) = &self.waiting else {
            return false;
        };
        let len = (header.len() + bytes.len()).max(MIN_LEN);
        let Some(slot) = out.slot(len) else {
            return false;
        };
        let (to, padding) = header.put(&mut slot[..len]).split_at_mut(bytes.len());
        to.copy_from_slice(bytes);
        padding.fill(0);
        out.commit(len);
        self.waiting = None;
        true
    }
}

impl Lldp {
    /// Has an LLDPDU of how things are now sent.
    pub(super) fn compose(&mut self) {
        let mut to = self.lldpdu_begin(TTL_S);
        for (kind, text) in [
            (tlv::PORT_DESCRIPTION, &self.config.port_description),
            (tlv::SYSTEM_NAME, &self.config.system_name),
            (tlv::SYSTEM_DESCRIPTION, &self.config.system_description),
        ] {
            if !text.is_empty() {
                to.put(kind, &[cut(text).as_bytes()]);
            }
        }
        self.put_dcbx(&mut to);
        self.transmitter.put(to.end());
    }

    /// Chassis ID, Port ID and Time To Live.
    pub(super) fn lldpdu_begin(&self, ttl_s: u16) -> TlvWriter {
        let chassis = Identifier {
            subtype: Identifier::CHASSIS_MAC,
            id: &self.config.mac.0,
        };
        let port = Identifier {
            subtype: Identifier::PORT_INTERFACE,
            id: cut(&self.config.port_id).as_bytes(),
        };
        lldp::begin(chassis, port, ttl_s)
    }

    fn put_dcbx(&mut self, to: &mut TlvWriter) {
        let Some(dcb) = self.config.dcb.as_ref() else {
            return;
        };
        match &self.dcbx {
            Dcbx::Crowded => {}
            Dcbx::Heard(agreed) if agreed.dialect == Dialect::Cee => {
                self.cee.tell(dcb.cee(agreed)).put(to);
            }
            Dcbx::Heard(agreed) => dcb.ieee(Some(agreed)).put(to),
            Dcbx::NoNeighbour | Dcbx::NotSpoken | Dcbx::NotHere => dcb.ieee(None).put(to),
        }
    }
}

/// As much of a text as all of them, and DCBX, have room for in a frame of 1,500 bytes.
fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(TEXT_MAX)]
}

const TEXT_MAX: usize = 128;
