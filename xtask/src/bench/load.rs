//! Load: sessions that keep this many commands in flight, at random places of the volume.

use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use io::cpu;
use serde::Serialize;
use tests::initiator::{Data, Reply};

use super::VOLUME;
use super::meter::{Measured, Meter};
use super::process::GENERATOR_CPU;
use super::session::{self, Buffer, Session};
use super::target::Target;

/// Pauses of the processor between two looks at the sockets, half a microsecond or so in all: a
/// look is a system call that holds the target's last segments up.
const PAUSES: usize = 16;

/// A kind of load.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Job {
    /// Bytes an I/O.
    pub(crate) size: u32,
    /// Whether it writes.
    pub(crate) write: bool,
    /// Commands in flight, for each session.
    pub(crate) depth: usize,
    /// How many sessions.
    pub(crate) sessions: u32,
    /// Whether the generator sleeps where it has nothing to do.
    pub(crate) sleeps: bool,
}

impl Job {
    /// One session, and a generator that spins.
    pub(crate) fn new(size: u32, write: bool, depth: usize) -> Self {
        Self {
            size,
            write,
            depth,
            sessions: 1,
            sleeps: false,
        }
    }
}

/// Runs a load for a while, after a short warm-up.
pub(crate) fn measure(
    target: &Target,
    job: &Job,
    digests: bool,
    time: Duration,
) -> Result<Measured> {
    cpu::pin(GENERATOR_CPU).context("cannot pin to a CPU")?;
    let mut buffer = Buffer::new();
    let mut sessions = Vec::new();
    for number in 0..job.sessions {
        let mut session = Session::log_in(target, number, digests, &mut buffer)?;
        session.settle(target, &mut buffer)?;
        sessions.push(session);
    }
    let mut load = Load::new(target, job);
    let count = sessions.len();
    let mut warm = Meter::start(target.pid, count)?;
    load.run(&mut sessions, &mut buffer, &mut warm, time / 10)?;
    let mut meter = Meter::start(target.pid, count)?;
    load.run(&mut sessions, &mut buffer, &mut meter, time)?;
    meter.end()
}

struct Load<'a> {
    target: &'a Target,
    job: &'a Job,
    data: Rc<[u8]>,
    random: Random,
    /// When the command of each slot began; slots are what the replies name.
    began: Vec<Instant>,
    /// The free slots of each session.
    free: Vec<Vec<u32>>,
}

impl<'a> Load<'a> {
    fn new(target: &'a Target, job: &'a Job) -> Self {
        let slots = |session: u32| (0..job.depth as u32).map(move |slot| session * 1024 + slot);
        Self {
            target,
            job,
            data: vec![0xa5; job.size as usize].into(),
            random: Random(0x9e37_79b9_7f4a_7c15),
            began: vec![Instant::now(); job.sessions as usize * 1024],
            free: (0..job.sessions)
                .map(|session| slots(session).collect())
                .collect(),
        }
    }

    fn run(
        &mut self,
        sessions: &mut [Session],
        buffer: &mut Buffer,
        meter: &mut Meter,
        time: Duration,
    ) -> Result<()> {
        let mut now = meter.elapsed();
        while now < time {
            let mut busy = false;
            for (session, at) in sessions.iter_mut().zip(0..) {
                self.start_commands(session, at);
                busy |= session.exchange(buffer)?;
                self.take_replies(session, at, meter)?;
                self.start_commands(session, at);
                session.send()?;
            }
            let began = if busy { meter.elapsed() } else { now };
            self.rest(sessions)?;
            now = meter.elapsed();
            meter.idle += now - began;
        }
        Ok(())
    }

    /// Waits a little. A sleeping generator makes the target pay for waking its CPU, which in a
    /// virtual machine is more than the target's own work for all commands in flight; so it spins.
    fn rest(&self, sessions: &mut [Session]) -> Result<()> {
        if self.job.sleeps {
            return session::wait(sessions);
        }
        for _ in 0..PAUSES {
            std::hint::spin_loop();
        }
        Ok(())
    }

    fn start_commands(&mut self, session: &mut Session, at: usize) {
        while session.initiator.is_ready() {
            let Some(slot) = self.free[at].pop() else {
                return;
            };
            self.began[slot as usize] = Instant::now();
            let cdb = self.cdb();
            let data = if self.job.write {
                Data::Out(self.data.clone())
            } else {
                Data::In(self.job.size)
            };
            session
                .initiator
                .command(u64::from(slot), self.target.lun, &cdb, data);
        }
    }

    fn take_replies(&mut self, session: &mut Session, at: usize, meter: &mut Meter) -> Result<()> {
        while let Some(reply) = session.initiator.poll() {
            match reply {
                Reply::Done {
                    user, status: 0, ..
                } => {
                    meter.done(at, self.began[user as usize]);
                    self.free[at].push(user as u32);
                }
                other => bail!("{} answered {other:?}", self.target.name),
            }
        }
        Ok(())
    }

    /// READ(10) or WRITE(10) at a random multiple of the size.
    fn cdb(&mut self) -> [u8; 10] {
        let places = VOLUME / u64::from(self.job.size);
        let place = self.random.below(places) * u64::from(self.job.size);
        rw10(self.target, self.job.write, place, self.job.size)
    }
}

fn rw10(target: &Target, write: bool, place: u64, size: u32) -> [u8; 10] {
    let lba = place / u64::from(target.block_size);
    let mut cdb = [0; 10];
    cdb[0] = if write { 0x2a } else { 0x28 };
    cdb[2..6].copy_from_slice(&(lba as u32).to_be_bytes());
    cdb[7..9].copy_from_slice(&((size / target.block_size) as u16).to_be_bytes());
    cdb
}

/// Writes the whole volume once.
pub(crate) fn fill(target: &Target) -> Result<()> {
    const SIZE: u32 = 256 << 10;
    let mut buffer = Buffer::new();
    let mut session = Session::log_in(target, 1000, false, &mut buffer)?;
    session.settle(target, &mut buffer)?;
    let data: Rc<[u8]> = (0..SIZE).map(|at| (at % 251) as u8).collect();
    let count = VOLUME / u64::from(SIZE);
    let (mut begun, mut done) = (0, 0);
    while done < count {
        while begun < count && begun - done < 16 && session.initiator.is_ready() {
            let cdb = rw10(target, true, begun * u64::from(SIZE), SIZE);
            session
                .initiator
                .command(begun, target.lun, &cdb, Data::Out(data.clone()));
            begun += 1;
        }
        session.exchange(&mut buffer)?;
        while let Some(reply) = session.initiator.poll() {
            let Reply::Done { status: 0, .. } = reply else {
                bail!("{reply:?}");
            };
            done += 1;
        }
        session.send()?;
        session::wait(std::slice::from_mut(&mut session))?;
    }
    Ok(())
}

/// Marsaglia's xorshift64: places have to be spread, and the same in each run.
#[derive(Debug)]
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}
