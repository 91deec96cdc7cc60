//! What passes between two identifiers: requests, answers, ends.

use std::ffi::{c_int, c_void};
use std::net::SocketAddr;
use std::ptr;

use crate::cm::{create, set_device, set_local, set_remote};
use crate::errno::failed;
use crate::execute;
use crate::objects::{PretendEvent, reads};
use crate::sys::cm::{RdmaCmEvent, RdmaCmId, RdmaConnParam, RdmaEventChannel, event};
use crate::verbs;
use crate::world::{self, World};

/// Private data of a request and of an answer, as InfiniBand has it: always so long.
const REQUEST_DATA: u8 = 56;
const ANSWER_DATA: u8 = 196;

/// Nothing listens there; and: the consumer refuses.
const NO_LISTENER: i32 = 8;
const REFUSED: i32 = 28;

/// Queues an event of an identifier.
pub(crate) fn queue(world: &mut World, id: *mut RdmaCmId, kind: c_int, status: c_int) {
    push(world, new_event(id, kind, status));
}

fn new_event(id: *mut RdmaCmId, kind: c_int, status: c_int) -> Box<PretendEvent> {
    let conn = RdmaConnParam {
        private_data: ptr::null(),
        private_data_len: 0,
        responder_resources: 0,
        initiator_depth: 0,
        flow_control: 0,
        retry_count: 0,
        rnr_retry_count: 0,
        srq: 0,
        qp_num: 0,
    };
    Box::new(PretendEvent {
        event: RdmaCmEvent {
            id,
            listen_id: ptr::null_mut(),
            event: kind,
            status,
            conn,
            others: [0; 4],
        },
        data: [0; 196],
    })
}

fn push(world: &mut World, event: Box<PretendEvent>) {
    let id = world.ids.get(&(event.event.id as usize));
    let Some(channel) = id.map(|id| id.channel) else {
        return;
    };
    if let Some(queue) = world.event_channels.get_mut(&channel) {
        queue.events.push_back(event);
        // SAFETY: a channel that is in use is not destroyed.
        verbs::ring(unsafe { (*(channel as *mut RdmaEventChannel)).fd });
    }
}

/// Whether tests have ordered this event, which is queued then.
pub(crate) fn ordered(world: &mut World, id: *mut RdmaCmId, kind: c_int) -> bool {
    let is_it = world.orders.cm_event == Some(kind);
    if is_it {
        world.orders.cm_event = None;
        let status = world.orders.cm_status;
        queue(world, id, kind, status);
    }
    is_it
}

