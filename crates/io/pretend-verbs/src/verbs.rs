//! What libibverbs has.

use std::collections::VecDeque;
use std::ffi::{c_char, c_int, c_uint, c_void};
use std::ptr;

use crate::errno::{failed, nothing};
use crate::execute;
use crate::objects::{CqState, MrState, PostedReceive, PostedSend};
use crate::sys::verbs::{
    IBV_DEVICE_MEM_MGT_EXTENSIONS, IBV_TRANSPORT_IB, IBV_TRANSPORT_IWARP, IbvAsyncEvent,
    IbvCompChannel, IbvContext, IbvCq, IbvDevice, IbvDeviceAttr, IbvMr, IbvPd, IbvQp, IbvRecvWr,
    IbvSendWr, IbvSge, IbvWc,
};
use crate::world::{self, World};

/// Names and transports, by number.
const DEVICES: [(&str, c_int); 2] = [
    ("pretend0", IBV_TRANSPORT_IB),
    ("pretendw0", IBV_TRANSPORT_IWARP),
];

/// Something new that lives until it is freed, all zeros.
pub(crate) fn zeroed<T>() -> *mut T {
    // SAFETY: the declarations are numbers, pointers and options of function pointers.
    Box::into_raw(Box::new(unsafe { std::mem::zeroed() }))
}

/// The context of a device, opened when it is first asked for, for good.
pub(crate) fn context(world: &mut World, number: usize) -> *mut IbvContext {
    if let Some(known) = world.contexts[number] {
        return known as *mut IbvContext;
    }
    let (device, context) = (zeroed::<IbvDevice>(), zeroed::<IbvContext>());
    let (name, transport) = DEVICES[number];
    // SAFETY: both were just made, and nothing else knows of them.
    unsafe {
        for (place, byte) in (*device).name.iter_mut().zip(name.bytes()) {
            *place = byte as c_char;
        }
        (*device).transport_type = transport;
        (*context).device = device;
        (*context).async_fd = eventfd();
        (*context).ops.poll_cq = Some(poll_cq);
        (*context).ops.req_notify_cq = Some(req_notify_cq);
        (*context).ops.post_send = Some(post_send);
        (*context).ops.post_recv = Some(post_recv);
    }
    world.contexts[number] = Some(context as usize);
    context
}

/// The number of the device that a context is of.
fn number_of(world: &World, context: *mut IbvContext) -> usize {
    let is_it = |known: &Option<usize>| *known == Some(context as usize);
    world.contexts.iter().position(is_it).unwrap_or(0)
}

/// A descriptor that is readable after [`ring`], until [`clear`]. It blocks until told otherwise,
/// as those of the libraries do.
pub(crate) fn eventfd() -> c_int {
    // SAFETY: it takes no memory.
    unsafe { libc::eventfd(0, libc::EFD_CLOEXEC) }
}

pub(crate) fn ring(fd: c_int) {
    let one: u64 = 1;
    // SAFETY: eight bytes of ours.
    unsafe { libc::write(fd, (&raw const one).cast(), 8) };
}

pub(crate) fn clear(fd: c_int) {
    let mut count: u64 = 0;
    let mut poll = libc::pollfd {
        fd,
        events: libc::POLLIN,
        revents: 0,
    };
    // SAFETY: one place, and eight bytes, of ours.
    unsafe {
        if libc::poll(&mut poll, 1, 0) == 1 {
            libc::read(fd, (&raw mut count).cast(), 8);
        }
    }
}

/// What a call does that would wait: it fails if that was asked for, and waits for ever if not.
pub(crate) fn would_wait(world: &mut World, fd: c_int) -> c_int {
    // SAFETY: a descriptor that is open.
    if unsafe { libc::fcntl(fd, libc::F_GETFL) } & libc::O_NONBLOCK == 0 {
        world.complain("a call on a channel would block");
    }
    failed(libc::EAGAIN)
}

/// Has the completion channel at this address be readable.
pub(crate) fn ring_comp(channel: usize) {
    // SAFETY: a channel that was not destroyed, as the world knows it.
    ring(unsafe { (*(channel as *mut IbvCompChannel)).fd });
}

