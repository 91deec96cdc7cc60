//! The initiator of these tests on a real socket, one step after the other.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use scsi::wire::lun::Lun;

use crate::cdb::{self, Reserve};
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
        Self::log_in_as(lun, Settings::new(number, &lun.target))
    }

    /// The same with any settings.
    ///
    /// # Errors
    /// When it is not let in, or the unit does not become ready.
    pub fn log_in_as(lun: &ReadyLun, settings: Settings) -> Result<Self> {
        let portal = lun.portals.first().context("no portal")?.parse()?;
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

    /// Reads blocks of 512 bytes.
    ///
    /// # Errors
    /// When the command does not end with GOOD.
    pub fn read(&mut self, lba: u64, blocks: u32) -> Result<Vec<u8>> {
        self.good(&cdb::read(lba, blocks), Data::In(512 * blocks))
    }

    /// Writes blocks of 512 bytes, with FUA if so told.
    ///
    /// # Errors
    /// When the command does not end with GOOD.
    pub fn write(&mut self, lba: u64, bytes: impl Into<Vec<u8>>, fua: bool) -> Result<()> {
        let bytes = bytes.into();
        let cdb = cdb::write(lba, bytes.len() as u32 / 512, fua);
        self.good(&cdb, Data::Out(bytes.into())).map(drop)
    }

    /// PERSISTENT RESERVE OUT, which has to end with GOOD.
    ///
    /// # Errors
    /// When it does not.
    pub fn reserve(&mut self, action: Reserve, kind: u8, key: u64, action_key: u64) -> Result<()> {
        let (cdb, list) = cdb::reserve_out(action, kind, key, action_key);
        self.good(&cdb, Data::Out(Rc::from(list))).map(drop)
    }

    /// PERSISTENT RESERVE IN: the parameter data of READ KEYS (0) or READ RESERVATION (1), without
    /// its header.
    ///
    /// # Errors
    /// When it does not end with GOOD.
    pub fn reservations(&mut self, action: u8) -> Result<Vec<u8>> {
        let cdb = [0x5e, action, 0, 0, 0, 0, 0, 1, 0, 0];
        let data = self.good(&cdb, Data::In(256))?;
        let (header, list) = data.split_at_checked(8).context("no header")?;
        let len = u32::from_be_bytes(*header.last_chunk().context("no length")?);
        Ok(list.get(..len as usize).context("too short")?.to_vec())
    }

    /// The keys of all registrations, in their order as numbers.
    ///
    /// # Errors
    /// When the command does not end with GOOD.
    pub fn keys(&mut self) -> Result<Vec<u64>> {
        let list = self.reservations(0)?;
        let (keys, _) = list.as_chunks();
        let mut keys: Vec<_> = keys.iter().copied().map(u64::from_be_bytes).collect();
        keys.sort_unstable();
        Ok(keys)
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
