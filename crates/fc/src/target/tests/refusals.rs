//! Information units that are no commands.

use crate::tests::pair::{LUN, Pair, all, request};
use crate::wire::fcp::{Cmnd, ManagementFlags, SIMPLE};
use crate::wire::frame::{FrameHeader, FrameType, RCtl};

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
    request(RCtl::UNSOLICITED_COMMAND, FrameType::FCP, 0x123)
}

fn encoded(cmnd: &Cmnd<'_>) -> Vec<u8> {
    let mut payload = vec![0; cmnd.len()];
    cmnd.put(&mut payload);
    payload
}

/// What is answered to what is not executed.
fn answer(payload: &[u8]) -> String {
    let mut pair = Pair::new(all());
    pair.reach_target(header(), payload);
    pair.settle();
    assert_eq!(pair.disk.executed, 0);
    pair.traced().remove(0)
}

#[test]
fn one_that_is_too_short_has_invalid_fields() {
    assert_eq!(answer(&[0; 20]), "< RSP 00 code 02");
}

#[test]
fn a_reserved_task_attribute_is_an_invalid_field() {
    let attribute = 3;
    let cmnd = Cmnd { attribute, ..READ };
    assert_eq!(answer(&encoded(&cmnd)), "< RSP 00 code 02");
}

#[test]
fn two_functions_at_once_are_an_invalid_field() {
    let management = ManagementFlags(0x12);
    let cmnd = Cmnd { management, ..READ };
    assert_eq!(answer(&encoded(&cmnd)), "< RSP 00 code 02");
}

#[test]
fn no_command_is_bidirectional_or_has_a_longer_cdb() {
    let both = Cmnd {
        write: true,
        read_len: Some(512),
        ..READ
    };
    let long = Cmnd {
        cdb: &[0x7f; 36],
        ..READ
    };
    for cmnd in [both, long] {
        let refused = "< RSP 02 under 512 sense of 18";
        assert_eq!(answer(&encoded(&cmnd)), refused, "{cmnd:?}");
    }
}

#[test]
fn a_cdb_of_32_bytes_comes_whole() {
    let mut pair = Pair::new(all());
    let cdb = &[0x7f; 32];
    pair.reach_target(header(), &encoded(&Cmnd { cdb, ..READ }));
    assert_eq!(pair.disk.executed, 1);
}
