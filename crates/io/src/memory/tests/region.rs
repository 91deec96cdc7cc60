use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::super::huge::RipeGroups;
use super::super::mapping::PageRules;
use super::super::{Buffer, GRANULE, LocalRegion, MemoryLimit, NoSpace, Pages, Region};

const MIB: u64 = 1 << 20;

fn region(len: u64) -> (LocalRegion, MemoryLimit) {
    with_pages(len, Pages::Small)
}

fn with_pages(len: u64, pages: Pages) -> (LocalRegion, MemoryLimit) {
    let limit = MemoryLimit::new(64 * MIB);
    let region = Region::with_page_rules(len, pages, &limit, PageRules::here()).unwrap();
    (region.attach(), limit)
}

fn write(region: &LocalRegion, offset: u64, bytes: &[u8]) {
    let range = offset..offset + bytes.len() as u64;
    region.lend(range).unwrap().copy_in(0, bytes);
}

fn read(region: &LocalRegion, offset: u64, len: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    region.buffer(offset..offset + len).append_to(&mut bytes);
    bytes
}

#[test]
fn a_region_larger_than_the_machine_starts_at_once() {
    let (region, limit) = region(50 << 30);
    assert_eq!(region.state(0), (false, 16 << 30));
    write(&region, (50 << 30) - 512, &[1; 512]);
    assert_eq!(limit.used(), GRANULE);
    assert_eq!(read(&region, (50 << 30) - 513, 2), [0, 1]);
}

#[test]
fn what_was_not_written_reads_as_zeros_and_takes_nothing() {
    let (region, limit) = region(MIB);
    assert!(region.buffer(0..256 << 10).is_zeros());
    assert_eq!(read(&region, 0, MIB), vec![0; MIB as usize]);
    assert_eq!((region.charged(), limit.used()), (0, 0));
}

#[test]
fn a_write_is_read_and_only_its_granules_are_allocated() {
    let (region, limit) = region(MIB);
    write(&region, 3 * GRANULE - 512, &[5; 1024]);
    assert_eq!(read(&region, 3 * GRANULE - 512, 1024), [5; 1024]);
    assert_eq!(region.state(0), (false, 2 * GRANULE));
    assert_eq!(region.state(2 * GRANULE + 7), (true, 2 * GRANULE - 7));
    assert_eq!(region.state(4 * GRANULE), (false, MIB - 4 * GRANULE));
    assert_eq!(limit.used(), 2 * GRANULE);
    assert!(!region.buffer(0..3 * GRANULE).is_zeros());
    assert_eq!(read(&region, 0, 3 * GRANULE - 512), vec![0; 3 * 4096 - 512]);
}

#[test]
fn runs_cross_words_and_groups() {
    let (region, _) = region(8 * MIB);
    let (start, end) = (63 * GRANULE, 3 * MIB + GRANULE);
    drop(region.lend(start..end).unwrap());
    assert_eq!(region.state(0), (false, start));
    assert_eq!(region.state(start), (true, end - start));
    assert_eq!(region.state(end), (false, 8 * MIB - end));
}

#[test]
fn deallocate_gives_whole_granules_back_and_zeroes_the_edges() {
    let (region, limit) = region(MIB);
    write(&region, 0, &vec![9; 6 * 4096]);
    region.deallocate(512..4 * GRANULE + 512);
    assert_eq!(limit.used(), 3 * GRANULE);
    assert_eq!(region.state(0), (true, GRANULE));
    assert_eq!(region.state(GRANULE), (false, 3 * GRANULE));
    assert_eq!(read(&region, 0, 512), [9; 512]);
    assert_eq!(read(&region, 512, 4 * GRANULE), [0; 4 * 4096]);
    assert_eq!(read(&region, 4 * GRANULE + 512, 512), [9; 512]);
}

#[test]
fn deallocate_within_a_granule_keeps_it_allocated() {
    let (region, limit) = region(MIB);
    write(&region, 0, &[9; 4096]);
    region.deallocate(1024..1536);
    assert_eq!(
        read(&region, 512, 1536),
        [[9; 512], [0; 512], [9; 512]].concat()
    );
    region.deallocate(GRANULE + 1..GRANULE + 2);
    assert_eq!(limit.used(), GRANULE);
}

#[test]
fn deallocate_up_to_an_end_within_a_granule_gives_it_back() {
    let (region, limit) = region(MIB + 512);
    write(&region, MIB, &[9; 512]);
    assert_eq!(region.state(MIB), (true, 512));
    region.deallocate(MIB..MIB + 512);
    assert_eq!(limit.used(), 0);
    assert_eq!(read(&region, MIB, 512), [0; 512]);
}

