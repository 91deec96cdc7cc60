//! Runs the port that measures paths, and listens for the neighbours on its link meanwhile.

use std::io;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use ::io::ether::{EtherPort, Place};
use fc::frames::FrameSink;
use fc::path_probe::{PathProbe, PathProbeConfig};
use fc::wire::ethernet::Mac;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::readings::{Hop, NeighbourReading, PathReadings};
use crate::lldp::{self, NoLldp};
use crate::n_port::{Attachment, NoPort, PortNames, PortOwner};

/// Measures for as long, or a little longer where an end is near, or until `stop`. Of `hops`, the
/// first is at `place`.
///
/// # Errors
///
/// When there can be no port at the interface.
pub fn measure(
    place: &Place,
    hops: &[Hop],
    time: Duration,
    stop: &AtomicBool,
) -> Result<PathReadings, NoPort> {
    let site = Attachment::open(place, &PortOwner::Initiator)?;
    let failed = |cause| NoPort::Io(place.clone(), cause);
    let mut prober = Prober::new(site).map_err(failed)?;
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let listening = scope.spawn(|| neighbours(hops, time, &is_over));
        let ran = prober.run(time, stop);
        is_over.store(true, Relaxed);
        ran.map_err(failed)?;
        let heard = listening.join().unwrap_or_else(|died| resume_unwind(died));
        let (neighbours, unheard) = match heard {
            Ok(neighbours) => (neighbours, None),
            Err(cause) => (Vec::new(), Some(cause.to_string())),
        };
        Ok(PathReadings {
            neighbours,
            unheard,
            ..prober.readings()
        })
    })
}

/// The neighbours that speak DCBX on the link of an interface: LLDP has no tag, and each port of a
/// bond has its own.
fn neighbours(
    hops: &[Hop],
    time: Duration,
    stop: &AtomicBool,
) -> Result<Vec<NeighbourReading>, NoLldp> {
    let has_link = |hop: &&Hop| !["vlan", "bond"].contains(&&*hop.link.kind);
    let mut certain = hops.iter().filter(|hop| hop.place.is_certain());
    let Some(port) = certain.find(has_link) else {
        return Ok(Vec::new());
    };
    let place = Place::Interface(port.link.name.clone());
    let view = lldp::listen(&place, time, stop)?;
    let heard = view.agent.neighbours().iter();
    let speaking = heard.filter_map(|one| {
        Some(NeighbourReading {
            name: one.to_string(),
            pfc: one.pfc()?,
        })
    });
    Ok(speaking.collect())
}

/// A probe with its Ethernet port and its clock.
struct Prober {
    probe: PathProbe,
    ether: EtherPort,
    /// The address of the VN_Port, frames to which come in.
    joined: Option<Mac>,
    epoch: Instant,
    mtu: usize,
    /// What it is called, for as long as it is there.
    _names: std::sync::Arc<PortNames>,
}

impl Prober {
    fn new(site: Attachment) -> io::Result<Self> {
        let names = std::sync::Arc::clone(&site.names);
        let (mut ether, random) = site.into_ether();
        for group in PathProbe::groups() {
            ether.join(group.0)?;
        }
        let mtu = ether.link().mtu as usize;
        let config = PathProbeConfig {
            mac: names.mac,
            wwpn: names.wwpn,
            wwnn: names.wwnn,
            mtu,
        };
        Ok(Self {
            probe: PathProbe::new(config, Duration::ZERO, random),
            ether,
            joined: None,
            epoch: Instant::now(),
            mtu,
            _names: names,
        })
    }

    fn run(&mut self, time: Duration, stop: &AtomicBool) -> io::Result<()> {
        self.probe.link(self.epoch.elapsed(), self.ether.link().up);
        while self.epoch.elapsed() < time && !stop.load(Relaxed) {
            self.turn()?;
        }
        while self.probe.is_searching()
            && self.epoch.elapsed() < time + OVERTIME
            && !stop.load(Relaxed)
        {
            self.turn()?;
        }
        self.probe.leave(self.epoch.elapsed());
        let end = self.epoch.elapsed() + LINGER;
        while self.epoch.elapsed() < end {
            self.turn()?;
        }
        Ok(())
    }

    /// Sends, waits for a while at the most, takes what came, and does what is due.
    fn turn(&mut self) -> io::Result<()> {
        self.probe.transmit(&mut Frames(&mut self.ether));
        self.ether.flush()?;
        self.wait()?;
        let (probe, now) = (&mut self.probe, self.epoch.elapsed());
        self.ether
            .receive(|frame, tci| probe.receive(now, frame, tci.map(|tci| tci & VID)));
        if let Some(link) = self.ether.news()? {
            self.probe.link(self.epoch.elapsed(), link.up);
        }
        self.probe.expire(self.epoch.elapsed());
        self.follow()
    }

    /// Receives at the address that the probe has now.
    fn follow(&mut self) -> io::Result<()> {
        if !self.probe.has_moved() {
            return Ok(());
        }
        let mac = self.probe.mac();
        if let Some(before) = std::mem::replace(&mut self.joined, mac) {
            self.ether.leave(before.0)?;
        }
        mac.map_or(Ok(()), |mac| self.ether.join(mac.0))
    }

    fn wait(&self) -> io::Result<()> {
        let now = self.epoch.elapsed();
        let deadline = self.probe.next_deadline();
        let left = deadline.map_or(TURN, |at| at.saturating_sub(now).min(TURN));
        let mut list = [PollFd::new(&**self.ether.waited(), PollFlags::IN)];
        let left = Timespec::try_from(left).map_err(io::Error::other)?;
        match poll(&mut list, Some(&left)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn readings(&self) -> PathReadings {
        PathReadings {
            mtu: self.mtu,
            ports: self.probe.ports().copied().collect(),
            fcfs: self.probe.fcfs().copied().collect(),
            outside_fip: self.probe.outside_fip().collect(),
            ..PathReadings::default()
        }
    }
}

/// The port's transmit ring.
struct Frames<'a>(&'a mut EtherPort);

impl FrameSink for Frames<'_> {
    fn slot(&mut self, len: usize) -> Option<&mut [u8]> {
        self.0.slot(len)
    }

    fn commit(&mut self, len: usize) {
        self.0.commit(len);
    }
}

/// How long is waited for frames before the time is looked at.
const TURN: Duration = Duration::from_millis(50);

/// How much longer it may take to find the longest frame that passes.
const OVERTIME: Duration = Duration::from_secs(8);

/// How long it stays after it has logged out, to reject those that log in at once.
const LINGER: Duration = Duration::from_millis(100);

/// The VLAN identifier in tag control information (IEEE 802.1Q).
const VID: u16 = 0xfff;
