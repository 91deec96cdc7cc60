//! The addresses of this machine.

use std::io;
use std::net::IpAddr;
use std::ptr;

use socket2::{SockAddr, SockAddrStorage};

/// All of them, of interfaces that are up or not; link-local ones of IPv6 are left out, as they
/// mean nothing without their interface.
pub(super) fn local() -> io::Result<Vec<IpAddr>> {
    let mut first = ptr::null_mut();
    // SAFETY: a place of ours.
    if unsafe { libc::getifaddrs(&mut first) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let (mut found, mut next) = (Vec::new(), first);
    while !next.is_null() {
        // SAFETY: an entry of the list, which lives until it is freed below.
        let entry = unsafe { &*next };
        // SAFETY: null, or an address of the length that its family has.
        found.extend(unsafe { ip_at(entry.ifa_addr) });
        next = entry.ifa_next;
    }
    // SAFETY: of getifaddrs, and nothing refers to it any more.
    unsafe { libc::freeifaddrs(first) };
    found.retain(|ip: &IpAddr| !matches!(ip, IpAddr::V6(v6) if v6.is_unicast_link_local()));
    found.sort_unstable();
    found.dedup();
    Ok(found)
}

/// # Safety
///
/// `address` is null, or an address of the length that its family has.
unsafe fn ip_at(address: *const libc::sockaddr) -> Option<IpAddr> {
    if address.is_null() {
        return None;
    }
    // SAFETY: not null.
    let len = match i32::from(unsafe { (*address).sa_family }) {
        libc::AF_INET => size_of::<libc::sockaddr_in>(),
        libc::AF_INET6 => size_of::<libc::sockaddr_in6>(),
        _ => return None,
    };
    let mut storage = SockAddrStorage::zeroed();
    // SAFETY: so many bytes are there, and the storage is long enough for any address.
    let storage = unsafe {
        ptr::copy_nonoverlapping(address.cast::<u8>(), (&raw mut storage).cast(), len);
        SockAddr::new(storage, len as libc::socklen_t)
    };
    storage.as_socket().map(|socket| socket.ip())
}
