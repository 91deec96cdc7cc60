//! Pairs of N_Ports whose frames the kernel forwards by itself, from interface to interface
//! ([`::io::ether::fast_path`]).
//!
//! The kernel only repeats what the machine has decided: a pair is handed to it when the machine
//! has let one of its frames through. What takes that back, a logout, other zones or a link that
//! has changed, takes the pair out as soon as it is known. The machine tells of it on the same
//! turn, and what it has to say leaves at the end of the turn, so no change is answered before the
//! kernel has forgotten the pair.
//!
//! Liveness is known by keep alives. They are FIP and always reach the machine, so frames that the
//! kernel forwards make no port seem silent.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ::io::ether::fast_path::{
    FastPath, FastPathCounters, FastPathError, ForwardedPair, FrameNumber, RouteNumber,
};
use fc::fabric::{Forwarding, PortCounters, PortNumber};
use fc::wire::ethernet::VlanTag;
use fc::wire::names::FcId;

use super::options::FastPathChoice;
use super::port::SwitchPort;

/// Whose frames the kernel forwards, as all cores of a switch have it in common. `None`: all frames
/// go through the machine.
#[derive(Clone, Debug, Default)]
pub(super) struct SwitchFastPath(Option<Arc<SharedPairs>>);

#[derive(Debug)]
struct SharedPairs {
    /// Ports that have the program, a bit each: most frames that come to user space are of others,
    /// and need no lock.
    attached: AtomicU64,
    /// Egress ports of which the kernel is to be told that frames have left.
    leaving: AtomicU64,
    pairs: Mutex<ForwardedPairs>,
}

#[derive(Debug)]
struct ForwardedPairs {
    kernel: FastPath,
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
    /// Cores that forward by an older table than this one insert no pair: it may have been taken
    /// out just before.
    least: u64,
}

