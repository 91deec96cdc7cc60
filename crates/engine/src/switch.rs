//! `lunar switch`: carries the machine of a Fibre Channel switch ([`fc::fabric`]) over Ethernet
//! ports of this machine.
//!
//! | duty | modules |
//! |---|---|
//! | its options, and what is wrong with them | [`options`] |
//! | a thread that moves frames, and the ports it has | `core`, `ports` |
//! | several of them, and what they give each other | `cores`, `peer`, `exchange`, `threads` |
//! | the ways between them: mail, and control frames | `core_queue`, `mail`, `outbox` |
//! | the machine, and what goes on around it | `machine` |
//! | the VLAN of the interface at a port | `vlan` |
//! | an Ethernet port, and frames that wait for it | `port`, `backlog` |
//! | which of those may still leave | `egress` |
//! | pairs whose frames the kernel forwards | `fast_path` |
//! | interfaces that get PFC, or lose it | `pfc_watch` |
//! | cables that are left unread, as they are too fast | `backpressure` |
//! | orders of other threads | `orders` |
//! | the zone file, read by a thread of its own | `zone_file` |
//! | N_Port_IDs that outlive it, and the thread that keeps them | `ids`, `ids_keeper` |
//! | LLDP and DCBX at its ports | `lldp` |
//! | what other programs are told of it | [`status`] |
//! | a switch on a thread of its own, and what it is asked there | `running`, `survey` |
//! | what it logs | `report`, `login_log` |

mod backlog;
mod backpressure;
mod core;
mod core_queue;
mod cores;
mod egress;
mod exchange;
mod fast_path;
mod ids;
mod ids_keeper;
mod lldp;
mod login_log;
mod machine;
mod mail;
pub mod options;
mod orders;
mod outbox;
mod peer;
mod pfc_watch;
mod port;
mod ports;
mod report;
mod running;
pub mod status;
mod survey;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
#[cfg(test)]
mod tests;
mod threads;
mod vlan;
mod zone_file;

use std::fs::File;
use std::io;
use std::iter;
use std::sync::Arc;
use std::time::Instant;

use ::io::ether::{PRIORITY, Place, dcb};
use ::io::ring::{AnyRing, Ring, Waker};
use fc::fabric::zones::Zones;
use fc::fabric::{Switch, SwitchConfig, SwitchPortConfig};
use fc::wire::ethernet::{Mac, VlanTag};
use runtime::n_port::{FcfAttachment, NoPort};
use rustix::io::Errno;
use scsi::medium::Now;
use serde::Serialize;

use self::core::{CoreParts, SwitchCore};
use self::cores::SwitchCores;
use self::fast_path::SwitchFastPath;
pub use self::ids::IdsError;
use self::ids::{IdList, IdsFolder};
use self::ids_keeper::IdsKeeper;
use self::lldp::LldpAgents;
use self::machine::SwitchMachine;
use self::options::{FastPathChoice, SwitchOptions};
pub use self::orders::{NoSurvey, PendingSurvey, SURVEY_PATIENCE, SwitchOrders};
use self::orders::{OrderSender, SwitchOrder};
use self::peer::CorePeer;
use self::pfc_watch::{PFC_READ, PfcWatch};
use self::port::SwitchPort;
use self::ports::{CorePorts, PortBoard};
pub use self::running::RunningSwitch;
use self::status::SwitchTeller;
pub use self::survey::{SwitchPortSurvey, SwitchSurvey};
use self::threads::{CoreThreads, WaitingThreads};
pub use self::vlan::OtherVlan;
pub use self::zone_file::{
    PendingRead, ReadError, ZoneReads, ZonesError, read_open_zones, read_zones,
};

/// A port that is ready.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReadyPort {
    /// The interface or cable.
    pub place: String,
    /// The address of the switch there (FCF-MAC).
    pub mac: String,
    /// Bytes that a frame may carry behind its Ethernet header.
    pub mtu: u32,
    /// The VLAN of the fabric.
    pub vlan: Option<u16>,
    /// The name of the switch.
    pub switch_name: String,
    /// The name of the fabric.
    pub fabric_name: String,
}

