//! Addresses as C has them.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ptr;

/// What an address of IPv4 is; `None` for any other.
///
/// # Safety
///
/// It is null, or an address of the length that its family has.
pub(crate) unsafe fn read(address: *const libc::sockaddr) -> Option<SocketAddr> {
    // SAFETY: checked, and promised.
    unsafe {
        if address.is_null() || i32::from((*address).sa_family) != libc::AF_INET {
            return None;
        }
        let v4 = ptr::read_unaligned(address.cast::<libc::sockaddr_in>());
        let ip = Ipv4Addr::from(u32::from_be(v4.sin_addr.s_addr));
        Some(SocketAddr::new(ip.into(), u16::from_be(v4.sin_port)))
    }
}

/// Puts an address where C looks for it.
pub(crate) fn write(address: SocketAddr, into: &mut libc::sockaddr_storage) {
    let IpAddr::V4(ip) = address.ip() else { return };
    let v4 = libc::sockaddr_in {
        sin_family: libc::AF_INET as u16,
        sin_port: address.port().to_be(),
        sin_addr: libc::in_addr {
            s_addr: u32::from(ip).to_be(),
        },
        sin_zero: [0; 8],
    };
    // SAFETY: storage is long enough for any address.
    unsafe { ptr::write_unaligned(ptr::from_mut(into).cast(), v4) };
}

/// The number of the device that an address leads to.
pub(crate) fn device_of(address: SocketAddr) -> Option<usize> {
    match address.ip() {
        IpAddr::V4(ip) => match ip.octets() {
            [127, 0, number @ 0..2, _] => Some(usize::from(number)),
            _ => None,
        },
        IpAddr::V6(_) => None,
    }
}
