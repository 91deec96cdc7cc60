//! The initiator of the tests on a real socket.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tests::initiator::{Data, Initiator, Reply, Settings};

use super::target::Target;

/// How long anything may take.
const LIMIT: Duration = Duration::from_secs(20);

/// As much as is received at once.
const BUFFER: usize = 1 << 20;

/// A session with a target.
#[derive(Debug)]
pub(crate) struct Session {
    socket: TcpStream,
    /// Its protocol.
    pub(crate) initiator: Initiator,
    /// How much of the output has been sent.
    sent: usize,
}

/// What bytes are received into, for all sessions of a thread.
#[derive(Debug)]
pub(crate) struct Buffer(Vec<u8>);

impl Buffer {
    pub(crate) fn new() -> Self {
        Self(vec![0; BUFFER])
    }
}

impl Session {
    /// Logs initiator `number` in, with header and data digests or without.
    pub(crate) fn log_in(
        target: &Target,
        number: u32,
        digests: bool,
        buffer: &mut Buffer,
    ) -> Result<Self> {
        let mut settings = Settings::new(number, &target.iqn);
        settings.keep_data = false;
        if digests {
            settings.keys = ["HeaderDigest", "DataDigest"]
                .map(|key| (key, "CRC32C".to_owned()))
                .to_vec();
        }
        let socket = TcpStream::connect_timeout(&target.portal, LIMIT)?;
        socket.set_nodelay(true)?;
        socket.set_nonblocking(true)?;
        let mut session = Self {
            socket,
            initiator: Initiator::new(settings),
            sent: 0,
        };
        match session.wait_reply(buffer)? {
            Reply::LoggedIn if digests != session.initiator.limits.data_digest => {
                bail!(
                    "{} does not have the digests that were offered",
                    target.name
                )
            }
            Reply::LoggedIn => Ok(session),
            other => bail!("{} let nobody in: {other:?}", target.name),
        }
    }

    /// Takes what a new nexus is told (unit attentions) out of the way.
    pub(crate) fn settle(&mut self, target: &Target, buffer: &mut Buffer) -> Result<()> {
        for _ in 0..8 {
            self.initiator.command(0, target.lun, &[0; 6], Data::None);
            if matches!(self.wait_reply(buffer)?, Reply::Done { status: 0, .. }) {
                return Ok(());
            }
        }
        bail!("{} does not become ready", target.name);
    }

    fn wait_reply(&mut self, buffer: &mut Buffer) -> Result<Reply> {
        let end = Instant::now() + LIMIT;
        loop {
            if let Some(reply) = self.initiator.poll() {
                return Ok(reply);
            }
            self.send()?;
            wait(std::slice::from_mut(self))?;
            self.exchange(buffer)?;
            if Instant::now() > end {
                bail!("no answer within {} s", LIMIT.as_secs());
            }
        }
    }

    /// Sends what can be sent and takes what has come; returns whether anything has.
    pub(crate) fn exchange(&mut self, buffer: &mut Buffer) -> Result<bool> {
        self.send()?;
        match self.socket.read(&mut buffer.0) {
            Ok(0) => bail!("the target closed the connection"),
            Ok(count) => self.initiator.receive(&buffer.0[..count])?,
            Err(cause) if cause.kind() == ErrorKind::WouldBlock => return Ok(false),
            Err(cause) => return Err(cause.into()),
        }
        Ok(true)
    }

    /// Sends what can be sent.
    pub(crate) fn send(&mut self) -> Result<()> {
        let output = self.initiator.output();
        while self.sent < output.len() {
            match self.socket.write(&output[self.sent..]) {
                Ok(count) => self.sent += count,
                Err(cause) if cause.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(cause) => return Err(cause.into()),
            }
        }
        output.clear();
        self.sent = 0;
        Ok(())
    }
}

/// Waits until one of them can go on, for a second at the most.
pub(crate) fn wait(sessions: &mut [Session]) -> Result<()> {
    let entry = |session: &mut Session| {
        let unsent = !session.initiator.output().is_empty();
        if unsent {
            PollFlags::IN | PollFlags::OUT
        } else {
            PollFlags::IN
        }
    };
    let flags: Vec<_> = sessions.iter_mut().map(entry).collect();
    let pairs = sessions.iter().zip(flags);
    let mut list: Vec<_> = pairs
        .map(|(session, flags)| PollFd::new(&session.socket, flags))
        .collect();
    let second = Timespec {
        tv_sec: 1,
        tv_nsec: 0,
    };
    poll(&mut list, Some(&second))?;
    Ok(())
}
