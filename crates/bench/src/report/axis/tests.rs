use super::Axis;

fn ticks(axis: &Axis) -> Vec<&str> {
    axis.ticks.iter().map(|(_, text)| text.as_str()).collect()
}

#[test]
fn linear_axes_end_at_round_numbers_past_all_values() {
    let axis = Axis::linear("", 291_000.0);
    assert_eq!(
        ticks(&axis),
        ["0", "50k", "100k", "150k", "200k", "250k", "300k"]
    );
    assert_eq!(axis.place(150_000.0), 0.5);
    assert_eq!(
        ticks(&Axis::linear("", 0.3)),
        ["0", "0.05", "0.1", "0.15", "0.2", "0.25", "0.3"]
    );
}

#[test]
fn nothing_at_all_still_has_an_axis() {
    assert_eq!(ticks(&Axis::linear("", 0.0)), ["0", "1"]);
    assert_eq!(ticks(&Axis::times("", 0.0, 0.0)), ["1 ns", "10 ns"]);
    assert_eq!(ticks(&Axis::nines("", 0)), ["0", "50", "90"]);
}

#[test]
fn times_go_by_powers_of_ten() {
    let axis = Axis::times("", 15_000.0, 2_300_000.0);
    assert_eq!(ticks(&axis), ["10 us", "100 us", "1 ms", "10 ms"]);
    assert!((axis.place(1e6) - 2.0 / 3.0).abs() < 1e-9);
}

#[test]
fn percentiles_go_as_far_as_there_are_values() {
    let axis = Axis::nines("", 5_000);
    assert_eq!(ticks(&axis), ["0", "50", "90", "99", "99.9", "99.99"]);
    assert!((axis.place(99.0) - 0.5).abs() < 1e-9);
    assert!((axis.percentile(0.5) - 99.0).abs() < 1e-9);
}

#[test]
fn marks_stand_side_by_side() {
    let axis = Axis::marks("", &["512".to_owned(), "4k".to_owned()]);
    assert_eq!([axis.place(0.0), axis.place(1.0)], [0.25, 0.75]);
}
