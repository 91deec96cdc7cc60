//! A relay of TCP that keeps what a target answers first: to the logins of an initiator that does
//! not tell what it has agreed on.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use anyhow::{Result, bail};

/// More than the answers to a login.
const KEPT_BYTES: usize = 4096;

/// Relays until the process ends.
pub(crate) struct Overheard {
    portal: SocketAddr,
    answers: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl Overheard {
    /// Listens on a free port, and passes on to `target`.
    pub(crate) fn start(target: SocketAddr) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let portal = listener.local_addr()?;
        let answers = Arc::<Mutex<Vec<Vec<u8>>>>::default();
        let kept = Arc::clone(&answers);
        thread::spawn(move || {
            for near in listener.incoming().map_while(Result::ok) {
                // A target that is gone ends the connection, as it would without the relay.
                if let Ok(far) = TcpStream::connect(target) {
                    relay(&near, &far, &kept);
                }
            }
        });
        Ok(Self { portal, answers })
    }

    /// Where it listens.
    pub(crate) fn portal(&self) -> SocketAddr {
        self.portal
    }

    /// Whether these words are in the answers on every connection, and there was one.
    pub(crate) fn have(&self, words: &str) -> Result<()> {
        let answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let lacks = |answer: &&Vec<u8>| !String::from_utf8_lossy(answer).contains(words);
        match answers.iter().find(lacks) {
            Some(answer) => bail!("no {words} in {}", String::from_utf8_lossy(answer)),
            None if answers.is_empty() => bail!("there was no login"),
            None => Ok(()),
        }
    }
}

fn relay(near: &TcpStream, far: &TcpStream, kept: &Arc<Mutex<Vec<Vec<u8>>>>) {
    let number = {
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.push(Vec::new());
        kept.len() - 1
    };
    for (from, to, keeps) in [(near, far, false), (far, near, true)] {
        let (Ok(from), Ok(to)) = (from.try_clone(), to.try_clone()) else {
            return;
        };
        let kept = Arc::clone(kept);
        thread::spawn(move || {
            let keep = |bytes: &[u8]| {
                let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                let room = KEPT_BYTES.saturating_sub(kept[number].len());
                kept[number].extend(&bytes[..bytes.len().min(room)]);
            };
            // Each end learns of the other's end by its own.
            let _ = pass_on(&from, &to, |bytes| {
                if keeps {
                    keep(bytes);
                }
            });
            let _ = from.shutdown(Shutdown::Read);
            let _ = to.shutdown(Shutdown::Write);
        });
    }
}

fn pass_on(mut from: &TcpStream, mut to: &TcpStream, keep: impl Fn(&[u8])) -> std::io::Result<()> {
    let mut bytes = vec![0; 1 << 16];
    loop {
        let len = from.read(&mut bytes)?;
        if len == 0 {
            return Ok(());
        }
        keep(&bytes[..len]);
        to.write_all(&bytes[..len])?;
    }
}
