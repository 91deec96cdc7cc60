//! Frames wait in their order, and no more of them than there is room for.

use super::super::backlog::Backlog;

fn frame(number: u8, len: usize) -> Vec<u8> {
    (0..len).map(|at| number ^ at as u8).collect()
}

#[test]
fn frames_leave_as_they_came_around_the_end_of_the_ring() {
    let mut backlog = Backlog::new(1000);
    let lens = [300, 299, 60, 333];
    let mut lens_in = lens.iter().cycle().zip(0_u8..200);
    let mut lens_out = lens.iter().cycle().zip(0_u8..200);
    for _ in 0..2 {
        let (len, number) = lens_in.next().unwrap();
        assert!(backlog.push(&frame(number, *len)));
    }
    for (len, number) in lens_in {
        assert!(backlog.push(&frame(number, *len)), "{number}");
        let (len, number) = lens_out.next().unwrap();
        assert_eq!(backlog.next_len(), Some(*len));
        let mut slot = vec![0; *len];
        backlog.pop_into(&mut slot);
        assert_eq!(slot, frame(number, *len), "{number}");
    }
    assert_eq!(backlog.used(), lens_out.map(|(len, _)| len).sum());
}

#[test]
fn what_does_not_fit_is_refused_and_disturbs_nothing() {
    let mut backlog = Backlog::new(100);
    assert!(!backlog.push(&frame(1, 101)));
    assert!(backlog.push(&frame(2, 60)));
    assert!(!backlog.push(&frame(3, 41)));
    assert!(backlog.push(&frame(4, 40)));
    let mut slot = vec![0; 60];
    backlog.pop_into(&mut slot);
    assert_eq!(slot, frame(2, 60));
    let mut slot = vec![0; 40];
    backlog.pop_into(&mut slot);
    assert_eq!(slot, frame(4, 40));
    assert!(backlog.is_empty());
    assert!(backlog.push(&frame(5, 100)));
}
