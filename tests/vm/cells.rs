//! The table of cells. One more is a row here, and a script in `guest/` that the row names.

use anyhow::Result;

use crate::Scene;
use crate::boot;
use crate::cluster;
use crate::doctor;
use crate::fabric;
use crate::faults;
use crate::filesystems::{self, VOLUMES};
use crate::raid;
use crate::reservations;
use crate::rxe;
use crate::serving;
use crate::two_hosts;
use crate::using;
use crate::variations::{ETHERNET, ISCSI, ISER, ONE, Variation};

/// What joins a guest with this machine.
#[derive(Clone, Copy)]
pub(crate) enum Link {
    /// This number of TCP/IP networks.
    Taps(usize),
    /// An Ethernet of the two alone.
    Cable,
    /// One for each of two guests.
    Cables,
    /// An Ethernet with two guests on it, of TCP/IP or FCoE.
    Bridge,
}

impl Link {
    /// The guests of a cell.
    pub(crate) fn guests(self) -> usize {
        match self {
            Self::Taps(_) | Self::Cable => 1,
            Self::Cables | Self::Bridge => 2,
        }
    }

    /// The processors of each guest: of two guests, each keeps a core of this machine busy.
    pub(crate) fn processors(self) -> usize {
        2 / self.guests()
    }
}

/// What a guest finds in its file system. `image.sh` has the packages.
#[derive(Clone, Copy)]
pub(crate) enum Root {
    /// What the starred cells use.
    Small,
    /// The same, in which the guest runs `lunar`, too.
    SmallLunar,
    /// What any cell uses but those of RDMA.
    Large,
    /// The kernel's iSER, over a module that Debian does not build.
    Siw,
    /// The same over rxe, which Debian's kernel has. This machine has no device for the other end,
    /// so the guest runs `lunar`, too.
    Rxe,
}

impl Root {
    /// The folder in `target/`, and what `image.sh` calls it.
    pub(crate) fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Small | Self::SmallLunar => ("vm", "small"),
            Self::Large => ("vm-large", "large"),
            Self::Siw | Self::Rxe => ("vm-rdma", "rdma"),
        }
    }

    /// Whether the guest runs `lunar`.
    pub(crate) fn has_lunar(self) -> bool {
        matches!(self, Self::SmallLunar | Self::Rxe)
    }
}

/// Two ends that meet.
pub(crate) struct Cell {
    pub(crate) name: &'static str,
    /// Whether every change has to pass it.
    pub(crate) starred: bool,
    pub(crate) root: Root,
    pub(crate) link: Link,
    /// What the guest runs, of `guest/`.
    pub(crate) script: &'static str,
    /// What `lunar` is started with besides.
    pub(crate) options: &'static [&'static str],
    pub(crate) variations: &'static [Variation],
    /// The host's part in a variation.
    pub(crate) run: fn(&mut Scene, &Variation) -> Result<()>,
}

impl Cell {
    /// Whether tshark looks at the captures: over TCP it would take longer than the cell.
    pub(crate) fn is_judged(&self) -> bool {
        matches!(self.link, Link::Cable | Link::Cables) || self.name.starts_with("15-")
    }
}

