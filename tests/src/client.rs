//! The initiator of these tests on a real socket, one step after the other.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use scsi::wire::lun::Lun;

use crate::initiator::{Data, Initiator, Reply, Settings};
use crate::server::ReadyLun;

/// How long anything may take.
const LIMIT: Duration = Duration::from_secs(20);

/// A session of our own.
#[derive(Debug)]
pub struct Client {
    socket: TcpStream,
    /// Its protocol.
    pub initiator: Initiator,
    /// The LUN that it was made for.
    pub lun: Lun,
}

/// How a command ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// SCSI status.
    pub status: u16,
    /// Sense data.
    pub sense: Vec<u8>,
    /// What was read.
    pub data: Vec<u8>,
}

impl Client {
    /// Logs initiator `number` in where `lun` is, and takes the unit attentions of a new nexus.
    ///
    /// # Errors
    /// When it is not let in, or the unit does not become ready.
    pub fn log_in(lun: &ReadyLun, number: u32) -> Result<Self> {
        let portal = lun.portals.first().context("no portal")?.parse()?;
        let settings = Settings::new(number, &lun.target);
        let mut client = Self::connect(portal, settings)?;
        client.lun = Lun::from_index(lun.lun);
        for _ in 0..8 {
            if client.command(&[0; 6], Data::None)?.status == 0 {
                return Ok(client);
            }
        }
        bail!("the unit does not become ready");
    }

    /// Logs in with any settings.
    ///
    /// # Errors
    /// When it is not let in.
    pub fn connect(portal: SocketAddr, settings: Settings) -> Result<Self> {
        let socket = TcpStream::connect_timeout(&portal, LIMIT)?;
        socket.set_nodelay(true)?;
        let mut client = Self {
            socket,
            initiator: Initiator::new(settings),
            lun: Lun::from_index(0),
        };
        match client.reply()? {
            Reply::LoggedIn => Ok(client),
            other => bail!("not let in: {other:?}"),
        }
    }

    /// Carries out a command.
    ///
    /// # Errors
    /// When it gets no answer.
    pub fn command(&mut self, cdb: &[u8], data: Data) -> Result<Ended> {
        self.initiator.command(0, self.lun, cdb, data);
        loop {
            let reply = self.reply()?;
            if let Reply::Done {
                status,
                sense,
                data,
                ..
            } = reply
            {
                return Ok(Ended {
                    status,
                    sense,
                    data,
                });
            }
        }
    }

    /// Carries out a command that has to end with GOOD; gives what was read.
    ///
    /// # Errors
    /// When it does not.
    pub fn good(&mut self, cdb: &[u8], data: Data) -> Result<Vec<u8>> {
        match self.command(cdb, data)? {
            Ended {
                status: 0, data, ..
            } => Ok(data),
            other => bail!("{cdb:02x?}: {other:02x?}"),
        }
    }

    /// The next thing that comes from the target.
    ///
    /// # Errors
    /// When the connection is closed, or nothing comes.
    pub fn reply(&mut self) -> Result<Reply> {
        let end = Instant::now() + LIMIT;
        loop {
            if let Some(reply) = self.initiator.poll() {
                return Ok(reply);
            }
            self.exchange(Duration::from_millis(200))?;
            if Instant::now() > end {
                bail!("no answer within {} s", LIMIT.as_secs());
            }
        }
    }

    /// Sends what there is, and takes what comes within `time`.
    ///
    /// # Errors
    /// When the connection is closed.
    pub fn exchange(&mut self, time: Duration) -> Result<()> {
        let output = std::mem::take(self.initiator.output());
        self.socket.write_all(&output)?;
        self.socket.set_read_timeout(Some(time))?;
        let mut buffer = vec![0; 256 << 10];
        match self.socket.read(&mut buffer) {
            Ok(0) => bail!("the target closed the connection"),
            Ok(count) => Ok(self.initiator.receive(&buffer[..count])?),
            Err(cause) if matches!(cause.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                Ok(())
            }
            Err(cause) => Err(cause.into()),
        }
    }
}
