//! N_Ports on the Ethernet ports of this machine.

mod attachment;
mod branch;
mod claim;
mod dcb;
mod fcf;
mod further;
mod idle;
mod names;
pub(crate) mod problems;
mod queries;
mod status;
mod status_socket;
#[cfg(test)]
mod tests;
mod transmit;
mod vlan_answers;

use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use ::io::ether::{BATCH, EtherPort, LinkStatus, Place};
use fc::fip::enode::Enode;
use fc::port::{Fc4Layer, Port, PortEvent};
use fc::remote::Partners;
use fc::wire::ethernet::{Mac, VlanTag};
use fc::wire::names::Wwn;
use scsi::medium::Now;

pub use self::attachment::Attachment;
pub use self::branch::PortBranch;
pub use self::dcb::DcbGate;
pub use self::fcf::FcfAttachment;
use self::further::FurtherLogin;
pub use self::further::FurtherPlaces;
pub use self::idle::{BlockingPort, IdlePorts, PortTerms};
pub use self::names::{PortNames, PortOwner};
pub use self::problems::{FrameLoss, FrameLosses, LinkProblem, NoPort, interface_below_vlan};
pub use self::status::{FcfStatus, PortCounts, PortStatus, RemoteStatus, UnitStatus, ports_here};
pub use self::status_socket::{
    ANSWER_BYTES, StatusAnswers, StatusKind, StatusSocket, answer_len, ask_all,
};

/// An N_Port with the Ethernet port that it is on.
pub struct NPort<F: Fc4Layer> {
    place: Place,
    asked: Place,
    ether: EtherPort,
    /// Our address, frames to which come in.
    joined: Option<Mac>,
    port: Port<F>,
    /// Where the kernel hands frames to.
    steered: branch::SteeredPorts,
    /// What its branches have counted.
    branch_counts: Vec<Arc<branch::BranchCounts>>,
    /// What has to open before there is a link.
    gate: Option<DcbGate>,
    looked_at_gate: Now,
    leave: PortShutdown,
    /// Frames came in, and many more are to come.
    streams: bool,
    /// Frames are not waited for: they are looked for then.
    rest: Option<Now>,
    /// The ring could not wait for frames, which the log has told.
    is_deaf: bool,
    names: Arc<PortNames>,
    clock: Clock,
    told: problems::LoggedLosses,
    /// What tells other programs of the port, and when that began.
    status: Option<StatusSocket>,
    /// What sends queries of theirs.
    queries: Option<queries::QuerySocket>,
    begun: Now,
    /// Logical units that are used by the port, each of a target.
    units: Vec<(Wwn, UnitStatus)>,
    /// What answers VLAN Requests, if it is to.
    vlan_answers: Option<vlan_answers::VlanAnswers>,
    /// What it lives by, if it is a further port of its ENode.
    further: Option<FurtherLogin>,
    /// The tag that frames have, unless a fabric gives another one.
    given_tag: Option<VlanTag>,
}

/// How the time of a port goes with that of its thread: a port may go on to another thread, which
/// counts from another instant.
#[derive(Clone, Copy, Debug, Default)]
struct Clock {
    ahead: Duration,
    behind: Duration,
}

impl Clock {
    /// It is `port` for the port while it is `thread` for its thread.
    const fn of(port: Now, thread: Now) -> Self {
        Self {
            ahead: port.saturating_sub(thread),
            behind: thread.saturating_sub(port),
        }
    }

    fn of_port(self, thread: Now) -> Now {
        (thread + self.ahead).saturating_sub(self.behind)
    }

    fn of_thread(self, port: Now) -> Now {
        (port + self.behind).saturating_sub(self.ahead)
    }
}

/// How far a port is with its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PortShutdown {
    NotYet,
    /// It has logged out everywhere, and rejects a port that logs in again, until then.
    Until(Now),
    Left,
}

/// How to wait for what becomes readable when there is something to receive, or room to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PollInterest {
    /// At once.
    Now,
    /// After a pause, as so much is coming in that it is better to look for it after a while.
    Later,
    /// Not at all before [`NPort::expire`] is due.
    NotYet,
}