/// Why a switch did not run.
#[derive(Debug, thiserror::Error)]
pub enum SwitchError {
    /// The zone file.
    #[error(transparent)]
    Zones(#[from] ZonesError),
    /// What is remembered.
    #[error(transparent)]
    Ids(#[from] IdsError),
    /// The interface of another VLAN.
    #[error(transparent)]
    Vlan(#[from] OtherVlan),
    /// A port.
    #[error(transparent)]
    Port(#[from] NoPort),
    /// The kernel has no ring, thread or random bytes for it, or takes them away.
    #[error("the switch cannot run: {cause}{}", way_out(.0), cause = .0)]
    Io(#[from] io::Error),
}

fn way_out(cause: &io::Error) -> &'static str {
    match Errno::from_io_error(cause) {
        Some(Errno::MFILE) => ": raise the limit (ulimit -n, or LimitNOFILE=)",
        _ => "",
    }
}

/// Switches until it is told to stop. `ready` is called once all ports are there, with what gives
/// it orders.
///
/// # Errors
///
/// See [`SwitchError`]. No port stays open.
pub fn run(
    options: &SwitchOptions,
    ready: impl FnOnce(&[ReadyPort], SwitchOrders) -> io::Result<()>,
) -> Result<(), SwitchError> {
    OpenSwitch::open(options)?.run(ready)
}

/// A switch whose ports are open. Nothing has heard of it yet.
#[derive(Debug)]
pub struct OpenSwitch {
    options: SwitchOptions,
    zones: Arc<Zones>,
    ids: IdList,
    /// Locks the folder of N_Port_IDs while the switch runs.
    claim: Option<File>,
    attachments: Vec<FcfAttachment>,
}

impl OpenSwitch {
    /// Reads its zones and what it remembers, and opens its ports.
    ///
    /// # Errors
    ///
    /// See [`SwitchError`]. No port stays open.
    pub fn open(options: &SwitchOptions) -> Result<Self, SwitchError> {
        let _named = options.span().entered();
        // Each core has descriptors at each port. Where they are too few, that is told there.
        let _ = ::io::limits::raise_open_files();
        for remark in options.remarks() {
            tracing::warn!("{remark}");
        }
        let zones = zone_file::zones(&options.zoning)?;
        let ids = options.state.as_deref().map(ids::load).transpose()?;
        let claimed = options.state.as_deref().filter(|_| !options.standby);
        let claim = claimed.map(ids::claim).transpose()?.flatten();
        for place in &options.places {
            vlan::check(place, options.vlan)?;
        }
        let open = |place| FcfAttachment::open(place, options.vlan);
        let attachments = options.places.iter().map(open);
        let attachments = attachments.collect::<Result<Vec<_>, _>>()?;
        for obstacle in attachments.iter().filter_map(FcfAttachment::obstacle) {
            tracing::warn!("{obstacle}");
        }
        Ok(Self {
            options: options.clone(),
            zones,
            ids: ids.unwrap_or_default(),
            claim,
            attachments,
        })
    }

    /// Switches until it is told to stop, as [`run`] does.
    ///
    /// # Errors
    ///
    /// See [`SwitchError`].
    pub fn run(
        self,
        ready: impl FnOnce(&[ReadyPort], SwitchOrders) -> io::Result<()>,
    ) -> Result<(), SwitchError> {
        let Self {
            options,
            zones,
            ids,
            claim: _claim,
            mut attachments,
        } = self;
        let _named = options.span().entered();
        let (ring, other) = AnyRing::open(options.ring)?;
        if let Some(cause) = other {
            tracing::info!("no io_uring ({cause}): using epoll");
        }
        let waiting = WaitingThreads::start(options.cores() - 1, options.ring)?;
        let wakers = iter::once(ring.waker()).chain(waiting.wakers()).collect();
        let (sender, heard) = OrderSender::new(ring.waker());
        let orders = SwitchOrders::new(sender.clone(), &options.zoning);
        let switch = switch(&options, Arc::clone(&zones), ids, &attachments)?;
        if options.standby {
            let (name, fabric) = (switch.switch_name(), switch.fabric_name());
            tracing::info!("standing by for switch {name} of fabric {fabric}");
        }
        let ports = ready_ports(&options, &switch, &attachments);
        let teller = teller(&options, &ports, &switch, &attachments);
        let lldp = LldpAgents::start(options.lldp, &mut attachments)?;
        let mut ports_there: Vec<_> = attachments.into_iter().map(SwitchPort::new).collect();
        let board = PortBoard::new(ports.len());
        let mut machine = SwitchMachine::new(
            (switch, zones, lldp),
            (options.places.clone(), board),
            SwitchFastPath::start(options.fast_path, &mut ports_there, options.cores()),
            heard,
        );
        machine.ids = ids_keeper(&options, &sender)?;
        machine.teller = teller;
        machine.pfc = pfc_watch(&options, &sender)?;
        machine.tell_absent_ports();
        let (parts, threads) = divide(machine, ports_there, wakers, waiting)?;
        let mut core = SwitchCore::new(ring, parts);
        ready(&ports, orders)?;
        let ran = core.run();
        threads.end();
        // All cores close their sockets at a time, each of which takes the kernel a while.
        drop(core);
        // What has failed on another core is why this one has ended.
        threads.wait().and(ran)?;
        Ok(())
    }
}

/// Divides the ports among cores, each of which has a waker and sends at all of them, and has all
/// but core 0 begin. Returns what that has.
fn divide(
    machine: SwitchMachine,
    ports: Vec<SwitchPort>,
    wakers: Vec<Waker>,
    waiting: WaitingThreads,
) -> Result<(CoreParts, CoreThreads), NoPort> {
    let epoch = Instant::now();
    let (fast_path, board) = (machine.fast_path.clone(), machine.board.clone());
    let table = machine.switch.forwarding();
    let count = wakers.len();
    let homes = cores::homes(ports.len(), count);
    let mut divided: Vec<Vec<SwitchPort>> = Vec::new();
    divided.resize_with(count, Vec::new);
    for (port, home) in ports.into_iter().zip(&homes) {
        for core in (0..count).filter(|core| core != home) {
            divided[core].push(port.sender()?);
        }
        divided[*home].push(port);
    }
    let cores = SwitchCores::new(wakers, homes, Arc::clone(&table), board.clone());
    let cores = (count > 1).then(|| Arc::new(cores));
    let mut parts = divided.into_iter().enumerate().map(|(core, ports)| {
        let peer = |cores| CorePeer::new(core, Arc::clone(cores), Arc::clone(&table));
        let mut ports = CorePorts::new(core, ports);
        ports.tell(&board);
        CoreParts {
            epoch,
            ports,
            fast_path: fast_path.on_core(core),
            board: board.clone(),
            machine: None,
            peer: cores.as_ref().map(peer),
        }
    });
    let mut first = parts.next().expect("core 0");
    first.machine = Some(Box::new(machine));
    let threads = match &cores {
        Some(cores) => waiting.begin(Arc::clone(cores), parts),
        None => CoreThreads::none(),
    };
    Ok((first, threads))
}

/// What keeps N_Port_IDs, if there is a place for them. That of a standby looks at what the other
/// switch writes there.
fn ids_keeper(options: &SwitchOptions, sender: &OrderSender) -> io::Result<Option<IdsKeeper>> {
    let Some(folder) = options.state.clone() else {
        return Ok(None);
    };
    let sender = sender.clone();
    let told = move |ids| sender.give(SwitchOrder::RestoreIds(ids));
    let keeper = IdsKeeper::start(IdsFolder(folder), told)?;
    keeper.watch(options.standby);
    Ok(Some(keeper))
}

/// What looks for PFC at the interfaces between which the kernel may forward.
fn pfc_watch(options: &SwitchOptions, sender: &OrderSender) -> io::Result<Option<PfcWatch>> {
    let places = options.places.iter().enumerate();
    let interfaces = places.filter_map(|(at, place)| match place {
        Place::Interface(name) => Some((at, name.clone())),
        Place::Xdp(_) | Place::Cable(_) => None,
    });
    let interfaces: Vec<_> = interfaces.collect();
    if options.fast_path == FastPathChoice::Off || interfaces.is_empty() {
        return Ok(None);
    }
    let sender = sender.clone();
    let told = move |at| sender.give(SwitchOrder::PfcChanged(at));
    PfcWatch::start(interfaces, PFC_READ, dcb::has_pfc, told).map(Some)
}

/// What tells other programs of the switch; the first port waits for them, too. A switch goes on
/// without it.
fn teller(
    options: &SwitchOptions,
    ports: &[ReadyPort],
    switch: &Switch,
    attachments: &[FcfAttachment],
) -> Option<SwitchTeller> {
    let names = [switch.switch_name(), switch.fabric_name()].map(|name| name.to_string());
    let opened = SwitchTeller::new(options, ports, names).and_then(|teller| {
        if let Some(first) = attachments.first() {
            first.ether.wait_for(teller.socket())?;
        }
        Ok(teller)
    });
    let opened = opened.inspect_err(|cause| {
        tracing::debug!("lunar ls will not show this switch: {cause}");
    });
    opened.ok()
}

/// The machine, with a port for each Ethernet port.
fn switch(
    options: &SwitchOptions,
    zones: Arc<Zones>,
    ids: IdList,
    attachments: &[FcfAttachment],
) -> io::Result<Switch> {
    let mut random = [0; 8];
    getrandom::fill(&mut random).map_err(io::Error::other)?;
    let config = SwitchConfig {
        domain: options.domain,
        priority: options.priority,
        fka_adv_period: options.fka,
        fc_map: options.fc_map.0,
        fabric_name: options.fabric_name,
        switch_name: options.switch_name,
        vlan: options.vlan,
        zones,
        standby: options.standby,
        first_low: first_low(options.state.is_some(), random),
        ids,
    };
    let mut switch = Switch::new(&config, Now::ZERO, random);
    for attachment in attachments {
        let number = switch.add_port(SwitchPortConfig {
            place: attachment.place.to_string().into(),
            mac: Mac(attachment.ether.mac()),
            mtu: attachment.ether.link().mtu as usize,
            tag: tag(options, attachment),
            hears_partner: !matches!(attachment.place, Place::Cable(_)),
        });
        switch.link(Now::ZERO, number, attachment.is_usable());
    }
    Ok(switch)
}

/// The lower half of the first N_Port_ID. Where none are kept it is a random one: hosts may still
/// mean another port by what the switch gave before it was started again.
fn first_low(are_ids_kept: bool, [a, b, ..]: [u8; 8]) -> u16 {
    let (first, last) = (0x0100, 0xfeff);
    if are_ids_kept {
        return first;
    }
    first + u16::from_be_bytes([a, b]) % (last - first + 1)
}

/// The tag that the switch itself puts into frames: none where the interface is that of a VLAN.
fn tag(options: &SwitchOptions, attachment: &FcfAttachment) -> Option<VlanTag> {
    let is_vlan = attachment.ether.tag_priority().is_some();
    options.vlan.filter(|_| !is_vlan).map(|vid| VlanTag {
        priority: PRIORITY as u8,
        dei: false,
        vid,
    })
}

fn ready_ports(
    options: &SwitchOptions,
    switch: &Switch,
    attachments: &[FcfAttachment],
) -> Vec<ReadyPort> {
    let ready = |attachment: &FcfAttachment| ReadyPort {
        place: attachment.place.to_string(),
        mac: Mac(attachment.ether.mac()).to_string(),
        mtu: attachment.ether.link().mtu,
        vlan: options.vlan,
        switch_name: switch.switch_name().to_string(),
        fabric_name: switch.fabric_name().to_string(),
    };
    attachments.iter().map(ready).collect()
}

impl SwitchError {
    /// The exit code of the process: it was tried, and failed.
    #[must_use]
    pub const fn exit_code(&self) -> u8 {
        1
    }
}
