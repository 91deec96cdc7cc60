//! What is told, and when.

use super::*;

#[test]
fn each_thing_that_takes_long_is_told_once() {
    let begun = Instant::now();
    let mut patience = WaitNotice::new(begun);
    let mut line = |ms, awaited: &str| {
        let now = begun + Duration::from_millis(ms);
        let line = patience.line(now, awaited.to_owned());
        (line, patience.left(now).map(|left| left.as_millis()))
    };
    assert_eq!(line(0, "a login"), (None, Some(3000)));
    assert_eq!(line(2999, "a login"), (None, Some(1)));
    let told = Some("waiting for a login".to_owned());
    assert_eq!(line(3000, "a login"), (told, None));
    assert_eq!(line(9000, "a login"), (None, None));
    assert_eq!(line(9000, "a unit"), (None, Some(3000)));
    let told = Some("waiting for a unit".to_owned());
    assert_eq!(line(12_000, "a unit"), (told, None));
}
