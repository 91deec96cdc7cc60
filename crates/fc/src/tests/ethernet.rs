//! The Ethernet: a frame that is sent arrives, later, unless a plan or chance has it otherwise.

use std::cell::Cell;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::rc::Rc;
use std::time::Duration;

use scsi::medium::Now;

use crate::wire::ethernet::{self, EthernetHeader};
use crate::wire::frame::RCtl;

/// A frame.
pub type Bytes = Rc<[u8]>;

/// From which station to which.
pub type Link = (usize, usize);

/// What becomes of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It arrives in order.
    Arrives,
    /// It is lost.
    IsLost,
    /// It comes twice, the second time so much later.
    ComesTwice(Duration),
    /// It comes so much later.
    ComesLate(Duration),
    /// One bit of it changes.
    IsDamaged,
}

/// What happens to one FCoE frame in so many; 0 is never. FIP frames are lost, doubled and late as
/// well, but not damaged: that is what the frame check sequence of Ethernet is for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    /// It is lost.
    pub lost: usize,
    /// It comes twice, the second time late.
    pub twice: usize,
    /// It is late, so that others overtake it.
    pub late: usize,
    /// One bit of it changes.
    pub damaged: usize,
    /// How late at the most.
    pub lateness: Duration,
}

/// What becomes of the frame of this number on a link.
type Plan = Box<dyn FnMut(Link, usize, &[u8]) -> Fate>;

/// Frames on their way.
pub struct Ethernet {
    /// What happens to frames by chance.
    pub faults: Faults,
    /// How long frames are on their way, at the least and at the most.
    travel: (Duration, Duration),
    /// How long after the one before it a frame arrives at the earliest.
    gap: Duration,
    rng: fastrand::Rng,
    /// Decides instead of chance.
    plan: Option<Plan>,
    /// What is on its way to each station, in order, and when it arrives.
    lines: Vec<VecDeque<(Now, Bytes)>>,
    /// How many frames were sent on a link, and when the last one arrives.
    sent: BTreeMap<Link, (usize, Now)>,
}

impl fmt::Debug for Ethernet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ethernet({:?})", self.lines)
    }
}