/// How long to stay after LOGO. Linux sends PLOGI again 17 ms later and must get a reject: without
/// an answer it waits for 8 s and ignores any other port that takes our N_Port_ID meanwhile.
const LINGER: Duration = Duration::from_millis(100);

impl<F: Fc4Layer> fmt::Debug for NPort<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NPort({} at {})", self.port.wwpn(), self.place)
    }
}

impl<F: Fc4Layer> NPort<F> {
    /// Begins to look for other ports.
    pub fn begin(site: Attachment, fc4: F, now: Now) -> Self {
        let mut port = Port::new(&site.config, fc4, now, site.random);
        port.link(now, site.ether.link().up && site.gate.is_none());
        Self {
            place: site.place,
            asked: site.asked,
            ether: site.ether,
            joined: None,
            port,
            steered: branch::SteeredPorts::default(),
            branch_counts: site.branch_counts,
            gate: site.gate,
            looked_at_gate: now,
            leave: PortShutdown::NotYet,
            streams: false,
            rest: None,
            is_deaf: false,
            names: site.names,
            clock: Clock::default(),
            told: problems::LoggedLosses::default(),
            status: site.status,
            queries: site.queries,
            begun: now,
            units: Vec::new(),
            vlan_answers: site.vlan_answers,
            further: site.further,
            given_tag: site.config.tag,
        }
    }

    /// The same port with another FC-4 layer.
    fn with_fc4<G: Fc4Layer>(self, change: impl FnOnce(F) -> G) -> NPort<G> {
        NPort {
            place: self.place,
            asked: self.asked,
            ether: self.ether,
            joined: self.joined,
            port: self.port.with_fc4(change),
            steered: self.steered,
            branch_counts: self.branch_counts,
            gate: self.gate,
            looked_at_gate: self.looked_at_gate,
            leave: self.leave,
            streams: self.streams,
            rest: self.rest,
            is_deaf: self.is_deaf,
            names: self.names,
            clock: self.clock,
            told: self.told,
            status: self.status,
            queries: self.queries,
            begun: self.begun,
            units: Vec::new(),
            vlan_answers: self.vlan_answers,
            further: self.further,
            given_tag: self.given_tag,
        }
    }

    /// What it is called, for as long as this lives.
    pub const fn names(&self) -> &Arc<PortNames> {
        &self.names
    }

    /// What time it is for the port, and what is above it.
    pub fn time(&self, now: Now) -> Now {
        self.clock.of_port(now)
    }

    /// The interface or cable that it is at.
    pub const fn place(&self) -> &Place {
        &self.place
    }

    /// The one that was asked for, which the interface of a VLAN may be in place of.
    pub const fn asked(&self) -> &Place {
        &self.asked
    }

    /// Its state machine.
    pub const fn port(&self) -> &Port<F> {
        &self.port
    }

    /// The same, to be told something.
    pub const fn port_mut(&mut self) -> &mut Port<F> {
        &mut self.port
    }

    /// What becomes readable when there is something to receive, or room to send.
    pub fn poll_fd(&self) -> &Arc<OwnedFd> {
        self.ether.waited()
    }

    /// How to wait for [`Self::poll_fd`].
    pub const fn listen(&self) -> PollInterest {
        match (self.rest, self.streams) {
            (Some(_), _) => PollInterest::NotYet,
            (None, true) => PollInterest::Later,
            (None, false) => PollInterest::Now,
        }
    }

    /// The ring does or does not wait for [`Self::poll_fd`] now. If it does not, the port looks for
    /// frames by the clock, and then has the ring asked again.
    pub fn is_watched(&mut self, now: Now, watched: &io::Result<()>) {
        let was_deaf = self.is_deaf;
        self.is_deaf = watched.is_err();
        if let Err(cause) = watched {
            self.rest = Some(self.time(now) + DEAF);
            if !was_deaf {
                tracing::error!(
                    "{}: cannot wait for frames, so polling for them: {cause}",
                    self.place
                );
            }
        }
    }

