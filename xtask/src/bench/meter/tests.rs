use super::unfairness;

#[test]
fn the_session_furthest_off_the_mean_counts() {
    assert_eq!(unfairness(&[100, 100, 90, 110, 60]), 32.0 / 92.0);
    assert_eq!(unfairness(&[5]), 0.0);
}
