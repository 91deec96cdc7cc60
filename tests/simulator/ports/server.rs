//! A target: its port, a device server with one unit, and the unit's owner.

use std::collections::BTreeSet;
use std::sync::Arc;

use fc::port::{Port, PortConfig, PortEvent};
use fc::remote::RemoteId;
use fc::target::{FcpLimits, FcpTarget, FcpTargetEvent};
use fc::tests::Station;
use scsi::device::{DeviceOutput, DeviceServer};
use scsi::medium::{HeapLease, Now};
use scsi::nexus::{Nexus, NexusId, NexusIdentity, TargetDevice, TargetPort};
use scsi::owner::{self, Input, UnitOwner};
use scsi::unit::{CoreId, UnitId, UnitIdentity, UnitState};
use scsi::wire::lun::Lun;
use scsi::wire::transport_id;
use sim::{DiskKind, Rng};

use super::disk::{BLOCK, Disk};
use crate::oracle::{Oracle, Wrong};

/// A target with one disk.
pub(crate) struct Server {
    pub(crate) station: Station<Port<FcpTarget<HeapLease>>>,
    pub(crate) config: PortConfig,
    pub(crate) disk: Disk,
    /// What the disk held when it was looked at.
    shadow: Vec<u8>,
    device: DeviceServer<HeapLease>,
    owner: UnitOwner,
    /// Its number, which is also that of the unit in the oracle's book.
    number: usize,
}

impl Server {
    pub(crate) fn new(number: usize, config: PortConfig, kind: DiskKind, rng: &mut Rng) -> Self {
        let disk = Disk::new(kind);
        let (device, owner) = process();
        Self {
            station: Station::new(config.mac, port(&config, Now::ZERO, rng)),
            config,
            shadow: disk.bytes(),
            disk,
            device,
            owner,
            number,
        }
    }

    /// Starts the process.
    pub(crate) fn start(&mut self, now: Now, rng: &mut Rng) {
        (self.device, self.owner) = process();
        self.disk.cut();
        let port = port(&self.config, self.station.clock(now), rng);
        self.station.start(now, port);
    }

    /// Does what port, device server and disk want until they want nothing; whether they did.
    pub(crate) fn serve(&mut self, now: Now, rng: &mut Rng) -> bool {
        let mut any = false;
        while self.station.is_alive {
            if let Some(event) = self.station.port.poll() {
                self.event(now, event);
            } else if let Some(output) = self.device.poll() {
                self.output(now, output, rng);
            } else if let Some((id, result)) = self.disk.done(now) {
                self.device.medium_done(id, result);
            } else {
                break;
            }
            any = true;
        }
        any
    }

    /// Data-In has left: the device server may send more.
    pub(crate) fn sent(&mut self) {
        let port = &self.station.port;
        let up: Vec<_> = port.remotes().filter(|remote| remote.is_up()).collect();
        for remote in up {
            let queued = port.fc4().data_in_queued(remote.id());
            self.device.data_in_queued(nexus_of(remote.id()), queued);
        }
    }

    /// Tells the oracle what has come to the disk.
    pub(crate) fn look(&mut self, oracle: &mut Oracle) -> Result<(), Wrong> {
        let bytes = self.disk.bytes();
        if bytes == self.shadow {
            return Ok(());
        }
        let blocks = bytes.chunks(BLOCK).zip(self.shadow.chunks(BLOCK));
        for (lba, (block, before)) in (0..).zip(blocks) {
            if block != before {
                oracle.landed(self.number, lba, before, block)?;
            }
        }
        self.shadow = bytes;
        Ok(())
    }

    fn event(&mut self, now: Now, event: PortEvent<FcpTargetEvent<HeapLease>>) {
        let now = self.station.clock(now);
        match event {
            PortEvent::Up(id) => {
                let remote = self.station.port.remote(id);
                let wwpn = remote.expect("a port that is up is known").wwpn();
                self.device.nexus_up(nexus_of(id), nexus(wwpn.0));
            }
            PortEvent::Down(id, _) => self.device.nexus_lost(nexus_of(id)),
            PortEvent::Fc4(FcpTargetEvent::Execute { remote, command }) => {
                let nexus = nexus_of(remote);
                let command = scsi::task::Command { nexus, ..command };
                self.device.set_time(now);
                self.device.execute(command);
            }
            PortEvent::Fc4(FcpTargetEvent::DataOut {
                remote,
                tag,
                offset,
                data,
            }) => self.device.data_out(nexus_of(remote), tag, offset, data),
            PortEvent::Fc4(FcpTargetEvent::Manage {
                remote,
                id,
                lun,
                function,
            }) => self.device.manage(nexus_of(remote), id, lun, function),
            PortEvent::Online(_)
            | PortEvent::Offline
            | PortEvent::Fabric(_)
            | PortEvent::Remark { .. } => {}
        }
    }

