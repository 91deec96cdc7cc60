//! Both ends of a floor in one process, over a cable.

use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

use ::io::ether::EtherPort;

use super::*;
use crate::load::tests::observed;
use crate::outcome::ResultRow;

/// A cable of a test's own.
fn cable(test: &str) -> Place {
    let name = format!("lunar-floor-{test}-{}", std::process::id());
    Place::Cable(std::env::temp_dir().join(name))
}

fn run(test: &str, rw: &str, crc: bool) -> ResultRow {
    let place = cable(test);
    let stop = &AtomicBool::new(false);
    thread::scope(|scope| {
        let mut far = FloorResponder::new(&place, 1 << 20).unwrap();
        let far = scope.spawn(move || far.run(stop));
        let row = measured(&place, rw, crc);
        stop.store(true, Relaxed);
        far.join().unwrap().unwrap();
        row
    })
}

/// Measures frames at this end of a cable.
fn measured(place: &Place, rw: &str, crc: bool) -> ResultRow {
    let words = FioOptions {
        rws: vec![rw.parse().unwrap()],
        runtime: Duration::from_millis(200),
        ramp: Duration::from_millis(5),
        ..FioOptions::preset(None, false).unwrap()
    };
    let frames = FloorRequest {
        place,
        crc,
        size: 1 << 20,
    };
    let mut outcome = RunResult::default();
    let ran = observed(false, |watch| rows(frames, &words, &mut outcome, watch));
    ran.unwrap();
    outcome.rows.remove(0)
}

#[test]
fn frames_go_to_the_other_end() {
    let row = run("there", "write", true);
    assert!(row.writes.ios > 100 && row.reads.ios == 0, "{row:?}");
    assert_eq!(row.writes.bytes, row.writes.ios * 2112);
    assert_eq!(row.errors(), 0);
}

#[test]
fn frames_go_through_a_relay() {
    let places = [cable("relay-near"), cable("relay-far")];
    let stop = &AtomicBool::new(false);
    let row = thread::scope(|scope| {
        let mut relay = FloorRelay::new([&places[0], &places[1]]).unwrap();
        let mut far = FloorResponder::new(&places[1], 1 << 20).unwrap();
        let relay = scope.spawn(move || relay.run(stop).map(|()| relay.lost()));
        let far = scope.spawn(move || far.run(stop));
        let row = measured(&places[0], "rw", true);
        stop.store(true, Relaxed);
        far.join().unwrap().unwrap();
        relay.join().unwrap().unwrap();
        row
    });
    assert!(row.reads.ios > 100 && row.writes.ios > 100, "{row:?}");
    assert_eq!(row.reads.bytes, row.reads.ios * 2112);
}

#[test]
fn frames_come_from_the_other_end() {
    let row = run("back", "read", true);
    assert!(row.reads.ios > 100 && row.writes.ios == 0, "{row:?}");
    assert_eq!(row.errors(), 0);
}

#[test]
fn frames_go_both_ways_at_a_time() {
    let row = run("both", "rw", false);
    assert!(row.reads.ios > 100 && row.writes.ios > 100, "{row:?}");
    assert_eq!(row.load.depth, WINDOW);
}

#[test]
fn a_blast_goes_both_ways_and_nothing_is_lost_on_a_cable() {
    let place = cable("blast");
    let stop = &AtomicBool::new(false);
    let totals = thread::scope(|scope| {
        let mut far = FloorResponder::new(&place, 1 << 20).unwrap();
        let far = scope.spawn(move || far.run(stop));
        let totals = blast(&place, Duration::from_millis(200), stop);
        stop.store(true, Relaxed);
        far.join().unwrap().unwrap();
        totals.unwrap().unwrap()
    });
    assert!(totals.received > 100 && totals.sent > 100, "{totals:?}");
    assert_eq!(
        (totals.lost_in, totals.lost_out, totals.ring_full),
        (0, 0, 0)
    );
}

#[test]
fn nothing_is_blasted_where_no_floor_answers() {
    let stop = AtomicBool::new(false);
    let totals = blast(&cable("no-floor"), Duration::from_secs(9), &stop).unwrap();
    assert_eq!(totals, None);
}

#[test]
fn nobody_at_the_other_end_is_told_with_the_way_out() {
    let place = cable("nobody");
    let words = FioOptions::preset(None, false).unwrap();
    let frames = FloorRequest {
        place: &place,
        crc: false,
        size: 1,
    };
    let outcome = &mut RunResult::default();
    let error = observed(false, |watch| rows(frames, &words, outcome, watch)).unwrap_err();
    let way_out = "start lunar floor --listen fcoe://";
    assert!(error.to_string().contains(way_out), "{error}");
}

#[test]
fn damaged_frames_are_lost() {
    let place = cable("damaged");
    let peer = [2, 0, 0, 0, 0, 1];
    let run = Run::new(DataDirection::Write, true);
    let port = EtherPort::open(&place, &Default::default()).unwrap();
    let mut far = FloorPort::new(port, 1 << 20, None).unwrap();
    let mut near = EtherPort::open(&place, &Default::default()).unwrap();
    far.port.join(GROUP).unwrap();
    let mut send = |message: FloorMessage, damage: bool, far: &mut FloorPort| {
        let to = GROUP;
        let slot = near
            .slot(frame::HEAD + far.payload_len + frame::TAIL)
            .unwrap();
        slot.fill(0);
        message.encode((to, peer), slot);
        slot[frame::HEAD] = u8::from(damage);
        // The CRC of as many zeros.
        let end = slot.len() - frame::TAIL;
        let sum = crc_fast::crc32_iso_hdlc(&vec![0; end - frame::HEAD]).to_le_bytes();
        slot[end..end + 4].copy_from_slice(&sum);
        let len = slot.len();
        near.commit(len);
        near.flush().unwrap();
        far.turn().unwrap();
    };
    send(
        FloorMessage::of(FloorFrameKind::Hello, run),
        false,
        &mut far,
    );
    for (number, damage) in [(0, false), (1, true), (4, false)] {
        let data = FloorMessage {
            number,
            ..FloorMessage::of(FloorFrameKind::Data, run)
        };
        send(data, damage, &mut far);
    }
    let (came, _) = far.take_progress();
    assert_eq!((came.frames, came.lost), (2, 3));
}

#[test]
fn what_no_end_of_a_floor_sends_is_left_alone() {
    let run = Run::new(DataDirection::Read, false);
    let message = FloorMessage {
        number: 1,
        count: 2,
        process: 3,
        ..FloorMessage::of(FloorFrameKind::Credit, run)
    };
    let mut frame = [0; frame::HEAD];
    message.encode((GROUP, [2; 6]), &mut frame);
    assert_eq!(
        FloorMessage::parse(&frame),
        Some(([2; 6], message, &[][..]))
    );
    for len in 0..frame.len() {
        assert_eq!(FloorMessage::parse(&frame[..len]), None);
    }
    for (at, byte) in [(12, 0x08), (14, 0x00), (15, 5), (16, 0)] {
        let mut other = frame;
        other[at] = byte;
        assert_eq!(FloorMessage::parse(&other), None);
    }
}