/// Fills an event in with what the other end has sent along.
///
/// # Safety
///
/// The parameters are as the caller of the library has them.
unsafe fn fill(event: &mut PretendEvent, parameters: &RdmaConnParam, len: u8) {
    let given = usize::from(parameters.private_data_len);
    if !parameters.private_data.is_null() {
        // SAFETY: so many bytes are there, and the place is as long as can be.
        unsafe {
            let from = parameters.private_data.cast::<u8>();
            ptr::copy_nonoverlapping(from, event.data.as_mut_ptr(), given.min(196));
        }
    }
    let (depth, resources) = reads(parameters);
    event.event.conn.private_data = (&raw const event.data).cast();
    event.event.conn.private_data_len = len;
    event.event.conn.initiator_depth = resources;
    event.event.conn.responder_resources = depth;
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rdma_connect(id: *mut RdmaCmId, parameters: *mut RdmaConnParam) -> c_int {
    let mut world = world::lock();
    // SAFETY: the caller's.
    let parameters = unsafe { &*parameters };
    check(&mut world, parameters, REQUEST_DATA);
    let kinds = [event::CONNECT_ERROR, event::UNREACHABLE, event::REJECTED];
    if kinds.into_iter().any(|kind| ordered(&mut world, id, kind)) {
        return 0;
    }
    let Some(to) = world.ids.get(&(id as usize)).and_then(|id| id.remote) else {
        return failed(libc::EINVAL);
    };
    let hears = |local: Option<SocketAddr>| {
        local.is_some_and(|local| {
            local.port() == to.port() && (local.ip() == to.ip() || local.ip().is_unspecified())
        })
    };
    let mut listeners = world.ids.iter();
    let found = listeners.find(|(_, state)| state.is_listening && hears(state.local));
    let Some(listener) = found.map(|(listener, _)| *listener as *mut RdmaCmId) else {
        queue(&mut world, id, event::REJECTED, NO_LISTENER);
        return 0;
    };
    // SAFETY: both identifiers are alive, and the parameters are the caller's.
    unsafe { ask(&mut world, id, listener, to, parameters) };
    0
}

/// # Safety
///
/// Both identifiers are alive, and the parameters are as a caller has them.
unsafe fn ask(
    world: &mut World,
    id: *mut RdmaCmId,
    listener: *mut RdmaCmId,
    to: SocketAddr,
    parameters: &RdmaConnParam,
) {
    // SAFETY: as promised.
    let theirs = create(world, unsafe { (*listener).channel });
    let ours = world.ids.get_mut(&(id as usize));
    let (device, from) = ours.map_or((None, None), |state| {
        state.peer = Some(theirs as usize);
        (state.device, state.local)
    });
    set_device(world, theirs, device.unwrap_or(0));
    set_local(world, theirs, to);
    set_remote(world, theirs, from.unwrap_or(to));
    if let Some(state) = world.ids.get_mut(&(theirs as usize)) {
        state.peer = Some(id as usize);
        state.offered = Some(reads(parameters));
        // What listens has the port, not what came by it.
        state.local = None;
    }
    let mut event = new_event(theirs, event::CONNECT_REQUEST, 0);
    event.event.listen_id = listener;
    // SAFETY: as promised.
    unsafe { fill(&mut event, parameters, REQUEST_DATA) };
    push(world, event);
}

fn check(world: &mut World, parameters: &RdmaConnParam, len: u8) {
    if parameters.private_data_len > len {
        world.complain("private data is too long");
    }
    if (parameters.retry_count, parameters.rnr_retry_count) != (7, 7) {
        world.complain("a connection gives up early");
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rdma_accept(id: *mut RdmaCmId, parameters: *mut RdmaConnParam) -> c_int {
    let mut world = world::lock();
    // SAFETY: the caller's.
    let parameters = unsafe { &*parameters };
    check(&mut world, parameters, ANSWER_DATA);
    let state = world.ids.get_mut(&(id as usize));
    let asked = state.and_then(|state| Some((state.offered.take()?, state.peer?, state.qp?)));
    let Some(((depth, resources), peer, qp)) = asked else {
        return failed(libc::EINVAL);
    };
    let (ours, theirs) = reads(parameters);
    if ours > resources || theirs > depth {
        world.complain("more reads than were offered");
        return failed(libc::EINVAL);
    }
    let Some(other) = world.ids.get(&peer).and_then(|peer| peer.qp) else {
        return failed(libc::EINVAL);
    };
    for (this, that) in [(qp, other), (other, qp)] {
        if let Some(state) = world.qps.get_mut(&this) {
            state.peer = Some(that);
            state.is_ready = true;
        }
    }
    for end in [id as usize, peer] {
        if let Some(state) = world.ids.get_mut(&end) {
            state.is_connected = true;
        }
    }
    let mut event = new_event(peer as *mut RdmaCmId, event::ESTABLISHED, 0);
    // SAFETY: as the caller has them.
    unsafe { fill(&mut event, parameters, ANSWER_DATA) };
    push(&mut world, event);
    queue(&mut world, id, event::ESTABLISHED, 0);
    execute::run(&mut world);
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rdma_reject(id: *mut RdmaCmId, _: *const c_void, _: u8) -> c_int {
    let mut world = world::lock();
    let state = world.ids.get_mut(&(id as usize));
    let asked = state.and_then(|state| {
        state.offered.take()?;
        state.peer
    });
    let Some(peer) = asked else {
        return failed(libc::EINVAL);
    };
    queue(&mut world, peer as *mut RdmaCmId, event::REJECTED, REFUSED);
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rdma_disconnect(id: *mut RdmaCmId) -> c_int {
    let mut world = world::lock();
    let state = world.ids.get_mut(&(id as usize));
    let Some((peer, qp)) = state.and_then(|state| {
        std::mem::take(&mut state.is_connected).then_some((state.peer, state.qp))
    }) else {
        return failed(libc::EINVAL);
    };
    if let Some(qp) = qp {
        execute::fail(&mut world, qp);
    }
    // The other one goes on until it disconnects too, and gets no acknowledgement any more.
    let theirs = peer.and_then(|peer| world.ids.get(&peer));
    if theirs.is_some_and(|theirs| theirs.is_connected) {
        let peer = peer.unwrap_or_default();
        queue(&mut world, peer as *mut RdmaCmId, event::DISCONNECTED, 0);
    }
    0
}

/// What listened goes: requests that were not taken are refused, and go too.
pub(crate) fn refuse_all(world: &mut World, listener: *mut RdmaCmId) {
    let mut refused = Vec::new();
    for queue in world.event_channels.values_mut() {
        queue.events.retain(|one| {
            let is_its = one.event.listen_id == listener;
            refused.extend(is_its.then_some(one.event.id as usize));
            !is_its
        });
    }
    for id in refused {
        if let Some(peer) = world.ids.remove(&id).and_then(|state| state.peer) {
            queue(world, peer as *mut RdmaCmId, event::REJECTED, REFUSED);
        }
        // SAFETY: as it was made; nobody knows of it.
        drop(unsafe { Box::from_raw(id as *mut RdmaCmId) });
    }
}
