//! What librdmacm has: channels and identifiers. See `connections.rs` for what passes between two.

use std::ffi::{c_int, c_void};
use std::net::{Ipv4Addr, SocketAddr};

use crate::addresses;
use crate::connections::{self, queue};
use crate::errno::{failed, nothing};
use crate::execute;
use crate::objects::{Connection, EventQueue, PretendEvent, QpState};
use crate::sys::cm::{RdmaCmEvent, RdmaCmId, RdmaEventChannel, event};
use crate::sys::verbs::{IBV_EVENT_DEVICE_FATAL, IbvPd, IbvQp, IbvQpInitAttr};
use crate::verbs::{self, clear, eventfd, zeroed};
use crate::world::{self, World};

#[unsafe(no_mangle)]
unsafe extern "C" fn rdma_create_event_channel() -> *mut RdmaEventChannel {
    let channel = zeroed::<RdmaEventChannel>();
    // SAFETY: just made.
    unsafe { (*channel).fd = eventfd() };
    let mut world = world::lock();
    if world.orders.devices == 0 {
        // SAFETY: as it was made.
        drop(unsafe { Box::from_raw(channel) });
        return nothing(libc::ENODEV);
    }
    world
        .event_channels
        .insert(channel as usize, EventQueue::default());
    channel
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rdma_destroy_event_channel(channel: *mut RdmaEventChannel) {
    let mut world = world::lock();
    if world.ids.values().any(|id| id.channel == channel as usize) {
        world.complain("an event channel goes that is in use");
        return;
    }
    world.event_channels.remove(&(channel as usize));
    // SAFETY: as it was made.
    unsafe {
        libc::close((*channel).fd);
        drop(Box::from_raw(channel));
    }
}

/// Makes an identifier on a channel.
pub(crate) fn create(world: &mut World, channel: *mut RdmaEventChannel) -> *mut RdmaCmId {
    let id = zeroed::<RdmaCmId>();
    // SAFETY: just made.
    unsafe { (*id).channel = channel };
    let state = Connection {
        channel: channel as usize,
        ..Connection::default()
    };
    world.ids.insert(id as usize, state);
    id
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rdma_create_id(
    channel: *mut RdmaEventChannel,
    id: *mut *mut RdmaCmId,
    _: *mut c_void,
    _: c_int,
) -> c_int {
    let made = create(&mut world::lock(), channel);
    // SAFETY: the caller's.
    unsafe { *id = made };
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rdma_destroy_id(id: *mut RdmaCmId) -> c_int {
    let mut world = world::lock();
    let Some(state) = world.ids.remove(&(id as usize)) else {
        world.complain("an identifier goes twice");
        return failed(libc::EINVAL);
    };
    if state.qp.is_some() {
        world.complain("an identifier goes before its queue pair");
    }
    if state.unacknowledged != 0 {
        world.complain("an identifier goes whose events were not acknowledged");
    }
    if state.is_listening {
        connections::refuse_all(&mut world, id);
    }
    if let Some(queue) = world.event_channels.get_mut(&state.channel) {
        queue.events.retain(|one| one.event.id != id);
        if queue.events.is_empty() {
            // SAFETY: a channel that is in use is not destroyed.
            clear(unsafe { (*(state.channel as *mut RdmaEventChannel)).fd });
        }
    }
    for other in world.ids.values_mut() {
        other.peer = other.peer.filter(|peer| *peer != id as usize);
    }
    // SAFETY: as it was made.
    drop(unsafe { Box::from_raw(id) });
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rdma_set_option(
    _: *mut RdmaCmId,
    _: c_int,
    _: c_int,
    _: *mut c_void,
    _: usize,
) -> c_int {
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rdma_bind_addr(id: *mut RdmaCmId, address: *mut libc::sockaddr) -> c_int {
    let mut world = world::lock();
    // SAFETY: an address, as the caller has it.
    let Some(mut address) = (unsafe { addresses::read(address) }) else {
        return failed(libc::ENODEV);
    };
    if !address.ip().is_unspecified() {
        match addresses::device_of(address).filter(|number| has_device(&world, *number)) {
            Some(number) => set_device(&mut world, id, number),
            None => return failed(libc::ENODEV),
        }
    }
    let overlaps = |other: SocketAddr| {
        let any = |one: SocketAddr| one.ip().is_unspecified();
        other.port() == address.port() && (other.ip() == address.ip() || any(other) || any(address))
    };
    let mut bound = world.ids.values().filter_map(|id| id.local);
    if address.port() != 0 && bound.any(overlaps) {
        return failed(libc::EADDRINUSE);
    }
    if address.port() == 0 {
        world.last_port += 1;
        address.set_port(20000 + world.last_port);
    }
    set_local(&mut world, id, address);
    0
}

/// Whether there is such a device.
fn has_device(world: &World, number: usize) -> bool {
    world.orders.devices & 1 << number != 0 && !world.removed.contains(&number)
}

pub(crate) fn set_device(world: &mut World, id: *mut RdmaCmId, number: usize) {
    let context = verbs::context(world, number);
    if let Some(state) = world.ids.get_mut(&(id as usize)) {
        state.device = Some(number);
        // SAFETY: an identifier that was not destroyed.
        unsafe { (*id).verbs = context };
    }
}

pub(crate) fn set_local(world: &mut World, id: *mut RdmaCmId, address: SocketAddr) {
    if let Some(state) = world.ids.get_mut(&(id as usize)) {
        state.local = Some(address);
        // SAFETY: as above.
        addresses::write(address, unsafe { &mut (*id).source });
    }
}

pub(crate) fn set_remote(world: &mut World, id: *mut RdmaCmId, address: SocketAddr) {
    if let Some(state) = world.ids.get_mut(&(id as usize)) {
        state.remote = Some(address);
        // SAFETY: as above.
        addresses::write(address, unsafe { &mut (*id).destination });
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rdma_listen(id: *mut RdmaCmId, _: c_int) -> c_int {
    match world::lock().ids.get_mut(&(id as usize)) {
        Some(state) if state.local.is_some() => state.is_listening = true,
        _ => return failed(libc::EINVAL),
    }
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rdma_resolve_addr(
    id: *mut RdmaCmId,
    _: *mut libc::sockaddr,
    to: *mut libc::sockaddr,
    _: c_int,
) -> c_int {
    let mut world = world::lock();
    // SAFETY: an address, as the caller has it.
    let Some(to) = (unsafe { addresses::read(to) }) else {
        return failed(libc::ENODEV);
    };
    set_remote(&mut world, id, to);
    let device = addresses::device_of(to).filter(|number| has_device(&world, *number));
    let Some(number) = device else {
        queue(&mut world, id, event::ADDR_ERROR, -libc::ENODEV);
        return 0;
    };
    if !connections::ordered(&mut world, id, event::ADDR_ERROR) {
        set_device(&mut world, id, number);
        let from = SocketAddr::new(Ipv4Addr::new(127, 0, number as u8, 99).into(), 40000);
        set_local(&mut world, id, from);
        queue(&mut world, id, event::ADDR_RESOLVED, 0);
    }
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rdma_resolve_route(id: *mut RdmaCmId, _: c_int) -> c_int {
    let mut world = world::lock();
    if !connections::ordered(&mut world, id, event::ROUTE_ERROR) {
        queue(&mut world, id, event::ROUTE_RESOLVED, 0);
    }
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rdma_create_qp(
    id: *mut RdmaCmId,
    pd: *mut IbvPd,
    attr: *mut IbvQpInitAttr,
) -> c_int {
    let mut world = world::lock();
    let qp = zeroed::<IbvQp>();
    // SAFETY: what the caller has, and what was just made.
    let (cq, cap) = unsafe {
        (*qp).context = (*id).verbs;
        (*qp).pd = pd;
        (*id).qp = qp;
        ((*attr).send_cq, (*attr).cap)
    };
    // SAFETY: an identifier that is bound has a context.
    let device = verbs::device_number(&world, unsafe { (*id).verbs });
    let number = world.key();
    let most = [cap.max_send_wr, cap.max_recv_wr, cap.max_send_sge].map(|most| most as usize);
    let state = QpState {
        number,
        pd: pd as usize,
        cq: cq as usize,
        device,
        peer: None,
        is_ready: false,
        has_failed: false,
        sends: std::collections::VecDeque::new(),
        receives: std::collections::VecDeque::new(),
        unpolled: 0,
        most: (most[0], most[1], most[2]),
    };
    world.qps.insert(qp as usize, state);
    if let Some(id) = world.ids.get_mut(&(id as usize)) {
        id.qp = Some(qp as usize);
    }
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rdma_destroy_qp(id: *mut RdmaCmId) {
    let mut world = world::lock();
    let Some(qp) = world
        .ids
        .get_mut(&(id as usize))
        .and_then(|id| id.qp.take())
    else {
        world.complain("a queue pair goes twice");
        return;
    };
    let state = world.qps.remove(&qp);
    if let Some((state, cq)) = state.and_then(|qp| {
        let at = qp.cq;
        Some((qp, world.cqs.get_mut(&at)?))
    }) {
        cq.completions.retain(|one| one.qp_num != state.number);
    }
    for other in world.qps.values_mut() {
        other.peer = other.peer.filter(|peer| *peer != qp);
    }
    // SAFETY: as it was made.
    unsafe {
        (*id).qp = std::ptr::null_mut();
        drop(Box::from_raw(qp as *mut IbvQp));
    }
    execute::run(&mut world);
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rdma_get_cm_event(
    channel: *mut RdmaEventChannel,
    into: *mut *mut RdmaCmEvent,
) -> c_int {
    let mut world = world::lock();
    let queue = world.event_channels.get_mut(&(channel as usize));
    let next = queue.and_then(|queue| Some((queue.events.pop_front()?, queue.events.is_empty())));
    // SAFETY: the caller's channel and place.
    unsafe {
        let Some((event, is_last)) = next else {
            return verbs::would_wait(&mut world, (*channel).fd);
        };
        if is_last {
            clear((*channel).fd);
        }
        if let Some(id) = world.ids.get_mut(&(event.event.id as usize)) {
            id.unacknowledged += 1;
        }
        *into = Box::into_raw(event).cast();
    }
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rdma_ack_cm_event(event: *mut RdmaCmEvent) -> c_int {
    // SAFETY: as it was made.
    let event = unsafe { Box::from_raw(event.cast::<PretendEvent>()) };
    if let Some(id) = world::lock().ids.get_mut(&(event.event.id as usize)) {
        id.unacknowledged -= 1;
    }
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rdma_migrate_id(id: *mut RdmaCmId, to: *mut RdmaEventChannel) -> c_int {
    let mut world = world::lock();
    let Some(state) = world.ids.get_mut(&(id as usize)) else {
        return failed(libc::EINVAL);
    };
    let from = std::mem::replace(&mut state.channel, to as usize);
    // SAFETY: an identifier that was not destroyed.
    unsafe { (*id).channel = to };
    let Some(queue) = world.event_channels.get_mut(&from) else {
        return failed(libc::EINVAL);
    };
    let (moved, kept) = std::mem::take(&mut queue.events)
        .into_iter()
        .partition(|one| one.event.id == id);
    queue.events = kept;
    if queue.events.is_empty() {
        // SAFETY: a channel that was not destroyed.
        clear(unsafe { (*(from as *mut RdmaEventChannel)).fd });
    }
    if let Some(queue) = world.event_channels.get_mut(&(to as usize)) {
        queue.events = moved;
        if !queue.events.is_empty() {
            // SAFETY: the caller's channel.
            verbs::ring(unsafe { (*to).fd });
        }
    }
    0
}

/// A device is taken away.
pub(crate) fn remove(world: &mut World, number: usize) {
    world.removed.insert(number);
    let on_it = |state: &Connection| state.device == Some(number);
    let ids = world.ids.iter().filter(|(_, state)| on_it(state));
    let ids: Vec<_> = ids.map(|(id, state)| (*id, state.qp)).collect();
    for (id, qp) in ids {
        queue(world, id as *mut RdmaCmId, event::DEVICE_REMOVAL, 0);
        if let Some(qp) = qp {
            execute::fail(world, qp);
        }
    }
    verbs::tell(world, IBV_EVENT_DEVICE_FATAL);
}
