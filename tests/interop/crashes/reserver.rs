//! A session that holds a reservation with APTPL and takes another key again and again.

use std::rc::Rc;

use anyhow::Result;
use tests::cdb::{self, Reserve};
use tests::client::{Client, Ended};
use tests::initiator::Data;
use tests::server::ReadyLun;

/// Write Exclusive, Registrants Only (SPC-5 table 61).
const KIND: u8 = 5;

pub(super) const RESERVATION_CONFLICT: u16 = 0x18;

/// Who holds the reservation of a unit.
#[derive(Clone, Debug)]
pub(super) struct Reserver {
    pub(super) number: u32,
    /// The key that was acknowledged last.
    key: u64,
}

/// Whether a unit keeps reservations: a RAM disk is another one after a restart.
pub(super) fn keeps(lun: &ReadyLun) -> bool {
    !lun.volume.starts_with("ram:")
}

/// PERSISTENT RESERVE OUT, with APTPL if so told.
pub(super) fn reserve(
    client: &mut Client,
    action: Reserve,
    key: u64,
    new: u64,
    aptpl: bool,
) -> Result<Ended> {
    let (cdb, mut list) = cdb::reserve_out(action, KIND, key, new);
    list[20] = u8::from(aptpl);
    client.command(&cdb, Data::Out(Rc::from(list)))
}

/// The same with APTPL, where that means something and the unit has it.
fn out(client: &mut Client, lun: &ReadyLun, action: Reserve, key: u64, new: u64) -> Result<Ended> {
    let registers = matches!(action, Reserve::Register | Reserve::RegisterAndIgnore);
    reserve(client, action, key, new, registers && keeps(lun))
}

/// Registers the initiator of this number, for good.
pub(super) fn register(lun: &ReadyLun, number: u32) {
    let mut client = Client::log_in(lun, number).unwrap();
    let (action, key) = (Reserve::RegisterAndIgnore, number.into());
    let ended = out(&mut client, lun, action, 0, key).unwrap();
    assert_eq!(ended.status, 0, "{ended:02x?}");
}

impl Reserver {
    /// Registers and reserves.
    pub(super) fn new(lun: &ReadyLun, number: u32) -> Self {
        let key = u64::from(number) << 32;
        let mut client = Client::log_in(lun, number).unwrap();
        for (action, old, new) in [(Reserve::Register, 0, key), (Reserve::Reserve, key, 0)] {
            let ended = out(&mut client, lun, action, old, new).unwrap();
            assert_eq!(ended.status, 0, "{ended:02x?}");
        }
        Self { number, key }
    }

    /// Takes one key after the other until the connection ends.
    pub(super) fn register_until_the_end(&mut self, lun: &ReadyLun) -> Result<()> {
        let mut client = Client::log_in(lun, self.number)?;
        let before = self.key;
        while let Ok(ended) = out(&mut client, lun, Reserve::Register, self.key, self.key + 1) {
            assert_eq!(ended.status, 0, "{ended:02x?}");
            self.key += 1;
        }
        assert!(self.key > before, "{}: no key was taken", lun.volume);
        Ok(())
    }

    /// The reservation of a disk that is another one now is not there, nor is any registration.
    pub(super) fn find_nothing(&self, lun: &ReadyLun) {
        let mut client = Client::log_in(lun, self.number).unwrap();
        for action in [0, 1] {
            let told = client.reservations(action).unwrap();
            assert!(told.is_empty(), "{}: {told:02x?}", lun.volume);
        }
    }

    /// The reservation is there, with the key that was acknowledged last or the one that was asked
    /// for after it; so are `others`; and a stranger is kept out.
    pub(super) fn check(&mut self, lun: &ReadyLun, others: &[u32]) {
        let mut client = Client::log_in(lun, self.number).unwrap();
        let reserved = client.reservations(1).unwrap();
        let holder = u64::from_be_bytes(reserved[..8].try_into().unwrap());
        assert!(
            (self.key..=self.key + 1).contains(&holder),
            "{}: key {holder:x} and not {:x} or the next",
            lun.volume,
            self.key
        );
        assert_eq!(reserved[13], KIND, "{}", lun.volume);
        self.key = holder;
        let keys = client.keys().unwrap();
        let mut expected: Vec<_> = others.iter().copied().map(u64::from).collect();
        expected.push(holder);
        assert_eq!(keys, expected, "{}", lun.volume);
        let mut stranger = Client::log_in(lun, 999).unwrap();
        let data = Data::Out(Rc::from([0; 512]));
        let ended = stranger.command(&cdb::write(0, 1, false), data).unwrap();
        assert_eq!(ended.status, RESERVATION_CONFLICT, "{}", lun.volume);
    }
}
