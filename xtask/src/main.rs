//! Chores: `cargo xtask bench` measures `lunar serve` side by side with tgtd; `cargo xtask beside`
//! the same with a target that spins, such as SPDK's; `cargo xtask fabric` how soon ports are seen
//! in a fabric; `cargo xtask failover` how long I/O stands still when a switch ends; `cargo xtask
//! fanout` how two cores serve one FCoE port; `cargo xtask forwarding` what a frame costs a switch;
//! `cargo xtask instructions` counts those of the hot paths; `cargo xtask noise` measures what the
//! control plane costs I/O; `cargo xtask scale` what many LUNs cost; `cargo xtask package` makes
//! packages.
#![forbid(unsafe_code)]

mod bench;
mod beside;
mod daemon;
mod fabric;
mod fabric_rig;
mod failover;
mod fanout;
mod forwarding;
mod instructions;
mod noise;
mod package;
mod scale;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", disable_help_subcommand = true)]
struct Cli {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    Bench(bench::Arguments),
    Beside(Box<beside::Arguments>),
    Fabric(fabric::Arguments),
    Failover(failover::Arguments),
    Fanout(fanout::Arguments),
    Forwarding(forwarding::Arguments),
    Instructions(instructions::Arguments),
    Noise(noise::Arguments),
    Package(package::Arguments),
    Scale(scale::Arguments),
}

fn main() -> ExitCode {
    let done = match Cli::parse().chore {
        Chore::Bench(arguments) => bench::run(&arguments),
        Chore::Beside(arguments) => beside::run(&arguments),
        Chore::Fabric(arguments) => fabric::run(&arguments),
        Chore::Failover(arguments) => failover::run(&arguments),
        Chore::Fanout(arguments) => fanout::run(&arguments),
        Chore::Forwarding(arguments) => forwarding::run(&arguments),
        Chore::Instructions(arguments) => instructions::run(&arguments),
        Chore::Noise(arguments) => noise::run(&arguments),
        Chore::Package(arguments) => package::run(&arguments),
        Chore::Scale(arguments) => scale::run(&arguments),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(cause) => {
            eprintln!("cargo xtask: {cause:#}");
            ExitCode::FAILURE
        }
    }
}
