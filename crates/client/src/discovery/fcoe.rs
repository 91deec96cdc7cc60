//! What is behind an Ethernet port of ours: N_Ports, and the units of those that are targets.

use std::collections::BTreeSet;
use std::io;
use std::time::{Duration, Instant};

use ::io::ether::Place;
use ::io::ring::{AnyRing, Ring, RingEvent, RingKind, SocketRing, Token};
use block::identity::Details;
use block::volume::Volume as _;
use fc::initiator::{self, ClientCommand, FcpInitiator, FcpInitiatorConfig};
use fc::port::PortEvent;
use fc::remote::{RemoteId, RemotePort as Port};
use fc::wire::names::{FcId, Wwn};
use scsi::client::{UnitRequest, Why};
use scsi::medium::HeapLease;
use scsi::wire::lun::Lun;

use super::{DiscoveredTarget, DiscoveredUnit};
use crate::open::{OpenCause, REPLACEMENT, fcoe_settings};
use crate::remote::command_channel::{self, CommandChannel, CommandResult, LIMIT};
use crate::remote::wait_notice::WaitNotice;
use crate::remote::{FcoeLinkEnd, RemoteError, RemoteVolume};
use address::{Address, FcoeAddress, FcoeOptions};
use runtime::n_port::{Attachment, IdlePorts, NPort, PollInterest, PortOwner};
pub use runtime::n_port::{FrameLoss, FrameLosses};

/// What was found behind an Ethernet port.
#[derive(Debug)]
pub struct FcoeDiscovery {
    /// Our own port, then the others by their names.
    pub ports: Vec<DiscoveredPort>,
    /// Those of them that are targets and let us in.
    pub targets: Vec<DiscoveredTarget>,
    /// Frames that were lost at our Ethernet port meanwhile.
    pub lost: FrameLosses,
}

impl FcoeDiscovery {
    /// Whether some other port is a target, be it one that refuses our login.
    #[must_use]
    pub fn has_target(&self) -> bool {
        let mut others = self.ports.iter().filter(|port| !port.ours);
        others.any(|port| port.role.starts_with("FCP Target"))
    }
}

/// An N_Port.
#[derive(Clone, Debug)]
pub struct DiscoveredPort {
    /// Whether it is ours, made to look.
    pub ours: bool,
    /// WWPN.
    pub port_name: Wwn,
    /// WWNN.
    pub node_name: Wwn,
    /// Its address identifier, once it has one.
    pub fc_id: Option<FcId>,
    /// The most bytes of payload in a frame to it.
    pub max_frame: u16,
    /// What it says to be.
    pub role: &'static str,
    /// How far the login got.
    pub state: &'static str,
}

/// How long is waited for ports after our own has an address, and for it: a port that is there says
/// so within half a second, and logs in.
const LOOK: Duration = Duration::from_millis(1500);
const ADDRESS: Duration = Duration::from_secs(3);

/// Looks for ports, logs in to the targets among them, and asks them for their units.
///
/// # Errors
///
/// When the Ethernet port cannot be had. What single targets refuse is told with them.
pub fn look(place: &Place) -> Result<FcoeDiscovery, OpenCause> {
    let mut eye = FcoeProbe::open(place)?;
    let until = eye.begun + ADDRESS;
    while eye.n_port.port().address().is_none() && Instant::now() < until {
        eye.turn()?;
    }
    if let Some(obstacle) = eye.n_port.blocking_problem() {
        return Err(OpenCause::from(lost(FcoeLinkEnd::Barred(obstacle))));
    }
    let until = Instant::now() + LOOK;
    while Instant::now() < until {
        eye.turn()?;
    }
    let ports = eye.seen();
    let targets = eye.up.clone();
    let targets = targets.into_iter().filter_map(|id| eye.target(place, id));
    let targets = targets.collect();
    eye.leave()?;
    Ok(FcoeDiscovery {
        ports,
        targets,
        lost: eye.n_port.lost().unwrap_or_default(),
    })
}

