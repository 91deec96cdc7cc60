//! What is asked of a target over whatever carries commands to it.

use std::time::{Duration, Instant};

use scsi::client::{Client, ClientOutput, Data, Done, Facts, UnitRequest};
use scsi::medium::{HeapLease, Lease as _};
use scsi::wire::cdb::{be32, opcode};
use scsi::wire::lun::Lun;
use scsi::wire::sense::Status;

use crate::remote::RemoteError;

/// What carries commands to a target, one at a time.
pub(crate) trait CommandChannel {
    /// When it was begun: what its deadlines count from.
    fn begun(&self) -> Instant;

    /// A question begins: how long it takes is counted from now.
    fn begin(&mut self);

    /// Carries out a command.
    fn command(
        &mut self,
        lun: Lun,
        request: UnitRequest<HeapLease>,
    ) -> Result<CommandResult, RemoteError>;

    /// Waits for a moment, in which nothing may happen but the end.
    fn wait_a_turn(&mut self) -> Result<(), RemoteError>;
}

/// A command that the target ended.
pub(crate) type CommandResult = Done<HeapLease>;

/// How long each question may take.
pub(crate) const LIMIT: Duration = Duration::from_secs(30);

/// How often a question is repeated that is answered by something else first.
const TRIES: usize = 8;

/// Bytes of a list of LUNs that are asked for: 1023 of them.
const LIST: usize = 8192;

/// The units that there are (SPC-5 §6.33).
pub(crate) fn report_luns(target: &mut impl CommandChannel) -> Result<Vec<Lun>, RemoteError> {
    let mut cdb = [0; 16];
    cdb[0] = opcode::REPORT_LUNS;
    cdb[6..10].copy_from_slice(&(LIST as u32).to_be_bytes());
    target.begin();
    for last in (0..TRIES).rev() {
        let into = HeapLease::from_bytes(vec![0; LIST]);
        let data = Data::In(into.clone());
        let done = target.command(Lun::from_index(0), UnitRequest { id: 0, cdb, data })?;
        if done.status == Status::Good as u8 {
            return Ok(luns(&into));
        }
        if last == 0 || !done.answer().wants_again() {
            let (status, sense) = (done.status, done.sense);
            return Err(RemoteError::Luns { status, sense });
        }
        if done.answer().is_busy() {
            target.wait_a_turn()?;
        }
    }
    Err(RemoteError::Late(LIMIT.as_secs()))
}

/// What a unit says of itself. Where it is the unit that cannot, the target can be asked on.
pub(crate) fn facts(target: &mut impl CommandChannel, lun: Lun) -> Result<Facts, RemoteError> {
    target.begin();
    let asked = Instant::now();
    let mut client = Client::default();
    client.begin();
    loop {
        match client.poll() {
            Some(ClientOutput::Execute(request)) => {
                let id = request.id;
                let done = target.command(lun, request)?;
                client.answered(target.begun().elapsed(), id, &done.answer());
            }
            Some(ClientOutput::Refused(refusal)) => {
                let lun = lun.to_string();
                return Err(RemoteError::Unit { lun, refusal });
            }
            Some(_) => {}
            None if asked.elapsed() > LIMIT => return Err(RemoteError::Late(LIMIT.as_secs())),
            None => {
                if let Some(facts) = client.facts() {
                    return Ok(facts.clone());
                }
                // A unit that is busy is asked again.
                target.wait_a_turn()?;
                client.expire(target.begun().elapsed());
            }
        }
    }
}

fn luns(list: &HeapLease) -> Vec<Lun> {
    let mut bytes = vec![0; list.len()];
    list.copy_out(0, &mut bytes);
    let length = be32(&bytes, 0) as usize;
    let listed = bytes[8..].chunks_exact(8).take(length / 8);
    let lun = |bytes: &[u8]| bytes.try_into().ok().map(Lun);
    listed.filter_map(lun).collect()
}
