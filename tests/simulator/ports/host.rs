//! A host: its port, and what it has asked of the targets that it found.

use std::collections::BTreeMap;
use std::time::Duration;

use fc::initiator::{self, Data, Done, Fate, FcpFailed, FcpInitiator, FcpTmf};
use fc::port::{Port, PortConfig, PortEvent};
use fc::remote::RemoteId;
use fc::tests::{Station, bytes, cdb10, command};
use fc::wire::names::Wwn;
use scsi::medium::{Extent, HeapLease, Lease, Now};
use scsi::residual::Residual;
use scsi::wire::lun::Lun;
use scsi::wire::sense::Status;
use sim::Rng;

use super::disk::{BLOCK, BLOCKS};
use crate::oracle::{Oracle, Pattern, Stamp, Tick, Wrong};

/// What a host does with a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    Read(Extent),
    Write(Extent),
    /// ABORT TASK of its latest command.
    Abort,
    /// LOGICAL UNIT RESET.
    Reset,
}

impl Use {
    /// Anything, mostly reads and writes.
    pub(crate) fn any(rng: &mut Rng) -> Self {
        let lba = rng.below(BLOCKS as usize) as u64;
        let most = (BLOCKS - lba).min(20);
        let extent = Extent::new(lba, 1 + rng.below(most as usize) as u64);
        match rng.below(24) {
            0 => Self::Abort,
            1 => Self::Reset,
            choice if choice % 2 == 0 => Self::Read(extent),
            _ => Self::Write(extent),
        }
    }
}

/// A host.
pub(crate) struct Host {
    pub(crate) station: Station<Port<FcpInitiator<HeapLease>>>,
    config: PortConfig,
    paths: Vec<Path>,
    tasks: BTreeMap<u64, Task>,
    functions: BTreeMap<u64, usize>,
    users: u64,
    /// Reads and writes that went well.
    pub(crate) good: u64,
}

/// To a target.
#[derive(Debug)]
struct Path {
    wwpn: Wwn,
    remote: Option<RemoteId>,
    /// How many nexuses there were.
    nexuses: u64,
    /// Writes of which it is not known whether they are still done.
    lost: Vec<Stamp>,
}

#[derive(Debug)]
struct Task {
    path: usize,
    nexus: u64,
    what: What,
}

#[derive(Clone, Copy, Debug)]
enum What {
    Read(Tick, Extent),
    Write(Stamp),
}

impl Host {
    pub(crate) fn new(config: PortConfig, targets: &[Wwn], rng: &mut Rng) -> Self {
        let path = |wwpn: &Wwn| Path {
            wwpn: *wwpn,
            remote: None,
            nexuses: 0,
            lost: Vec::new(),
        };
        Self {
            station: Station::new(config.mac, port(&config, Now::ZERO, rng)),
            config,
            paths: targets.iter().map(path).collect(),
            tasks: BTreeMap::new(),
            functions: BTreeMap::new(),
            users: 0,
            good: 0,
        }
    }

    /// Starts the process, which does not know what the one before it had asked for.
    pub(crate) fn start(&mut self, now: Now, rng: &mut Rng) {
        self.functions.clear();
        for task in std::mem::take(&mut self.tasks).into_values() {
            if let What::Write(stamp) = task.what {
                self.paths[task.path].lost.push(stamp);
            }
        }
        for path in &mut self.paths {
            path.remote = None;
        }
        let port = port(&self.config, self.station.clock(now), rng);
        self.station.start(now, port);
    }

    /// Whether it is logged in to a target.
    pub(crate) fn is_up(&self, path: usize) -> bool {
        self.paths[path].remote.is_some()
    }

    /// How many nexuses there were with a target.
    pub(crate) fn nexuses(&self, path: usize) -> u64 {
        self.paths[path].nexuses
    }

    /// How much it has under way.
    pub(crate) fn busy(&self) -> usize {
        self.tasks.len() + self.functions.len()
    }

    /// Asks for something, if it is logged in.
    pub(crate) fn begin(&mut self, now: Now, path: usize, what: Use, oracle: &mut Oracle) {
        let Some(remote) = self.paths[path].remote else {
            return;
        };
        match what {
            Use::Read(extent) => {
                let into = HeapLease::from_bytes(vec![0x55; extent.blocks as usize * BLOCK]);
                let what = What::Read(oracle.now(), extent);
                self.command(now, (path, remote), what, 0x28, extent, Data::In(into));
            }
            Use::Write(extent) => {
                let stamp = oracle.begin(path, extent, Pattern::Each);
                let from = HeapLease::from_bytes(oracle.data(stamp));
                let what = What::Write(stamp);
                self.command(now, (path, remote), what, 0x2a, extent, Data::Out(from));
            }
            Use::Abort => {
                if let Some((&id, _)) = self.tasks.iter().rfind(|(_, task)| task.path == path) {
                    self.function(now, (path, remote), FcpTmf::AbortTask(id));
                }
            }
            Use::Reset => self.function(now, (path, remote), FcpTmf::LogicalUnitReset),
        }
    }

