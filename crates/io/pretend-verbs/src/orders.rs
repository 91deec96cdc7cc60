//! What tests order, and what they may ask.

use crate::verbs;
use crate::world::{self, World};
use crate::{cm, execute};

/// What is to happen, with a number.
#[derive(Clone, Copy, Debug)]
#[repr(u32)]
pub enum Order {
    /// Which devices there are: 1 for `pretend0`, 2 for `pretendw0`, or both. One that was taken
    /// away comes back as another device of the same name.
    Devices,
    /// What is held back, as by a slow peer: 1 for all work, 2 for reads and what is behind them, 0
    /// for nothing.
    Hold,
    /// After so many requests more, one fails; by [`Self::FailStatus`].
    FailAfter,
    /// With which `enum ibv_wc_status`.
    FailStatus,
    /// The next connection ends with this `enum rdma_cm_event_type`.
    CmEvent,
    /// With this status.
    CmStatus,
    /// So many bytes can be pinned.
    PinnedLimit,
    /// The device with this number is taken away.
    Remove,
    /// An `enum ibv_event_type` of the first device.
    AsyncEvent,
    /// Whether a message without a receive fails at once: 1 or 0.
    RnrFails,
    /// Pieces of memory of one request.
    Pieces,
}

impl Order {
    const ALL: [Self; 11] = [
        Self::Devices,
        Self::Hold,
        Self::FailAfter,
        Self::FailStatus,
        Self::CmEvent,
        Self::CmStatus,
        Self::PinnedLimit,
        Self::Remove,
        Self::AsyncEvent,
        Self::RnrFails,
        Self::Pieces,
    ];
}

/// What can be counted.
#[derive(Clone, Copy, Debug)]
#[repr(u32)]
pub enum Count {
    /// Identifiers, channels, lists of devices, domains, registrations, queues, queue pairs that
    /// there are.
    Objects,
    /// Bytes that are pinned.
    Pinned,
    /// Calls that posted sends.
    SendCalls,
    /// Requests in them.
    Requests,
    /// Bytes of data that were moved.
    Moved,
    /// Receives that are posted.
    Receives,
    /// What no correct user does.
    Complaints,
    /// What devices have to tell, and nobody has asked for.
    Events,
}

impl Count {
    const ALL: [Self; 8] = [
        Self::Objects,
        Self::Pinned,
        Self::SendCalls,
        Self::Requests,
        Self::Moved,
        Self::Receives,
        Self::Complaints,
        Self::Events,
    ];
}

#[unsafe(no_mangle)]
extern "C" fn pretend_order(what: u32, number: i64) {
    let mut world = world::lock();
    let Some(order) = Order::ALL.get(what as usize) else {
        return;
    };
    let orders = &mut world.orders;
    match order {
        Order::Devices => {
            orders.devices = number as u32;
            world.bring_back();
        }
        Order::Hold => orders.hold = number,
        Order::FailAfter => orders.fail_after = Some(number as u64),
        Order::FailStatus => orders.fail_status = number as u32,
        Order::CmEvent => orders.cm_event = Some(number as i32),
        Order::CmStatus => orders.cm_status = number as i32,
        Order::PinnedLimit => orders.pinned_limit = number as usize,
        Order::RnrFails => orders.rnr_fails = number != 0,
        Order::Pieces => orders.pieces = number as i32,
        Order::Remove => cm::remove(&mut world, number as usize),
        Order::AsyncEvent => verbs::tell(&mut world, number as i32),
    }
    execute::run(&mut world);
}

#[unsafe(no_mangle)]
extern "C" fn pretend_count(what: u32) -> u64 {
    let world = world::lock();
    match Count::ALL.get(what as usize) {
        Some(Count::Objects) => objects(&world),
        Some(Count::Pinned) => world.pinned as u64,
        Some(Count::SendCalls) => world.send_calls,
        Some(Count::Requests) => world.requests,
        Some(Count::Moved) => world.moved,
        Some(Count::Receives) => world.qps.values().map(|qp| qp.receives.len() as u64).sum(),
        Some(Count::Complaints) => world.complaints,
        Some(Count::Events) => world.async_events.len() as u64,
        None => 0,
    }
}

fn objects(world: &World) -> u64 {
    let verbs = world.pds.len() + world.mrs.len() + world.cqs.len() + world.qps.len();
    let cm = world.event_channels.len() + world.ids.len() + world.device_lists;
    (verbs + world.comp_channels.len() + cm) as u64
}
