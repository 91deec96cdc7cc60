//! A session that writes until the server dies, and knows what it was promised.

use std::rc::Rc;

use anyhow::{Result, bail};
use tests::cdb;
use tests::client::Client;
use tests::initiator::{Data, Reply};
use tests::server::ReadyLun;

/// Places of a session, each written anew again and again.
const PLACES: u32 = 8;

/// Blocks of a place.
const BLOCKS: u32 = 8;

const BLOCK: usize = 512;

/// What one session wrote, and how much of it must be there.
#[derive(Clone, Debug)]
pub(super) struct Writer {
    /// Its initiator, which is in every block as well.
    pub(super) number: u32,
    places: Vec<Place>,
    sequence: u32,
    /// How many batches had been promised to last when it was asked last.
    promised: u32,
}

/// Sequence numbers of one place; 0 is what was there before.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    /// The last that was acknowledged as durable: at least this must be there.
    durable: u32,
    /// The last that was sent: no more can be there.
    sent: u32,
}

impl Writer {
    pub(super) fn new(number: u32) -> Self {
        Self {
            number,
            places: vec![Place::default(); PLACES as usize],
            sequence: 0,
            promised: 0,
        }
    }

    /// Writes until the connection ends. In turn every write of a batch has FUA, or the batch ends
    /// with SYNCHRONIZE CACHE.
    pub(super) fn write_until_the_end(&mut self, lun: &ReadyLun) -> Result<()> {
        let mut client = Client::log_in(lun, self.number)?;
        loop {
            self.sequence += 1;
            let fua = self.sequence.is_multiple_of(2);
            if !self.batch(&mut client, fua)? {
                return Ok(());
            }
        }
    }

    /// Whether the server still lives.
    fn batch(&mut self, client: &mut Client, fua: bool) -> Result<bool> {
        for (number, place) in (0..).zip(&mut self.places) {
            place.sent = self.sequence;
            let data = contents(self.number, number, self.sequence);
            let cdb = cdb::write(lba(self.number, number), BLOCKS, fua);
            let lun = client.lun;
            client
                .initiator
                .command(number.into(), lun, &cdb, Data::Out(data));
        }
        for _ in 0..PLACES {
            let Some(user) = ended(client)? else {
                return Ok(false);
            };
            if fua {
                self.places[user as usize].durable = self.sequence;
            }
        }
        if !fua {
            let lun = client.lun;
            client.initiator.command(0, lun, &cdb::flush(), Data::None);
            if ended(client)?.is_none() {
                return Ok(false);
            }
            for place in &mut self.places {
                place.durable = self.sequence;
            }
        }
        Ok(true)
    }

    /// Whether more batches were promised to last than when it was asked before.
    pub(super) fn has_more(&mut self) -> bool {
        let durable = self.places.iter().map(|place| place.durable);
        let promised = durable.min().unwrap_or(0);
        promised > std::mem::replace(&mut self.promised, promised)
    }

    /// Compares what is there with what was promised, and goes on from it.
    pub(super) fn check(&self, lun: &ReadyLun) {
        let mut client = Client::log_in(lun, self.number).unwrap();
        for (number, place) in (0..).zip(&self.places) {
            let data = client.read(lba(self.number, number), BLOCKS).unwrap();
            for block in data.chunks(BLOCK) {
                let found = sequence(block, self.number, number);
                let range = place.durable..=place.sent;
                assert!(
                    found.is_some_and(|found| range.contains(&found)),
                    "{}, place {number} of {}: {found:?} and not {range:?}: {:02x?}",
                    lun.volume,
                    self.number,
                    &block[..16]
                );
            }
        }
    }

    /// Finds nothing, and forgets what was promised: it was promised of another disk.
    pub(super) fn find_nothing(&mut self, lun: &ReadyLun) {
        self.places.fill(Place::default());
        self.promised = 0;
        self.check(lun);
    }
}

/// The next command that ends, with GOOD; `None` if the connection does.
fn ended(client: &mut Client) -> Result<Option<u64>> {
    let Ok(reply) = client.reply() else {
        return Ok(None);
    };
    match reply {
        Reply::Done {
            user, status: 0, ..
        } => Ok(Some(user)),
        other => bail!("{other:02x?}"),
    }
}

fn lba(session: u32, place: u32) -> u64 {
    u64::from((session % 16 * PLACES + place) * BLOCKS)
}

/// Every block tells whose it is, which place, and how often that was written.
fn contents(session: u32, place: u32, sequence: u32) -> Rc<[u8]> {
    let words = [session, place, sequence, !sequence];
    let line: Vec<u8> = words.into_iter().flat_map(u32::to_be_bytes).collect();
    line.repeat(BLOCKS as usize * BLOCK / line.len()).into()
}

/// The sequence number in a block; `None` if it is not one of this place, or torn.
fn sequence(block: &[u8], session: u32, place: u32) -> Option<u32> {
    if block.iter().all(|byte| *byte == 0) {
        return Some(0);
    }
    let sequence = u32::from_be_bytes(block[8..12].try_into().ok()?);
    let whole = contents(session, place, sequence);
    (whole[..BLOCK] == *block).then_some(sequence)
}
