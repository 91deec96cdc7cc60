//! A port that logs in again and again has a bounded number of lines.

use std::time::Duration;

use super::super::login_log::LoginLog;

const MINUTE: Duration = Duration::from_secs(60);

#[test]
fn logins_beyond_64_a_minute_are_counted() {
    let mut log = LoginLog::new(2);
    let told = (0..100).filter(|_| log.tells(0)).count();
    assert_eq!(told, 64);
    assert!(log.tells(1), "another port has lines of its own");
    assert!(!log.is_due(MINUTE / 2));
    assert!(log.next_deadline().is_some_and(|at| log.is_due(at)));
    assert_eq!(log.sweep(MINUTE), [(0, 36)]);
    assert_eq!(log.next_deadline(), None);
    assert!(log.tells(0));
}

#[test]
fn nobody_wakes_for_a_line_that_is_not_owed() {
    let mut log = LoginLog::new(1);
    assert!((0..64).all(|_| log.tells(0)));
    assert_eq!(log.next_deadline(), None);
    assert_eq!(log.sweep(MINUTE), []);
}
