//! Writes: immediate, unsolicited and solicited data (RFC 7143 §4.2.5.2, §11.7, §11.8; UNH FFP 4.1,
//! 7.x, 8.x, 10.1, 16.3.x).

use std::time::Duration;

use super::rig::{Rig, keys, over_each_datamover, over_one_datamover, pattern};
use crate::parameters::Operational;
use crate::session::stall::StallTimer;
use crate::wire::bhs::Ttt;

over_each_datamover! {
    #[test]
    fn immediate_data_that_comes_before_there_is_memory_is_held() {
        let mut rig = Rig::new();
        let command = rig.write(1, 1000, true, &pattern(1000));
        assert_eq!(rig.session.held, 1000);
        rig.grant(command.tag, 0, 600);
        assert_eq!(
            rig.got_data(),
            (command.tag, 0, pattern(1000)[..600].to_vec())
        );
        rig.grant(command.tag, 600, 400);
        assert_eq!(
            rig.got_data(),
            (command.tag, 600, pattern(1000)[600..].to_vec())
        );
        rig.good(command.tag, 0, 1000);
        rig.sends(["Response #1 00"]);
        assert_eq!(rig.session.held, 0);
    }

    #[test]
    fn who_announces_data_and_sends_none_is_given_up() {
        let mut rig = Rig::new();
        rig.write(1, 2048, false, &[]);
        for itt in 2..=13 {
            rig.quiet();
            rig.ping(itt, b"");
            rig.wait(10);
        }
        assert_eq!(rig.rule(), "requested data did not arrive");
    }

    /// At the first look the write is young.
    #[test]
    fn who_sends_slowly_is_judged_by_the_bytes_since_the_last_look() {
        let at = Duration::from_secs;
        let mut progress = StallTimer::default();
        progress.begin(at(0), at(60));
        assert!(!progress.is_slow(at(60), at(60), Some(at(59))));
        progress.moved(1);
        assert!(progress.is_slow(at(120), at(60), Some(at(59))));
    }
}

#[test]
fn immediate_data_goes_straight_into_the_memory_lent() {
    let mut rig = Rig::new();
    let pdu = rig.write_pdu(1, 512, true);
    rig.send_header(pdu.encode(), 512);
    let command = rig.executed();
    assert_eq!(command.expected_out, 512);
    rig.grant(command.tag, 0, 512);
    rig.give(&pattern(512));
    assert_eq!(rig.got_data(), (command.tag, 0, pattern(512)));
    rig.good(command.tag, 0, 512);
    rig.sends(["Response #1 00"]);
    assert_eq!(rig.session.held, 0);
}

#[test]
fn the_rest_of_a_write_is_asked_for_burst_by_burst() {
    let mut rig = Rig::new();
    let tag = rig.granted(1, 8192, true, &pattern(8192)[..1024]);
    rig.sends([
        "R2T #1 ttt=0 sn=0 [1024+2048]",
        "R2T #1 ttt=10000 sn=1 [3072+2048]",
    ]);
    rig.data_out(1, Ttt(0), 0, 1024, false, &pattern(8192)[1024..2048]);
    rig.data_out(1, Ttt(0), 1, 2048, true, &pattern(8192)[2048..3072]);
    rig.sends(["R2T #1 ttt=20000 sn=2 [5120+2048]"]);
    rig.data_out(1, Ttt(0x1_0000), 0, 3072, true, &pattern(8192)[3072..5120]);
    rig.sends(["R2T #1 ttt=30000 sn=3 [7168+1024]"]);
    rig.data_out(1, Ttt(0x2_0000), 0, 5120, true, &pattern(8192)[5120..7168]);
    rig.quiet();
    rig.data_out(1, Ttt(0x3_0000), 0, 7168, true, &pattern(8192)[7168..]);
    assert_eq!(rig.got_data(), (tag, 0, pattern(8192)));
    rig.good(tag, 0, 8192);
    rig.sends(["Response #1 00"]);
}

