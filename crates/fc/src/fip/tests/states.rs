//! The table of the module, cell by cell.

use std::fmt::Write;

use super::rig::{config, frames, message, ms, multicast, port, receive, sent, told};
use crate::fip::Fip;
use crate::wire::ethernet::Mac;
use crate::wire::fip::FipOperation;

/// A port of the middle WWPN, taken to a state by so many steps.
fn in_state(steps: usize) -> Fip {
    let mut fip = port(config(5));
    for _ in 0..steps {
        let at = fip.next_deadline().unwrap();
        fip.expire(at);
    }
    frames(&mut fip);
    told(&mut fip);
    fip
}

const STATES: [(&str, usize); 5] = [
    ("waiting", 0),
    ("probing", 1),
    ("probed", 2),
    ("claiming", 3),
    ("up", 4),
];

/// What a port does that wants or has 000005 when another one says so of itself.
fn cell(steps: usize, operation: FipOperation, other: u16, recorded: bool) -> String {
    let mut fip = in_state(steps);
    let (before, now) = (fip.state, fip.now);
    let other = config(other);
    let mut frame = match operation {
        FipOperation::ProbeReply | FipOperation::ClaimResponse => {
            message(&other, operation, 5, Mac([2, 0, 0, 0, 0, 5]))
        }
        _ => multicast(&other, operation, 5),
    };
    if recorded {
        frame[14 + 9] |= 8;
    }
    receive(&mut fip, now, &frame).unwrap();
    let mut done = sent(&mut fip);
    done.extend(told(&mut fip));
    if fip.state != before || fip.fc_id.0 != 5 {
        assert_ne!(fip.fc_id.0, 5);
        done.push(format!("{:?} with another", fip.state));
    }
    if done.is_empty() {
        done.push("nothing".into());
    }
    done.join("; ")
}

#[test]
fn each_state_and_message() {
    let mut table = String::new();
    let operations = [
        (FipOperation::ProbeRequest, false),
        (FipOperation::ProbeRequest, true),
        (FipOperation::ProbeReply, false),
        (FipOperation::ClaimNotification, false),
        (FipOperation::ClaimResponse, false),
        (FipOperation::Beacon, false),
    ];
    for (operation, recorded) in operations {
        for (name, steps) in STATES {
            for (rank, other) in [("lower", 1), ("higher", 9)] {
                let recorded_id = if recorded { " of a recorded ID" } else { "" };
                let outcome = cell(steps, operation, other, recorded);
                writeln!(
                    table,
                    "{operation:?}{recorded_id} of a {rank} WWPN, {name}: {outcome}"
                )
                .unwrap();
            }
        }
    }
    insta::assert_snapshot!(table);
}

#[test]
fn the_link_going_down_ends_every_state() {
    for (name, steps) in STATES {
        let mut fip = in_state(steps);
        fip.link(ms(5000), false);
        assert_eq!((fip.next_deadline(), fip.fc_id()), (None, None), "{name}");
        let released = if name == "up" {
            vec!["released 000005"]
        } else {
            vec![]
        };
        assert_eq!(told(&mut fip), released, "{name}");
        let now = ms(6000);
        let probe = multicast(&config(1), FipOperation::ProbeRequest, 5);
        receive(&mut fip, now, &probe).unwrap();
        assert_eq!(sent(&mut fip).len(), 0, "{name}");
    }
}
