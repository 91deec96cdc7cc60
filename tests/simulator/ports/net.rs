//! The Ethernet: a frame that is sent arrives at every other port, later, unless chance has it
//! otherwise.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use fc::wire::ethernet::{self, EthernetHeader};
use fc::wire::frame::RCtl;
use scsi::medium::Now;
use sim::Rng;

/// What happens to one FCoE frame in so many; 0 is never. FIP frames are lost, doubled and late as
/// well, but not damaged: that is what the frame check sequence of Ethernet is for.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Faults {
    /// It is lost.
    pub(crate) lost: usize,
    /// It comes twice.
    pub(crate) twice: usize,
    /// It is late, so that others overtake it.
    pub(crate) late: usize,
    /// One bit of it changes.
    pub(crate) damaged: usize,
    /// How late at the most.
    pub(crate) lateness: Duration,
}

/// What is done to one frame that is chosen by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spoil {
    /// It is lost.
    Lose,
    /// It comes twice, the second time after all that was sent meanwhile.
    Double,
    /// It comes after all that was sent meanwhile.
    Delay,
    /// One bit of it changes.
    Damage,
}

/// A frame.
pub(crate) type Bytes = Rc<[u8]>;

/// Frames on their way.
#[derive(Debug)]
pub(crate) struct Net {
    pub(crate) faults: Faults,
    rng: Rng,
    /// By when they arrive: at whom, and what.
    arriving: BTreeMap<(Now, u64), (usize, Bytes)>,
    /// Frames sent, which keeps those in order that arrive at one instant.
    sent: u64,
    /// When what was sent last from one to another arrives.
    last: BTreeMap<(usize, usize), Now>,
    /// What is done to an FCoE frame, after so many others.
    spoil: Option<(usize, Spoil)>,
    spoilt: Option<RCtl>,
}

impl Net {
    /// An Ethernet without faults.
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            faults: Faults::default(),
            rng: Rng::new(seed ^ 0x6e65_7477_6f72_6b73),
            arriving: BTreeMap::new(),
            sent: 0,
            last: BTreeMap::new(),
            spoil: None,
            spoilt: None,
        }
    }

    /// Does this to the FCoE frame after the next `position` ones.
    pub(crate) const fn spoil(&mut self, position: usize, how: Spoil) {
        self.spoil = Some((position, how));
    }

    /// Spoils nothing more. Returns what the frame was that was chosen, if it was sent.
    pub(crate) const fn spoilt(&mut self) -> Option<RCtl> {
        self.spoil = None;
        self.spoilt.take()
    }

    /// Takes a frame that is sent to `to`.
    pub(crate) fn send(&mut self, now: Now, (from, to): (usize, usize), frame: &Bytes) {
        let is_fip = matches!(EthernetHeader::parse(frame), Ok((header, _))
            if header.ethertype == ethernet::FIP);
        let spoil = if is_fip { None } else { self.chosen(frame) };
        let faults = self.faults;
        if spoil == Some(Spoil::Lose) || self.chance(faults.lost) {
            return;
        }
        let travels = Duration::from_micros(5 + self.rng.below(20) as u64);
        let last = self.last.entry((from, to)).or_default();
        let usual = (*last).max(now + travels);
        *last = usual;
        if spoil == Some(Spoil::Double) {
            self.arrive(usual + OVERTAKEN, to, frame);
        } else if self.chance(faults.twice) {
            let late = self.lateness();
            self.arrive(usual + late, to, frame);
        }
        let at = match spoil {
            Some(Spoil::Delay) => usual + OVERTAKEN,
            _ if self.chance(faults.late) => usual + self.lateness(),
            _ => usual,
        };
        if spoil == Some(Spoil::Damage) || !is_fip && self.chance(faults.damaged) {
            let damaged = self.damaged(frame);
            return self.arrive(at, to, &damaged);
        }
        self.arrive(at, to, frame);
    }

    /// When the next frame arrives.
    pub(crate) fn next(&self) -> Option<Now> {
        self.arriving.keys().next().map(|(at, _)| *at)
    }

    /// The next frame that has arrived by now: at whom, and what.
    pub(crate) fn arrived(&mut self, now: Now) -> Option<(usize, Bytes)> {
        let first = self.arriving.first_entry()?;
        (first.key().0 <= now).then(|| first.remove())
    }

    fn arrive(&mut self, at: Now, to: usize, frame: &Bytes) {
        self.sent += 1;
        self.arriving
            .insert((at, self.sent), (to, Rc::clone(frame)));
    }

    fn chosen(&mut self, frame: &Bytes) -> Option<Spoil> {
        let (left, how) = self.spoil.take()?;
        if left == 0 {
            let r_ctl = frame.get(EthernetHeader::BARE_LEN + FC_HEADER);
            self.spoilt = r_ctl.copied().map(RCtl);
            return Some(how);
        }
        self.spoil = Some((left - 1, how));
        None
    }

    fn chance(&mut self, times: usize) -> bool {
        times > 0 && self.rng.one_in(times)
    }

    fn lateness(&mut self) -> Duration {
        let most = self.faults.lateness.as_micros() as usize;
        Duration::from_micros(self.rng.below(most.max(1)) as u64)
    }

    /// The Ethernet header stays as it is: it would be dropped before it comes to a port.
    fn damaged(&mut self, frame: &Bytes) -> Bytes {
        let mut bytes = frame.to_vec();
        let inside = EthernetHeader::BARE_LEN;
        let at = inside + self.rng.below(bytes.len() - inside);
        bytes[at] ^= 1 << self.rng.below(8);
        bytes.into()
    }
}

/// Where the header of the FC frame begins in FCoE.
const FC_HEADER: usize = 14;

/// By how much a frame is late that was chosen: more than an exchange takes without it, and less
/// than the time-outs.
const OVERTAKEN: Duration = Duration::from_millis(20);
