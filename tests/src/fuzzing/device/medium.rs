//! Media that keep nothing: what is read is zeros, or what was written last. What is asked of them
//! must be possible.

use scsi::medium::{
    Atomic, Extent, HeapLease, Lease, MediumError, MediumOp, MediumOutcome, MediumResult,
    Provisioning, SEGMENT_BYTES, Sanitize, SanitizeKind, Traits,
};
use scsi::unit::{UnitIdentity, UnitState};

/// Unit 0 is small and removable, unit 1 huge with long blocks, unit 2 read-only.
pub(super) fn unit(number: u32, flags: u8) -> UnitState {
    let huge = number == 1;
    let traits = Traits {
        block_size: if huge { 4096 } else { 512 },
        blocks: if huge { 1 << 33 } else { 4096 },
        physical_exponent: if huge { 0 } else { 3 },
        read_only: number == 2,
        write_cache: flags & 1 != 0,
        unmap_granularity: (flags & 2 != 0).then_some(8),
        anchor: flags & 4 != 0,
        atomic: (flags & 8 != 0).then_some(Atomic {
            max_blocks: 64,
            alignment: 8,
            granularity: 8,
        }),
        sanitize: &[SanitizeKind::Overwrite, SanitizeKind::BlockErase],
        solid_state: true,
        write_same_to_end: false,
        shared: false,
    };
    let identity = UnitIdentity {
        vendor: "LUNAR".into(),
        product: "FUZZED".into(),
        revision: "1".into(),
        serial: format!("{number}"),
        naa: vec![0x30, 0, 0, 0, 0, 0, 0, number as u8],
        removable: number == 0,
    };
    UnitState {
        persistence: flags & 16 != 0,
        ..UnitState::new(identity, traits)
    }
}

/// What every operation must keep to.
pub(super) fn check(op: &MediumOp<HeapLease>, traits: &Traits) {
    let bytes = |extent: &Extent| extent.blocks * u64::from(traits.block_size);
    let inside = |extent: &Extent| {
        let end = extent.lba.checked_add(extent.blocks);
        assert!(end.is_some_and(|end| end <= traits.blocks), "{op:?}");
    };
    match op {
        MediumOp::Read { extent, .. } => {
            inside(extent);
            assert!((1..=SEGMENT_BYTES).contains(&bytes(extent)), "{op:?}");
        }
        MediumOp::PrepareWrite { extent } => {
            inside(extent);
            assert!(!traits.read_only);
            assert!((1..=SEGMENT_BYTES).contains(&bytes(extent)), "{op:?}");
        }
        MediumOp::Buffer { bytes } => {
            assert!((1..=SEGMENT_BYTES).contains(&u64::from(*bytes)), "{op:?}");
        }
        MediumOp::Write { extent, data, .. } => {
            inside(extent);
            assert!(!traits.read_only);
            assert_eq!(data.len() as u64, bytes(extent));
        }
        MediumOp::WriteSame { extent, pattern } => {
            inside(extent);
            assert!(!traits.read_only && extent.blocks > 0);
            let len = pattern.as_ref().map(Lease::len);
            assert!(len.is_none_or(|len| len == traits.block_size as usize));
        }
        MediumOp::Unmap { extent, .. } => {
            inside(extent);
            assert!(!traits.read_only && traits.unmap_granularity.is_some());
        }
        MediumOp::Sanitize { extent, method } => {
            inside(extent);
            let kind = match method {
                Sanitize::Overwrite { .. } => SanitizeKind::Overwrite,
                Sanitize::BlockErase => SanitizeKind::BlockErase,
            };
            assert!(!traits.read_only && traits.sanitize.contains(&kind));
        }
        MediumOp::Flush { extent } | MediumOp::Prefetch { extent } => inside(extent),
        MediumOp::Status { extent } => {
            inside(extent);
            assert!(extent.blocks > 0);
        }
    }
}

/// Memory that all operations share, as to clear it for each would take most of the time.
#[derive(Debug)]
pub(super) struct Memory(HeapLease);

impl Default for Memory {
    fn default() -> Self {
        Self(HeapLease::from_bytes(vec![0; SEGMENT_BYTES as usize]))
    }
}

/// Carries an operation out, or fails with the error of that number.
pub(super) fn answer(
    op: &MediumOp<HeapLease>,
    traits: &Traits,
    fails: u8,
    memory: &Memory,
) -> MediumResult<HeapLease> {
    const ERRORS: [MediumError; 8] = [
        MediumError::Read,
        MediumError::Write,
        MediumError::NoSpace,
        MediumError::ReadOnly,
        MediumError::Gone,
        MediumError::Busy,
        MediumError::Unsupported,
        MediumError::Unknown,
    ];
    if let Some(error) = ERRORS.get(usize::from(fails).wrapping_sub(1)) {
        return Err(*error);
    }
    let some = |bytes: u64| MediumOutcome::Lease(memory.0.slice(0, bytes as usize));
    Ok(match op {
        MediumOp::Read { extent, .. } | MediumOp::PrepareWrite { extent } => {
            some(extent.blocks * u64::from(traits.block_size))
        }
        MediumOp::Buffer { bytes } => some(u64::from(*bytes)),
        MediumOp::Status { extent } => MediumOutcome::Provisioning {
            blocks: extent.blocks.min(64),
            state: Provisioning::Deallocated,
        },
        _ => MediumOutcome::Done,
    })
}
