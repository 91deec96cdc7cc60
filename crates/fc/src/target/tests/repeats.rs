//! A command that comes twice; REC and SRR about one that never came, whose OX_ID an earlier one
//! had.

use crate::port::Fc4Layer;
use crate::remote::{Fcp, RemoteId};
use crate::tests::pair::{Pair, TWICE, all, decode, peer, plain, request};
use crate::wire::els::{Els, ExchangeName, Srr};
use crate::wire::frame::{FrameHeader, FrameType, OxId, RCtl, RxId};
use crate::wire::names::FcId;

/// Sends a command without data, lets it end, and sends the very same frame again.
fn executed_twice(fcp: Fcp) -> usize {
    let mut pair = Pair::new(fcp);
    pair.test(1);
    let sent = pair.sent();
    for _ in 0..2 {
        pair.deliver(&sent[0]);
        pair.settle();
    }
    pair.disk.executed
}

#[test]
fn a_second_copy_is_known_by_its_task_retry_identifier() {
    assert_eq!(executed_twice(all()), 1);
}

#[test]
fn without_one_an_ox_id_may_begin_another_command_as_soon_as_the_last_has_ended() {
    assert_eq!(executed_twice(plain()), 2);
}

#[test]
fn a_second_copy_of_a_command_under_way_is_always_known() {
    let mut pair = Pair::but_one(plain(), (0, true), TWICE);
    pair.disk.is_stopped = true;
    pair.test(1);
    pair.settle();
    assert_eq!(pair.disk.executed, 1);
}

#[test]
fn an_ox_id_is_that_of_its_port() {
    let mut pair = Pair::new(all());
    let other = RemoteId(9);
    pair.target.peer_up(other, peer(2, 5, all()));
    pair.test(1);
    let sent = pair.sent();
    pair.deliver(&sent[0]);
    pair.target.receive(pair.now, other, &decode(&sent[0]));
    assert!(pair.target.poll().is_some());
}

/// What is agreed upon with Linux: sequences are sent again, but commands have no numbers.
fn nameless() -> Fcp {
    Fcp {
        retry: true,
        rec: true,
        ..Fcp::default()
    }
}

/// Asks about the first exchange, of which nothing has come back yet; tells the answers. `number`
/// is that of the command.
fn asked(pair: &mut Pair, number: u32) -> Vec<String> {
    let (ox_id, rx_id) = (OxId(0), RxId::UNASSIGNED);
    let rec = Els::Rec(ExchangeName {
        originator: FcId(1),
        ox_id,
        rx_id,
    });
    let srr = Els::Srr(Srr {
        ox_id,
        rx_id,
        offset: 0,
        unit: RCtl::COMMAND_STATUS,
    });
    for (r_ctl, kind, els) in [
        (RCtl::ELS_REQUEST, FrameType::ELS, rec),
        (RCtl::FC4_REQUEST, FrameType::FCP, srr),
    ] {
        let header = FrameHeader {
            parameter: number,
            ..request(r_ctl, kind, 900)
        };
        pair.reach_target(header, &els.encode());
    }
    pair.settle();
    pair.traced()
}

/// A pair that has written once, by the command of number 1.
fn written(fcp: Fcp) -> Pair {
    let mut pair = Pair::new(fcp);
    pair.write(1, 0, vec![7; 512]);
    pair.until_told(1);
    assert_eq!(pair.traced().last().unwrap(), "< RSP 00");
    pair
}

#[test]
fn without_numbers_an_exchange_that_is_over_is_not_taken_for_the_next_one() {
    let mut pair = written(nameless());
    assert_eq!(asked(&mut pair, 0), ["< LS_RJT 03 17", "< LS_RJT 03 17"]);
}

#[test]
fn a_number_tells_a_command_from_the_one_before_it() {
    let mut pair = written(all());
    assert_eq!(asked(&mut pair, 2), ["< LS_RJT 03 17", "< LS_RJT 03 17"]);
    let found = ["< LS_ACC", "< LS_ACC", "< RSP 00"];
    assert_eq!(asked(&mut pair, 1), found);
}

#[test]
fn without_numbers_a_command_under_way_is_found_all_the_same() {
    let mut pair = Pair::stopped(nameless());
    pair.test(1);
    pair.settle();
    assert_eq!(pair.traced(), ["> CMND 00"]);
    assert_eq!(asked(&mut pair, 0), ["< LS_ACC", "< LS_ACC"]);
}