/// An N_Port that looks around.
struct FcoeProbe {
    ring: AnyRing,
    n_port: NPort<FcpInitiator<HeapLease>>,
    begun: Instant,
    watched: bool,
    up: BTreeSet<RemoteId>,
    /// The remote port that is asked.
    asked: RemoteId,
    /// The name of the last command.
    command: u64,
    /// What that came to, if it has ended.
    ended: Option<Result<CommandResult, RemoteError>>,
}

impl FcoeProbe {
    fn open(place: &Place) -> Result<Self, RemoteError> {
        let (ring, _) = AnyRing::open(RingKind::Epoll).map_err(RemoteError::Ring)?;
        let site = Attachment::open(place, &PortOwner::Initiator)?;
        let begun = Instant::now();
        Ok(Self {
            ring,
            n_port: NPort::begin(
                site,
                FcpInitiator::new(FcpInitiatorConfig::default()),
                begun.elapsed(),
            ),
            begun,
            watched: false,
            up: BTreeSet::new(),
            asked: RemoteId(0),
            command: 0,
            ended: None,
        })
    }

    /// Sends, waits for a moment, and hears what came.
    fn turn(&mut self) -> Result<(), RemoteError> {
        self.n_port.transmit();
        self.wait().map_err(RemoteError::Ring)?;
        self.n_port.expire(self.begun.elapsed());
        while let Some(event) = self.n_port.poll() {
            self.event(event);
        }
        Ok(())
    }

    /// Logs out: a target that is not told keeps us, until it misses us much later.
    fn leave(&mut self) -> Result<(), RemoteError> {
        self.n_port.leave(self.begun.elapsed());
        while !self.n_port.has_left() {
            self.turn()?;
        }
        Ok(())
    }

    fn wait(&mut self) -> io::Result<()> {
        if !self.watched && self.n_port.listen() != PollInterest::NotYet {
            self.ring.watch(self.n_port.poll_fd(), Token(0))?;
            self.watched = true;
        }
        let now = self.begun.elapsed();
        let deadline = self.n_port.next_deadline();
        let patience = deadline.map_or(TURN, |at| at.saturating_sub(now).min(TURN));
        self.ring.wait(Some(patience))?;
        while let Some(event) = self.ring.next_event() {
            if let RingEvent::Ready { .. } = event {
                self.watched = false;
                self.n_port.receive(self.begun.elapsed());
            }
        }
        Ok(())
    }

    fn event(&mut self, event: PortEvent<initiator::FcpInitiatorEvent<HeapLease>>) {
        match event {
            PortEvent::Up(id) => {
                self.up.insert(id);
            }
            PortEvent::Down(id, end) => {
                self.up.remove(&id);
                if id == self.asked {
                    self.ended = Some(Err(lost(FcoeLinkEnd::Lost(end))));
                }
            }
            // One that was given up may end while the next one is waited for.
            PortEvent::Fc4(initiator::FcpInitiatorEvent::Done(done)) if done.id == self.command => {
                self.ended = Some(Ok(done));
            }
            PortEvent::Fc4(initiator::FcpInitiatorEvent::Failed(failed))
                if failed.id == self.command =>
            {
                let ended = match failed.why {
                    Why::Ended => Err(lost(FcoeLinkEnd::Stuck)),
                    _ => Ok(failed.as_aborted()),
                };
                self.ended.get_or_insert(ended);
            }
            PortEvent::Fc4(initiator::FcpInitiatorEvent::Stuck(id)) if id == self.asked => {
                self.ended.get_or_insert(Err(lost(FcoeLinkEnd::Stuck)));
            }
            _ => {}
        }
    }

    fn seen(&self) -> Vec<DiscoveredPort> {
        let port = self.n_port.port();
        let mut seen: Vec<DiscoveredPort> =
            port.remotes().map(|remote| self.seen_as(remote)).collect();
        seen.sort_by_key(|seen| seen.port_name);
        seen.insert(
            0,
            DiscoveredPort {
                ours: true,
                port_name: port.wwpn(),
                node_name: port.wwnn(),
                fc_id: port.address().map(|address| address.fc_id),
                max_frame: port.payload_max(),
                role: "FCP Initiator",
                state: if port.address().is_some() {
                    "Online"
                } else {
                    "Offline"
                },
            },
        );
        seen
    }

