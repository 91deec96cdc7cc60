//! How many instructions the hot paths take, bytes in to bytes out, counted by callgrind with the
//! kernel left out. `cargo xtask instructions` compares them with `baseline.txt` beside this file.
//!
//! Each benchmark does its work [`COMMANDS`] times, and nothing but what goes through [`counted`]
//! counts: neither the way there, nor what the other end does.
#![allow(missing_docs, reason = "the macros make public items")]

mod initiator;
mod pdus;
mod still;
mod switch;
mod target;

use gungraun::{
    Callgrind, EntryPoint, LibraryBenchmarkConfig, library_benchmark, library_benchmark_group, main,
};

use target::Kind;
use tests::iser_end::IserSettings;

/// How often each benchmark does what it counts; the chore divides by it.
const COMMANDS: u64 = 128;

/// Whether the instructions of something are counted.
#[derive(Clone, Copy)]
enum Counts {
    No,
    Yes,
}

impl Counts {
    fn run<T>(self, act: impl FnOnce() -> T) -> T {
        match self {
            Self::No => act(),
            Self::Yes => counted(act),
        }
    }
}

/// The function in which callgrind counts, by its name.
#[inline(never)]
fn counted<T>(act: impl FnOnce() -> T) -> T {
    std::hint::black_box(act())
}

const DIGESTS: &[(&str, &str)] = &[("HeaderDigest", "CRC32C"), ("DataDigest", "CRC32C")];
const SOLICITED: &[(&str, &str)] = &[("InitialR2T", "Yes"), ("ImmediateData", "No")];

const ISER_CRC: IserSettings = IserSettings::usual();
const ISER: IserSettings = IserSettings {
    crc: false,
    ..ISER_CRC
};
/// No immediate data: an RDMA Read for each write.
const ISER_SOLICITED_CRC: IserSettings = IserSettings {
    immediate_data: false,
    ..ISER_CRC
};
const ISER_SOLICITED: IserSettings = IserSettings {
    crc: false,
    ..ISER_SOLICITED_CRC
};

#[library_benchmark]
#[bench::test_unit_ready(Kind::Ready, &[])]
#[bench::inquiry(Kind::Inquiry, &[])]
#[bench::nop(Kind::Nop, &[])]
#[bench::read_512(Kind::Read(512), &[])]
#[bench::read_4k(Kind::Read(4096), &[])]
#[bench::read_4k_digests(Kind::Read(4096), DIGESTS)]
#[bench::read_64k(Kind::Read(65_536), &[])]
#[bench::write_512(Kind::Write(512), &[])]
#[bench::write_4k(Kind::Write(4096), &[])]
#[bench::write_4k_digests(Kind::Write(4096), DIGESTS)]
#[bench::write_64k(Kind::Write(65_536), &[])]
#[bench::write_64k_solicited(Kind::Write(65_536), SOLICITED)]
fn target_32(kind: Kind, keys: &[(&'static str, &str)]) {
    target::commands(kind, 32, keys);
}

#[library_benchmark]
#[bench::test_unit_ready(Kind::Ready)]
#[bench::read_512(Kind::Read(512))]
#[bench::read_4k(Kind::Read(4096))]
#[bench::write_512(Kind::Write(512))]
#[bench::write_4k(Kind::Write(4096))]
fn target_1(kind: Kind) {
    target::commands(kind, 1, &[]);
}

#[library_benchmark]
#[bench::read_4k(Kind::Read(4096), ISER)]
#[bench::read_4k_crc(Kind::Read(4096), ISER_CRC)]
#[bench::read_64k(Kind::Read(65_536), ISER)]
#[bench::write_4k(Kind::Write(4096), ISER)]
#[bench::write_4k_crc(Kind::Write(4096), ISER_CRC)]
#[bench::write_4k_solicited(Kind::Write(4096), ISER_SOLICITED)]
#[bench::write_4k_solicited_crc(Kind::Write(4096), ISER_SOLICITED_CRC)]
fn iser_32(kind: Kind, iser: IserSettings) {
    target::commands_over_iser(kind, iser);
}

#[library_benchmark]
#[bench::read_4k(Kind::Read(4096))]
#[bench::write_4k(Kind::Write(4096))]
fn initiator_32(kind: Kind) {
    initiator::commands(kind);
}

#[library_benchmark]
#[bench::target(target::logins)]
#[bench::initiator(initiator::logins)]
fn login(logins: fn()) {
    logins();
}

#[library_benchmark]
#[bench::parse_command(pdus::parse)]
#[bench::frame_commands(|| pdus::frame(0))]
#[bench::frame_data_4k(|| pdus::frame(4096))]
fn wire(act: fn()) {
    act();
}

// A frame costs the same however many ports are logged in.
#[library_benchmark]
#[bench::full_frame_of_2(1)]
#[bench::full_frame_of_2000(1000)]
fn switch_forward(pairs: u16) {
    switch::forward(pairs);
}

library_benchmark_group!(
    name = instructions,
    benchmarks = [
        target_32,
        target_1,
        iser_32,
        initiator_32,
        login,
        wire,
        switch_forward
    ]
);

main!(
    config = LibraryBenchmarkConfig::default().tool(
        Callgrind::with_args(["--cache-sim=no"])
            .entry_point(EntryPoint::Custom("instructions::counted*".to_owned()))
    ),
    library_benchmark_groups = instructions
);