    fn command(
        &mut self,
        now: Now,
        (path, remote): (usize, RemoteId),
        what: What,
        opcode: u8,
        extent: Extent,
        data: Data<HeapLease>,
    ) {
        self.users += 1;
        let cdb = cdb10(opcode, extent.lba as u32, extent.blocks as u16);
        let command = command(self.users, &cdb, data);
        let clock = self.station.clock(now);
        let taken = self.station.port.fc4_mut().execute(clock, remote, command);
        taken.unwrap_or_else(|refused| panic!("{:?}", refused.why));
        let nexus = self.paths[path].nexuses;
        self.tasks.insert(self.users, Task { path, nexus, what });
    }

    fn function(&mut self, now: Now, (path, remote): (usize, RemoteId), function: FcpTmf) {
        self.users += 1;
        let (clock, lun) = (self.station.clock(now), Lun::from_index(0));
        let fcp = self.station.port.fc4_mut();
        if fcp.manage(clock, remote, self.users, lun, function).is_ok() {
            self.functions.insert(self.users, path);
        }
    }

    /// Takes what its port tells; whether that was anything.
    pub(crate) fn serve(&mut self, oracle: &mut Oracle) -> Result<bool, Wrong> {
        let mut any = false;
        while self.station.is_alive
            && let Some(event) = self.station.port.poll()
        {
            any = true;
            match event {
                PortEvent::Up(id) => self.up(id, oracle),
                PortEvent::Down(id, _) => {
                    let path = self.paths.iter_mut().find(|path| path.remote == Some(id));
                    path.expect("it was up").remote = None;
                }
                PortEvent::Fc4(initiator::FcpInitiatorEvent::Done(done)) => {
                    self.done(&done, oracle)?;
                }
                PortEvent::Fc4(initiator::FcpInitiatorEvent::Failed(failed)) => {
                    self.failed(&failed, oracle)?;
                }
                PortEvent::Fc4(initiator::FcpInitiatorEvent::Managed { id, .. }) => {
                    self.functions.remove(&id).expect("a function told once");
                }
                PortEvent::Fc4(initiator::FcpInitiatorEvent::Stuck(_))
                | PortEvent::Online(_)
                | PortEvent::Offline
                | PortEvent::Fabric(_)
                | PortEvent::Remark { .. } => {}
            }
        }
        Ok(any)
    }

    /// A new nexus: what was done by those before is over.
    fn up(&mut self, id: RemoteId, oracle: &mut Oracle) {
        let remote = self.station.port.remote(id);
        let wwpn = remote.expect("a port that is up is known").wwpn();
        let path = self.paths.iter_mut().find(|path| path.wwpn == wwpn);
        let path = path.expect("nobody but targets is logged in to");
        path.remote = Some(id);
        path.nexuses += 1;
        for stamp in path.lost.drain(..) {
            oracle.over(stamp);
        }
    }

    fn done(&mut self, done: &Done<HeapLease>, oracle: &mut Oracle) -> Result<(), Wrong> {
        let task = self.tasks.remove(&done.id).expect("a command told once");
        let key = done.sense.as_slice().get(2).map(|byte| byte & 0x0f);
        let refusing = [Status::Busy as u8, Status::TaskSetFull as u8];
        let refused = refusing.contains(&done.status) || key == Some(UNIT_ATTENTION);
        match task.what {
            What::Write(stamp) if done.status == 0 => oracle.good(stamp)?,
            What::Write(stamp) if refused => oracle.refused(stamp)?,
            What::Write(stamp) => oracle.over(stamp),
            What::Read(begun, extent) if done.status == 0 => {
                assert_eq!(done.residual, Residual::Exact, "of {extent:?}");
                let Data::In(into) = &done.data else {
                    panic!("the lease of a read")
                };
                oracle.read(begun, task.path, extent, &bytes(into))?;
            }
            What::Read(..) => {}
        }
        self.good += u64::from(done.status == 0);
        Ok(())
    }

    fn failed(&mut self, failed: &FcpFailed<HeapLease>, oracle: &mut Oracle) -> Result<(), Wrong> {
        let task = self.tasks.remove(&failed.id).expect("a command told once");
        let What::Write(stamp) = task.what else {
            return Ok(());
        };
        let path = &mut self.paths[task.path];
        match failed.fate {
            Fate::NeverSent => oracle.refused(stamp)?,
            Fate::Unknown if path.nexuses == task.nexus => path.lost.push(stamp),
            Fate::Aborted | Fate::Unknown => oracle.over(stamp),
        }
        Ok(())
    }
}

fn port(config: &PortConfig, now: Now, rng: &mut Rng) -> Port<FcpInitiator<HeapLease>> {
    let fcp = FcpInitiator::new(initiator::FcpInitiatorConfig {
        tasks: 8,
        command: Duration::from_secs(5),
        function: Duration::from_secs(2),
        window: 24 << 10,
    });
    Port::new(config, fcp, now, rng.bytes())
}

/// Sense key UNIT ATTENTION.
const UNIT_ATTENTION: u8 = 6;
