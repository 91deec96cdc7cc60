//! A stretch of the way on which bits flip: a relay of TCP whose checksums are right again.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};

use anyhow::Result;

/// One bit is flipped in so many bytes, of both directions and of one connection after the other:
/// on a busy machine each moves little before it ends.
pub(crate) const SELDOM: u64 = 20_000_000;
/// The same where one command is under way, which moves little by itself.
pub(crate) const OFTEN: u64 = 4_000_000;

/// Of each connection so many bytes are left alone: a login is in them, which has no digests.
const LOGIN: u64 = 1_000_000;

/// A relay that listens until this is dropped.
pub(crate) struct Damage {
    bits: Arc<Bits>,
    portal: SocketAddr,
    over: Arc<AtomicBool>,
    listening: Option<JoinHandle<()>>,
}

impl Damage {
    /// Listens at `portal`, and passes on to `target`. One bit flips in `every` bytes.
    pub(crate) fn start(portal: &str, target: SocketAddr, every: u64) -> Result<Self> {
        let listener = TcpListener::bind(portal)?;
        let portal = listener.local_addr()?;
        let bits = Arc::new(Bits {
            every,
            since: AtomicU64::new(0),
            flipped: AtomicU64::new(0),
        });
        let over = Arc::new(AtomicBool::new(false));
        let (shared, told) = (Arc::clone(&bits), Arc::clone(&over));
        let listening = thread::spawn(move || {
            for near in listener.incoming().map_while(Result::ok) {
                if told.load(Ordering::Relaxed) {
                    return;
                }
                // A target that is gone ends the connection, as it would without the relay.
                if let Ok(far) = TcpStream::connect(target) {
                    relay(&near, &far, &shared);
                }
            }
        });
        Ok(Self {
            bits,
            portal,
            over,
            listening: Some(listening),
        })
    }

    /// Where it listens.
    pub(crate) fn portal(&self) -> SocketAddr {
        self.portal
    }

    /// How many bits were flipped so far.
    pub(crate) fn flipped(&self) -> u64 {
        self.bits.flipped.load(Ordering::Relaxed)
    }
}

impl Drop for Damage {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        // A connection has it look. Without one it would go on listening, where the next server is
        // to listen.
        if TcpStream::connect(self.portal).is_ok()
            && let Some(listening) = self.listening.take()
        {
            // It ends whether it has died or not.
            let _ = listening.join();
        }
    }
}

/// Which bits flip, for all connections of a relay.
struct Bits {
    every: u64,
    /// How many bytes passed since one was flipped, but those of logins.
    since: AtomicU64,
    flipped: AtomicU64,
}

impl Bits {
    /// Flips one of `bytes` if it is time to.
    fn flip(&self, bytes: &mut [u8]) {
        let len = bytes.len() as u64;
        let since = self.since.fetch_add(len, Ordering::Relaxed) + len;
        if since >= self.every {
            self.since.store(0, Ordering::Relaxed);
            bytes[bytes.len() / 2] ^= 1 << (since % 8);
            self.flipped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

fn relay(near: &TcpStream, far: &TcpStream, bits: &Arc<Bits>) {
    let passed = Arc::new(AtomicU64::new(0));
    for (from, to) in [(near, far), (far, near)] {
        let (Ok(from), Ok(to)) = (from.try_clone(), to.try_clone()) else {
            return;
        };
        let (passed, bits) = (Arc::clone(&passed), Arc::clone(bits));
        thread::spawn(move || {
            // Each end learns of the other's end by its own.
            let _ = pass_on(&from, &to, &passed, &bits);
            let _ = from.shutdown(Shutdown::Read);
            let _ = to.shutdown(Shutdown::Write);
        });
    }
}

fn pass_on(
    mut from: &TcpStream,
    mut to: &TcpStream,
    passed: &AtomicU64,
    bits: &Bits,
) -> std::io::Result<()> {
    let mut bytes = vec![0; 1 << 16];
    loop {
        let len = from.read(&mut bytes)?;
        if len == 0 {
            return Ok(());
        }
        if passed.fetch_add(len as u64, Ordering::Relaxed) >= LOGIN {
            bits.flip(&mut bytes[..len]);
        }
        to.write_all(&bytes[..len])?;
    }
}