#[test]
fn without_initial_r2t_unsolicited_data_follows_the_command() {
    let mut rig = Rig::new();
    let tag = rig.granted(1, 1500, false, &pattern(1500)[..500]);
    rig.sends_nothing();
    rig.data_out(1, Ttt::NONE, 0, 500, false, &pattern(1500)[500..800]);
    rig.data_out(1, Ttt::NONE, 1, 800, true, &pattern(1500)[800..1024]);
    rig.sends(["R2T #1 ttt=0 sn=0 [1024+476]"]);
    rig.data_out(1, Ttt(0), 0, 1024, true, &pattern(1500)[1024..]);
    assert_eq!(rig.got_data(), (tag, 0, pattern(1500)));
    rig.good(tag, 0, 1500);
    rig.sends(["Response #1 00"]);
}

#[test]
fn with_initial_r2t_everything_is_asked_for() {
    let mut rig = Rig::with(Operational {
        initial_r2t: true,
        immediate_data: false,
        outstanding_r2t: 1,
        ..keys()
    });
    let tag = rig.granted(1, 3000, true, &[]);
    rig.sends(["R2T #1 ttt=0 sn=0 [0+2048]"]);
    rig.data_out(1, Ttt(0), 0, 0, true, &pattern(3000)[..2048]);
    rig.sends(["R2T #1 ttt=10000 sn=1 [2048+952]"]);
    rig.data_out(1, Ttt(0x1_0000), 0, 2048, true, &pattern(3000)[2048..]);
    assert_eq!(rig.got_data(), (tag, 0, pattern(3000)));
}

/// It holds the blocks that others wait for, so that pings in time do not excuse it.
#[test]
fn who_pings_but_sends_no_data_is_given_up() {
    let mut rig = Rig::new();
    rig.granted(1, 2048, true, &[]);
    rig.sends(["R2T #1 ttt=0 sn=0 [0+2048]"]);
    for second in 1..=12 {
        rig.quiet();
        rig.ping(second + 1, b"");
        rig.sends([format!("NOP-In #{} \"\"", second + 1)]);
        rig.wait(10);
    }
    assert_eq!(rig.rule(), "requested data did not arrive");
}

/// A byte now and then would hold the memory that was lent to it for ever.
#[test]
fn who_sends_next_to_no_data_is_given_up() {
    let mut rig = Rig::new();
    rig.granted(1, 2048, true, &[]);
    rig.sent();
    for at in 0..3 {
        rig.quiet();
        rig.data_out(1, Ttt(0), at, at, false, &[7]);
        rig.wait(25);
        rig.ping(9, b"");
        rig.wait(25);
    }
    assert_eq!(rig.rule(), "requested data did not arrive");
}

/// 64 KiB in 50 s, over and over.
#[test]
fn who_sends_data_slowly_is_not() {
    const PART: usize = 64 << 10;
    let mut rig = Rig::with(Operational {
        own_data_segment: PART as u32,
        max_burst: 4 * PART as u32,
        ..keys()
    });
    let command = rig.write(1, 4 * PART as u32, true, &[]);
    rig.grant(command.tag, 0, 4 * PART);
    rig.sent();
    for part in 0..4 {
        rig.wait(25);
        rig.ping(9, b"");
        rig.wait(25);
        rig.quiet();
        let at = part * PART as u32;
        rig.data_out(1, Ttt(0), part, at, part == 3, &[7; PART]);
    }
    assert_eq!(rig.got_data().2, [7; 4 * PART]);
    rig.good(command.tag, 0, 4 * PART as u64);
    rig.wait(20);
    rig.ping(9, b"");
    assert_eq!(
        rig.sent().last().map(String::as_str),
        Some("NOP-In #9 \"\"")
    );
}

/// A write that waited for a lock gets its memory late; the clock of its data begins then.
#[test]
fn the_wait_for_memory_is_not_the_initiators() {
    let mut rig = Rig::new();
    let command = rig.write(1, 2048, true, &[]);
    for itt in 2..=20 {
        rig.wait(25);
        rig.ping(itt, b"");
    }
    rig.sent();
    rig.grant(command.tag, 0, 2048);
    rig.sends(["R2T #1 ttt=0 sn=0 [0+2048]"]);
    rig.wait(29);
    rig.quiet();
    rig.ping(21, b"");
    rig.wait(29);
    rig.quiet();
    rig.data_out(1, Ttt(0), 0, 0, true, &[7; 2048]);
    assert_eq!(rig.got_data().2, [7; 2048]);
}
