//! A probe among other machines on an Ethernet that may be narrow.

use std::time::Duration;

use scsi::medium::{HeapLease, Now};

use crate::fip::Fip;
use crate::initiator::{FcpInitiator, FcpInitiatorConfig};
use crate::path_probe::{PathProbe, PathProbeConfig, PathVerdict, PortPath};
use crate::port::Port;
use crate::tests::{HeapFrames, Machine, config, sent};
use crate::wire::ethernet::Mac;
use crate::wire::names::Wwn;

impl Machine for PathProbe {
    fn link(&mut self, now: Now, up: bool) {
        self.link(now, up);
    }

    fn receive(&mut self, now: Now, frame: &[u8]) {
        self.receive(now, frame, None);
    }

    fn transmit(&mut self, out: &mut HeapFrames) {
        self.transmit(out);
    }

    fn next_deadline(&self) -> Option<Now> {
        self.next_deadline()
    }

    fn expire(&mut self, now: Now) {
        self.expire(now);
    }

    fn own_mac(&self) -> Option<Mac> {
        self.mac()
    }
}

/// The ENode of the probe.
pub(super) const OWN: Mac = Mac([2, 0, 0, 0, 0, 1]);

/// A probe at an Ethernet port of this MTU.
pub(super) fn probe(mtu: usize) -> PathProbe {
    let config = PathProbeConfig {
        mac: OWN,
        wwpn: Wwn(0x2001_0200_0000_0001),
        wwnn: Wwn(0x1000_0200_0000_0001),
        mtu,
    };
    PathProbe::new(config, Now::ZERO, [3; 8])
}

/// A port of Lunar at an Ethernet port of this MTU.
pub(super) fn port(low: u16, mtu: usize) -> Port<FcpInitiator<HeapLease>> {
    let config = crate::port::PortConfig { mtu, ..config(low) };
    let initiator = FcpInitiator::new(FcpInitiatorConfig::default());
    Port::new(&config, initiator, Now::ZERO, [low as u8; 8])
}

/// The two ends of a segment: the probe, and others behind a bridge.
pub(super) struct Segment {
    pub(super) probe: PathProbe,
    pub(super) others: Vec<Box<dyn Machine>>,
    now: Now,
    /// Whether the bridge lets a frame of so many bytes behind its Ethernet header pass, to the
    /// probe or from it.
    passes: fn(usize, bool) -> bool,
    /// What came to the others, as bytes of Ethernet frames.
    pub(super) seen: Vec<Vec<u8>>,
}

impl Segment {
    /// The others come up first.
    pub(super) fn new(
        probe: PathProbe,
        others: Vec<Box<dyn Machine>>,
        passes: fn(usize, bool) -> bool,
    ) -> Self {
        let mut segment = Self {
            probe,
            others,
            now: Now::ZERO,
            passes,
            seen: Vec::new(),
        };
        for other in &mut segment.others {
            other.link(Now::ZERO, true);
        }
        segment.run(Duration::from_secs(2));
        segment.probe.link(segment.now, true);
        segment
    }

    /// Time goes on, for as long at the most.
    pub(super) fn run(&mut self, time: Duration) {
        let end = self.now + time;
        loop {
            self.exchange();
            let deadlines = self.others.iter().map(|one| one.next_deadline());
            let next = deadlines
                .chain([self.probe.next_deadline()])
                .flatten()
                .min();
            let Some(next) = next.filter(|at| *at <= end) else {
                break;
            };
            self.now = self.now.max(next);
            let now = self.now;
            self.others.iter_mut().for_each(|one| one.expire(now));
            self.probe.expire(now);
        }
        self.now = end;
    }

    /// Frames go back and forth until there are none.
    fn exchange(&mut self) {
        loop {
            let from_probe = sent(&mut self.probe);
            let from_others: Vec<_> = self
                .others
                .iter_mut()
                .flat_map(|one| sent(&mut **one))
                .collect();
            if from_probe.is_empty() && from_others.is_empty() {
                return;
            }
            for frame in from_probe {
                if (self.passes)(frame.len() - 14, false) {
                    let now = self.now;
                    self.others
                        .iter_mut()
                        .for_each(|one| one.receive(now, &frame));
                    self.seen.push(frame);
                }
            }
            for frame in from_others {
                self.comes(&frame);
            }
        }
    }

    /// A frame comes from behind the bridge.
    pub(super) fn comes(&mut self, frame: &[u8]) {
        if (self.passes)(frame.len() - 14, true) {
            self.probe.receive(self.now, frame, None);
        }
    }

    /// The only other port that is known.
    #[track_caller]
    pub(super) fn path(&self) -> PortPath {
        let all: Vec<_> = self.probe.ports().collect();
        assert_eq!(all.len(), 1, "{all:?}");
        *all[0]
    }

    #[track_caller]
    pub(super) fn verdict(&self) -> PathVerdict {
        assert!(!self.probe.is_searching(), "{:?}", self.path());
        self.path().verdict(2500)
    }
}

/// FIP of a port that answers no ECHO.
pub(super) fn deaf(low: u16) -> Fip {
    let config = crate::fip::FipConfig {
        mac: config(low).mac,
        wwpn: config(low).wwpn,
        wwnn: config(low).wwnn,
        max_fcoe: crate::fip::max_fcoe(2500),
        mode: crate::fip::Mode::Multipoint,
        target: true,
        initiator: false,
    };
    Fip::new(config, Now::ZERO, [9; 8])
}
