//! What becomes of a frame, and the counters of it.

use super::PortNumber;
use crate::wire::ethernet::EthernetHeader;
use crate::wire::fcoe::FcoeError;
use crate::wire::names::FcId;

/// What becomes of a frame that came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is for the switch itself. [`super::ForwardTable::forward`] has not looked at it further.
    Taken,
    /// It is dropped.
    Dropped(DropReason),
    /// It goes out at another port, or the same one.
    Forward(Forwarding),
}

/// How a frame goes out: with another Ethernet header, and all behind that as it came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forwarding {
    /// At which port.
    pub egress: PortNumber,
    /// Whose frame it is.
    pub s_id: FcId,
    /// To whom it goes.
    pub d_id: FcId,
    /// The header that it has there.
    pub header: EthernetHeader,
    /// Where its payload begins in what came.
    pub start: usize,
}

impl Forwarding {
    /// Bytes of the frame that goes out, of `frame_len` bytes that came.
    #[must_use]
    pub const fn len(&self, frame_len: usize) -> usize {
        self.header.len() + frame_len.saturating_sub(self.start)
    }

    /// Copies the frame that goes out into `slot`, which has room for [`Self::len`] bytes. `frame`
    /// is what came. Returns the length.
    pub fn write(&self, frame: &[u8], slot: &mut [u8]) -> usize {
        let payload = &frame[self.start.min(frame.len())..];
        self.header.put(slot)[..payload.len()].copy_from_slice(payload);
        self.header.len() + payload.len()
    }
}

/// Why a frame is dropped, in the order of the checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DropReason {
    /// For another address or VLAN, or no FCoE.
    NotForUs,
    /// An FLOGI as FCoE to 0e:fc:00:ff:ff:fe, whatever FC-MAP the fabric has. Two Linux kernels on
    /// an Ethernet without an FCF go into point-to-point mode by it, and hear no FCF until their
    /// link goes down.
    PointToPoint,
    /// Truncated, of a wrong length, or of another version.
    Malformed,
    /// Not of class 3.
    Class,
    /// Its CRC is wrong.
    Crc,
    /// No VN_Port of its S_ID is logged in.
    NotLoggedIn,
    /// Its S_ID is that of a VN_Port at another port of the switch, or its source address is not
    /// the one that was granted to its S_ID.
    Spoofed,
    /// No VN_Port of its D_ID is logged in.
    NoSuchPort,
    /// Both are logged in, but share no zone.
    Zoned,
    /// Longer than the MTU of its egress.
    TooLong,
    /// The queue of its egress is full. It is the carrier of the switch that counts it, by
    /// [`super::Switch::count_undelivered`].
    Congested,
    /// It waited at its egress for longer than E_D_TOV: its sender has given it up. The carrier
    /// counts it, too.
    Aged,
}

impl DropReason {
    /// All, in the order of the checks.
    pub const ALL: [Self; 12] = [
        Self::NotForUs,
        Self::PointToPoint,
        Self::Malformed,
        Self::Class,
        Self::Crc,
        Self::NotLoggedIn,
        Self::Spoofed,
        Self::NoSuchPort,
        Self::Zoned,
        Self::TooLong,
        Self::Congested,
        Self::Aged,
    ];

    /// As in metrics and logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NotForUs => "not_for_us",
            Self::PointToPoint => "point_to_point",
            Self::Malformed => "malformed",
            Self::Class => "class",
            Self::Crc => "crc",
            Self::NotLoggedIn => "not_logged_in",
            Self::Spoofed => "spoofed",
            Self::NoSuchPort => "no_such_port",
            Self::Zoned => "zoned",
            Self::TooLong => "too_long",
            Self::Congested => "congested",
            Self::Aged => "aged",
        }
    }
}

impl From<FcoeError> for DropReason {
    fn from(error: FcoeError) -> Self {
        match error {
            FcoeError::Crc => Self::Crc,
            FcoeError::Sof(_) | FcoeError::Eof(_) => Self::Class,
            _ => Self::Malformed,
        }
    }
}

/// Frames that a VN_Port sent to another, and that were dropped for one reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PairDrops {
    /// S_ID of the frames.
    pub s_id: FcId,
    /// D_ID of the frames.
    pub d_id: FcId,
    /// Why they were dropped.
    pub reason: DropReason,
    /// How many they were.
    pub frames: u64,
}

/// A frame that was forwarded, and did not leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UndeliveredFrame {
    /// Where it came in.
    pub ingress: PortNumber,
    /// Whose frame it is.
    pub s_id: FcId,
    /// To whom it was to go.
    pub d_id: FcId,
    /// Its length as it came.
    pub bytes: u64,
}

