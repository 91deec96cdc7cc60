//! A stretch of the way on which bits flip: a relay of TCP whose checksums are right again.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};

use anyhow::Result;

/// One bit is flipped in so many bytes, of both directions of a connection together. A login is
/// over long before, which has no digests.
pub(crate) const SELDOM: u64 = 20_000_000;
/// The same for connections that a busy machine moves little by before they end.
pub(crate) const OFTEN: u64 = 4_000_000;

/// A relay that listens until this is dropped.
pub(crate) struct Damage {
    flipped: Arc<AtomicU64>,
    portal: SocketAddr,
    over: Arc<AtomicBool>,
    listening: Option<JoinHandle<()>>,
}

impl Damage {
    /// Listens at `portal`, and passes on to `target`. One bit flips in `every` bytes.
    pub(crate) fn start(portal: &str, target: SocketAddr, every: u64) -> Result<Self> {
        let listener = TcpListener::bind(portal)?;
        let portal = listener.local_addr()?;
        let flipped = Arc::new(AtomicU64::new(0));
        let over = Arc::new(AtomicBool::new(false));
        let (count, told) = (Arc::clone(&flipped), Arc::clone(&over));
        let listening = thread::spawn(move || {
            for near in listener.incoming().map_while(Result::ok) {
                if told.load(Ordering::Relaxed) {
                    return;
                }
                // A target that is gone ends the connection, as it would without the relay.
                if let Ok(far) = TcpStream::connect(target) {
                    relay(&near, &far, every, &count);
                }
            }
        });
        Ok(Self {
            flipped,
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
        self.flipped.load(Ordering::Relaxed)
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

fn relay(near: &TcpStream, far: &TcpStream, every: u64, flipped: &Arc<AtomicU64>) {
    let passed = Arc::new(AtomicU64::new(0));
    for (from, to) in [(near, far), (far, near)] {
        let (Ok(from), Ok(to)) = (from.try_clone(), to.try_clone()) else {
            return;
        };
        let (passed, flipped) = (Arc::clone(&passed), Arc::clone(flipped));
        thread::spawn(move || {
            // Each end learns of the other's end by its own.
            let _ = pass_on(&from, &to, every, (&passed, &flipped));
            let _ = from.shutdown(Shutdown::Read);
            let _ = to.shutdown(Shutdown::Write);
        });
    }
}

fn pass_on(
    mut from: &TcpStream,
    mut to: &TcpStream,
    every: u64,
    (passed, flipped): (&AtomicU64, &AtomicU64),
) -> std::io::Result<()> {
    let mut bytes = vec![0; 1 << 16];
    loop {
        let len = from.read(&mut bytes)?;
        if len == 0 {
            return Ok(());
        }
        let before = passed.fetch_add(len as u64, Ordering::Relaxed);
        let after = before + len as u64;
        if before / every != after / every {
            bytes[len / 2] ^= 1 << (after % 8);
            flipped.fetch_add(1, Ordering::Relaxed);
        }
        to.write_all(&bytes[..len])?;
    }
}