/// A frame that has a number of the kernel, and its pair: it has left before the next one may go by
/// the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NumberedFrame {
    key: PairKey,
    route: RouteNumber,
    number: FrameNumber,
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
        let kernel = match FastPath::new(ports.len() as u32, interfaces as u32) {
            Ok(kernel) => kernel,
            Err(cause) => {
                tracing::info!("fast path: all frames go through user space: {cause}");
                return Self::default();
            }
        };
        let pairs = ForwardedPairs {
            kernel,
            interfaces,
            pairs: HashMap::new(),
            by_id: HashMap::new(),
            mtus: vec![0; ports.len()],
            leaving: ports.iter().map(|_| HashMap::new()).collect(),
            least: 0,
        };
        let path = Self(Some(Arc::new(SharedPairs {
            attached: AtomicU64::new(0),
            leaving: AtomicU64::new(0),
            pairs: Mutex::new(pairs),
        })));
        for (at, port) in ports.iter_mut().enumerate() {
            path.look_at(at, port);
        }
        path
    }

    /// Detaches the program from a port and attaches it again, as its PFC settings have changed.
    pub(super) fn attach_anew(&self, at: usize, port: &mut SwitchPort) {
        self.change(|pairs| {
            pairs.forget_at(at as u32);
            pairs.kernel.detach(at as u32);
            pairs.look_at(at, port);
        });
    }

    /// The link of a port has changed: what the kernel knew of it is void.
    pub(super) fn look_at(&self, at: usize, port: &mut SwitchPort) {
        self.change(|pairs| {
            pairs.forget_at(at as u32);
            pairs.look_at(at, port);
        });
    }

    /// The table of that version has let a frame through. Returns what the kernel is to be told
    /// when it leaves, and whether it has a number of the kernel, which is to be taken out.
    pub(super) fn learn(
        &self,
        version: u64,
        ingress: PortNumber,
        way: &Forwarding,
        frame: &[u8],
    ) -> (Option<NumberedFrame>, bool) {
        let Some(shared) = &self.0 else {
            return (None, false);
        };
        let number = FrameNumber::of(frame, way.start);
        let both = 1 << ingress.0 | 1 << way.egress.0;
        let is_attached = shared.attached.load(Ordering::Relaxed) & both == both;
        if number.is_none() && !is_attached {
            return (None, false);
        }
        let key = (u32::from(ingress.0), way.s_id, way.d_id);
        let mut pairs = shared.lock();
        let numbered = match (pairs.pairs.get(&key), number) {
            (Some(known), Some(number)) => Some(NumberedFrame {
                key,
                route: known.route,
                number,
            }),
            (None, _) if is_attached && version >= pairs.least => {
                pairs.insert(key, way, frame);
                None
            }
            // One of a pair that is unknown came in before the pair was forgotten.
            _ => None,
        };
        (numbered, number.is_some())
    }

    /// Such a frame is the next to leave at that egress, behind what waits there.
    pub(super) fn leaves(&self, egress: usize, frame: Option<NumberedFrame>) {
        let (Some(shared), Some(frame)) = (&self.0, frame) else {
            return;
        };
        let mut pairs = shared.lock();
        let known = pairs.pairs.get(&frame.key);
        if known.is_some_and(|known| known.route == frame.route) {
            pairs.leaving[egress].insert(frame.route, frame.number);
            shared.leaving.fetch_or(1 << egress, Ordering::Relaxed);
        }
    }

    /// All that was to leave at a port has left it, but for what its interface has in a queue.
    pub(super) fn has_flushed(&self, at: usize, port: &mut SwitchPort) {
        let Some(shared) = &self.0 else {
            return;
        };
        if shared.leaving.load(Ordering::Relaxed) & 1 << at == 0 || port.has_more() {
            return;
        }
        if port.ether().is_some_and(|ether| ether.has_sent_all()) {
            let mut pairs = shared.lock();
            let ForwardedPairs {
                kernel, leaving, ..
            } = &mut *pairs;
            for (route, number) in leaving[at].drain() {
                kernel.has_left(route, number);
            }
            shared.leaving.fetch_and(!(1 << at), Ordering::Relaxed);
        }
    }

    /// An N_Port is not logged in any more, by the table of that version.
    pub(super) fn forget(&self, version: u64, id: FcId) {
        self.change(|pairs| {
            pairs.least = version;
            pairs.forget(id);
        });
    }

    /// Forgets pairs that may not speak with each other any more, by the table of that version.
    pub(super) fn keep(&self, version: u64, is_allowed: impl Fn(PortNumber, FcId, FcId) -> bool) {
        self.change(|pairs| {
            pairs.least = version;
            pairs.forget_where(|(_, s_id, d_id), pair| {
                !is_allowed(PortNumber(pair.egress as u16), *s_id, *d_id)
            });
        });
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
        let counters = self.0.as_ref();
        let counters = counters.and_then(|one| one.lock().kernel.counters(at as u32).ok());
        counters.unwrap_or_default()
    }

    fn change(&self, change: impl FnOnce(&mut ForwardedPairs)) {
        if let Some(shared) = &self.0 {
            let mut pairs = shared.lock();
            change(&mut pairs);
            let ports = 0..pairs.mtus.len();
            let attached = ports.filter(|at| pairs.kernel.is_attached(*at as u32));
            let attached = attached.fold(0, |set, at| set | 1 << at);
            shared.attached.store(attached, Ordering::Relaxed);
        }
    }
}

impl SharedPairs {
    fn lock(&self) -> MutexGuard<'_, ForwardedPairs> {
        self.pairs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ForwardedPairs {
    fn look_at(&mut self, at: usize, port: &mut SwitchPort) {
        let is_cable = port.is_cable();
        let Some(ether) = port.ether() else {
            return;
        };
        self.mtus[at] = ether.link().mtu;
        if is_cable || !ether.link().up || self.kernel.is_attached_to(at as u32, ether) {
            return;
        }
        match self.kernel.attach(at as u32, ether) {
            Ok(()) => tell_attached(port, self.interfaces),
            Err(cause) => tell_refusal(port, &cause),
        }
    }

    fn insert(&mut self, key: PairKey, way: &Forwarding, frame: &[u8]) {
        let Some(arriving) = addresses(frame) else {
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
        match self.kernel.insert(&pair) {
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

    fn forget(&mut self, id: FcId) {
        for key in self.by_id.remove(&id).unwrap_or_default() {
            self.remove(key);
        }
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
        let Some(KnownPair { pair, route }) = self.pairs.remove(&key) else {
            return;
        };
        if let Err(cause) = self.kernel.remove(&pair, route) {
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
