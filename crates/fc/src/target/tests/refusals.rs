//! Information units that are no commands.

use crate::exchange::tests::pair::{Fate, LUN, Pair, all, peer};
use crate::wire::fcp::{Cmnd, ManagementFlags, SIMPLE};
use crate::wire::frame::{FCtl, FrameHeader, FrameType, OxId, RCtl, RxId};

const READ: Cmnd<'_> = Cmnd {
    lun: LUN,
    crn: 0,
    priority: 0,
    attribute: SIMPLE,
    management: ManagementFlags::NONE,
    read: true,
    write: false,
    cdb: &[0; 16],
    data_len: 512,
    read_len: None,
};

fn header() -> FrameHeader {
    FrameHeader {
        f_ctl: FCtl::REQUEST,
        ..peer(1, 2, all()).header(
            RCtl::UNSOLICITED_COMMAND,
            FrameType::FCP,
            OxId(0x123),
            RxId::UNASSIGNED,
        )
    }
}

fn answer(payload: &[u8]) -> String {
    let mut pair = Pair::new(all(), |_, _| Fate::Arrives);
    pair.reach_target(header(), payload);
    pair.settle();
    assert_eq!(pair.executed, 0);
    pair.traced().remove(0)
}

fn answer_to(cmnd: &Cmnd<'_>) -> String {
    let mut payload = vec![0; cmnd.len()];
    cmnd.put(&mut payload);
    answer(&payload)
}

#[test]
fn one_that_is_too_short_has_invalid_fields() {
    assert_eq!(answer(&[0; 20]), "< RSP 00 code 02");
}

#[test]
fn a_reserved_task_attribute_is_an_invalid_field() {
    let cmnd = Cmnd {
        attribute: 3,
        ..READ
    };
    assert_eq!(answer_to(&cmnd), "< RSP 00 code 02");
}

#[test]
fn two_functions_at_once_are_an_invalid_field() {
    let cmnd = Cmnd {
        management: ManagementFlags(0x12),
        ..READ
    };
    assert_eq!(answer_to(&cmnd), "< RSP 00 code 02");
}

#[test]
fn no_command_is_bidirectional_or_has_a_longer_cdb() {
    let both = Cmnd {
        write: true,
        read_len: Some(512),
        ..READ
    };
    assert_eq!(answer_to(&both), "< RSP 02 under 512 sense of 18");
    let long = Cmnd {
        cdb: &[0x7f; 36],
        ..READ
    };
    assert_eq!(answer_to(&long), "< RSP 02 under 512 sense of 18");
}

#[test]
fn a_cdb_of_32_bytes_comes_whole() {
    let mut pair = Pair::new(all(), |_, _| Fate::Arrives);
    let cmnd = Cmnd {
        cdb: &[0x7f; 32],
        ..READ
    };
    let mut payload = vec![0; cmnd.len()];
    cmnd.put(&mut payload);
    pair.reach_target(header(), &payload);
    assert_eq!(pair.executed, 1);
}
