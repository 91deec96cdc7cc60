//! A relay in a cable: frames are lost on it, or the cable is cut.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context, Result};

/// Works until this is dropped.
pub(crate) struct Relay {
    near: PathBuf,
    state: Arc<RelayState>,
    ways: Vec<JoinHandle<()>>,
}

/// What both ways know.
struct RelayState {
    over: AtomicBool,
    cut: AtomicBool,
    /// Frames, either way.
    lost: [AtomicU64; 2],
}

/// How soon a way sees that all is over. A frame waits for room at its receiver no longer than
/// that, and the next ones hardly: a sender that is held back for seconds would complain.
const TIMEOUT: Duration = Duration::from_millis(100);
const STUCK_TIMEOUT: Duration = Duration::from_millis(1);

/// More than any frame.
const FRAME_MAX: usize = 16 << 10;

impl Relay {
    /// Takes the end of `cable` that `lunar` would have, and makes another cable to `lunar`. Of
    /// a million frames `lost` are lost.
    pub(crate) fn start(cable: &Path, lost: u32) -> Result<Self> {
        let near = behind(cable, ".near");
        let state = Arc::new(RelayState {
            over: AtomicBool::new(false),
            cut: AtomicBool::new(false),
            lost: [const { AtomicU64::new(0) }; 2],
        });
        let ends = [
            (cable.to_owned(), near.clone()),
            (behind(&near, ".peer"), behind(cable, ".peer")),
        ];
        let mut relay = Self {
            near,
            state,
            ways: Vec::new(),
        };
        for (at, (from, to)) in ends.into_iter().enumerate() {
            let _ = fs::remove_file(&from);
            let socket = UnixDatagram::bind(&from).context("no end of the cable")?;
            socket.set_read_timeout(Some(TIMEOUT))?;
            socket.set_write_timeout(Some(TIMEOUT))?;
            let state = Arc::clone(&relay.state);
            let way = thread::spawn(move || {
                state.relay(at, &socket, &to, lost);
                // The next one to have this end makes its own.
                let _ = fs::remove_file(&from);
            });
            relay.ways.push(way);
        }
        Ok(relay)
    }

    /// The cable to `lunar`.
    pub(crate) fn cable(&self) -> &Path {
        &self.near
    }

    /// Cuts the cable, or joins it again. Neither end sees its link go down.
    pub(crate) fn cut(&self, cut: bool) {
        self.state.cut.store(cut, Ordering::Relaxed);
    }

    /// How many frames were lost from the guest and to it.
    pub(crate) fn lost(&self) -> [u64; 2] {
        [0, 1].map(|way| self.state.lost[way].load(Ordering::Relaxed))
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.state.over.store(true, Ordering::Relaxed);
        for way in self.ways.drain(..) {
            // It ends whether it has died or not.
            let _ = way.join();
        }
    }
}

impl RelayState {
    fn relay(&self, way: usize, from: &UnixDatagram, to: &Path, lost: u32) {
        let mut frame = vec![0; FRAME_MAX];
        let mut rng = fastrand::Rng::with_seed(way as u64);
        while !self.over.load(Ordering::Relaxed) {
            let Ok(len) = from.recv(&mut frame) else {
                continue;
            };
            if self.cut.load(Ordering::Relaxed) || rng.u32(..1_000_000) < lost {
                self.lost[way].fetch_add(1, Ordering::Relaxed);
            } else {
                // Without a receiver it is lost, as it would be without the relay.
                let sent = from.send_to(&frame[..len], to);
                let is_stuck = sent.is_err_and(|cause| cause.kind() == ErrorKind::WouldBlock);
                let patience = if is_stuck { STUCK_TIMEOUT } else { TIMEOUT };
                // If it stays as it was, this only takes longer.
                let _ = from.set_write_timeout(Some(patience));
            }
        }
    }
}

fn behind(path: &Path, more: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(more);
    name.into()
}