    fn output(&mut self, now: Now, output: DeviceOutput<HeapLease>, rng: &mut Rng) {
        let fcp = self.station.port.fc4_mut();
        match output {
            DeviceOutput::Medium { id, op, .. } => self.disk.begin(now, id, op, rng),
            DeviceOutput::SendDataIn {
                nexus,
                tag,
                offset,
                data,
            } => fcp.send_data_in(remote_of(nexus), tag, offset, data),
            DeviceOutput::ReceiveDataOut {
                nexus,
                tag,
                offset,
                into,
            } => fcp.receive_data_out(remote_of(nexus), tag, offset, into),
            DeviceOutput::Complete {
                nexus,
                tag,
                completed,
            } => fcp.complete(remote_of(nexus), tag, &completed),
            DeviceOutput::Aborted { nexus, tag } => fcp.aborted(remote_of(nexus), tag),
            DeviceOutput::Managed { nexus, id, result } => {
                fcp.managed(remote_of(nexus), id, result);
            }
            DeviceOutput::NexusGone(nexus) => {
                let now = self.station.clock(now);
                self.station.port.ended(now, remote_of(nexus));
            }
            DeviceOutput::Ask { request, .. } => self.own(Input::Request(request)),
            DeviceOutput::Acknowledge { version, .. } => {
                let core = CoreId(0);
                self.own(Input::Acknowledged { core, version });
            }
            DeviceOutput::Recall { unit } => self.device.recalled(unit),
            DeviceOutput::Attention { .. }
            | DeviceOutput::Cancel { .. }
            | DeviceOutput::Fenced(_) => {}
        }
    }

    fn own(&mut self, input: Input) {
        self.owner.handle(input);
        while let Some(output) = self.owner.poll() {
            match output {
                owner::OwnerOutput::Publish { to, publication } => {
                    if !to.is_empty() {
                        self.device.publish(UNIT, publication);
                    }
                }
                owner::OwnerOutput::Reply { id, result, .. } => {
                    self.device.replied(UNIT, id, result);
                }
                owner::OwnerOutput::Persist(_) => self.owner.handle(Input::Persisted(true)),
            }
        }
    }
}

const UNIT: UnitId = UnitId::first(0);

fn port(config: &PortConfig, now: Now, rng: &mut Rng) -> Port<FcpTarget<HeapLease>> {
    let fcp = FcpTarget::new(FcpLimits::default());
    Port::new(config, fcp, now, rng.bytes())
}

fn process() -> (DeviceServer<HeapLease>, UnitOwner) {
    let identity = UnitIdentity {
        vendor: "LUNAR".into(),
        product: "SIMULATED".into(),
        revision: "1".into(),
        serial: "1".into(),
        naa: vec![0x30, 0, 0, 0, 0, 0, 0, 1],
        removable: false,
    };
    let state = UnitState::new(identity, Disk::traits());
    let units = vec![Arc::new(state.clone())];
    (
        DeviceServer::new(CoreId(0), units),
        UnitOwner::new(state, 1),
    )
}

fn nexus(wwpn: u64) -> Nexus {
    let port = TargetPort {
        relative_id: 1,
        designators: Vec::new(),
    };
    let target = TargetDevice {
        designators: Vec::new(),
        ports: vec![port],
        luns: vec![(Lun::from_index(0), UNIT)],
        read_only: BTreeSet::new(),
        protocol: transport_id::FCP,
        versions: Vec::new(),
    };
    let identity = NexusIdentity {
        initiator: transport_id::fcp(wwpn.to_be_bytes()),
        port: 1,
    };
    Nexus {
        identity: Arc::new(identity),
        target: Arc::new(target),
    }
}

const fn nexus_of(remote: RemoteId) -> NexusId {
    NexusId(remote.0)
}

const fn remote_of(nexus: NexusId) -> RemoteId {
    RemoteId(nexus.0)
}
