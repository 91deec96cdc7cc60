//! What is served changes while hosts use it, over several cores with messages that take their
//! time: no write reaches a volume that is not served any more, no read sees the wrong one, and
//! every host is told what has changed.

use crate::inventory::Site;
use crate::seeds::with_seeds;

#[test]
fn what_is_served_changes_under_those_who_use_it() {
    let made = std::cell::Cell::new([0, 0]);
    with_seeds("inventory", 20_000, |seed| {
        let mut site = Site::new(seed);
        site.run(2000);
        let [well, refused] = made.get();
        made.set([well + site.made[0], refused + site.made[1]]);
    });
    let [well, refused] = made.get();
    eprintln!("{well} changes were made, {refused} refused");
    assert!(well > refused);
}
