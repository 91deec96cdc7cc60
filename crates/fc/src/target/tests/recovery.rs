//! What is lost is asked for again.

use std::time::Duration;

use crate::initiator::{FcpInitiatorConfig, FcpInitiatorEvent};
use crate::port::Fc4Layer;
use crate::remote::Fcp;
use crate::target::FcpLimits;
use crate::tests::pair::{Fate, Pair, REMOTE, all, plain, request};
use crate::wire::els::{Els, Srr};
use crate::wire::frame::{FrameHeader, FrameType, OxId, RCtl, RxId};

/// A pair of which one frame is lost: its number, and whether it goes to the target.
fn losing(fcp: Fcp, victim: (usize, bool)) -> Pair {
    Pair::but_one(fcp, victim, Fate::IsLost)
}

fn is_done(pair: &Pair) -> bool {
    matches!(pair.told[..], [FcpInitiatorEvent::Done(_)])
}

#[test]
fn read_data_beyond_a_gap_is_asked_for_at_once() {
    let mut pair = losing(all(), (1, false));
    pair.read(1, 0, 10);
    pair.settle();
    let trace = [
        "> CMND 28",
        "< DATA 0+2112",
        "< DATA 2112+2112",
        "< DATA 4224+896 end",
        "< RSP 00",
        "> SRR data from 2112",
        "< LS_RJT 09 2a",
        "> ABTS",
        "< BA_ACC",
    ];
    assert_eq!(pair.traced(), trace, "a short read is not kept");
    pair.failed();
}

#[test]
fn a_long_read_is_sent_again_from_the_gap_on() {
    let mut pair = losing(all(), (8, false));
    pair.read(1, 0, 34);
    pair.settle();
    let trace = pair.traced();
    let again = [
        "< RSP 00, confirm",
        "> SRR data from 16384",
        "< LS_ACC",
        "< DATA 16384+1024 end",
        "< RSP 00, confirm",
        "> CONF",
    ];
    assert_eq!(trace[trace.len() - again.len()..], again);
    assert!(is_done(&pair));
}

#[test]
fn write_data_that_is_missing_at_the_end_of_its_sequence_is_asked_for_at_once() {
    let mut pair = losing(all(), (2, true));
    pair.write(1, 0, vec![7; 5120]);
    pair.settle();
    let trace = [
        "> CMND 2a",
        "< XFER_RDY 0+5120",
        "> DATA 0+2112",
        "> DATA 2112+2112",
        "> DATA 4224+896 end",
        "< XFER_RDY 2112+3008",
        "> DATA 2112+2112",
        "> DATA 4224+896 end",
        "< RSP 00",
    ];
    assert_eq!(pair.traced(), trace);
    assert!(is_done(&pair));
}

#[test]
fn a_lost_transfer_ready_is_asked_for_by_rec() {
    let mut pair = losing(all(), (0, false));
    pair.write(1, 0, vec![7; 512]);
    pair.until_told(1);
    let trace = [
        "> CMND 2a",
        "< XFER_RDY 0+512",
        "> REC",
        "< LS_ACC",
        "> SRR XFER_RDY from 0",
        "< LS_ACC",
        "< XFER_RDY 0+512",
        "> DATA 0+512 end",
        "< RSP 00",
    ];
    assert_eq!(pair.traced(), trace);
    assert!(is_done(&pair));
}

#[test]
fn a_lost_response_is_sent_again() {
    let mut pair = losing(all(), (0, false));
    pair.test(1);
    pair.until_told(1);
    let trace = [
        "> CMND 00",
        "< RSP 00",
        "> REC",
        "< LS_ACC",
        "> SRR response",
        "< LS_ACC",
        "< RSP 00",
    ];
    assert_eq!(pair.traced(), trace);
    assert!(is_done(&pair) && pair.disk.executed == 1);
}

#[test]
fn a_target_that_cannot_send_again_is_told_to_abort() {
    let mut pair = losing(plain(), (0, false));
    pair.test(1);
    pair.until_told(1);
    let trace = [
        "> CMND 00",
        "< RSP 00",
        "> REC",
        "< LS_RJT 03 17",
        "> ABTS",
        "< BA_ACC",
    ];
    assert_eq!(pair.traced(), trace);
    pair.failed();
}

