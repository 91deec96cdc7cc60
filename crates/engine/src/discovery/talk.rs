//! A session on a socket that one thread waits for: a few questions, one after the other.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use iscsi::datamover::Outgoing;
use iscsi::initiator::error::End;
use iscsi::initiator::{Command, Data, Done, Event, Initiator};
use scsi::client::{self, Answer, Client, Facts, Output};
use scsi::medium::{HeapLease, Lease};
use scsi::task::Attribute;
use scsi::wire::cdb::be32;
use scsi::wire::lun::Lun;

use crate::remote::{Portal, RemoteError};

/// A session.
pub(crate) struct Talk {
    initiator: Initiator<HeapLease>,
    stream: TcpStream,
    begun: Instant,
    /// When the present question was asked.
    asked: Instant,
    /// What came and was not taken.
    held: Vec<u8>,
}

/// How long connecting may take for each address, and how long each question.
const CONNECT: Duration = Duration::from_secs(5);
const LIMIT: Duration = Duration::from_secs(30);

/// How long is waited for octets before deadlines are looked at.
const TURN: Duration = Duration::from_millis(50);

/// How often a question is repeated that is answered by something else first.
const TRIES: usize = 8;

/// Octets of a list of LUNs that are asked for: 1023 of them.
const LIST: usize = 8192;

impl Talk {
    pub(crate) fn log_in(portal: &Portal) -> Result<Self, RemoteError> {
        let begun = Instant::now();
        let stream = ::io::tcp::connect(&portal.host, portal.port, CONNECT);
        let stream = TcpStream::from(stream.map_err(RemoteError::Connect)?);
        let timeout = stream.set_read_timeout(Some(TURN));
        timeout
            .and_then(|()| stream.set_write_timeout(Some(CONNECT)))
            .map_err(RemoteError::Connect)?;
        let other = |cause: String| RemoteError::Connect(std::io::Error::other(cause));
        let mut random = [0; 37];
        getrandom::fill(&mut random).map_err(|cause| other(cause.to_string()))?;
        let config = Arc::new(portal.config.clone());
        let initiator = Initiator::new(config, Duration::ZERO, random);
        let initiator = initiator.map_err(|cause| other(cause.to_string()))?;
        let mut talk = Self {
            initiator,
            stream,
            begun,
            asked: begun,
            held: Vec::new(),
        };
        while !matches!(talk.event()?, Event::LoggedIn) {}
        Ok(talk)
    }

    pub(super) fn send_targets(&mut self) {
        // Refused only where the session has ended, which the next event tells.
        let _ = self.initiator.send_targets(self.begun.elapsed(), "All");
    }

    /// What happens next, unless it is the end.
    pub(super) fn event(&mut self) -> Result<Event<HeapLease>, RemoteError> {
        loop {
            match self.initiator.poll() {
                Some(Event::Ended(end)) => return Err(RemoteError::Session(end.into())),
                // The end that follows says why.
                Some(Event::Failed(_)) => {}
                Some(event) => return Ok(event),
                None if self.asked.elapsed() > LIMIT => {
                    return Err(RemoteError::Late(LIMIT.as_secs()));
                }
                None => self.turn(),
            }
        }
    }

    /// While nothing is under way: only an end is news.
    fn wait_a_turn(&mut self) -> Result<(), RemoteError> {
        self.turn();
        while let Some(event) = self.initiator.poll() {
            if let Event::Ended(end) = event {
                return Err(RemoteError::Session(end.into()));
            }
        }
        Ok(())
    }

    fn turn(&mut self) {
        let mut batch = Batch::default();
        while self.initiator.transmit(&mut batch) {
            // A target that is gone is noticed by reading.
            let _ = self.stream.write_all(&batch.0);
            batch.0.clear();
        }
        let now = self.begun.elapsed();
        self.initiator.expire(now);
        let held = std::mem::take(&mut self.held);
        if !held.is_empty() {
            let used = self.initiator.receive(now, &held);
            self.held
                .extend_from_slice(held.get(used..).unwrap_or_default());
            return;
        }
        let mut octets = vec![0; 1 << 16];
        match self.stream.read(&mut octets) {
            Ok(0) => self.initiator.lost(),
            Ok(len) => self.held.extend_from_slice(&octets[..len]),
            Err(_) => {}
        }
    }

