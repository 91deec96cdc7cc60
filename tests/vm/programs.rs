//! Peers that are programs of this machine. They need no guest.

use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::Child;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::emptied;
use crate::libiscsi;
use crate::report::Report;
use crate::targets;
use crate::variations::{CHAP, DIGESTS, NO_IMMEDIATE_DATA, ONE, PLAIN, Variation, mutual};

/// A peer, and what is done with it.
pub(crate) struct Program {
    pub(crate) name: &'static str,
    /// Whether all is there that it needs.
    ready: fn() -> Result<()>,
    pub(crate) variations: &'static [Variation],
    /// The story, in a folder of its own.
    run: fn(&Path, &Variation) -> Result<()>,
}

/// Those with the only hash of CHAP that these know.
const MD5_VARIATIONS: &[Variation] = &[
    PLAIN,
    CHAP,
    mutual("mutual-chap", "MD5"),
    DIGESTS,
    NO_IMMEDIATE_DATA,
];

pub(crate) const PROGRAMS: &[Program] = &[
    Program {
        name: "10-libiscsi",
        ready: libiscsi::ready,
        variations: libiscsi::TOOLS,
        run: libiscsi::tools,
    },
    Program {
        name: "10-qemu",
        ready: libiscsi::ready,
        variations: libiscsi::QEMU,
        run: libiscsi::qemu,
    },
    Program {
        name: "10-conformance",
        ready: libiscsi::ready,
        variations: ONE,
        run: libiscsi::conformance,
    },
    Program {
        name: "11-istgt",
        ready: targets::istgt_ready,
        variations: MD5_VARIATIONS,
        run: targets::istgt,
    },
    Program {
        name: "11-tgtd",
        ready: targets::tgtd_ready,
        variations: MD5_VARIATIONS,
        run: targets::tgtd,
    },
];

/// Runs each variation that is asked for in turn; one that fails does not keep the others from
/// running.
pub(crate) fn run(program: &Program, has: impl Fn(&Variation) -> bool, report: &Report) {
    if let Err(cause) = (program.ready)() {
        return report.not_run(program.name, &format!("{cause:#}"));
    }
    let dir = tests::top().join("target/check/vm").join(program.name);
    for variation in program.variations.iter().filter(|variation| has(variation)) {
        let begun = Instant::now();
        let name = format!("{}/{}", program.name, variation.name);
        let dir = dir.join(variation.name);
        match emptied(&dir).and_then(|()| (program.run)(&dir, variation)) {
            Ok(()) => report.passed(&name, begun.elapsed()),
            Err(cause) => {
                let cause = format!("{cause:#}\n  see {}", dir.display());
                report.failed(&name, &cause, begun.elapsed());
            }
        }
    }
}

/// A process that is ended when this is dropped.
pub(crate) struct Running(pub(crate) Child);

impl Running {
    /// Waits until it listens there.
    pub(crate) fn listens(&mut self, portal: &str) -> Result<()> {
        let portal: SocketAddr = portal.parse()?;
        let end = Instant::now() + Duration::from_secs(30);
        while TcpStream::connect(portal).is_err() {
            if let Some(status) = self.0.try_wait()? {
                bail!("it ended with {status}");
            }
            if Instant::now() > end {
                bail!("it does not listen at {portal}");
            }
            thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended already; then there is nothing to do.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
