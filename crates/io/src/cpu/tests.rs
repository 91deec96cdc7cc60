use super::*;

#[test]
fn a_pinned_thread_runs_on_that_processor_alone() {
    let thread = std::thread::spawn(|| {
        let last = *allowed().unwrap().last().unwrap();
        pin(last).unwrap();
        assert_eq!(allowed().unwrap(), [last]);
    });
    thread.join().unwrap();
}

#[test]
fn a_processor_that_is_not_there_is_refused() {
    assert!(pin(CpuSet::MAX_CPU - 1).is_err());
    assert!(pin(usize::MAX).is_err());
}