    /// The units that there are (SPC-5 §6.33).
    pub(super) fn report_luns(&mut self) -> Result<Vec<Lun>, RemoteError> {
        let mut cdb = [0; 16];
        cdb[0] = REPORT_LUNS;
        cdb[6..10].copy_from_slice(&(LIST as u32).to_be_bytes());
        self.asked = Instant::now();
        for _ in 0..TRIES {
            let into = HeapLease::from_bytes(vec![0; LIST]);
            let done = self.command(Lun::from_index(0), cdb, Data::In { into })?;
            if let (0, Data::In { into }) = (done.status, done.data) {
                return Ok(luns(&into));
            }
        }
        Err(RemoteError::Session(End::Stuck.into()))
    }

    /// What a unit says of itself. Where it is the unit that cannot, the session can be used on.
    pub(super) fn facts(&mut self, lun: Lun) -> Result<Facts, RemoteError> {
        self.asked = Instant::now();
        let mut client = Client::default();
        client.begin();
        loop {
            match client.poll() {
                Some(Output::Execute(request)) => self.answer(&mut client, lun, request)?,
                Some(Output::Refused(refusal)) => {
                    let lun = lun.to_string();
                    return Err(RemoteError::Unit { lun, refusal });
                }
                Some(_) => {}
                None if self.asked.elapsed() > LIMIT => {
                    return Err(RemoteError::Late(LIMIT.as_secs()));
                }
                None => {
                    if let Some(facts) = client.facts() {
                        return Ok(facts.clone());
                    }
                    // A unit that is busy is asked again.
                    self.wait_a_turn()?;
                    client.expire(self.begun.elapsed());
                }
            }
        }
    }

    fn answer(
        &mut self,
        client: &mut Client<HeapLease>,
        lun: Lun,
        request: client::Request<HeapLease>,
    ) -> Result<(), RemoteError> {
        let data = match request.data {
            client::Data::None => Data::None,
            client::Data::In(into) => Data::In { into },
            client::Data::Out(from) => Data::Out { from },
        };
        let done = self.command(lun, request.cdb, data)?;
        let answer = Answer {
            status: done.status,
            sense: done.sense.as_slice(),
            moved: done.moved as usize,
        };
        client.answered(self.begun.elapsed(), request.id, &answer);
        Ok(())
    }

    fn command(
        &mut self,
        lun: Lun,
        cdb: [u8; 16],
        data: Data<HeapLease>,
    ) -> Result<Done<HeapLease>, RemoteError> {
        let command = Command {
            id: 0,
            lun,
            cdb,
            attribute: Attribute::Simple,
            data,
            deadline: None,
        };
        if self
            .initiator
            .execute(self.begun.elapsed(), command)
            .is_err()
        {
            return Err(RemoteError::Session(End::Stuck.into()));
        }
        loop {
            if let Event::Done(done) = self.event()? {
                return Ok(done);
            }
        }
    }

    pub(crate) fn leave(mut self) {
        if self.initiator.logout(self.begun.elapsed()).is_ok() {
            while self.event().is_ok() {}
        }
    }
}

fn luns(list: &HeapLease) -> Vec<Lun> {
    let mut octets = vec![0; list.len()];
    list.copy_out(0, &mut octets);
    let length = be32(&octets, 0) as usize;
    let listed = octets[8..].chunks_exact(8).take(length / 8);
    let lun = |octets: &[u8]| octets.try_into().ok().map(Lun);
    listed.filter_map(lun).collect()
}

#[derive(Default)]
struct Batch(Vec<u8>);

impl Outgoing<HeapLease> for Batch {
    fn octets(&mut self, octets: &[u8]) {
        self.0.extend_from_slice(octets);
    }

    fn lease(&mut self, data: HeapLease) {
        self.copied(&data);
    }

    fn copied(&mut self, data: &HeapLease) -> &[u8] {
        let start = self.0.len();
        self.0.resize(start + data.len(), 0);
        data.copy_out(0, &mut self.0[start..]);
        &self.0[start..]
    }

    fn is_full(&self) -> bool {
        self.0.len() > 1 << 16
    }
}

const REPORT_LUNS: u8 = 0xa0;

#[cfg(test)]
mod tests;
