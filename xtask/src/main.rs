//! Chores: `cargo xtask bench` measures `lunar serve` side by side with tgtd; `cargo xtask
//! instructions` counts those of the hot paths.
#![forbid(unsafe_code)]

mod bench;
mod instructions;

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
    Instructions(instructions::Arguments),
    /// The other end of the bare-TCP floor; started by bench itself
    #[command(hide = true)]
    Floor,
}

fn main() -> anyhow::Result<()> {
    match Cli::parse().chore {
        Chore::Bench(arguments) => bench::run(&arguments),
        Chore::Instructions(arguments) => instructions::run(&arguments),
        Chore::Floor => bench::floor::serve(),
    }
}