#[test]
fn a_command_that_takes_its_time_is_left_alone() {
    let mut pair = Pair::stopped(all());
    pair.read(1, 0, 64);
    pair.pass(Duration::from_secs(29));
    let trace = pair.traced();
    assert!(
        trace[1..]
            .chunks(2)
            .all(|pair| pair == ["> REC", "< LS_ACC"])
    );
    assert!(trace.len() > 15 && pair.told.is_empty());
}

#[test]
fn a_target_without_rec_that_does_not_find_a_command_without_data_may_be_busy_with_it() {
    let nothing = Fcp::default();
    let mut pair = losing(nothing, (0, true));
    pair.test(1);
    pair.pass(Duration::from_secs(29));
    assert!(pair.told.is_empty());
    let mut pair = losing(nothing, (0, true));
    pair.read(1, 0, 1);
    pair.pass(Duration::from_secs(4));
    pair.failed();
}

#[test]
fn what_was_sent_is_kept_until_it_is_confirmed_but_not_for_ever() {
    let mut pair = losing(all(), (1, true));
    pair.read(1, 0, 64);
    pair.settle();
    assert!(is_done(&pair));
    assert_eq!(pair.traced().last().unwrap(), "> CONF");
    assert_eq!(
        pair.target.next_deadline(),
        Some(pair.now + Duration::from_secs(5))
    );
    pair.pass(Duration::from_secs(5));
    assert_eq!(pair.target.next_deadline(), None);
}

/// Asks a target for a part of an exchange again; tells what it answers first.
fn asked_again(pair: &mut Pair, (ox_id, rx_id): (OxId, RxId), unit: RCtl, offset: u32) -> String {
    let header = FrameHeader {
        parameter: 1,
        ..request(RCtl::FC4_REQUEST, FrameType::FCP, 9)
    };
    let srr = Els::Srr(Srr {
        ox_id,
        rx_id,
        offset,
        unit,
    });
    pair.reach_target(header, &srr.encode());
    pair.settle();
    pair.traced().remove(0)
}

/// The exchange of its first command.
const FIRST: (OxId, RxId) = (OxId(0), RxId::UNASSIGNED);

#[test]
fn an_exchange_that_is_not_known_cannot_be_recovered() {
    let mut pair = Pair::new(all());
    let (unknown, unit) = ((OxId(4), RxId(4)), RCtl::SOLICITED_DATA);
    let answer = asked_again(&mut pair, unknown, unit, u32::MAX);
    assert_eq!(answer, "< LS_RJT 03 17");
    assert!(pair.traced().is_empty());
    assert_eq!(pair.target.data_in_queued(REMOTE), 0);
}

#[test]
fn what_is_asked_for_again_is_kept_for_as_long_from_then_on() {
    let mut pair = losing(all(), (1, true));
    pair.read(1, 0, 64);
    pair.settle();
    pair.traced();
    for _ in 0..3 {
        pair.pass(Duration::from_secs(4));
        assert_eq!(
            asked_again(&mut pair, FIRST, RCtl::COMMAND_STATUS, 0),
            "< LS_ACC"
        );
    }
    assert_eq!(
        asked_again(&mut pair, FIRST, RCtl::SOLICITED_DATA, 0),
        "< LS_ACC"
    );
    pair.pass(Duration::from_secs(5));
    let gone = asked_again(&mut pair, FIRST, RCtl::SOLICITED_DATA, 0);
    assert_eq!(gone, "< LS_RJT 09 2a");
    assert_eq!(pair.target.next_deadline(), None);
}

#[test]
fn no_more_is_kept_than_may_be() {
    let limits = FcpLimits {
        unconfirmed: 16 << 10,
        ..FcpLimits::default()
    };
    let mut pair = Pair::limited(all(), FcpInitiatorConfig::default(), limits);
    pair.lose((1, true));
    pair.read(1, 0, 64);
    pair.settle();
    pair.traced();
    for (offset, answer) in [(0, "< LS_RJT 09 2a"), (16 << 10, "< LS_ACC")] {
        let first = asked_again(&mut pair, FIRST, RCtl::SOLICITED_DATA, offset);
        assert_eq!(first, answer, "from {offset}");
    }
}
