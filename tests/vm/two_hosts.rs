//! The fault of one host among two on one disk, under load: it must not concern the other one.

use anyhow::Result;
use tests::server::Server;

use crate::Scene;
use crate::pair::{self, Pair};
use crate::serving::TARGET;
use crate::variations::{PLAIN, Variation};

/// What brings the disk.
pub(crate) const ISCSI: &[Variation] = &[Variation {
    name: "iscsi",
    ..PLAIN
}];
pub(crate) const FCOE: &[Variation] = &[Variation {
    name: "fcoe",
    ..PLAIN
}];

/// A silent session ends, and the log tells so.
pub(crate) fn iscsi(scene: &mut Scene, variation: &Variation) -> Result<()> {
    pair::iscsi(scene, variation, |hosts, server| {
        begin(hosts)?;
        server.has_logged(&format!("{}: session with {TARGET} lost", pair::name(1)))?;
        end(hosts)
    })
}

pub(crate) fn fcoe(scene: &mut Scene, variation: &Variation) -> Result<()> {
    pair::fcoe(scene, variation, |hosts, _: &Server| {
        begin(hosts)?;
        end(hosts)
    })
}

/// Each writes and compares on a part of its own, and the second one dies of it.
fn begin(hosts: &mut Pair) -> Result<()> {
    hosts.both("begins", "")?;
    hosts.first("loads", "0")?;
    hosts.second("loads", "64")?;
    hosts.second_dies();
    hosts.first("goes_on", "")
}

fn end(hosts: &mut Pair) -> Result<()> {
    hosts.first("goes_on", "")?;
    hosts.first("ends", "")
}
