use super::super::{Buffer, GRANULE, LocalRegion, MemoryLimit, Pages, Region};

const BLOCK: usize = 512;

/// Two granules of blocks, each byte of which is 1.
fn region(block: usize) -> LocalRegion {
    let limit = MemoryLimit::new(2 * GRANULE);
    let region = Region::reserve(2 * GRANULE, Pages::Small, &limit).unwrap();
    let local = region.attach_in_blocks(block as u32);
    local.lend(0..2 * GRANULE).unwrap().copy_in(0, &[1; 8192]);
    local
}

fn read(region: &LocalRegion) -> Vec<u8> {
    let mut bytes = Vec::new();
    region.buffer(0..2 * GRANULE).append_to(&mut bytes);
    bytes
}

/// Whether each block is all new where `new` says so, and all old elsewhere.
fn is_new(region: &LocalRegion, block: usize, new: impl Fn(usize) -> bool) -> bool {
    let bytes = read(region);
    let mut blocks = bytes.chunks(block).enumerate();
    blocks.all(|(number, bytes)| bytes.iter().all(|byte| *byte == 1 + u8::from(new(number))))
}

#[test]
fn a_block_is_stored_when_all_of_it_has_come() {
    let region = region(BLOCK);
    let lent = region.lend(0..GRANULE).unwrap();
    lent.copy_in(0, &[2; BLOCK + 100]);
    assert!(is_new(&region, BLOCK, |block| block == 0));
    lent.copy_in(BLOCK + 100, &[2; BLOCK - 101]);
    assert!(is_new(&region, BLOCK, |block| block == 0));
    lent.copy_in(2 * BLOCK - 1, &[2; 3 * BLOCK + 1]);
    assert!(is_new(&region, BLOCK, |block| block < 5));
}

#[test]
fn a_claim_that_is_dropped_leaves_blocks_as_they_were() {
    let region = region(4096);
    for _ in 0..2 {
        let lent = region.lend(0..2 * GRANULE).unwrap();
        lent.copy_in(1, &[2; 8190]);
        drop(lent);
        assert!(is_new(&region, 4096, |_| false));
    }
    let lent = region.lend(0..2 * GRANULE).unwrap();
    lent.copy_in(0, &[2]);
    lent.copy_in(8191, &[2]);
    assert!(
        is_new(&region, 4096, |_| false),
        "what others had staged is gone"
    );
}

#[test]
fn bytes_that_come_twice_do_not_make_a_block_whole() {
    let region = region(BLOCK);
    let lent = region.lend(0..GRANULE).unwrap();
    (0..3).for_each(|_| lent.copy_in(0, &[2; BLOCK / 2]));
    assert!(is_new(&region, BLOCK, |_| false));
    lent.copy_in(BLOCK / 2 - 1, &[2; BLOCK / 2]);
    assert!(is_new(&region, BLOCK, |_| false), "the last byte");
    lent.copy_in(BLOCK - 1, &[2]);
    assert!(is_new(&region, BLOCK, |block| block == 0));
}

/// Two writes of the same blocks at once, each of which brings another half.
#[test]
fn claims_do_not_make_a_block_together() {
    let region = region(BLOCK);
    let lent = || region.lend(0..GRANULE).unwrap();
    let (one, other) = (lent(), lent());
    one.copy_in(0, &[2; BLOCK / 2]);
    other.copy_in(BLOCK / 2, &[3; BLOCK / 2]);
    assert!(is_new(&region, BLOCK, |_| false));
    one.copy_in(BLOCK / 2, &[2; BLOCK / 2]);
    assert!(is_new(&region, BLOCK, |block| block == 0));
}

/// As where the beginning of a block comes with a command, and the rest by an RDMA Read into a
/// slice of the memory.
#[test]
fn a_claim_and_its_slices_make_a_block_together() {
    for first_goes in [false, true] {
        let region = region(BLOCK);
        let lent = region.lend(0..GRANULE).unwrap();
        lent.copy_in(0, &[2; 100]);
        let rest = lent.slice(100, 2 * BLOCK - 100);
        let _lent = (!first_goes).then_some(lent);
        drop(rest.slice(0, 0));
        rest.slice(0, 1000 - 100).copy_in(0, &[2; 900]);
        assert!(is_new(&region, BLOCK, |block| block == 0));
        rest.slice(900, 24).copy_in(0, &[2; 24]);
        assert!(is_new(&region, BLOCK, |block| block < 2));
    }
}

#[test]
fn what_slices_have_staged_goes_with_the_last_of_them() {
    let region = region(BLOCK);
    let lent = region.lend(0..GRANULE).unwrap();
    let slice = lent.slice(10, BLOCK);
    slice.copy_in(0, &[2; 100]);
    drop((lent, slice));
    let lent = region.lend(0..GRANULE).unwrap();
    lent.copy_in(110, &[2; BLOCK - 110]);
    lent.copy_in(0, &[2; 10]);
    assert!(is_new(&region, BLOCK, |_| false));
    assert_eq!(lent.clone().slice(0, BLOCK).len(), BLOCK);
    lent.copy_in(10, &[2; 100]);
    assert!(is_new(&region, BLOCK, |block| block == 0));
}

#[test]
fn a_part_of_what_was_lent_has_its_own_blocks() {
    let region = region(BLOCK);
    let lent = region.lend(0..GRANULE).unwrap();
    let part = lent.slice(BLOCK + 100, 2 * BLOCK);
    part.copy_from(0, &Buffer::from_vec(vec![2; 2 * BLOCK]));
    assert!(is_new(&region, BLOCK, |block| block == 2));
}

#[test]
fn pieces_may_come_in_any_order() {
    for (block, piece) in [(512, 64), (512, 100), (4096, 1), (4096, 1000), (4096, 2048)] {
        let region = region(block);
        let lent = region.lend(0..2 * GRANULE).unwrap();
        let pieces = 8192_usize.div_ceil(piece);
        let mut come = [false; 8192];
        let mut number = 0;
        for _ in 0..pieces {
            // A prime that divides no number of pieces: each has its turn.
            number = (number + 4001) % pieces;
            let range = number * piece..8192.min((number + 1) * piece);
            lent.copy_in(range.start, &[2; 4096][..range.len()]);
            come[range].fill(true);
            if number % 16 == 0 {
                let whole = |at| come[at * block..][..block].iter().all(|come| *come);
                assert!(is_new(&region, block, whole), "{piece} of {block}");
            }
        }
        assert!(is_new(&region, block, |_| true), "{piece} of {block}");
    }
}

#[test]
fn many_claims_stage_at_once() {
    let region = region(BLOCK);
    let claims = 200_u8;
    for _ in 0..2 {
        let claim = |byte: u8| {
            let lent = region.lend(0..GRANULE).unwrap();
            (0..8).for_each(|block| lent.copy_in(block * BLOCK, &[byte; BLOCK - 1]));
            lent
        };
        let lent: Vec<_> = (2..claims).map(claim).collect();
        for (byte, lent) in (2..claims).zip(&lent).step_by(7) {
            (0..8).for_each(|block| lent.copy_in((block + 1) * BLOCK - 1, &[byte]));
            assert_eq!(read(&region)[..4096], [byte; 4096]);
        }
        region.lend(0..GRANULE).unwrap().copy_in(0, &[1; 4096]);
        drop(lent);
        assert!(is_new(&region, BLOCK, |_| false));
    }
}
