//! Targets that say what cannot be true.

use scsi::residual::Residual;

use crate::frames;
use crate::initiator::{FcpCause, FcpInitiatorEvent, FcpTmf, FcpWhy};
use crate::port::Fc4Layer;
use crate::remote::RemoteId;
use crate::tests::pair::{Fate, Pair, REMOTE, all, peer, plain};
use crate::wire::bls::BaRjt;
use crate::wire::els::{ExchangeStatus, RecAccept, Reply};
use crate::wire::fcoe::ReceivedFrame;
use crate::wire::fcp::{Rsp, XferRdy};
use crate::wire::frame::{FCtl, FrameHeader, FrameType, OxId, RCtl, RxId};
use crate::wire::names::FcId;

/// An initiator that has sent its first command.
fn sent(begin: impl Fn(&mut Pair)) -> Pair {
    let mut pair = Pair::new(plain());
    begin(&mut pair);
    pair.sent();
    pair
}

fn header(r_ctl: RCtl, rx_id: u16) -> FrameHeader {
    FrameHeader {
        f_ctl: FCtl::RESPONDER.with(FCtl::RELATIVE_OFFSET),
        ..peer(2, 1, all()).header(r_ctl, FrameType::FCP, OxId(0), RxId(rx_id))
    }
}

fn good(pair: &mut Pair, residual: Residual) {
    let rsp = Rsp {
        qualifier: 0,
        confirm: false,
        status: 0,
        residual,
        response: None,
        information: [0; 3],
        sense: &[],
    };
    let mut payload = vec![0; rsp.len()];
    rsp.put(&mut payload);
    pair.reach_initiator(header(RCtl::COMMAND_STATUS, 1), &payload);
}

#[test]
fn a_write_cannot_be_done_before_its_data_was_sent() {
    let mut pair = sent(|pair| pair.write(1, 0, vec![1; 512]));
    good(&mut pair, Residual::Exact);
    assert_eq!(pair.failed().why, FcpWhy::Own(FcpCause::Contradiction));
}

#[test]
fn no_more_can_be_left_than_was_announced() {
    let mut pair = sent(|pair| pair.read(1, 0, 1));
    good(&mut pair, Residual::Underflow(513));
    assert_eq!(pair.failed().why, FcpWhy::Own(FcpCause::Contradiction));
}

#[test]
fn a_read_without_its_data_is_not_done() {
    let mut pair = sent(|pair| pair.read(1, 0, 1));
    good(&mut pair, Residual::Exact);
    assert!(pair.told.is_empty());
    assert_eq!(pair.sent().len(), 1, "it is aborted");
}

#[test]
fn data_beyond_what_was_asked_for_goes_nowhere() {
    let mut pair = sent(|pair| pair.read(1, 0, 1));
    for parameter in [1, 512, u32::MAX] {
        let header = FrameHeader {
            parameter,
            ..header(RCtl::SOLICITED_DATA, 1)
        };
        pair.reach_initiator(header, &[9; 512]);
    }
    good(&mut pair, Residual::Underflow(512));
    assert_eq!(pair.told.len(), 1);
    assert_eq!(pair.data(), [0xee; 512]);
}

#[test]
fn data_that_was_not_announced_is_not_sent() {
    let mut pair = sent(|pair| pair.write(1, 0, vec![1; 512]));
    let asked = [(0, 513), (512, 1), (1, u32::MAX), (0, 0)];
    for (offset, burst) in asked {
        let payload = XferRdy { offset, burst }.encode();
        pair.reach_initiator(header(RCtl::DATA_DESCRIPTOR, 1), &payload);
    }
    assert!(pair.sent().is_empty());
}

#[test]
fn frames_of_another_exchange_or_port_are_passed_over() {
    let mut pair = sent(|pair| pair.read(1, 0, 1));
    pair.reach_initiator(header(RCtl::SOLICITED_DATA, 1), &[9; 512]);
    pair.reach_initiator(header(RCtl::COMMAND_STATUS, 2), &[0; 24]);
    let other = RemoteId(4);
    pair.initiator.peer_up(other, peer(1, 7, all()));
    let (sof, eof) = frames::SINGLE;
    let frame = ReceivedFrame {
        sof,
        eof,
        header: header(RCtl::COMMAND_STATUS, 1),
        payload: &[0; 24],
    };
    pair.initiator.receive(pair.now, other, &frame);
    assert!(pair.initiator.poll().is_none());
    pair.initiator.receive(pair.now, REMOTE, &frame);
    assert!(matches!(
        pair.initiator.poll(),
        Some(FcpInitiatorEvent::Done(_))
    ));
}

/// An ABTS has left.
fn aborting() -> Pair {
    let mut pair = sent(|pair| pair.test(1));
    pair.manage(FcpTmf::AbortTask(1));
    pair.sent();
    pair
}

fn abort_refused(pair: &mut Pair, explanation: u8) {
    let header = FrameHeader {
        kind: FrameType::BLS,
        ..header(RCtl::BA_RJT, 0xffff)
    };
    let why = BaRjt {
        explanation,
        ..BaRjt::UNKNOWN
    };
    pair.reach_initiator(header, &why.encode());
}

#[test]
fn only_what_the_target_does_not_know_counts_as_aborted_when_it_refuses() {
    let mut pair = aborting();
    abort_refused(&mut pair, 0);
    assert!(pair.told.is_empty(), "the command may go on");
    abort_refused(&mut pair, BaRjt::INVALID_OX_RX_ID);
    assert!(matches!(
        pair.told[..],
        [
            FcpInitiatorEvent::Failed(_),
            FcpInitiatorEvent::Managed { .. }
        ]
    ));
}

#[test]
fn what_is_told_of_another_exchange_is_not_believed() {
    let mut pair = Pair::with(all(), |_, _| Fate::IsLost);
    pair.read(1, 0, 1);
    pair.settle();
    pair.wait();
    pair.settle();
    assert_eq!(pair.traced(), ["> CMND 28", "> REC"]);
    let status = RecAccept {
        ox_id: OxId(9),
        rx_id: RxId(9),
        originator: FcId(1),
        responder: FcId(2),
        transferred: 512,
        status: ExchangeStatus::COMPLETE.with(ExchangeStatus::RESPONDER),
    };
    let header = FrameHeader {
        kind: FrameType::ELS,
        ox_id: OxId(1),
        ..header(RCtl::ELS_REPLY, 1)
    };
    pair.reach_initiator(header, &Reply::Rec(status).encode());
    pair.settle();
    assert!(pair.traced().is_empty(), "it asks again in its time");
}
