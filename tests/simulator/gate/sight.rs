//! What hosts find is what the tree says: LUNs by REPORT LUNS, what stands behind each by its
//! serial number, and targets with their addresses by SendTargets.

use std::collections::{BTreeMap, BTreeSet};

use block::identity;
use scsi::wire::lun::Lun;
use tests::initiator::{Reply, Settings};

use super::Site;
use super::server::MACHINE;
use super::trees::{self, INITIATORS, LUNS};
use crate::host::Host;
use crate::transport::Transport;

const REPORT_LUNS: [u8; 12] = [0xa0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 0, 0];

/// INQUIRY of the page with the serial number.
const SERIAL: [u8; 6] = [0x12, 1, 0x80, 0, 255, 0];

/// The page of a LUN without a unit.
const NOTHING: u8 = 0x7f;

impl Site {
    /// Looks whether every host sees what it should.
    pub(super) fn look_around(&mut self) {
        self.look_at_luns();
        for initiator in INITIATORS {
            let told = self.ask_for_targets(initiator);
            let told = told.map(|text| targets(&text)).unwrap_or_default();
            let found = trees::found_by(&self.tree, initiator);
            assert_eq!(told, found, "SendTargets of {initiator}");
        }
    }

    fn look_at_luns(&mut self) {
        let now = self.tick;
        let in_session = |host: &&mut super::Host| host.port.logged_in && !host.has_left();
        for host in self.hosts.iter_mut().filter(in_session) {
            host.looks.clear();
            (0..LUNS).for_each(|lun| host.look(lun, &SERIAL, now));
        }
        self.settle();
        let serials: Vec<_> = self
            .hosts
            .iter_mut()
            .map(|host| std::mem::take(&mut host.looks))
            .collect();
        for host in self.hosts.iter_mut().filter(in_session) {
            host.look(0, &REPORT_LUNS, now);
        }
        self.settle();
        for (host, serials) in self.hosts.iter().zip(serials) {
            let Some(list) = host.looks.get(&0) else {
                continue;
            };
            let seen = trees::sees(&self.tree, host.initiator, host.target).unwrap_or_default();
            let (initiator, target) = (host.initiator, host.target);
            let named = format!("{initiator} at {target}");
            assert!(luns(list).eq(seen.keys().copied()), "{named}: {list:02x?}");
            for (lun, page) in serials {
                let expected = seen.get(&lun).map(serial);
                assert_eq!(serial_in(&page), expected, "{named}: LUN {lun}");
            }
        }
    }

    /// The answer to SendTargets; `None` where nothing listens.
    fn ask_for_targets(&mut self, initiator: &str) -> Option<String> {
        let (number, address) = self.served.portals.iter().next()?;
        let wire = self.world.connect_to(*number, *address).expect("a portal");
        let mut host: Host<()> = Host::new(Settings {
            name: initiator.to_owned(),
            target: None,
            iser: Transport::Mixed.pick(&mut self.rng),
            ..Settings::new(100, "")
        });
        host.dial(wire);
        let mut answer = None;
        for _ in 0..100_000 {
            if !host.has_something_to_do() {
                assert!(
                    self.world.step() || self.pass(),
                    "SendTargets is not answered"
                );
                continue;
            }
            if host.is_cut_off() {
                return answer;
            }
            let (unsent, arrived) = (host.unsent(), host.arrived());
            host.send(unsent);
            host.take(arrived);
            while let Some(reply) = host.poll() {
                match reply {
                    Reply::LoggedIn => {
                        let link = host.link.as_mut().expect("a connection");
                        link.initiator.text("SendTargets", "All");
                    }
                    Reply::Text(text) => {
                        answer = String::from_utf8(text).ok();
                        host.logged_in = true;
                        host.log_out();
                    }
                    _ => {}
                }
            }
        }
        panic!("a discovery session comes to no end");
    }
}

/// The LUNs of a list.
fn luns(list: &[u8]) -> impl Iterator<Item = u16> {
    let entries = list.get(8..).unwrap_or_default().chunks_exact(8);
    let lun = |entry: &[u8]| Lun(entry.try_into().expect("8 bytes")).index();
    entries.filter_map(lun)
}

/// What a volume calls itself.
fn serial(seen: &trees::SeenLun) -> String {
    let own = || identity::serial(&format!("{MACHINE} {}", seen.volume));
    seen.serial.clone().unwrap_or_else(own)
}

fn serial_in(page: &[u8]) -> Option<String> {
    if page.first().is_none_or(|byte| *byte == NOTHING) {
        return None;
    }
    let text = String::from_utf8_lossy(page.get(4..)?);
    Some(text.trim().to_owned())
}

/// Targets with their addresses, out of an answer to SendTargets.
fn targets(text: &str) -> BTreeMap<String, BTreeSet<String>> {
    let mut targets: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut current = String::new();
    for pair in text.split_terminator('\0') {
        match pair.split_once('=') {
            Some(("TargetName", name)) => name.clone_into(&mut current),
            Some(("TargetAddress", address)) => {
                let addresses = targets.entry(current.clone()).or_default();
                addresses.insert(address.to_owned());
            }
            _ => panic!("{pair:?} in an answer to SendTargets"),
        }
    }
    targets
}