#[test]
fn the_limit_is_shared_and_memory_comes_back() {
    let limit = MemoryLimit::new(3 * GRANULE);
    let region = || Region::reserve(MIB, Pages::Small, &limit).unwrap().attach();
    let (a, b) = (region(), region());
    write(&a, 0, &[1; 2 * GRANULE as usize]);
    write(&b, 0, &[1; GRANULE as usize]);
    assert_eq!(b.lend(GRANULE..GRANULE + 1).unwrap_err(), NoSpace);
    assert!(!b.state(GRANULE).0);
    write(&a, 0, &[2; 2 * GRANULE as usize]);
    a.deallocate(0..GRANULE);
    write(&b, GRANULE, &[1]);
    drop(b);
    assert_eq!(limit.used(), GRANULE);
}

#[test]
fn an_unmap_while_memory_is_lent_leaves_no_stale_bytes() {
    let (region, limit) = region(MIB);
    let range = 0..GRANULE;
    let lent = region.lend(range.clone()).unwrap();
    region.deallocate(range.clone());
    assert_eq!(limit.used(), 0);
    lent.copy_in(0, &[7; 4096]);
    drop(lent);
    assert_eq!((region.state(0).0, limit.used()), (true, GRANULE));
    assert_eq!(read(&region, 0, GRANULE), [7; 4096]);
    region.deallocate(range);
    write(&region, 0, &[1]);
    assert_eq!(read(&region, 1, GRANULE - 1), [0; 4095]);
}

#[test]
fn each_part_of_what_was_lent_tells_of_itself() {
    let (region, limit) = region(MIB);
    let lent = region.lend(0..4 * GRANULE).unwrap();
    let part = lent.slice(GRANULE as usize + 100, 50);
    region.deallocate(0..4 * GRANULE);
    part.copy_in(0, &[7; 50]);
    drop(part);
    assert_eq!(region.state(0), (false, GRANULE));
    assert_eq!(region.state(GRANULE), (true, GRANULE));
    assert!(!region.state(2 * GRANULE).0);
    drop(lent);
    assert_eq!(limit.used(), 4 * GRANULE);
}

#[test]
fn what_was_lent_is_the_memory_of_its_range() {
    let (region, _) = region(MIB);
    let lent = region.lend(512..1024).unwrap();
    assert!(region.is_memory_of(&(512..1024), &lent));
    assert!(!region.is_memory_of(&(512..1025), &lent));
    assert!(!region.is_memory_of(&(0..512), &lent));
    region.deallocate(0..GRANULE);
    assert!(region.is_memory_of(&(512..1024), &lent));
}

#[test]
#[should_panic(expected = "only lent for reading")]
fn what_is_lent_for_reading_is_not_written() {
    let (region, _) = region(MIB);
    write(&region, 0, &[1]);
    region.buffer(0..512).copy_in(0, &[1]);
}

/// The memory that a region takes, in bytes, as the kernel tells.
fn resident(region: &LocalRegion) -> u64 {
    let buffer = region.buffer(0..region.len());
    let start = buffer.address().as_ptr();
    let page = rustix::param::page_size();
    let mut pages = vec![0; buffer.len().div_ceil(page)];
    // SAFETY: the range is mapped and begins at a page, and there is a byte for each of its
    // pages.
    let told = unsafe { libc::mincore(start.cast(), buffer.len(), pages.as_mut_ptr()) };
    assert_eq!(told, 0, "{}", std::io::Error::last_os_error());
    (pages.iter().filter(|page| **page & 1 != 0).count() * page) as u64
}

/// Replaces the first pages by a huge one. The kernel may have none.
fn replace(region: &LocalRegion) -> bool {
    (0..100).any(|_| region.replace(0).unwrap())
}

#[test]
fn a_write_takes_memory_for_no_more_than_its_pages() {
    let (region, limit) = with_pages(64 * MIB, Pages::Huge);
    for at in 0..32 {
        write(&region, at * 2 * MIB, &[5; 4096]);
    }
    assert_eq!(limit.used(), 32 * GRANULE);
    let page = rustix::param::page_size() as u64;
    assert_eq!(resident(&region), 32 * GRANULE.max(page));
}

#[test]
fn what_was_mostly_written_gets_a_huge_page() {
    let (region, limit) = with_pages(5 * MIB, Pages::Huge);
    if region.pages() == Pages::Small {
        return;
    }
    let bytes: Vec<u8> = (0..3 * MIB / 2).map(|at| (at >> 9) as u8).collect();
    write(&region, 0, &bytes);
    assert_eq!(limit.used(), 3 * MIB / 2);
    if !replace(&region) {
        return;
    }
    assert_eq!((limit.used(), resident(&region)), (2 * MIB, 2 * MIB));
    assert_eq!(read(&region, 0, 3 * MIB / 2), bytes);
    assert_eq!(region.state(0), (true, 3 * MIB / 2));
    write(&region, 3 * MIB / 2, &[1; 4096]);
    write(&region, 4 * MIB, &vec![1; MIB as usize]);
    assert_eq!(limit.used(), 3 * MIB);
    assert_eq!(region.next_ripe(0), Some(0));
    assert_eq!(region.next_ripe(0), None, "the rest is half a huge page");
}

