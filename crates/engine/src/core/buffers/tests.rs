use super::{SPARE_MAX, SPARE_MIN, SpareBatches};

#[test]
fn batches_that_were_not_needed_are_given_back() {
    let mut spare = SpareBatches::default();
    for batch in [(); SPARE_MAX + 3].map(|()| spare.take()) {
        spare.give_back(batch);
    }
    assert_eq!(spare.batches.len(), SPARE_MAX);
    spare.trim();
    assert_eq!(spare.batches.len(), SPARE_MAX, "all were needed");
    let needed = [(); 5].map(|()| spare.take());
    needed.into_iter().for_each(|batch| spare.give_back(batch));
    spare.trim();
    assert_eq!(spare.batches.len(), 5);
    spare.trim();
    assert_eq!(spare.batches.len(), SPARE_MIN);
    assert!(!spare.has_idle(), "an idle core sleeps");
}
