//! Pairs of N_Ports whose frames the kernel forwards by itself, from interface to interface
//! ([`::io::ether::fast_path`]).
//!
//! The kernel only repeats what the machine has decided: a pair is handed to it when the machine
//! has let one of its frames through. What takes that back, a logout, other zones or a link that
//! has changed, takes the pair out as soon as it is known. The machine tells of it on the same
//! turn, and what it has to say leaves at the end of the turn, so no change is answered before the
//! kernel has forgotten the pair.
//!
//! Who is there is known by keep alives, which are FIP and always go to the machine: frames that
//! the kernel forwards make no port seem silent.

use std::collections::{HashMap, HashSet};

use ::io::ether::fast_path::{
    FastPath, FastPathCounters, FastPathError, ForwardedPair, FrameNumber, RouteNumber,
};
use fc::fabric::{Forwarding, PortCounters, PortNumber};
use fc::wire::ethernet::VlanTag;
use fc::wire::names::FcId;

use super::options::FastPathChoice;
use super::port::SwitchPort;

/// Whose frames the kernel forwards.
#[derive(Debug, Default)]
pub(super) struct SwitchFastPath {
    /// `None`: all frames go through the machine.
    kernel: Option<FastPath>,
    /// How many ports are interfaces.
    interfaces: usize,
    pairs: HashMap<PairKey, KnownPair>,
    /// The pairs that an N_Port is in.
    by_id: HashMap<FcId, HashSet<PairKey>>,
    /// Of each port.
    mtus: Vec<u32>,
    /// Of each egress: the last frame of a pair that came to the machine, and has to leave before
    /// the kernel may send the next one.
    leaving: Vec<HashMap<RouteNumber, FrameNumber>>,
    /// A frame without its number.
    scratch: Vec<u8>,
}

/// Ingress, S_ID and D_ID.
type PairKey = (u32, FcId, FcId);

#[derive(Debug)]
struct KnownPair {
    pair: ForwardedPair,
    route: RouteNumber,
}

impl SwitchFastPath {
    /// Has the kernel forward among those ports that are interfaces, if it can; the log tells which
    /// it cannot, and why.
    pub(super) fn start(choice: FastPathChoice, ports: &mut [SwitchPort]) -> Self {
        let interfaces = ports.iter().filter(|port| !port.is_cable()).count();
        if choice == FastPathChoice::Off || interfaces == 0 {
            return Self::default();
        }
        let kernel = FastPath::new(ports.len() as u32, interfaces as u32);
        let kernel = kernel.inspect_err(|cause| {
            tracing::info!("fast path: all frames go through user space: {cause}");
        });
        let mut path = Self {
            kernel: kernel.ok(),
            interfaces,
            mtus: vec![0; ports.len()],
            leaving: ports.iter().map(|_| HashMap::new()).collect(),
            ..Self::default()
        };
        for (at, port) in ports.iter_mut().enumerate() {
            path.look_at(at, port);
        }
        path
    }

    /// What decides whether the kernel may forward from a port has changed.
    pub(super) fn attach_anew(&mut self, at: usize, port: &mut SwitchPort) {
        self.forget_at(at as u32);
        if let Some(kernel) = &mut self.kernel {
            kernel.detach(at as u32);
        }
        self.look_at(at, port);
    }

    /// The link of a port has changed: what the kernel knew of it is void.
    pub(super) fn look_at(&mut self, at: usize, port: &mut SwitchPort) {
        self.forget_at(at as u32);
        let is_cable = port.is_cable();
        let Some((kernel, ether)) = self.kernel.as_mut().zip(port.ether()) else {
            return;
        };
        self.mtus[at] = ether.link().mtu;
        if is_cable || !ether.link().up || kernel.is_attached_to(at as u32, ether) {
            return;
        }
        match kernel.attach(at as u32, ether) {
            Ok(()) => tell_attached(port, self.interfaces),
            Err(cause) => tell_refusal(port, &cause),
        }
    }