impl Ethernet {
    /// An Ethernet without faults, which frames pass in no time.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self {
            faults: Faults::default(),
            travel: (Duration::ZERO, Duration::ZERO),
            gap: Duration::ZERO,
            rng: fastrand::Rng::with_seed(seed),
            plan: None,
            lines: Vec::new(),
            sent: BTreeMap::new(),
        }
    }

    /// Frames are on their way for so long, at the least and at the most.
    #[must_use]
    pub fn slow(self, least: Duration, most: Duration) -> Self {
        let travel = (least, most);
        Self { travel, ..self }
    }

    /// Frames take so long, one after the other.
    #[must_use]
    pub fn serial(self, gap: Duration) -> Self {
        Self { gap, ..self }
    }

    /// A plan decides what becomes of each frame, by its link and its number there.
    pub fn plan(&mut self, plan: impl FnMut(Link, usize, &[u8]) -> Fate + 'static) {
        self.plan = Some(Box::new(plan));
    }

    /// Chance decides again.
    pub fn forget_plan(&mut self) {
        self.plan = None;
    }

    /// Only the FCoE frame after the next `position` ones has another fate than to arrive. What it
    /// was is told once it is sent.
    pub fn spoil(&mut self, position: usize, fate: Fate) -> Rc<Cell<Option<RCtl>>> {
        let told = Rc::new(Cell::new(None));
        let (chosen, mut left) = (Rc::clone(&told), position);
        self.plan(move |_, _, frame| {
            if is_fip(frame) || chosen.get().is_some() {
                return Fate::Arrives;
            }
            if left > 0 {
                left -= 1;
                return Fate::Arrives;
            }
            chosen.set(Some(RCtl(frame[EthernetHeader::BARE_LEN + FC_HEADER])));
            fate
        });
        told
    }

    /// Takes a frame.
    pub fn send(&mut self, now: Now, link: Link, frame: &Bytes) {
        let (number, last) = *self.sent.entry(link).or_default();
        let fate = match &mut self.plan {
            Some(plan) => plan(link, number, frame),
            None => self.lot(frame),
        };
        let (least, most) = self.travel;
        let travels = self
            .rng
            .u64(least.as_nanos() as u64..=most.as_nanos() as u64);
        let usual = match fate {
            Fate::IsLost => last,
            _ => (last + self.gap).max(now + Duration::from_nanos(travels)),
        };
        self.sent.insert(link, (number + 1, usual));
        match fate {
            Fate::IsLost => {}
            Fate::Arrives => self.arrive(usual, link, frame),
            Fate::ComesTwice(later) => {
                self.arrive(usual, link, frame);
                self.arrive(usual + later, link, frame);
            }
            Fate::ComesLate(by) => self.arrive(usual + by, link, frame),
            Fate::IsDamaged => {
                let damaged = self.damaged(frame);
                self.arrive(usual, link, &damaged);
            }
        }
    }

    /// When the next frame arrives.
    #[must_use]
    pub fn next(&self) -> Option<Now> {
        let first = self.lines.iter().filter_map(VecDeque::front);
        first.map(|(at, _)| *at).min()
    }

    /// When all frames will have arrived but for those that are late.
    #[must_use]
    pub fn last(&self) -> Now {
        let last = self.sent.values().map(|(_, last)| *last);
        last.max().unwrap_or_default()
    }

    /// The next frame that has arrived by now: at whom, and what.
    pub fn arrived(&mut self, now: Now) -> Option<(usize, Bytes)> {
        let next = self.next().filter(|at| *at <= now)?;
        let has_come =
            |line: &VecDeque<(Now, Bytes)>| line.front().is_some_and(|one| one.0 == next);
        let to = self.lines.iter().position(has_come)?;
        Some((to, self.lines[to].pop_front()?.1))
    }

    /// How many frames were sent on a link.
    #[must_use]
    pub fn count(&self, link: Link) -> usize {
        self.sent.get(&link).map_or(0, |sent| sent.0)
    }

    /// What is on its way to a station.
    pub fn line(&mut self, to: usize) -> &mut VecDeque<(Now, Bytes)> {
        if self.lines.len() <= to {
            self.lines.resize_with(to + 1, VecDeque::new);
        }
        &mut self.lines[to]
    }

    fn arrive(&mut self, at: Now, (_, to): Link, frame: &Bytes) {
        let line = self.line(to);
        let behind = line.partition_point(|(other, _)| *other <= at);
        line.insert(behind, (at, Rc::clone(frame)));
    }

    fn lot(&mut self, frame: &[u8]) -> Fate {
        let faults = self.faults;
        let mut chance = |times: usize| times > 0 && self.rng.usize(..times) == 0;
        let (lost, twice, late) = (
            chance(faults.lost),
            chance(faults.twice),
            chance(faults.late),
        );
        let damaged = !is_fip(frame) && chance(faults.damaged);
        let most = faults.lateness.as_micros() as u64;
        let lateness = Duration::from_micros(self.rng.u64(..most.max(1)));
        match (lost, damaged, twice, late) {
            (true, ..) => Fate::IsLost,
            (_, true, ..) => Fate::IsDamaged,
            (_, _, true, _) => Fate::ComesTwice(lateness),
            (.., true) => Fate::ComesLate(lateness),
            _ => Fate::Arrives,
        }
    }

    /// The Ethernet header stays as it is: it would be dropped before it comes to a port.
    fn damaged(&mut self, frame: &Bytes) -> Bytes {
        let mut bytes = frame.to_vec();
        let at = self.rng.usize(EthernetHeader::BARE_LEN..bytes.len());
        bytes[at] ^= 1 << self.rng.u8(..8);
        bytes.into()
    }
}

fn is_fip(frame: &[u8]) -> bool {
    matches!(EthernetHeader::parse(frame), Ok((header, _)) if header.ethertype == ethernet::FIP)
}

/// Where the header of the FC frame begins in FCoE.
const FC_HEADER: usize = 14;
