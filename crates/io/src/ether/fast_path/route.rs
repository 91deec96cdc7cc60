//! What the program does with frames of a pair: an array of the kernel that is mapped here.
//!
//! A route is 16 words. Both sides may read and write them at any time; a route without a length is
//! none.

use std::io;
use std::sync::atomic::Ordering::{Relaxed, Release};

use super::ForwardedPair;
use crate::ether::EtherMac;
use crate::ether::bpf::{BpfMap, MapKind};
use crate::ether::shared::RingMapping;

/// Bytes of a route: a line of the processor's cache.
pub(super) const ROUTE_LEN: usize = 64;

/// Destination and source address of a frame that comes in.
pub(super) const ARRIVING: usize = 0;
/// Those of a frame that goes out.
pub(super) const LEAVING: usize = 12;
/// The longest frame that goes out, in bytes with its header.
pub(super) const LEN_MAX: usize = 24;
/// The port where it goes out.
pub(super) const EGRESS: usize = 28;
/// The port where it came in.
pub(super) const INGRESS: usize = 32;
/// The tag control information, as it stands in a frame.
pub(super) const TCI: usize = 36;
/// Frames that went up. The program writes it.
pub(super) const WENT_UP: usize = 40;
/// The frame up to which all of those have left.
pub(super) const HAVE_LEFT: usize = 44;

/// All routes.
#[derive(Debug)]
pub(super) struct Routes {
    map: BpfMap<u32, [u8; ROUTE_LEN]>,
    memory: RingMapping,
}

impl Routes {
    pub(super) fn new(count: u32) -> io::Result<Self> {
        let map = BpfMap::new(MapKind::MAPPED_ARRAY, count)?;
        let memory = RingMapping::map(map.fd(), 0, count as usize * ROUTE_LEN)?;
        Ok(Self { map, memory })
    }

    /// What instructions name it by.
    pub(super) fn number(&self) -> i32 {
        self.map.number()
    }

    /// Fills a route in. No frame of it goes on before [`Self::has_left`] was told of one.
    pub(super) fn set(&self, number: u32, pair: &ForwardedPair) {
        let header = if pair.tci.is_some() { 18 } else { 14 };
        let words = addresses(pair.arriving)
            .into_iter()
            .chain(addresses(pair.leaving))
            .zip((ARRIVING..).step_by(4));
        for (word, at) in words {
            self.put(number, at, word);
        }
        self.put(number, EGRESS, pair.egress);
        self.put(number, INGRESS, pair.ingress);
        let tci = u16::to_be(pair.tci.unwrap_or_default());
        self.put(number, TCI, tci.into());
        self.put(number, WENT_UP, 0);
        self.put(number, HAVE_LEFT, u32::MAX);
        let len_max = pair.mtu.min(FCOE_MAX) + header;
        let at = number as usize * ROUTE_LEN + LEN_MAX;
        self.memory.word(at).store(len_max, Release);
    }

    /// Has it be none.
    pub(super) fn clear(&self, number: u32) {
        self.put(number, LEN_MAX, 0);
    }

    pub(super) fn has_left(&self, number: u32, frame: u32) {
        let at = number as usize * ROUTE_LEN + HAVE_LEFT;
        self.memory.word(at).store(frame, Release);
    }

    fn put(&self, number: u32, at: usize, word: u32) {
        let at = number as usize * ROUTE_LEN + at;
        self.memory.word(at).store(word, Relaxed);
    }
}

/// Two addresses as words, as they stand in a frame.
fn addresses([dst, src]: [EtherMac; 2]) -> [u32; 3] {
    let [a, b, c, d, e, f] = dst;
    let [g, h, i, j, k, l] = src;
    [[a, b, c, d], [e, f, g, h], [i, j, k, l]].map(u32::from_ne_bytes)
}

/// Bytes of the longest frame of FCoE behind its Ethernet header: those of its own header and
/// trailer, 24 of a Fibre Channel header, 2112 of payload.
pub(super) const FCOE_MAX: u32 = 14 + 24 + 2112 + 8;