    /// The machine has let a frame through. Returns what is to be sent of it: the same without the
    /// number that the kernel gave it.
    pub(super) fn learn<'a>(
        &'a mut self,
        ingress: PortNumber,
        way: &Forwarding,
        frame: &'a [u8],
    ) -> &'a [u8] {
        let (at, egress) = (u32::from(ingress.0), u32::from(way.egress.0));
        let Some(kernel) = &mut self.kernel else {
            return frame;
        };
        let is_attached = kernel.is_attached(at) && kernel.is_attached(egress);
        let key = (at, way.s_id, way.d_id);
        let number = FrameNumber::of(frame, way.start);
        match (self.pairs.get(&key), number) {
            (Some(known), Some(number)) => {
                self.leaving[egress as usize].insert(known.route, number);
            }
            (None, _) if is_attached => self.insert(key, way, frame),
            _ => {}
        }
        // One of a pair that is unknown came in before the pair was forgotten.
        if number.is_none() {
            return frame;
        }
        self.scratch.clear();
        self.scratch.extend_from_slice(frame);
        FrameNumber::erase(&mut self.scratch, way.start);
        &self.scratch
    }

    fn insert(&mut self, key: PairKey, way: &Forwarding, frame: &[u8]) {
        let (Some(kernel), Some(arriving)) = (&mut self.kernel, addresses(frame)) else {
            return;
        };
        let egress = u32::from(way.egress.0);
        let pair = ForwardedPair {
            ingress: key.0,
            egress,
            tci: way.header.vlan.map(VlanTag::encode),
            s_id: way.s_id.0,
            d_id: way.d_id.0,
            arriving,
            leaving: [way.header.dst.0, way.header.src.0],
            mtu: self.mtus[egress as usize],
        };
        match kernel.insert(&pair) {
            Ok(Some(route)) => {
                self.pairs.insert(key, KnownPair { pair, route });
                for id in [way.s_id, way.d_id] {
                    self.by_id.entry(id).or_default().insert(key);
                }
            }
            // It stays in user space.
            Ok(None) => {}
            Err(cause) => tracing::debug!("fast path: a pair was refused: {cause}"),
        }
    }

    /// All that was to leave at a port has left it, but for what its interface has in a queue.
    pub(super) fn has_flushed(&mut self, at: usize, port: &mut SwitchPort) {
        let (Some(kernel), Some(leaving)) = (&self.kernel, self.leaving.get_mut(at)) else {
            return;
        };
        let has_left = |port: &mut SwitchPort| {
            !port.has_more() && port.ether().is_some_and(|ether| ether.has_sent_all())
        };
        if !leaving.is_empty() && has_left(port) {
            for (route, number) in leaving.drain() {
                kernel.has_left(route, number);
            }
        }
    }

    /// An N_Port is not logged in any more.
    pub(super) fn forget(&mut self, id: FcId) {
        for key in self.by_id.remove(&id).unwrap_or_default() {
            self.remove(key);
        }
    }

    /// Forgets pairs that may not speak with each other any more.
    pub(super) fn keep(&mut self, is_allowed: impl Fn(PortNumber, FcId, FcId) -> bool) {
        self.forget_where(|(_, s_id, d_id), pair| {
            !is_allowed(PortNumber(pair.egress as u16), *s_id, *d_id)
        });
    }

    fn forget_at(&mut self, at: u32) {
        self.forget_where(|_, pair| pair.ingress == at || pair.egress == at);
    }

    fn forget_where(&mut self, is_over: impl Fn(&PairKey, &ForwardedPair) -> bool) {
        let over = self.pairs.iter();
        let over = over.filter(|(key, known)| is_over(key, &known.pair));
        let over: Vec<_> = over.map(|(key, _)| *key).collect();
        for key in over {
            self.remove(key);
        }
    }

    fn remove(&mut self, key: PairKey) {
        let (Some(kernel), Some(KnownPair { pair, route })) =
            (&mut self.kernel, self.pairs.remove(&key))
        else {
            return;
        };
        if let Err(cause) = kernel.remove(&pair, route) {
            tracing::debug!("fast path: a pair was gone already: {cause}");
        }
        self.leaving[pair.egress as usize].remove(&route);
        for id in [key.1, key.2] {
            if let Some(keys) = self.by_id.get_mut(&id) {
                keys.remove(&key);
                if keys.is_empty() {
                    self.by_id.remove(&id);
                }
            }
        }
    }

    /// What was forwarded of that which came in at a port, by the machine or by the kernel.
    pub(super) fn forwarded(&self, at: usize, machine: &PortCounters) -> FastPathCounters {
        let kernel = self.counters(at);
        FastPathCounters {
            frames: machine.forwarded_frames + kernel.frames,
            bytes: machine.forwarded_bytes + kernel.bytes,
        }
    }

    /// What the kernel has forwarded of that which came in at a port.
    pub(super) fn counters(&self, at: usize) -> FastPathCounters {
        let kernel = self.kernel.as_ref();
        let counters = kernel.and_then(|kernel| kernel.counters(at as u32).ok());
        counters.unwrap_or_default()
    }
}

/// With one interface there are only the stations behind that.
fn tell_attached(port: &SwitchPort, interfaces: usize) {
    let place = port.place();
    let to = match interfaces {
        1 => "between the stations behind this interface, the only one",
        _ => "from here to other interfaces",
    };
    tracing::info!("{place}: the kernel forwards frames {to} (generic XDP)");
}

fn tell_refusal(port: &SwitchPort, cause: &FastPathError) {
    let place = port.place();
    tracing::info!("{place}: all frames from here go through user space: {cause}");
}

/// Destination and source of a frame.
fn addresses(frame: &[u8]) -> Option<[[u8; 6]; 2]> {
    let (dst, rest) = frame.split_first_chunk()?;
    Some([*dst, *rest.first_chunk()?])
}
