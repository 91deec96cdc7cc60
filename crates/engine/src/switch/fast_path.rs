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

/// Whose frames the kernel forwards, on one core.
#[derive(Clone, Debug, Default)]
pub(super) struct SwitchFastPath {
    /// What all cores have in common. `None`: all frames go through user space.
    shared: Option<Arc<SharedPairs>>,
    core: usize,
    /// Egress ports of which the kernel is to be told that frames of this core have left, a bit
    /// each.
    leaving: u64,
}

#[derive(Debug)]
struct SharedPairs {
    /// Ports that have the program, a bit each: most frames that come to user space are of others,
    /// and need no lock.
    attached: AtomicU64,
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
    /// Of each core and egress: the last frame of a pair that came to the machine, and has to leave
    /// before the kernel may send the next one.
    leaving: Vec<Vec<HashMap<RouteNumber, FrameNumber>>>,
    /// Cores that forward by an older table than this one insert no pair: it may have been taken
    /// out just before.
    least: u64,
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
    pub(super) fn start(choice: FastPathChoice, ports: &mut [SwitchPort], cores: usize) -> Self {
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
            leaving: vec![vec![HashMap::new(); ports.len()]; cores],
            least: 0,
        };
        let shared = SharedPairs {
            attached: AtomicU64::new(0),
            pairs: Mutex::new(pairs),
        };
        let path = Self {
            shared: Some(Arc::new(shared)),
            ..Self::default()
        };
        for (at, port) in ports.iter_mut().enumerate() {
            path.look_at(at, port);
        }
        path
    }

    /// The same on another core.
    pub(super) fn on_core(&self, core: usize) -> Self {
        Self {
            core,
            ..self.clone()
        }
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

    /// The table of that version has let a frame through, which is the next to leave at its egress,
    /// behind what waits there. Returns whether it has a number of the kernel, which is to be taken
    /// out: the kernel is told when the frame has left.
    pub(super) fn learn(
        &mut self,
        version: u64,
        ingress: PortNumber,
        way: &Forwarding,
        frame: &[u8],
    ) -> bool {
        let Some(shared) = &self.shared else {
            return false;
        };
        let number = FrameNumber::of(frame, way.start);
        let both = 1 << ingress.0 | 1 << way.egress.0;
        let is_attached = shared.attached.load(Ordering::Relaxed) & both == both;
        if number.is_none() && !is_attached {
            return false;
        }
        let key = (u32::from(ingress.0), way.s_id, way.d_id);
        let mut pairs = shared.lock();
        let route = pairs.pairs.get(&key).map(|known| known.route);
        match (route, number) {
            (Some(route), Some(number)) => {
                let egress = usize::from(way.egress.0);
                pairs.leaving[self.core][egress].insert(route, number);
                self.leaving |= 1 << egress;
            }
            (None, _) if is_attached && version >= pairs.least => pairs.insert(key, way, frame),
            // One of a pair that is unknown came in before the pair was forgotten.
            _ => {}
        }
        number.is_some()
    }

    /// All that was to leave at a port has left it, but for what its interface has in a queue.
    pub(super) fn has_flushed(&mut self, at: usize, port: &mut SwitchPort) {
        let Some(shared) = &self.shared else {
            return;
        };
        if self.leaving & 1 << at == 0 || port.has_more() {
            return;
        }
        if port.ether().is_some_and(|ether| ether.has_sent_all()) {
            let mut pairs = shared.lock();
            let ForwardedPairs {
                kernel, leaving, ..
            } = &mut *pairs;
            for (route, number) in leaving[self.core][at].drain() {
                kernel.has_left(route, number);
            }
            self.leaving &= !(1 << at);
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
        let counters = self.shared.as_ref();
        let counters = counters.and_then(|one| one.lock().kernel.counters(at as u32).ok());
        counters.unwrap_or_default()
    }

    fn change(&self, change: impl FnOnce(&mut ForwardedPairs)) {
        if let Some(shared) = &self.shared {
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
        for core in &mut self.leaving {
            core[pair.egress as usize].remove(&route);
        }
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