#[test]
fn what_is_unmapped_in_a_huge_page_is_zeros_and_comes_back_when_that_is_half() {
    let (region, limit) = with_pages(2 * MIB, Pages::Huge);
    if region.pages() == Pages::Small {
        return;
    }
    write(&region, 0, &vec![9; 2 * MIB as usize]);
    if !replace(&region) {
        return;
    }
    region.deallocate(MIB..2 * MIB);
    assert_eq!((limit.used(), resident(&region)), (2 * MIB, 2 * MIB));
    assert_eq!(read(&region, MIB - 1, MIB + 1)[..2], [9, 0]);
    region.deallocate(GRANULE..2 * GRANULE);
    let left = MIB - GRANULE;
    assert_eq!((limit.used(), resident(&region)), (left, left));
    assert_eq!(read(&region, GRANULE - 1, GRANULE + 2), {
        let mut bytes = vec![0; 4098];
        (bytes[0], bytes[4097]) = (9, 9);
        bytes
    });
    region.deallocate(0..2 * MIB);
    assert_eq!((limit.used(), resident(&region)), (0, 0));
}

/// By the thread that does it in the background.
#[test]
fn what_has_filled_up_gets_a_huge_page_after_a_rest() {
    let limit = MemoryLimit::new(64 * MIB);
    let region = Region::reserve(4 * MIB, Pages::Huge, &limit)
        .unwrap()
        .attach();
    let (probe, _) = with_pages(2 * MIB, Pages::Huge);
    write(&probe, 0, &vec![9; 2 * MIB as usize]);
    if region.pages() == Pages::Small || !replace(&probe) {
        return;
    }
    write(&region, 2 * MIB, &vec![9; 2 * MIB as usize - 4096]);
    assert_eq!(limit.used(), 2 * MIB - GRANULE);
    let deadline = Instant::now() + Duration::from_secs(60);
    while limit.used() < 2 * MIB {
        assert!(Instant::now() < deadline, "it has small pages still");
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(read(&region, 4 * MIB - 4097, 2), [9, 0]);
}

/// By the next round of the thread, which does not poll for it.
#[test]
fn what_exceeded_the_limit_gets_its_huge_page_when_others_ripen() {
    let limit = MemoryLimit::new(4 * MIB);
    let [first, second, other] =
        [(2, Pages::Huge), (2, Pages::Huge), (4, Pages::Small)].map(|(len, pages)| {
            Region::with_page_rules(len * MIB, pages, &limit, PageRules::here()).unwrap()
        });
    let (probe, _) = with_pages(2 * MIB, Pages::Huge);
    write(&probe, 0, &vec![9; 2 * MIB as usize]);
    if first.pages() == Pages::Small || !replace(&probe) {
        return;
    }
    let bytes = vec![9; 2 * MIB as usize];
    write(&first.attach(), 0, &bytes[..3 * MIB as usize / 2]);
    write(&other.attach(), 0, &bytes);
    write(&other.attach(), 2 * MIB, &bytes[..4096]);
    let (mut work, used) = (RipeGroups::default(), 7 * MIB / 2 + GRANULE);
    work.find(&first);
    assert!(!work.is_done());
    work.go_round(None);
    assert_eq!((work.is_done(), limit.used()), (true, used));
    other.deallocate(0..4 * MIB);
    work.find(&first);
    assert!(work.is_done(), "it would be tried without end");
    write(&second.attach(), 0, &bytes);
    work.find(&second);
    while !work.is_done() {
        work.go_round(None);
    }
    assert_eq!(limit.used(), 4 * MIB);
}

/// What of a region may be written, in bytes. Under strict overcommitment all of that counts as
/// used.
fn writable(region: &LocalRegion) -> u64 {
    let start = region.buffer(0..region.len()).address().addr().get() as u64;
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let overlap = |line: &str| {
        let (range, rest) = line.split_once(' ')?;
        let (from, to) = range.split_once('-')?;
        let [from, to] = [from, to].map(|text| u64::from_str_radix(text, 16).unwrap());
        let both = to.min(start + region.len()).saturating_sub(from.max(start));
        rest.starts_with("rw").then_some(both)
    };
    maps.lines().filter_map(overlap).sum()
}

#[test]
fn where_memory_is_not_overcommitted_only_what_is_used_is_committed() {
    let rules = PageRules {
        strict: true,
        ..PageRules::here()
    };
    for pages in [Pages::Small, Pages::Huge] {
        let limit = MemoryLimit::new(64 * MIB);
        let region = Region::with_page_rules(1 << 30, pages, &limit, rules);
        let region = region.unwrap().attach();
        assert_eq!(writable(&region), 0);
        assert_eq!(read(&region, 100 * MIB, 2 * MIB), [0; 2 << 20]);
        write(&region, 101 * MIB, &vec![7; 2 * MIB as usize]);
        assert!(writable(&region) <= 8 * MIB);
        assert_eq!(read(&region, 101 * MIB - 1, 3)[..], [0, 7, 7]);
        assert_eq!(read(&region, 103 * MIB - 1, 3)[..], [7, 0, 0]);
        region.deallocate(100 * MIB..102 * MIB);
        region.replace(51).unwrap();
        region.deallocate(0..1 << 30);
        assert_eq!(limit.used(), 0);
    }
}

/// 16 KiB, as some kernels for aarch64 have.
const LARGE_PAGE: usize = 16 << 10;

#[test]
fn an_unmap_within_a_larger_page_leaves_its_neighbours() {
    let limit = MemoryLimit::new(64 * MIB);
    let rules = PageRules {
        page: LARGE_PAGE,
        ..PageRules::here()
    };
    let region = Region::with_page_rules(MIB, Pages::Small, &limit, rules);
    let region = region.unwrap().attach();
    for first in 0..5 {
        for end in first + 1..10 {
            write(&region, 0, &[9; 10 * GRANULE as usize]);
            region.deallocate(first * GRANULE..end * GRANULE);
            let mut expected = [9; 10 * GRANULE as usize];
            expected[(first * GRANULE) as usize..(end * GRANULE) as usize].fill(0);
            // Allocated again, it would show what was left there.
            let lent = region.lend(0..10 * GRANULE).unwrap();
            let expected = Buffer::from_vec(expected.to_vec());
            assert_eq!(lent.difference(&expected), None, "{first} to {end}");
        }
    }
}

#[test]
#[should_panic(expected = "of a region of 4096")]
fn a_range_past_the_end_is_refused() {
    let _ = region(4096).0.buffer(1..4097);
}

/// Writers and an unmapper at the same granules: whatever is not allocated reads as zeros in the
/// end, and the account is that of the bits.
#[test]
fn writes_and_unmaps_at_once_leave_a_true_account() {
    for pages in [Pages::Small, Pages::Huge] {
        let limit = MemoryLimit::new(64 * MIB);
        let region = Region::reserve(4 * MIB, pages, &limit).unwrap();
        let over = Arc::new(AtomicBool::new(false));
        let unmapper = std::thread::spawn({
            let (region, over) = (Arc::clone(&region), Arc::clone(&over));
            move || {
                while !over.load(Relaxed) {
                    region.deallocate(MIB..3 * MIB);
                }
            }
        });
        let writers = [0, 1].map(|writer| {
            let region = Arc::clone(&region);
            std::thread::spawn(move || hammer(&region, writer))
        });
        while !writers.iter().all(JoinHandle::is_finished) {
            for group in [0, 1] {
                region.replace(group).unwrap();
            }
        }
        for writer in writers {
            writer.join().unwrap();
        }
        over.store(true, Relaxed);
        unmapper.join().unwrap();
        check_account(&region.attach());
        assert_eq!(limit.used(), region.charged());
    }
}

/// Writes granules of its own all over the region, and reads back those that nobody unmaps.
fn hammer(region: &Arc<Region>, writer: u64) {
    let region = region.attach();
    for round in 0..2000u64 {
        let granule = (round * 7 % 512) * 2 + writer;
        write(&region, granule * GRANULE, &[round as u8 | 1; 4096]);
        if !(256..768).contains(&granule) {
            assert_eq!(
                read(&region, granule * GRANULE, GRANULE),
                [round as u8 | 1; 4096]
            );
        }
    }
}

fn check_account(region: &LocalRegion) {
    let (mut allocated, charged) = (0, region.charged());
    for granule in 0..region.len() / GRANULE {
        let range = granule * GRANULE..(granule + 1) * GRANULE;
        if region.state(range.start).0 {
            allocated += GRANULE;
        } else {
            // Allocated without being written, it shows what was left there.
            let zeros = Buffer::zeros(GRANULE as usize);
            assert_eq!(region.lend(range).unwrap().difference(&zeros), None);
        }
    }
    match region.pages() {
        Pages::Small => assert_eq!(allocated, charged),
        Pages::Huge => assert!((allocated..=2 * allocated).contains(&charged)),
    }
}
