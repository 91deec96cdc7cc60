//! Queueing disciplines, and what they have dropped (RTM_GETQDISC, rtnetlink(7)).

use std::io;

use super::super::link::{attributes, part, socket};
use super::super::netlink::{NetlinkRequest, ask};
use super::links::text;

/// A queueing discipline of an interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QdiscReading {
    /// The number of its interface.
    pub index: i32,
    /// `fq_codel`, `pfifo_fast`, `mq`, …
    pub kind: String,
    /// What it hangs under: the handle of another one and a class of that, or [`Self::ROOT`].
    pub parent: u32,
    /// The most that it holds, for those that tell it in one number: packets for `pfifo`, bytes
    /// for `bfifo`.
    pub limit: Option<u32>,
    /// Packets that it has dropped.
    pub dropped: u64,
}

impl QdiscReading {
    /// The parent of those that are at the top (TC_H_ROOT).
    pub const ROOT: u32 = u32::MAX;
}

/// All of this network namespace.
///
/// # Errors
///
/// When the kernel does not tell.
pub fn qdiscs() -> io::Result<Vec<QdiscReading>> {
    let socket = socket(0)?;
    let request = NetlinkRequest::new(libc::RTM_GETQDISC, libc::NLM_F_DUMP, &[0; TCMSG]);
    let mut qdiscs = Vec::new();
    ask(&socket, request, |kind, body| {
        if kind == libc::RTM_NEWQDISC {
            qdiscs.extend(parse(body));
        }
    })?;
    Ok(qdiscs)
}

/// One that is told of, from `tcmsg` on. Those of what comes in are left out.
pub(in super::super) fn parse(body: &[u8]) -> Option<QdiscReading> {
    let parent = u32::from_ne_bytes(part(body, 12)?);
    if parent == INGRESS {
        return None;
    }
    let mut qdisc = QdiscReading {
        index: i32::from_ne_bytes(part(body, 4)?),
        parent,
        ..QdiscReading::default()
    };
    let mut options: &[u8] = &[];
    for (kind, value) in attributes(body.get(TCMSG..)?) {
        match kind {
            TCA_KIND => qdisc.kind = text(value),
            TCA_OPTIONS => options = value,
            TCA_STATS2 => qdisc.dropped = dropped(value).unwrap_or_default(),
            _ => {}
        }
    }
    if matches!(qdisc.kind.as_str(), "pfifo" | "bfifo") {
        qdisc.limit = part(options, 0).map(u32::from_ne_bytes);
    }
    Some(qdisc)
}

/// The third word of `struct gnet_stats_queue` (linux/gen_stats.h).
fn dropped(statistics: &[u8]) -> Option<u64> {
    let (_, queue) = attributes(statistics).find(|(kind, _)| *kind == TCA_STATS_QUEUE)?;
    Some(u32::from_ne_bytes(part(queue, 8)?).into())
}

/// Bytes of `tcmsg`.
const TCMSG: usize = 20;

/// The parent of `ingress` and `clsact` (TC_H_INGRESS).
const INGRESS: u32 = 0xffff_fff1;

/// Attributes (linux/rtnetlink.h, linux/gen_stats.h).
const TCA_KIND: u16 = 1;
const TCA_OPTIONS: u16 = 2;
const TCA_STATS2: u16 = 7;
const TCA_STATS_QUEUE: u16 = 3;
