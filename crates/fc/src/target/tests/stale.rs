//! REC and SRR about a command that never came, whose OX_ID an earlier one had.

use crate::exchange::tests::pair::{Fate, Pair, all, peer};
use crate::remote::Fcp;
use crate::wire::els::{Els, ExchangeName, Srr};
use crate::wire::frame::{FCtl, FrameHeader, FrameType, OxId, RCtl, RxId};
use crate::wire::names::FcId;

/// What is agreed upon with Linux: sequences are sent again, but commands have no numbers.
fn nameless() -> Fcp {
    Fcp {
        retry: true,
        rec: true,
        ..Fcp::default()
    }
}

/// The OX_ID of the first command.
const OX_ID: OxId = OxId(0);

fn header(r_ctl: RCtl, kind: FrameType, number: u32) -> FrameHeader {
    FrameHeader {
        f_ctl: FCtl::REQUEST,
        parameter: number,
        ..peer(1, 2, all()).header(r_ctl, kind, OxId(900), RxId::UNASSIGNED)
    }
}

/// Asks about the exchange with this OX_ID, of which nothing has come back yet; tells the answers.
fn asked(pair: &mut Pair, number: u32) -> Vec<String> {
    let rec = Els::Rec(ExchangeName {
        originator: FcId(1),
        ox_id: OX_ID,
        rx_id: RxId::UNASSIGNED,
    });
    let srr = Els::Srr(Srr {
        ox_id: OX_ID,
        rx_id: RxId::UNASSIGNED,
        offset: 0,
        unit: RCtl::COMMAND_STATUS,
    });
    let rec_header = header(RCtl::ELS_REQUEST, FrameType::ELS, number);
    pair.reach_target(rec_header, &rec.encode());
    let srr_header = header(RCtl::FC4_REQUEST, FrameType::FCP, number);
    pair.reach_target(srr_header, &srr.encode());
    pair.settle();
    pair.traced()
}

/// A pair that has written once, and what its command was numbered.
fn written(fcp: Fcp) -> (Pair, u32) {
    let mut pair = Pair::new(fcp, |_, _| Fate::Arrives);
    pair.write(1, 0, vec![7; 512]);
    pair.until_told(1);
    let trace = pair.traced();
    assert_eq!(trace.last().unwrap(), "< RSP 00");
    (pair, 1)
}

#[test]
fn without_numbers_an_exchange_that_is_over_is_not_taken_for_the_next_one() {
    let (mut pair, _) = written(nameless());
    assert_eq!(asked(&mut pair, 0), ["< LS_RJT 03 17", "< LS_RJT 03 17"]);
}

#[test]
fn a_number_tells_a_command_from_the_one_before_it() {
    let (mut pair, number) = written(all());
    let other = asked(&mut pair, number + 1);
    assert_eq!(other, ["< LS_RJT 03 17", "< LS_RJT 03 17"]);
    assert_eq!(
        asked(&mut pair, number),
        ["< LS_ACC", "< LS_ACC", "< RSP 00"]
    );
}

#[test]
fn without_numbers_a_command_under_way_is_found_all_the_same() {
    let mut pair = Pair::new(nameless(), |_, _| Fate::Arrives);
    pair.is_stopped = true;
    pair.test(1);
    pair.settle();
    assert_eq!(pair.traced(), ["> CMND 00"]);
    assert_eq!(asked(&mut pair, 0), ["< LS_ACC", "< LS_ACC"]);
}