/// Longest first, so that no lane ends long after the other. A cell that waits much of its time
/// stands between cells that compute, so that one lane waits while the other one computes.
pub(crate) const CELLS: &[Cell] = &[
    Cell {
        name: "faults-iscsi",
        starred: false,
        root: Root::Large,
        link: Link::Taps(1),
        script: "faults-iscsi.sh",
        options: &[],
        variations: faults::ISCSI,
        run: faults::iscsi,
    },
    Cell {
        name: "12-ext4",
        starred: false,
        root: Root::Large,
        link: Link::Taps(1),
        script: "filesystems.sh",
        options: &[],
        variations: VOLUMES,
        run: filesystems::stressed,
    },
    Cell {
        name: "12-xfs",
        starred: false,
        root: Root::Large,
        link: Link::Taps(1),
        script: "filesystems.sh",
        options: &[],
        variations: VOLUMES,
        run: filesystems::stressed,
    },
    Cell {
        name: "faults-fcoe",
        starred: false,
        root: Root::Large,
        link: Link::Cable,
        script: "faults-fcoe.sh",
        options: &[],
        variations: faults::FCOE,
        run: faults::fcoe,
    },
    Cell {
        name: "1-open-iscsi-uring",
        starred: true,
        root: Root::Small,
        link: Link::Taps(1),
        script: "open-iscsi.sh",
        options: &["--ring", "uring"],
        variations: ISCSI,
        run: serving::iscsi,
    },
    Cell {
        name: "faults-iser-siw",
        starred: false,
        root: Root::Siw,
        link: Link::Taps(1),
        script: "siw-faults.sh",
        options: &["--iser"],
        variations: faults::ISER,
        run: faults::iser,
    },
    Cell {
        name: "1-open-iscsi-epoll",
        starred: false,
        root: Root::Small,
        link: Link::Taps(1),
        script: "open-iscsi.sh",
        options: &["--ring", "epoll"],
        variations: ISCSI,
        run: serving::iscsi,
    },
    Cell {
        name: "faults-iser-rxe",
        starred: false,
        root: Root::Rxe,
        link: Link::Taps(1),
        script: "rxe-faults.sh",
        options: &[],
        variations: faults::RXE,
        run: faults::rxe,
    },
    Cell {
        name: "2-lio",
        starred: true,
        root: Root::Small,
        link: Link::Taps(1),
        script: "lio.sh",
        options: &[],
        variations: ISCSI,
        run: using::iscsi,
    },
    Cell {
        name: "5-multipath",
        starred: true,
        root: Root::Small,
        link: Link::Taps(2),
        script: "multipath.sh",
        options: &[],
        variations: ONE,
        run: serving::multipath,
    },
    Cell {
        name: "7-gfs2-iscsi",
        starred: false,
        root: Root::Large,
        link: Link::Bridge,
        script: "cluster.sh",
        options: &[],
        variations: cluster::GFS2,
        run: cluster::iscsi,
    },
    Cell {
        name: "7-ocfs2-iscsi",
        starred: false,
        root: Root::Large,
        link: Link::Bridge,
        script: "cluster.sh",
        options: &[],
        variations: cluster::OCFS2,
        run: cluster::iscsi,
    },
    Cell {
        name: "7-gfs2-fcoe",
        starred: false,
        root: Root::Large,
        link: Link::Bridge,
        script: "cluster.sh",
        options: &[],
        variations: cluster::GFS2,
        run: cluster::fcoe,
    },
    Cell {
        name: "7-ocfs2-fcoe",
        starred: false,
        root: Root::Large,
        link: Link::Bridge,
        script: "cluster.sh",
        options: &[],
        variations: cluster::OCFS2,
        run: cluster::fcoe,
    },
    Cell {
        name: "6-persist",
        starred: false,
        root: Root::Large,
        link: Link::Bridge,
        script: "persist.sh",
        options: &[],
        variations: reservations::VARIATIONS,
        run: reservations::persist,
    },
    Cell {
        name: "9-boot",
        starred: false,
        root: Root::Large,
        link: Link::Taps(1),
        script: "install.sh",
        options: &[],
        variations: boot::STORIES,
        run: boot::run,
    },
    Cell {
        name: "13-iser-siw",
        starred: false,
        root: Root::Siw,
        link: Link::Taps(1),
        script: "siw-open-iscsi.sh",
        options: &["--iser"],
        variations: ISER,
        run: serving::iscsi,
    },
    Cell {
        name: "13-isert-siw",
        starred: false,
        root: Root::Siw,
        link: Link::Taps(1),
        script: "siw-lio.sh",
        options: &[],
        variations: ISER,
        run: using::iser,
    },
    Cell {
        name: "14-iser-rxe",
        starred: false,
        root: Root::Rxe,
        link: Link::Taps(1),
        script: "rxe-open-iscsi.sh",
        options: &[],
        variations: rxe::VARIATIONS,
        run: rxe::serving,
    },
    Cell {
        name: "14-isert-rxe",
        starred: false,
        root: Root::Rxe,
        link: Link::Taps(1),
        script: "lio.sh",
        options: &[],
        variations: rxe::VARIATIONS,
        run: rxe::lio,
    },
    Cell {
        name: "14-tgtd-rxe",
        starred: false,
        root: Root::Rxe,
        link: Link::Taps(1),
        script: "tgtd.sh",
        options: &[],
        variations: rxe::TGTD,
        run: rxe::tgtd,
    },
    Cell {
        name: "14-libiscsi-rxe",
        starred: false,
        root: Root::Rxe,
        link: Link::Taps(1),
        script: "rxe-libiscsi.sh",
        options: &[],
        variations: rxe::LIBISCSI,
        run: rxe::serving,
    },
    Cell {
        name: "8-raid",
        starred: false,
        root: Root::Large,
        link: Link::Taps(1),
        script: "raid.sh",
        options: &[],
        variations: raid::STORIES,
        run: raid::run,
    },
    Cell {
        name: "faults-two-hosts-iscsi",
        starred: false,
        root: Root::Large,
        link: Link::Bridge,
        script: "two-hosts.sh",
        options: &["--nop-interval", "5s", "--nop-timeout", "10s"],
        variations: two_hosts::ISCSI,
        run: two_hosts::iscsi,
    },
    Cell {
        name: "faults-two-hosts-fcoe",
        starred: false,
        root: Root::Large,
        link: Link::Bridge,
        script: "two-hosts.sh",
        options: &[],
        variations: two_hosts::FCOE,
        run: two_hosts::fcoe,
    },
    Cell {
        name: "3-fcoe",
        starred: true,
        root: Root::Small,
        link: Link::Cable,
        script: "fcoe.sh",
        options: &[],
        variations: ETHERNET,
        run: serving::fcoe,
    },
    Cell {
        name: "15-switch",
        starred: true,
        root: Root::SmallLunar,
        link: Link::Cable,
        script: "fabric.sh",
        options: &[],
        variations: fabric::STORIES,
        run: fabric::run,
    },
    Cell {
        name: "15-targets",
        starred: true,
        root: Root::Small,
        link: Link::Cables,
        script: "fabric-targets.sh",
        options: &[],
        variations: fabric::TARGETS,
        run: fabric::targets,
    },
    Cell {
        name: "15-again",
        starred: false,
        root: Root::SmallLunar,
        link: Link::Cable,
        script: "fabric-again.sh",
        options: &[],
        variations: fabric::AGAIN,
        run: fabric::again,
    },
    Cell {
        name: "15-bridge",
        starred: false,
        root: Root::SmallLunar,
        link: Link::Bridge,
        script: "fabric-targets.sh",
        options: &[],
        variations: fabric::BRIDGE,
        run: fabric::bridge,
    },
    Cell {
        name: "15-doctor",
        starred: false,
        root: Root::SmallLunar,
        link: Link::Bridge,
        script: "fabric-doctor.sh",
        options: &[],
        variations: doctor::STORIES,
        run: doctor::run,
    },
    Cell {
        name: "4-tcm-fc",
        starred: true,
        root: Root::Small,
        link: Link::Cable,
        script: "tcm-fc.sh",
        options: &[],
        variations: ETHERNET,
        run: using::fcoe,
    },
];
