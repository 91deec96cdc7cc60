use std::time::{Duration, Instant};

use scsi::medium::MediumError;

use super::{EACH, FinalFlushes};

/// The lines of flushes that end one after the other, so long apart.
fn lines(volumes: usize, apart: Duration, failed: Option<usize>) -> Vec<String> {
    let flushes = FinalFlushes::default();
    for volume in 0..volumes as u32 {
        flushes.insert(volume, format!("ram:{volume}"));
    }
    let (start, mut lines) = (Instant::now(), Vec::new());
    for volume in 0..volumes {
        let mut results = flushes.results();
        let result = if Some(volume) == failed {
            Err(MediumError::Write)
        } else {
            Ok(())
        };
        let volume = volume as u32;
        results.each.get_mut(&volume).unwrap().1 = Some(result);
        results.done += 1;
        lines.extend(results.progress(volume, start + apart * volume));
    }
    lines
}

#[test]
fn each_of_a_few_volumes_has_a_line() {
    let told = lines(2, Duration::ZERO, None);
    assert_eq!(told, ["flushed 1 of 2: ram:0", "flushed 2 of 2: ram:1"]);
    assert_eq!(lines(EACH, Duration::ZERO, None).len(), EACH);
}

#[test]
fn many_volumes_have_a_line_a_second_together() {
    assert_eq!(
        lines(1000, Duration::ZERO, None),
        ["flushed all 1000 volumes"]
    );
    let slow = lines(1000, Duration::from_millis(10), None);
    assert_eq!(slow.len(), 10, "{slow:?}");
    assert_eq!(slow[0], "flushing: 101 of 1000 volumes done");
    let failed = lines(1000, Duration::ZERO, Some(999));
    assert_eq!(failed, ["flushed 999 of 1000 volumes"]);
}

#[test]
fn what_is_waited_for_is_named() {
    let flushes = FinalFlushes::default();
    (0..5).for_each(|volume| flushes.insert(volume, format!("ram:{volume}M")));
    let way_out = "; another signal stops at once and loses the data in their caches";
    let line = format!("waiting for the flush of ram:0M, ram:1M, ram:2M and 2 more{way_out}");
    assert_eq!(flushes.waiting(), Some(line));
    (0..4).for_each(|volume| flushes.flushed(volume, Ok(())));
    let line = format!("waiting for the flush of ram:4M{way_out}");
    assert_eq!(flushes.waiting(), Some(line));
    flushes.flushed(4, Ok(()));
    assert_eq!(flushes.waiting(), None);
}
