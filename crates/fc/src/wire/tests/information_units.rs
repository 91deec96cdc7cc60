use proptest::collection::vec;
use proptest::prelude::*;

use scsi::residual::Residual;
use scsi::wire::lun::Lun;

use crate::wire::fcp::{Cmnd, ManagementFlags, Rsp, XferRdy, response};

fn residual() -> impl Strategy<Value = Residual> {
    prop_oneof![
        Just(Residual::Exact),
        any::<u32>().prop_map(Residual::Overflow),
        any::<u32>().prop_map(Residual::Underflow),
    ]
}

fn encoded(rsp: &Rsp<'_>) -> Vec<u8> {
    let mut bytes = vec![0xa5; rsp.len()];
    rsp.put(&mut bytes);
    bytes
}

const GOOD: Rsp<'_> = Rsp {
    qualifier: 0,
    confirm: false,
    status: 0,
    residual: Residual::Exact,
    response: None,
    information: [0; 3],
    sense: &[],
};

proptest! {
    #[test]
    fn a_command_is_read_as_it_was_written(
        lun: [u8; 8], crn: u8, priority in 0u8..16, attribute in 0u8..8, management: u8,
        read: bool, write: bool, words in 4usize..=67, fill: u8, data_len: u32, length: u32,
    ) {
        let cdb = vec![fill; words * 4];
        let cmnd = Cmnd {
            lun: Lun(lun), crn, priority, attribute, management: ManagementFlags(management), read,
            write, cdb: &cdb, data_len, read_len: (read && write).then_some(length),
        };
        let mut bytes = vec![0xa5; cmnd.len()];
        cmnd.put(&mut bytes);
        prop_assert_eq!(Cmnd::parse(&bytes), Ok(cmnd));
        for len in 0..bytes.len() {
            prop_assert!(Cmnd::parse(&bytes[..len]).is_err());
        }
    }

    #[test]
    fn a_response_is_read_as_it_was_written(
        qualifier: u16, confirm: bool, status: u8, residual in residual(),
        answer in proptest::option::of(any::<(u8, [u8; 3])>()), sense in vec(any::<u8>(), 0..72),
    ) {
        let (response, information) = answer.unzip();
        let information = information.unwrap_or_default();
        let sense = sense.as_slice();
        let rsp = Rsp { qualifier, confirm, status, residual, response, information, sense };
        let bytes = encoded(&rsp);
        prop_assert_eq!(Rsp::parse(&bytes), Ok(rsp));
        for len in (0..bytes.len()).filter(|len| *len != 12) {
            prop_assert!(Rsp::parse(&bytes[..len]).is_err());
        }
    }

    #[test]
    fn a_transfer_ready_is_read_as_it_was_written(offset: u32, burst: u32) {
        let ready = XferRdy { offset, burst };
        prop_assert_eq!(XferRdy::parse(&ready.encode()), Ok(ready));
        prop_assert!(XferRdy::parse(&ready.encode()[..11]).is_err());
    }
}

#[test]
fn a_response_without_lengths_is_a_good_one() {
    let bytes = encoded(&GOOD);
    assert_eq!(Rsp::parse(&bytes[..12]), Ok(GOOD));
    let mut sensed = bytes[..12].to_vec();
    sensed[10] = 0x02;
    assert!(Rsp::parse(&sensed).is_err());
}

#[test]
fn response_information_has_four_or_eight_bytes() {
    let rsp = Rsp {
        response: Some(response::SUCCEEDED),
        information: [6, 0x29, 2],
        sense: b"sense",
        ..GOOD
    };
    let mut bytes = encoded(&rsp);
    assert_eq!(bytes.len(), 24 + 8 + 5);
    bytes.drain(28..32);
    bytes[23] = 4;
    assert_eq!(Rsp::parse(&bytes), Ok(rsp));
    bytes[23] = 5;
    assert!(Rsp::parse(&bytes).is_err());
}

#[test]
fn a_response_that_tells_both_residuals_is_an_overrun() {
    let mut bytes = encoded(&Rsp {
        residual: Residual::Underflow(7),
        ..GOOD
    });
    bytes[10] |= 0x04;
    assert_eq!(Rsp::parse(&bytes).unwrap().residual, Residual::Overflow(7));
}
