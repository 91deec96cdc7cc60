//! What several volumes promise together, and what they refuse.

use insta::{assert_debug_snapshot, assert_snapshot};
use scsi::medium::{Atomic, SanitizeKind, Traits};
use scsi::statistics::SpaceUsage;

use super::sketch::{Sketch, plain, sketches};
use crate::parts::NamedPart;
use crate::volume::Volume;
use crate::{concat, stripe};

/// A disk that can do everything.
fn able(blocks: u64) -> Sketch {
    let plain = plain(blocks);
    Sketch {
        traits: Traits {
            physical_exponent: 3,
            unmap_granularity: Some(8),
            anchor: true,
            atomic: Some(atomic(512, 1, 1)),
            sanitize: &[SanitizeKind::Overwrite, SanitizeKind::BlockErase],
            solid_state: true,
            ..plain.traits
        },
        usage: Some(SpaceUsage {
            used: 10,
            available: blocks - 10,
        }),
    }
}

fn atomic(max_blocks: u32, alignment: u32, granularity: u32) -> Atomic {
    Atomic {
        max_blocks,
        alignment,
        granularity,
    }
}

fn striped(chunk: u64, of: &[Sketch]) -> Traits {
    stripe::open(chunk, sketches(of)).unwrap().traits()
}

fn in_a_row(of: &[Sketch]) -> Traits {
    concat::open(sketches(of)).unwrap().traits()
}

#[test]
fn a_stripe_of_able_disks() {
    assert_debug_snapshot!(striped(64 << 10, &[able(1000), able(2000), able(999)]));
}

#[test]
fn a_row_of_able_disks() {
    assert_debug_snapshot!(in_a_row(&[able(1024), able(2016), able(999)]));
}

#[test]
fn what_one_part_cannot_do_the_whole_cannot() {
    let mut cached = able(4096);
    cached.traits.write_cache = true;
    cached.traits.sanitize = &[SanitizeKind::BlockErase];
    cached.traits.solid_state = false;
    assert_debug_snapshot!(striped(4096, &[able(4096), cached]));
    let mut protected = plain(4096);
    protected.traits.read_only = true;
    assert_debug_snapshot!(in_a_row(&[able(4096), protected]));
}

#[test]
fn atomic_writes_lie_on_one_part_and_suit_every_part() {
    let with = |atomic| {
        let mut part = able(4096);
        part.traits.atomic = atomic;
        part
    };
    let kept = |chunk: u64, a, b| striped(chunk * 512, &[with(Some(a)), with(b)]).atomic;
    let any = atomic(512, 1, 1);
    assert_eq!(kept(96, any, Some(any)), Some(atomic(32, 32, 1)));
    assert_eq!(kept(1, any, Some(any)), Some(atomic(1, 1, 1)));
    assert_eq!(kept(128, any, None), None);
    let device = atomic(127, 8, 8);
    assert_eq!(kept(128, any, Some(device)), Some(atomic(64, 64, 8)));
    // Chunks are shorter than what the device writes whole, or cut it.
    assert_eq!(kept(4, any, Some(device)), None);
    assert_eq!(kept(128, any, Some(atomic(128, 24, 1))), None);
    let row = |length| {
        let mut first = with(Some(any));
        first.traits.blocks = length;
        in_a_row(&[first, with(Some(any))]).atomic
    };
    assert_eq!(row(4096), Some(atomic(512, 512, 1)));
    assert_eq!(row(1001), Some(atomic(1, 1, 1)));
}

#[test]
fn what_is_shared_in_part_is_shared() {
    let mut shared = able(4096);
    shared.traits.shared = true;
    assert!(striped(4096, &[able(4096), shared.clone()]).shared);
    assert!(in_a_row(&[shared, able(4096)]).shared);
    assert!(!striped(4096, &[able(4096), able(4096)]).shared);
}

#[test]
fn usage_is_told_when_all_tell() {
    let usage = |of: &[Sketch]| stripe::open(512, sketches(of)).unwrap().usage();
    let (used, available) = (20, 1980);
    let both = Some(SpaceUsage { used, available });
    assert_eq!(usage(&[able(1000), able(1000)]), both);
    assert_eq!(usage(&[able(1000), plain(1000)]), None);
}

#[test]
fn refusals_name_the_part_and_the_way_out() {
    let mut large = plain(1000);
    large.traits.block_size = 4096;
    let endless = plain(u64::MAX / 512 / 3);
    let error = |parts: Result<crate::parts::PartsVolume, crate::VolumeError>| match parts {
        Ok(parts) => format!("{parts:?}"),
        Err(error) => error.to_string(),
    };
    let disks = |of: &[&Sketch]| -> Vec<NamedPart> {
        sketches(&of.iter().map(|disk| (*disk).clone()).collect::<Vec<_>>())
    };
    let small = &plain(1000);
    let all = [
        error(stripe::open(4096, disks(&[small, &large]))),
        error(concat::open(disks(&[&large, &large, small]))),
        error(stripe::open(1000, disks(&[small, small]))),
        error(stripe::open(0, disks(&[small, small]))),
        error(stripe::open(1 << 20, disks(&[&endless, small]))),
        error(stripe::open(512, disks(&[&endless; 4]))),
        error(concat::open(disks(&[&endless; 4]))),
    ];
    assert_snapshot!(all.join("\n"));
}
