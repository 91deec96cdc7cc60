//! Priority flow control (IEEE 802.1Qbb), as the kernel's dcbnl tells it (linux/dcbnl.h).

use std::io;

use super::super::link::{attributes, part, socket};
use super::dump::{NetlinkRequest, ask};

/// Priority flow control at an interface (IEEE 802.1Q clause 36).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PfcReading {
    /// A bit for each priority, of which the lowest is that of 0: its frames are not dropped.
    pub enabled: u8,
    /// Frames that had the other end wait, by priority.
    pub sent: [u64; 8],
    /// Frames that had this end wait, by priority.
    pub received: [u64; 8],
}

/// Priority flow control of an interface; `None` where its driver has no DCB.
///
/// # Errors
///
/// When there is no such interface.
pub fn pfc(interface: &str) -> io::Result<Option<PfcReading>> {
    let name = [interface.as_bytes(), &[0]].concat();
    let head = [libc::AF_UNSPEC as u8, CMD_IEEE_GET, 0, 0];
    let request = NetlinkRequest::new(RTM_GETDCB, 0, &head).attribute(ATTR_IFNAME, &name);
    let mut told = None;
    let asked = ask(&socket(0)?, request, |_, body| told = parse(body));
    match asked.map_err(|cause| cause.raw_os_error().unwrap_or_default()) {
        Ok(()) => Ok(told),
        // EINVAL: a kernel without dcbnl.
        Err(libc::EOPNOTSUPP | libc::EINVAL) => Ok(None),
        Err(code) => Err(io::Error::from_raw_os_error(code)),
    }
}

/// What an answer tells, from `dcbmsg` on, of a driver that has priority flow control.
pub(in super::super) fn parse(body: &[u8]) -> Option<PfcReading> {
    let find = |nest, wanted| {
        attributes(nest).find_map(|(kind, it)| (kind & !NESTED == wanted).then_some(it))
    };
    let ieee = find(body.get(DCBMSG..)?, ATTR_IEEE)?;
    let pfc = find(ieee, ATTR_IEEE_PFC)?;
    // `struct ieee_pfc`: capability, enabled, MACsec bypass, a hole, delay, a hole, then requests
    // sent and indications received, each 8 counters.
    let [enabled] = part(pfc, 1)?;
    let counters = |at: usize| {
        let counter = |priority| part(pfc, at + 8 * priority).map(u64::from_ne_bytes);
        let mut all = [0; 8];
        for (priority, into) in all.iter_mut().enumerate() {
            *into = counter(priority)?;
        }
        Some(all)
    };
    Some(PfcReading {
        enabled,
        sent: counters(8)?,
        received: counters(72)?,
    })
}

/// Bytes of `dcbmsg`.
const DCBMSG: usize = 4;
const RTM_GETDCB: u16 = 78;
const CMD_IEEE_GET: u8 = 21;
const ATTR_IFNAME: u16 = 1;
const ATTR_IEEE: u16 = 13;
const ATTR_IEEE_PFC: u16 = 2;

/// The flag of attributes that hold others (NLA_F_NESTED).
const NESTED: u16 = 0x8000;