/// An event of the first device.
pub(crate) fn tell(world: &mut World, event: i32) {
    world.async_events.push_back(event);
    let context = context(world, 0);
    // SAFETY: contexts live for good.
    ring(unsafe { (*context).async_fd });
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_get_device_list(count: *mut c_int) -> *mut *mut IbvDevice {
    let mut world = world::lock();
    let mut list: Vec<*mut IbvDevice> = Vec::new();
    for number in 0..DEVICES.len() {
        if world.orders.devices & 1 << number != 0 && !world.removed.contains(&number) {
            // SAFETY: contexts live for good.
            list.push(unsafe { (*context(&mut world, number)).device });
        }
    }
    // SAFETY: the caller's.
    unsafe { *count = list.len() as c_int };
    list.resize(DEVICES.len() + 1, ptr::null_mut());
    Box::into_raw(list.into_boxed_slice()).cast()
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_free_device_list(list: *mut *mut IbvDevice) {
    let list = ptr::slice_from_raw_parts_mut(list, DEVICES.len() + 1);
    // SAFETY: as it was made.
    drop(unsafe { Box::from_raw(list) });
}

/// Those that were opened, by librdmacm's name.
#[unsafe(no_mangle)]
unsafe extern "C" fn rdma_get_devices(count: *mut c_int) -> *mut *mut IbvContext {
    let mut world = world::lock();
    let opened = world.contexts.iter().flatten();
    let mut list: Vec<_> = opened.map(|context| *context as *mut IbvContext).collect();
    if !count.is_null() {
        // SAFETY: the caller's.
        unsafe { *count = list.len() as c_int };
    }
    list.resize(DEVICES.len() + 1, ptr::null_mut());
    world.device_lists += 1;
    Box::into_raw(list.into_boxed_slice()).cast()
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rdma_free_devices(list: *mut *mut IbvContext) {
    world::lock().device_lists -= 1;
    let list = ptr::slice_from_raw_parts_mut(list, DEVICES.len() + 1);
    // SAFETY: as it was made.
    drop(unsafe { Box::from_raw(list) });
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_query_device(_: *mut IbvContext, attr: *mut IbvDeviceAttr) -> c_int {
    let world = world::lock();
    // SAFETY: the caller's.
    unsafe {
        (*attr).max_sge = world.orders.pieces;
        (*attr).max_sge_rd = world.orders.pieces.min(16);
        (*attr).max_qp_wr = 16384;
        (*attr).max_cqe = 65536;
        (*attr).max_qp_rd_atom = 16;
        (*attr).max_qp_init_rd_atom = 16;
        (*attr).device_cap_flags = IBV_DEVICE_MEM_MGT_EXTENSIONS;
    }
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_alloc_pd(context: *mut IbvContext) -> *mut IbvPd {
    let pd = zeroed::<IbvPd>();
    // SAFETY: just made.
    unsafe { (*pd).context = context };
    world::lock().pds.insert(pd as usize);
    pd
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_dealloc_pd(pd: *mut IbvPd) -> c_int {
    let mut world = world::lock();
    let mrs = world.mrs.values().any(|mr| mr.pd == pd as usize);
    if mrs || world.qps.values().any(|qp| qp.pd == pd as usize) {
        world.complain("a protection domain goes that is in use");
        return libc::EBUSY;
    }
    world.pds.remove(&(pd as usize));
    // SAFETY: as it was made.
    drop(unsafe { Box::from_raw(pd) });
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_reg_mr(
    pd: *mut IbvPd,
    start: *mut c_void,
    len: usize,
    access: c_int,
) -> *mut IbvMr {
    let mut world = world::lock();
    if world.pinned.saturating_add(len) > world.orders.pinned_limit {
        return nothing(libc::ENOMEM);
    }
    world.pinned += len;
    let (key, mr) = (world.key(), zeroed::<IbvMr>());
    // SAFETY: just made.
    unsafe {
        ((*mr).pd, (*mr).addr, (*mr).length) = (pd, start, len);
        ((*mr).lkey, (*mr).rkey) = (key, key);
    }
    let state = MrState {
        pd: pd as usize,
        start: start as usize,
        len,
        access,
        is_invalid: false,
    };
    world.mrs.insert(key, state);
    mr
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_dereg_mr(mr: *mut IbvMr) -> c_int {
    let mut world = world::lock();
    // SAFETY: as it was made.
    let mr = unsafe { Box::from_raw(mr) };
    world.pinned -= mr.length;
    world.mrs.remove(&mr.lkey);
    let uses = |pieces: &[IbvSge]| pieces.iter().any(|piece| piece.lkey == mr.lkey);
    let is_used = world.qps.values().any(|qp| {
        let mut sends = qp.sends.iter();
        let mut receives = qp.receives.iter();
        sends.any(|send| uses(&send.pieces)) || receives.any(|receive| uses(&receive.pieces))
    });
    if is_used {
        world.complain("memory goes that is posted");
    }
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_create_comp_channel(context: *mut IbvContext) -> *mut IbvCompChannel {
    let channel = zeroed::<IbvCompChannel>();
    // SAFETY: just made.
    unsafe { ((*channel).context, (*channel).fd) = (context, eventfd()) };
    let mut world = world::lock();
    world
        .comp_channels
        .insert(channel as usize, VecDeque::new());
    channel
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_destroy_comp_channel(channel: *mut IbvCompChannel) -> c_int {
    let mut world = world::lock();
    if world.cqs.values().any(|cq| cq.channel == channel as usize) {
        world.complain("a completion channel goes that is in use");
        return libc::EBUSY;
    }
    world.comp_channels.remove(&(channel as usize));
    // SAFETY: as it was made.
    unsafe {
        libc::close((*channel).fd);
        drop(Box::from_raw(channel));
    }
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_create_cq(
    context: *mut IbvContext,
    room: c_int,
    _: *mut c_void,
    channel: *mut IbvCompChannel,
    _: c_int,
) -> *mut IbvCq {
    let cq = zeroed::<IbvCq>();
    // SAFETY: just made.
    unsafe { ((*cq).context, (*cq).channel, (*cq).cqe) = (context, channel, room) };
    let state = CqState {
        channel: channel as usize,
        completions: VecDeque::new(),
        is_armed: false,
        unacknowledged: 0,
        room: room as usize,
    };
    world::lock().cqs.insert(cq as usize, state);
    cq
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_destroy_cq(cq: *mut IbvCq) -> c_int {
    let mut world = world::lock();
    if world.qps.values().any(|qp| qp.cq == cq as usize) {
        world.complain("a completion queue goes that is in use");
        return libc::EBUSY;
    }
    let state = world.cqs.remove(&(cq as usize));
    if state.is_some_and(|state| state.unacknowledged != 0) {
        world.complain("a completion queue goes whose events were not acknowledged");
    }
    for queue in world.comp_channels.values_mut() {
        queue.retain(|one| *one != cq as usize);
    }
    // SAFETY: as it was made.
    drop(unsafe { Box::from_raw(cq) });
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_get_cq_event(
    channel: *mut IbvCompChannel,
    cq: *mut *mut IbvCq,
    _: *mut *mut c_void,
) -> c_int {
    let mut world = world::lock();
    let queue = world.comp_channels.get_mut(&(channel as usize));
    let next = queue.and_then(|queue| Some((queue.pop_front()?, queue.is_empty())));
    // SAFETY: the caller's channel and place.
    unsafe {
        let Some((found, is_last)) = next else {
            return would_wait(&mut world, (*channel).fd);
        };
        if is_last {
            clear((*channel).fd);
        }
        *cq = found as *mut IbvCq;
        if let Some(state) = world.cqs.get_mut(&found) {
            state.unacknowledged += 1;
        }
    }
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_ack_cq_events(cq: *mut IbvCq, count: c_uint) {
    if let Some(cq) = world::lock().cqs.get_mut(&(cq as usize)) {
        cq.unacknowledged -= i64::from(count);
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_get_async_event(
    context: *mut IbvContext,
    event: *mut IbvAsyncEvent,
) -> c_int {
    let mut world = world::lock();
    let next = world.async_events.pop_front();
    // SAFETY: contexts live for good; the place is the caller's.
    unsafe {
        let Some(next) = next else {
            return would_wait(&mut world, (*context).async_fd);
        };
        if world.async_events.is_empty() {
            clear((*context).async_fd);
        }
        (*event).event_type = next;
    }
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_ack_async_event(_: *mut IbvAsyncEvent) {}

unsafe extern "C" fn poll_cq(cq: *mut IbvCq, room: c_int, into: *mut IbvWc) -> c_int {
    let mut world = world::lock();
    let World { cqs, qps, .. } = &mut *world;
    let Some(state) = cqs.get_mut(&(cq as usize)) else {
        return -1;
    };
    let count = state.completions.len().min(room as usize);
    for (at, completion) in state.completions.drain(..count).enumerate() {
        if completion.wr_id >> 63 == 0 {
            let mut owner = qps.values_mut().filter(|qp| qp.number == completion.qp_num);
            if let Some(qp) = owner.next() {
                qp.unpolled = qp.unpolled.saturating_sub(1);
            }
        }
        // SAFETY: within the caller's places.
        unsafe { *into.add(at) = completion };
    }
    count as c_int
}

unsafe extern "C" fn req_notify_cq(cq: *mut IbvCq, _: c_int) -> c_int {
    if let Some(state) = world::lock().cqs.get_mut(&(cq as usize)) {
        state.is_armed = true;
    }
    0
}

/// # Safety
///
/// So many pieces are there.
unsafe fn pieces(first: *const IbvSge, count: c_int) -> Vec<IbvSge> {
    match count {
        0 => Vec::new(),
        // SAFETY: promised.
        _ => unsafe { std::slice::from_raw_parts(first, count as usize) }.to_vec(),
    }
}

unsafe extern "C" fn post_send(
    qp: *mut IbvQp,
    first: *mut IbvSendWr,
    refused: *mut *mut IbvSendWr,
) -> c_int {
    let mut world = world::lock();
    world.send_calls += 1;
    let mut next = first;
    while !next.is_null() {
        // SAFETY: the caller's chain.
        let (request, pieces) = unsafe { (&*next, pieces((*next).sg_list, (*next).num_sge)) };
        world.requests += 1;
        let World { qps, removed, .. } = &mut *world;
        let Some(state) = qps.get_mut(&(qp as usize)) else {
            return libc::EINVAL;
        };
        let (sends, _, most) = state.most;
        let error = match () {
            () if removed.contains(&state.device) => libc::EIO,
            () if state.unpolled >= sends => libc::ENOMEM,
            () if pieces.len() > most => libc::EINVAL,
            () => 0,
        };
        if error != 0 {
            // SAFETY: the caller's.
            unsafe { *refused = next };
            return error;
        }
        state.unpolled += 1;
        state.sends.push_back(PostedSend {
            id: request.wr_id,
            opcode: request.opcode,
            pieces,
            invalidate: request.invalidate_rkey,
            remote: (request.rkey, request.remote_addr),
        });
        next = request.next;
    }
    let has_failed = world
        .qps
        .get(&(qp as usize))
        .is_some_and(|qp| qp.has_failed);
    if has_failed {
        execute::fail(&mut world, qp as usize);
    }
    execute::run(&mut world);
    0
}

unsafe extern "C" fn post_recv(
    qp: *mut IbvQp,
    first: *mut IbvRecvWr,
    refused: *mut *mut IbvRecvWr,
) -> c_int {
    let mut world = world::lock();
    let mut next = first;
    while !next.is_null() {
        // SAFETY: the caller's chain.
        let (request, pieces) = unsafe { (&*next, pieces((*next).sg_list, (*next).num_sge)) };
        let Some(state) = world.qps.get_mut(&(qp as usize)) else {
            return libc::EINVAL;
        };
        if state.receives.len() >= state.most.1 {
            // SAFETY: the caller's.
            unsafe { *refused = next };
            return libc::ENOMEM;
        }
        let id = request.wr_id;
        state.receives.push_back(PostedReceive { id, pieces });
        next = request.next;
    }
    execute::run(&mut world);
    0
}

/// For the connection manager.
pub(crate) fn device_number(world: &World, context: *mut IbvContext) -> usize {
    number_of(world, context)
}