    /// Takes what has come, as much as a batch has.
    pub fn receive(&mut self, now: Now) {
        let now = self.time(now);
        let port = &mut self.port;
        let dropped = port.fip_statistics().dropped;
        let count = self
            .ether
            .receive(|frame, tci| port.receive(now, frame, tci.map(|tci| tci & VID)));
        let is_flooded = port.fip_statistics().dropped > dropped;
        self.streams = (1..BATCH).contains(&count) && port.expected() >= STREAM;
        if is_flooded && count < BATCH {
            self.rest = Some(now + FLOODED);
        }
        let before = self.ether.link();
        match self.ether.news() {
            Ok(Some(link)) => self.relink(now, before, link),
            Ok(None) => {}
            Err(cause) => tracing::error!("{}: cannot read its link: {cause}", self.place),
        }
        if let Some(mut status) = self.status.take() {
            let seconds = now.saturating_sub(self.begun).as_secs();
            status.answer(now, || self.status(seconds));
            self.status = Some(status);
        }
        if let Some(queries) = &mut self.queries {
            queries.turn(now, &self.ether, &mut self.port);
        }
        if let Some(answers) = &mut self.vlan_answers {
            answers.turn(now);
        }
    }

    fn relink(&mut self, now: Now, before: LinkStatus, link: LinkStatus) {
        if link.mtu != before.mtu {
            self.port.resize(now, link.mtu as usize);
        }
        let barrier = match LinkProblem::at(&self.place, link) {
            Some(obstacle) => {
                tracing::warn!("{obstacle}");
                obstacle.is_barrier()
            }
            None => {
                tracing::info!("{}: the link is up, with MTU {}", self.place, link.mtu);
                false
            }
        };
        self.port.link(now, !barrier && self.gate.is_none());
    }

    /// What had to open for a link may be open now.
    fn look_at_gate(&mut self, now: Now) {
        if self.gate.take_if(|gate| gate.is_open()).is_some() {
            let link = self.ether.link();
            let obstacle = LinkProblem::at(&self.place, link);
            let passes = link.up && !obstacle.is_some_and(|obstacle| obstacle.is_barrier());
            self.port.link(now, passes);
        }
    }

    /// Whether nothing has the other end of its cable.
    pub const fn is_alone(&self) -> bool {
        self.ether.is_alone()
    }

    /// What is in the way, if no frame passes.
    pub fn blocking_problem(&self) -> Option<LinkProblem> {
        let barrier = LinkProblem::at(&self.place, self.ether.link());
        let gate = self.gate.as_ref().map(|_| LinkProblem::no_pfc(&self.place));
        barrier.filter(LinkProblem::is_barrier).or(gate)
    }

    /// What happened. Frames to the port's own address are received for as long as it has one.
    pub fn poll(&mut self) -> Option<PortEvent<F::Event>> {
        let event = self.port.poll()?;
        match event {
            PortEvent::Online(address) => {
                tracing::debug!("{}: this port's address is {}", self.place, address.fc_id);
                self.receive_at(Some(address.mac));
            }
            PortEvent::Offline => self.receive_at(None),
            PortEvent::Fabric(ref notice) if notice.is_problem() => {
                tracing::warn!("{}: {notice}", self.named());
            }
            PortEvent::Fabric(ref notice) => tracing::info!("{}: {notice}", self.named()),
            _ => {}
        }
        Some(event)
    }

    /// What the log calls it: its place, and for one of several ports there its WWPN.
    fn named(&self) -> String {
        let place = &self.place;
        if self.port.enode().is_some_and(Enode::is_further) {
            format!("{place} ({})", self.port.wwpn())
        } else {
            place.to_string()
        }
    }

    /// An Ethernet port has few addresses: the one before goes.
    fn receive_at(&mut self, mac: Option<Mac>) {
        if let Some(before) = std::mem::replace(&mut self.joined, mac)
            && let Err(cause) = self.ether.leave(before.0)
        {
            tracing::warn!("{}: still receives frames to {before}: {cause}", self.place);
        }
        if let Some(mac) = mac
            && let Err(cause) = self.ether.join(mac.0)
        {
            tracing::error!("{}: cannot receive frames to {mac}: {cause}", self.place);
        }
    }

