//! `lunar serve`: exports volumes over iSCSI and FCoE until it is told to stop.

pub mod options;
mod orders;
mod plan;
mod secrets;

use std::sync::Arc;
use std::time::Instant;

use ::io::memory::MemoryLimit;

use crate::server::{RdmaSource, Server, ServerConfig};
use block::file::ReservedPlaces;
use client::open::{OpenOptions, REPLACEMENT, secret};
use options::{ReadyLun, ServeError, ServeOptions};
use orders::ServerOrder;
pub use orders::{Orders, Stopper};
use runtime::n_port::IdlePorts;
use scsi::unit::CoreId;

/// Serves what `options` say. Opens every volume and binds every portal first, then calls `ready`
/// once with the LUNs in their order, then serves until told to stop.
///
/// The first order to stop is a graceful shutdown: peers get an asynchronous message and 5 s,
/// volumes are flushed. The second ends it at once with
/// [`ServeError::NotFlushed`], or [`ServeError::CutShort`] where nothing was to be flushed.
pub fn run(
    options: &ServeOptions,
    orders: &Orders,
    ready: impl FnOnce(&[ReadyLun]),
) -> Result<(), ServeError> {
    options.validate()?;
    // Fewer descriptors only mean fewer sessions.
    let _ = ::io::limits::raise_open_files();
    let (inventory, order) = plan::inventory(options)?;
    let config = config(options, orders)?;
    secrets::check(options, inventory.units.values(), &config.open)?;
    let undo = &orders.undo;
    let started = Server::start(config, inventory, undo);
    let server = started.inspect_err(|_| drop(undo.undo()))?;
    // From here on initiators write to the files.
    undo.forget();
    let luns = order.iter().flat_map(|unit| server.luns(unit));
    ready(&luns.collect::<Vec<_>>());
    let ended = wait(orders, &server);
    server.tell_gathered();
    ended
}

fn config(options: &ServeOptions, orders: &Orders) -> Result<ServerConfig, ServeError> {
    Ok(ServerConfig {
        portals_may_be_missing: false,
        open: open_options(options)?,
        limits: options.limits,
        threads: options.threads,
        pin: options.pin.clone(),
        ring: options.ring,
        poll: options.poll,
        busy_poll: options.busy_poll,
        state_dir: options.state_dir.clone(),
        wait: options.wait,
        rdma: RdmaSource::default(),
        ended: orders.ended(),
    })
}

fn open_options(options: &ServeOptions) -> Result<OpenOptions, ServeError> {
    let limit = match options.memory_limit {
        Some(limit) => limit,
        None => ::io::limits::memory_for_volumes().map_err(|cause| ServeError::Machine {
            what: "cannot determine the available memory: give --memory-limit".into(),
            cause,
        })?,
    };
    Ok(OpenOptions {
        block_size: None,
        read_only: false,
        as_is: false,
        keep_identity: true,
        reserved: ReservedPlaces::default(),
        undo: None,
        memory: Arc::new(MemoryLimit::new(limit)),
        initiator: format!("{}:initiator", options.iqn),
        secret: secret("LUNAR_SECRET"),
        mutual_secret: secret("LUNAR_MUTUAL_SECRET"),
        ports: IdlePorts::default(),
        replacement: REPLACEMENT,
        wait_until: Some(Instant::now() + options.wait),
        reuse: None,
    })
}

/// Serves until told to stop, then until everything has ended, or told again. A core ends only when
/// told to, or when its ring fails.
fn wait(orders: &Orders, server: &Server) -> Result<(), ServeError> {
    loop {
        match orders.next() {
            ServerOrder::Tell => server.tell_gathered(),
            ServerOrder::Stop => break,
            ServerOrder::Ended(core) => return server.join(core),
        }
    }
    server.stop();
    let mut left = server.cores();
    while left > 0 {
        match orders.next() {
            ServerOrder::Ended(CoreId(_)) => left -= 1,
            ServerOrder::Tell => server.tell_gathered(),
            ServerOrder::Stop => return server.not_flushed().and(Err(ServeError::CutShort)),
        }
    }
    server.wait()
}