    fn seen_as(&self, remote: &Port) -> DiscoveredPort {
        let neighbour = remote.neighbour();
        let up = self.up.contains(&remote.id());
        let role = match (neighbour.target, neighbour.initiator) {
            (Some(true), Some(true)) => "FCP Target, Initiator",
            (_, Some(true)) => "FCP Initiator",
            (Some(true), _) => "FCP Target",
            _ if up => "FCP Target",
            _ => "-",
        };
        DiscoveredPort {
            ours: false,
            port_name: neighbour.wwpn,
            node_name: neighbour.wwnn,
            fc_id: Some(neighbour.fc_id),
            max_frame: remote.payload_max(),
            role,
            state: if up { "Online" } else { "not logged in" },
        }
    }

    fn target(&mut self, place: &Place, id: RemoteId) -> Option<DiscoveredTarget> {
        let port_name = self.n_port.port().remote(id)?.wwpn();
        self.asked = id;
        let address = FcoeAddress {
            place: place.clone(),
            port_name,
            lun: 0,
            options: FcoeOptions::default(),
        };
        let units = command_channel::report_luns(self).map_err(OpenCause::from);
        Some(DiscoveredTarget {
            name: port_name.to_string(),
            portals: vec![place.to_string()],
            units: units.map(|luns| {
                let units = luns.into_iter().filter_map(|lun| self.unit(&address, lun));
                units.collect()
            }),
        })
    }

    fn unit(&mut self, target: &FcoeAddress, lun: Lun) -> Option<DiscoveredUnit> {
        let number = lun.index()?;
        let address = FcoeAddress {
            lun: number,
            ..target.clone()
        };
        let facts = command_channel::facts(self, lun);
        let settings = fcoe_settings(&address, &IdlePorts::default(), REPLACEMENT);
        let known = facts.map(|facts| RemoteVolume::known(settings, facts));
        let particulars = known.map(|known| known.particulars());
        Some(DiscoveredUnit {
            lun: number,
            address: Address::Fcoe(address),
            particulars: particulars.map_err(OpenCause::from) as Result<Details, OpenCause>,
        })
    }
}

/// How long is waited for frames before deadlines are looked at.
const TURN: Duration = Duration::from_millis(50);

const fn lost(end: FcoeLinkEnd) -> RemoteError {
    RemoteError::Session(crate::remote::LinkEnd::Fcoe(end))
}

impl CommandChannel for FcoeProbe {
    fn begun(&self) -> Instant {
        self.begun
    }

    fn begin(&mut self) {}

    fn command(
        &mut self,
        lun: Lun,
        request: UnitRequest<HeapLease>,
    ) -> Result<CommandResult, RemoteError> {
        self.command += 1;
        let command = ClientCommand {
            id: self.command,
            ..ClientCommand::of(request, lun)
        };
        self.ended = None;
        let (now, asked) = (self.begun.elapsed(), self.asked);
        let machine = self.n_port.port_mut().fc4_mut();
        if machine.execute(now, asked, command).is_err() {
            return Err(lost(FcoeLinkEnd::Stuck));
        }
        let awaited = self.n_port.port().remote(asked).map(Port::wwpn);
        let awaited = awaited.map_or_else(String::new, |name| format!("{name} to answer"));
        let mut patience = WaitNotice::new(Instant::now());
        let until = Instant::now() + LIMIT;
        while Instant::now() < until {
            patience.wait(Instant::now(), awaited.clone());
            self.turn()?;
            if let Some(ended) = self.ended.take() {
                return ended;
            }
        }
        Err(RemoteError::Late(LIMIT.as_secs()))
    }

    fn wait_a_turn(&mut self) -> Result<(), RemoteError> {
        self.turn()
    }
}
