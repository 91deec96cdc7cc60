//! Frames wait in their order, and no more of them than there is room for.

use std::time::Duration;

use fc::fabric::{PortNumber, UndeliveredFrame};
use fc::wire::names::FcId;

use super::super::backlog::{Backlog, QueuedFrame};

fn frame(number: u8, len: usize) -> Vec<u8> {
    (0..len).map(|at| number ^ at as u8).collect()
}

fn queued(number: u8) -> QueuedFrame {
    QueuedFrame {
        since: Duration::from_millis(number.into()),
        frame: UndeliveredFrame {
            ingress: PortNumber(0),
            s_id: FcId(1),
            d_id: FcId(2),
            bytes: 0,
        },
    }
}

fn push(backlog: &mut Backlog, number: u8, len: usize) -> bool {
    let Some(room) = backlog.push(len, queued(number)) else {
        return false;
    };
    room.copy_from_slice(&frame(number, len));
    true
}

#[track_caller]
fn pops(backlog: &mut Backlog, number: u8, len: usize) {
    let (told, bytes) = backlog.front().unwrap();
    assert_eq!(*told, queued(number));
    assert_eq!(bytes, frame(number, len), "{number}");
    backlog.pop();
}

#[test]
fn frames_leave_as_they_came_around_the_end_of_the_ring() {
    let mut backlog = Backlog::new(1300);
    let lens = [300, 299, 60, 333];
    let mut lens_in = lens.iter().cycle().zip(0_u8..200);
    let mut lens_out = lens.iter().cycle().zip(0_u8..200);
    for _ in 0..2 {
        let (len, number) = lens_in.next().unwrap();
        assert!(push(&mut backlog, number, *len));
    }
    for (len, number) in lens_in {
        assert!(push(&mut backlog, number, *len), "{number}");
        let (len, number) = lens_out.next().unwrap();
        pops(&mut backlog, number, *len);
    }
    assert_eq!(backlog.used(), lens_out.map(|(len, _)| len).sum::<usize>());
}

#[test]
fn what_does_not_fit_is_refused_and_disturbs_nothing() {
    let mut backlog = Backlog::new(100);
    assert!(!push(&mut backlog, 1, 101));
    assert!(push(&mut backlog, 2, 60));
    assert!(!push(&mut backlog, 3, 41));
    assert!(push(&mut backlog, 4, 40));
    pops(&mut backlog, 2, 60);
    assert!(!push(&mut backlog, 5, 61), "in one piece");
    assert!(push(&mut backlog, 6, 60));
    assert!(!push(&mut backlog, 7, 1));
    pops(&mut backlog, 4, 40);
    pops(&mut backlog, 6, 60);
    assert!(backlog.is_empty());
    assert!(push(&mut backlog, 8, 100));
}
