use super::super::mapping::PageRules;
use super::super::{Buffer, Pool, SLOT_MAX};

const KIB: usize = 1 << 10;

fn address(buffer: &Buffer) -> usize {
    buffer.address().as_ptr() as usize
}

#[test]
fn buffers_have_the_length_asked_for_and_begin_at_a_page() {
    let pool = Pool::new(1 << 20).unwrap();
    for len in [0, 1, 512, 4096, 4097, 20 * KIB, 65 * KIB, SLOT_MAX] {
        let buffer = pool.buffer(len).unwrap();
        assert_eq!(buffer.len(), len);
        assert!(address(&buffer).is_multiple_of(4096));
        buffer.copy_in(0, &vec![1; len]);
    }
    assert_eq!(pool.in_use(), 0);
}

#[test]
fn buffers_do_not_overlap() {
    let pool = Pool::new(1 << 20).unwrap();
    let buffers: Vec<_> = (0..=255).map_while(|_| pool.buffer(4096)).collect();
    assert_eq!(buffers.len(), 256);
    for (value, buffer) in buffers.iter().enumerate() {
        buffer.copy_in(0, &[value as u8; 4096]);
    }
    for (value, buffer) in buffers.iter().enumerate() {
        assert_eq!(
            buffer.difference(&Buffer::from_vec(vec![value as u8; 4096])),
            None
        );
    }
}

#[test]
fn an_exhausted_pool_gives_nothing_until_the_last_claim_is_dropped() {
    let pool = Pool::new(512 * KIB).unwrap();
    let first = pool.buffer(SLOT_MAX).unwrap();
    let second = pool.buffer(SLOT_MAX).unwrap();
    assert!(pool.buffer(1).is_none());
    let claim = first.slice(100, 1);
    drop(first);
    assert!(pool.buffer(1).is_none());
    drop(claim);
    assert!(pool.buffer(1).is_some());
    drop(second);
    assert_eq!(pool.in_use(), 0);
}

#[test]
fn the_buffer_last_given_back_is_the_next() {
    let pool = Pool::new(1 << 20).unwrap();
    let (a, b) = (pool.buffer(4096).unwrap(), pool.buffer(4096).unwrap());
    let (at_a, at_b) = (address(&a), address(&b));
    drop(b);
    drop(a);
    assert_eq!(address(&pool.buffer(10).unwrap()), at_a);
    let a = pool.buffer(10).unwrap();
    assert_eq!(address(&pool.buffer(10).unwrap()), at_b);
    drop(a);
}

#[test]
fn what_one_size_has_idle_serves_another() {
    let pool = Pool::new(256 * KIB).unwrap();
    let small: Vec<_> = (0..64).map_while(|_| pool.buffer(4096)).collect();
    assert_eq!(small.len(), 64);
    assert!(pool.buffer(SLOT_MAX).is_none());
    drop(small);
    assert!(pool.buffer(SLOT_MAX).is_some());
    assert_eq!(pool.resident(), 256 * KIB);
    assert!(pool.buffer(4096).is_some());
}

#[test]
fn a_trim_gives_back_only_what_was_idle_since_the_last() {
    let pool = Pool::new(1 << 20).unwrap();
    drop([(); 4].map(|()| pool.buffer(SLOT_MAX).unwrap()));
    pool.trim();
    assert_eq!(pool.resident(), 1 << 20);
    drop(pool.buffer(SLOT_MAX));
    pool.trim();
    assert_eq!(pool.resident(), 256 * KIB);
    pool.trim();
    assert_eq!(pool.resident(), 0);
    let buffer = pool.buffer(SLOT_MAX).unwrap();
    assert_eq!(buffer.difference(&Buffer::zeros(SLOT_MAX)), None);
}

/// 16 KiB, as some kernels for aarch64 have: four blocks lie in a page, which is given back whole.
#[test]
fn a_trim_leaves_what_is_in_use_of_a_larger_page() {
    let rules = PageRules {
        page: 16 * KIB,
        ..PageRules::here()
    };
    let pool = Pool::with_page_rules(1 << 20, rules).unwrap();
    let mut buffers: Vec<_> = (0..4).map_while(|_| pool.buffer(4096)).collect();
    for buffer in &buffers {
        buffer.copy_in(0, &[7; 4096]);
    }
    drop(buffers.remove(0));
    pool.trim();
    pool.trim();
    assert_eq!(pool.resident(), pool.in_use());
    for buffer in &buffers {
        assert_eq!(buffer.difference(&Buffer::from_vec(vec![7; 4096])), None);
    }
}

#[test]
fn every_slot_can_be_written_where_memory_is_not_overcommitted() {
    let rules = PageRules {
        strict: true,
        ..PageRules::here()
    };
    let pool = Pool::with_page_rules(5 << 20, rules).unwrap();
    for len in [4 * KIB, 16 * KIB, 64 * KIB, SLOT_MAX] {
        let buffers: Vec<_> = std::iter::from_fn(|| pool.buffer(len)).collect();
        assert_eq!(buffers.len(), (5 << 20) / len);
        for buffer in buffers {
            buffer.copy_in(0, &vec![1; len]);
        }
    }
}

#[test]
fn a_buffer_outlives_its_pool() {
    let buffer = Pool::new(1 << 20).unwrap().buffer(4096).unwrap();
    buffer.copy_in(0, &[1; 4096]);
    assert_eq!(buffer.difference(&Buffer::from_vec(vec![1; 4096])), None);
}