    /// When [`Self::expire`] wants to be called.
    pub fn next_deadline(&self) -> Option<Now> {
        let leave = match self.leave {
            PortShutdown::Until(at) => Some(at),
            PortShutdown::NotYet | PortShutdown::Left => None,
        };
        let gate = self.gate.as_ref().map(|_| self.looked_at_gate + GATE);
        let deadlines = [self.port.next_deadline(), leave, self.rest, gate];
        let deadline = deadlines.into_iter().flatten().min();
        deadline.map(|at| self.clock.of_thread(at))
    }

    /// Does what is due.
    pub fn expire(&mut self, now: Now) {
        let thread = now;
        let now = self.time(now);
        if self.rest.take_if(|at| *at <= now).is_some() {
            self.receive(thread);
        }
        if self.looked_at_gate + GATE <= now {
            self.looked_at_gate = now;
            self.look_at_gate(now);
        }
        self.look_for_drops(now);
        if self.port.next_deadline().is_some_and(|at| at <= now) {
            self.port.expire(now);
            if let Some(queries) = &mut self.queries {
                queries.answer(&mut self.port);
            }
        }
        if matches!(self.leave, PortShutdown::Until(at) if at <= now) {
            self.port.link(now, false);
            // An ENode that has a port of its own logs out last: it is looked at again then.
            let has_ended = self.further.as_mut().is_none_or(FurtherLogin::end);
            self.leave = if has_ended {
                PortShutdown::Left
            } else {
                PortShutdown::Until(now + ENODE)
            };
        }
    }

    /// Tells of frames that were lost here. There is always a Beacon or another thing due by which
    /// this is called.
    fn look_for_drops(&mut self, now: Now) {
        let (ether, dropped) = (&mut self.ether, self.port.fc4().dropped());
        let news = self.told.news(now, || {
            let drops = ether.recent_drops().ok()?;
            Some(FrameLosses(drops).and_dropped(dropped))
        });
        if let Some(lost) = news {
            tracing::warn!("{}: frames lost: {lost}", self.place);
        }
    }

    /// Frames that were lost since the port was opened, if the kernel tells.
    pub fn lost(&mut self) -> Option<FrameLosses> {
        let drops = self.ether.drops().ok()?;
        Some(FrameLosses(drops).and_dropped(self.port.fc4().dropped()))
    }

    /// From now on there are logins with these ports alone; others are logged out.
    pub fn set_partners(&mut self, now: Now, partners: Partners) {
        let now = self.time(now);
        self.port.set_partners(now, partners);
    }

    /// Logs out everywhere; soon after it has left.
    pub fn leave(&mut self, now: Now) {
        let now = self.time(now);
        let enode = self.port.enode();
        // A login that is granted only now is given back.
        let is_in_fabric = enode.is_some_and(Enode::may_be_logged_in);
        let linger = if is_in_fabric || self.port.remotes().next().is_some() {
            LINGER
        } else {
            Duration::ZERO
        };
        self.port.log_out(now);
        self.leave = PortShutdown::Until(now + linger);
    }

    /// Whether it is silent for good.
    pub fn has_left(&self) -> bool {
        self.leave == PortShutdown::Left
    }
}

/// Bytes of data that are on their way, or soon will be, while a port rests between batches: what
/// takes longer to come than [`PAUSE`](::io::ring::PAUSE), so that no command ends later for it.
/// Being woken for each few frames costs either end more than all else that is done with them.
const STREAM: u64 = 64 << 10;

/// How long a port is not looked at while it is flooded with FIP. It costs the other frames of its
/// Ethernet this much latency, and takes no more memory than the ring has: 1 ms of the shortest
/// frames at 10 Gbit/s, 15,000, do not fit, but no peer that means well loses by that.
const FLOODED: Duration = Duration::from_millis(1);

/// Between two looks at whether the ENode of a further port has logged out, which takes [`LINGER`].
const ENODE: Duration = Duration::from_millis(10);

/// Between two looks at whether a port may begin.
const GATE: Duration = Duration::from_millis(250);

/// How often frames are polled for that the ring cannot wait for.
const DEAF: Duration = Duration::from_millis(10);

/// The VLAN identifier in tag control information (IEEE 802.1Q).
const VID: u16 = 0xfff;