/// What came in at one port, counted since the port was added.
#[derive(Clone, Debug, Default)]
pub struct PortCounters {
    /// Frames that were to go out again, here or elsewhere. They only grow, as counters of
    /// monitoring have to: those that did not leave after all are in `undelivered_frames`, too.
    pub forwarded_frames: u64,
    /// Bytes of them as they came.
    pub forwarded_bytes: u64,
    /// Frames of `forwarded_frames` that did not leave: they are among the dropped ones as well.
    pub undelivered_frames: u64,
    /// Bytes of them as they came.
    pub undelivered_bytes: u64,
    /// Frames for the switch itself: FIP, and FCoE to the services of the fabric.
    pub taken: u64,
    dropped: [u64; DropReason::ALL.len()],
    pairs: Vec<PairDrops>,
    /// The row of [`Self::pairs`] that is replaced next.
    oldest: usize,
}

impl PortCounters {
    /// Frames dropped for this reason.
    #[must_use]
    pub const fn dropped(&self, reason: DropReason) -> u64 {
        self.dropped[reason as usize]
    }

    /// Drops by pair, of the 64 rows that were begun last.
    pub fn pairs(&self) -> impl Iterator<Item = &PairDrops> {
        self.pairs.iter()
    }

    /// Counts what became of `frame`, which is as it came.
    pub fn count(&mut self, verdict: &Verdict, frame: &[u8]) {
        match verdict {
            Verdict::Taken => self.taken += 1,
            Verdict::Dropped(reason) => self.count_drop(*reason, frame),
            Verdict::Forward(_) => {
                self.forwarded_frames += 1;
                self.forwarded_bytes += frame.len() as u64;
            }
        }
    }

    /// A frame that was counted as forwarded did not leave after all.
    pub fn count_undelivered(&mut self, reason: DropReason, frame: &UndeliveredFrame) {
        self.undelivered_frames += 1;
        self.undelivered_bytes += frame.bytes;
        self.dropped[reason as usize] += 1;
        self.count_pair(frame.s_id, frame.d_id, reason);
    }

    /// Adds what another core has counted of the same port.
    pub fn add(&mut self, other: &Self) {
        self.forwarded_frames += other.forwarded_frames;
        self.forwarded_bytes += other.forwarded_bytes;
        self.undelivered_frames += other.undelivered_frames;
        self.undelivered_bytes += other.undelivered_bytes;
        self.taken += other.taken;
        for (sum, more) in self.dropped.iter_mut().zip(other.dropped) {
            *sum += more;
        }
        other.pairs.iter().for_each(|row| self.add_pair(*row));
    }

    /// Begins at zero again, and keeps its memory.
    pub fn clear(&mut self) {
        let mut pairs = std::mem::take(&mut self.pairs);
        pairs.clear();
        *self = Self {
            pairs,
            ..Self::default()
        };
    }

    fn count_drop(&mut self, reason: DropReason, frame: &[u8]) {
        self.dropped[reason as usize] += 1;
        if let Some((s_id, d_id)) = super::forward::pair(frame).filter(|_| reason.has_pair()) {
            self.count_pair(s_id, d_id, reason);
        }
    }

    fn count_pair(&mut self, s_id: FcId, d_id: FcId, reason: DropReason) {
        self.add_pair(PairDrops {
            s_id,
            d_id,
            reason,
            frames: 1,
        });
    }

    fn add_pair(&mut self, row: PairDrops) {
        let key = |row: &PairDrops| (row.s_id, row.d_id, row.reason);
        if let Some(known) = self.pairs.iter_mut().find(|known| key(known) == key(&row)) {
            known.frames += row.frames;
            return;
        }
        if self.pairs.len() < PAIRS {
            self.pairs.push(row);
        } else {
            self.pairs[self.oldest] = row;
            self.oldest = (self.oldest + 1) % PAIRS;
        }
    }
}

impl DropReason {
    /// Whether the switch does something about such frames: it tells their sender or the log.
    #[must_use]
    pub const fn is_heeded(self) -> bool {
        matches!(self, Self::NotLoggedIn | Self::PointToPoint)
    }

    /// Whether the frame was understood so far that its S_ID and D_ID mean something.
    const fn has_pair(self) -> bool {
        !matches!(
            self,
            Self::NotForUs | Self::PointToPoint | Self::Malformed | Self::Class | Self::Crc
        )
    }
}

/// Rows of drops by pair that a port keeps. A peer can make up as many pairs as it likes.
const PAIRS: usize = 64;
