//! Locked regions: all of their memory is there from the start, and stays.

use std::sync::Arc;

use rustix::thread::{CapabilitySet, capabilities, set_capabilities};

use super::super::{LocalRegion, LockError, MemoryLimit, Region};

const KIB: u64 = 1 << 10;

/// A locked region, and its limit; `None` where tests may not lock so much.
fn locked(len: u64) -> Option<(Arc<Region>, LocalRegion, MemoryLimit)> {
    let limit = MemoryLimit::new(1024 * KIB);
    match Region::locked(len, &limit) {
        Ok(region) => {
            let core = region.attach();
            Some((region, core, limit))
        }
        Err(error @ LockError::Memlock { .. }) => {
            eprintln!("skipped: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// How much of the mapping around an address is locked, in KiB, as the kernel has it.
fn locked_around(address: usize) -> Option<u64> {
    let smaps = std::fs::read_to_string("/proc/self/smaps").ok()?;
    let mut is_in = false;
    for line in smaps.lines() {
        let first = line.split(' ').next()?;
        if let Some((start, end)) = first.split_once('-') {
            let number = |text| usize::from_str_radix(text, 16);
            is_in = (number(start).ok()?..number(end).ok()?).contains(&address);
        } else if is_in && first == "Locked:" {
            return line
                .trim_end_matches(" kB")
                .rsplit(' ')
                .next()?
                .parse()
                .ok();
        }
    }
    None
}

#[test]
fn all_memory_is_taken_and_locked_at_once() {
    let Some((region, core, limit)) = locked(32 * KIB) else {
        return;
    };
    assert_eq!((region.charged(), limit.used()), (32 * KIB, 32 * KIB));
    let buffer = core.buffer(0..32 * KIB);
    assert!(!buffer.is_zeros(), "devices know no other zeros");
    assert_eq!(
        buffer.difference(&super::super::Buffer::zeros(32 << 10)),
        None
    );
    if let Some(locked) = locked_around(buffer.address().addr().get()) {
        assert_eq!(locked, 32);
    }
    assert_eq!(region.state(0), (false, 32 * KIB));
    assert_eq!(limit.locked_regions().len(), 1);
    drop((region, core, buffer));
    assert_eq!((limit.used(), limit.locked_regions().len()), (0, 0));
}

#[test]
fn what_is_deallocated_is_zeroed_where_it_is() {
    let Some((region, core, limit)) = locked(32 * KIB) else {
        return;
    };
    let range = 4 * KIB..20 * KIB;
    core.lend(range.clone()).unwrap().copy_in(0, &[7; 16 << 10]);
    assert_eq!(region.state(4 * KIB), (true, 16 * KIB));
    let lent = core.buffer(range);
    region.deallocate(5 * KIB..17 * KIB);
    let mut bytes = vec![0xee; 16 << 10];
    lent.copy_out(0, &mut bytes);
    let expected = [vec![7; 1 << 10], vec![0; 12 << 10], vec![7; 3 << 10]].concat();
    assert!(bytes == expected, "the memory itself is zero");
    assert_eq!(region.state(8 * KIB), (false, 8 * KIB));
    assert_eq!((region.charged(), limit.used()), (32 * KIB, 32 * KIB));
    core.lend(8 * KIB..12 * KIB).unwrap().copy_in(0, &[9; 4096]);
    assert_eq!(
        limit.used(),
        32 * KIB,
        "what is written again costs nothing"
    );
    if let Some(locked) = locked_around(lent.address().addr().get()) {
        assert_eq!(locked, 32);
    }
}

#[test]
fn more_than_the_limit_takes_nothing() {
    let limit = MemoryLimit::new(64 * KIB);
    let error = Region::locked(128 * KIB, &limit).unwrap_err();
    let LockError::MemoryLimit { bytes, left } = error else {
        panic!("{error}");
    };
    assert_eq!((bytes, left, limit.used()), (128 * KIB, 64 * KIB, 0));
}

#[test]
fn more_than_the_machine_has_takes_nothing() {
    let limit = MemoryLimit::new(u64::MAX);
    let error = Region::locked(1 << 60, &limit).unwrap_err();
    assert!(matches!(error, LockError::NoMemory { .. }), "{error}");
    let words = error.to_string();
    assert!(
        words.contains("1152921504606846976 bytes at once"),
        "{words}"
    );
    assert!(!words.contains('\n'));
    assert_eq!(limit.used(), 0);
}

/// Without the privilege, which this thread gives up, what is above `ulimit -l` is refused.
#[test]
fn more_than_may_be_locked_takes_nothing() {
    let limits = rustix::process::getrlimit(rustix::process::Resource::Memlock);
    let Some(most) = limits.current.filter(|most| *most < 64 << 20) else {
        return eprintln!("skipped: RLIMIT_MEMLOCK is wide");
    };
    std::thread::spawn(move || {
        let mut sets = capabilities(None).unwrap();
        sets.effective -= CapabilitySet::IPC_LOCK;
        set_capabilities(None, sets).unwrap();
        let limit = MemoryLimit::new(u64::MAX);
        let error = Region::locked(most + 4096, &limit).unwrap_err().to_string();
        assert!(error.contains("RLIMIT_MEMLOCK is "), "{error}");
        assert!(error.contains("ulimit -l") && error.contains("LimitMEMLOCK="));
        assert!(!error.contains('\n'));
        assert_eq!(limit.used(), 0);
    })
    .join()
    .unwrap();
}
