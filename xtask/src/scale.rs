//! `cargo xtask scale`: what a tree of many LUNs costs a daemon.

use anyhow::{Result, ensure};
use control::api::{SetRequest, Status};
use tests::process::resident;

use crate::bench::{Verdict, release_binary};
use crate::daemon::{LUNS, NOTHING, RunningDaemon, many_luns, name};

/// Measure what a tree of 10,000 LUNs costs a daemon
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// How many targets there are, each with 10 LUNs on null:
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..))]
    targets: u32,

    /// How many LUNs are added one by one; the median counts
    #[arg(long, default_value_t = 21, value_parser = clap::value_parser!(u32).range(1..))]
    more: u32,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let daemon = RunningDaemon::start(&release_binary()?, "scale", NOTHING)?;
    let before = resident(daemon.pid())?;
    let from_nothing = daemon.serve(many_luns(arguments.targets, daemon.portal))?;
    let grown = resident(daemon.pid())?.saturating_sub(before);
    let add = |number| daemon.set(&one_more(arguments.targets, number));
    let mut each = (0..arguments.more).map(add).collect::<Result<Vec<_>>>()?;
    each.sort_by(f64::total_cmp);
    let (luns, last) = (arguments.targets * LUNS, each.len() - 1);
    let kib = grown as f64 / f64::from(luns) / 1024.0;
    let verdicts = [
        Verdict::at_most(
            from_nothing,
            format!("ms from nothing to {luns} LUNs"),
            3000.0,
        ),
        Verdict::at_most(each[last / 2], "ms for one more, the median", 100.0),
        Verdict::at_most(kib, "KiB for a LUN", 64.0),
    ];
    for verdict in &verdicts {
        println!("{verdict}");
    }
    println!("one more took {:.1} to {:.1} ms", each[0], each[last]);
    let status: Status = daemon.get("/v1/status")?;
    ensure!(
        status.volumes == (luns + arguments.more) as usize,
        "{status:?}"
    );
    Verdict::tell_all(&verdicts)
}

/// One more LUN, in a target of its own as far as there are some.
fn one_more(targets: u32, number: u32) -> SetRequest {
    let (target, lun) = (name(number % targets), LUNS + number / targets);
    let volume = format!("more{number}");
    SetRequest {
        set: vec![
            (format!("volume.{volume}.address"), "null:1G".to_owned()),
            (format!("target.{target}.luns.{lun}"), volume),
        ],
        unset: Vec::new(),
    }
}
