//! File systems of a cluster: two nodes on one disk, one of which dies.

use anyhow::Result;
use tests::server::Server;

use crate::Scene;
use crate::pair::{self, Pair};
use crate::variations::{PLAIN, Variation};

/// Their names are the scripts'.
pub(crate) const GFS2: &[Variation] = &[stack("gfs2")];
pub(crate) const OCFS2: &[Variation] = &[stack("ocfs2")];

const fn stack(name: &'static str) -> Variation {
    Variation { name, ..PLAIN }
}

/// How often each of the two adds one to a number.
const STEPS: usize = 20;

pub(crate) fn iscsi(scene: &mut Scene, variation: &Variation) -> Result<()> {
    pair::iscsi(scene, variation, share)
}

pub(crate) fn fcoe(scene: &mut Scene, variation: &Variation) -> Result<()> {
    pair::fcoe(scene, variation, share)
}

/// Both mount, write and compare; the second one dies, and the first one goes on.
fn share(nodes: &mut Pair, _: &Server) -> Result<()> {
    nodes.both("begins", "")?;
    nodes.both("joins", "")?;
    nodes.first("makes", "")?;
    nodes.both("mounts", "")?;
    nodes.first("writes", "first")?;
    nodes.second("compares", "first")?;
    nodes.second("writes", "second")?;
    nodes.first("compares", "second")?;
    nodes.both("counts", &STEPS.to_string())?;
    nodes.both("counted", "")?;
    nodes.both("counted", &(2 * STEPS).to_string())?;
    nodes.first("fills", "living")?;
    nodes.second("fills", "dying")?;
    nodes.second_dies();
    nodes.first("goes_on", "dying")?;
    nodes.first("is_alone", "")?;
    nodes.first("unmounts", "")?;
    nodes.first("ends", "")
}
