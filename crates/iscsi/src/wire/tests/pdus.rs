use proptest::prelude::*;

use scsi::residual::Residual;
use scsi::wire::lun::Lun;

use crate::wire::ahs::{self, Ahs};
use crate::wire::bhs::{Bhs, Itt, Opcode, Stamps, Ttt};
use crate::wire::control::{AsyncMessage, NopIn, NopOut, Reject, TextRequest, TextResponse};
use crate::wire::data::{DataIn, DataInStatus, DataOut, R2t, SnackRequest};
use crate::wire::login::{LoginRequest, LoginResponse, LogoutRequest, LogoutResponse};
use crate::wire::scsi_command::{ScsiCommand, ScsiResponse};
use crate::wire::serial::{CmdSn, DataSn, StatSn};
use crate::wire::task_management::{TaskRequest, TaskResponse};

fn lun() -> impl Strategy<Value = Lun> {
    any::<[u8; 8]>().prop_map(Lun)
}

fn itt() -> impl Strategy<Value = Itt> {
    any::<u32>().prop_map(Itt)
}

fn ttt() -> impl Strategy<Value = Ttt> {
    any::<u32>().prop_map(Ttt)
}

fn request() -> impl Strategy<Value = (CmdSn, StatSn)> {
    any::<(u32, u32)>().prop_map(|(c, s)| (CmdSn(c), StatSn(s)))
}

fn stamps() -> impl Strategy<Value = Stamps> {
    any::<(u32, u32, u32)>().prop_map(|(stat, exp, max)| Stamps {
        stat_sn: StatSn(stat),
        exp_cmd_sn: CmdSn(exp),
        max_cmd_sn: CmdSn(max),
    })
}

fn residual() -> impl Strategy<Value = Residual> {
    prop_oneof![
        Just(Residual::Exact),
        any::<u32>().prop_map(Residual::Overflow),
        any::<u32>().prop_map(Residual::Underflow),
    ]
}

macro_rules! round_trip {
    ($value:expr, $kind:ident) => {
        round_trip!($value, $kind, $kind)
    };
    ($value:expr, $kind:ident, $opcode:ident) => {{
        let value = $value;
        let bhs = value.encode();
        prop_assert_eq!($kind::decode(&bhs), value);
        prop_assert_eq!(bhs.opcode(), Opcode::$opcode);
    }};
}

proptest! {
    #[test]
    fn scsi_command(
        flags in any::<[bool; 4]>(), attribute in 0u8..8, priority in 0u8..16, lun in lun(),
        itt in itt(), expected: u32, (cmd_sn, exp_stat_sn) in request(), cdb: [u8; 16],
    ) {
        let [immediate, last, read, write] = flags;
        round_trip!(ScsiCommand {
            immediate, last, read, write, attribute, priority, lun, itt, expected, cmd_sn,
            exp_stat_sn, cdb,
        }, ScsiCommand);
    }

    #[test]
    fn scsi_response(
        residual in residual(), read_residual in residual(), response: u8, status: u8,
        qualifier: u16, itt in itt(), snack_tag: u32, stamps in stamps(), data_sn: u32,
    ) {
        round_trip!(ScsiResponse {
            residual, read_residual, response, status, qualifier, itt, snack_tag, stamps,
            exp_data_sn: DataSn(data_sn),
        }, ScsiResponse);
    }

    #[test]
    fn task_request(
        immediate: bool, function in 0u8..128, lun in lun(), itt in itt(), referenced in itt(),
        (cmd_sn, exp_stat_sn) in request(), reference: u32, data_sn: u32,
    ) {
        round_trip!(TaskRequest {
            immediate, function, lun, itt, referenced, cmd_sn, exp_stat_sn,
            ref_cmd_sn: CmdSn(reference), exp_data_sn: DataSn(data_sn),
        }, TaskRequest);
    }

    #[test]
    fn task_response(response: u8, information: [u8; 3], itt in itt(), stamps in stamps()) {
        round_trip!(TaskResponse { response, information, itt, stamps }, TaskResponse);
    }

    #[test]
    fn data_out(
        last: bool, lun in lun(), itt in itt(), ttt in ttt(), stat_sn: u32, data_sn: u32,
        offset: u32,
    ) {
        round_trip!(DataOut {
            last, lun, itt, ttt, exp_stat_sn: StatSn(stat_sn), data_sn: DataSn(data_sn), offset,
        }, DataOut);
    }

    #[test]
    fn data_in(
        flags: [bool; 2], status in prop::option::of((any::<u8>(), residual())), lun in lun(),
        itt in itt(), ttt in ttt(), stamps in stamps(), data_sn: u32, offset: u32,
    ) {
        let [last, acknowledge] = flags;
        let status = status.map(|(status, residual)| DataInStatus { status, residual });
        round_trip!(DataIn {
            last, acknowledge, status, lun, itt, ttt, stamps, data_sn: DataSn(data_sn), offset,
        }, DataIn);
    }

    #[test]
    fn r2t(
        lun in lun(), itt in itt(), ttt in ttt(), stamps in stamps(), sn: u32, offset: u32,
        desired: u32,
    ) {
        round_trip!(R2t { lun, itt, ttt, stamps, r2t_sn: DataSn(sn), offset, desired }, R2t);
    }

    #[test]
    fn async_message(
        lun in lun(), stamps in stamps(), event: u8, vendor_code: u8, parameters: [u16; 3],
    ) {
        round_trip!(AsyncMessage { lun, stamps, event, vendor_code, parameters }, AsyncMessage);
    }

    #[test]
    fn text(
        flags: [bool; 3], lun in lun(), itt in itt(), ttt in ttt(),
        (cmd_sn, exp_stat_sn) in request(), stamps in stamps(),
    ) {
        let [immediate, last, more] = flags;
        round_trip!(TextRequest {
            immediate, last, more, lun, itt, ttt, cmd_sn, exp_stat_sn,
        }, TextRequest);
        round_trip!(TextResponse { last, more, lun, itt, ttt, stamps }, TextResponse);
    }

    #[test]
    fn login(
        flags: [bool; 2], stages in (0u8..4, 0u8..4), versions: [u8; 2], isid: [u8; 6], tsih: u16,
        itt in itt(), cid: u16, (cmd_sn, exp_stat_sn) in request(), stamps in stamps(), status: u16,
    ) {
        let ([transit, more], (current, next)) = (flags, stages);
        round_trip!(LoginRequest {
            transit, more, current, next, version_max: versions[0], version_min: versions[1], isid,
            tsih, itt, cid, cmd_sn, exp_stat_sn,
        }, LoginRequest);
        round_trip!(LoginResponse {
            transit, more, current, next, version_max: versions[0], version_active: versions[1],
            isid, tsih, itt, stamps, status,
        }, LoginResponse);
    }

    #[test]
    fn logout(
        immediate: bool, reason in 0u8..128, itt in itt(), cid: u16,
        (cmd_sn, exp_stat_sn) in request(), response: u8, stamps in stamps(), times: [u16; 2],
    ) {
        round_trip!(LogoutRequest {
            immediate, reason, itt, cid, cmd_sn, exp_stat_sn,
        }, LogoutRequest);
        round_trip!(LogoutResponse {
            response, itt, stamps, time_to_wait: times[0], time_to_retain: times[1],
        }, LogoutResponse);
    }

    #[test]
    fn snack(
        kind in 0u8..16, lun in lun(), itt in itt(), ttt in ttt(), stat_sn: u32, first: u32,
        count: u32,
    ) {
        round_trip!(SnackRequest {
            kind, lun, itt, ttt, exp_stat_sn: StatSn(stat_sn), first, count,
        }, SnackRequest);
    }

    #[test]
    fn reject(reason: u8, stamps in stamps(), data_sn: u32) {
        round_trip!(Reject { reason, stamps, data_sn: DataSn(data_sn) }, Reject);
    }

    #[test]
    fn nop(
        immediate: bool, lun in lun(), itt in itt(), ttt in ttt(),
        (cmd_sn, exp_stat_sn) in request(), stamps in stamps(),
    ) {
        round_trip!(NopOut { immediate, lun, itt, ttt, cmd_sn, exp_stat_sn }, NopOut);
        round_trip!(NopIn { lun, itt, ttt, stamps }, NopIn);
    }

    #[test]
    fn lengths(ahs in 0usize..256, data in 0u32..1 << 24) {
        let mut bhs = Bhs::new(Opcode::ScsiCommand);
        bhs.set_ahs_len(ahs * 4);
        bhs.set_data_len(data);
        prop_assert_eq!((bhs.ahs_len(), bhs.data_len()), (ahs * 4, data));
    }

    #[test]
    fn additional_header_segments_of_any_kind_never_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..64),
    ) {
        prop_assert!(ahs::segments(&bytes).count() <= bytes.len());
    }
}

#[test]
fn every_opcode_has_its_code() {
    for code in 0..64 {
        assert_eq!(Opcode::from_code(code).code(), code);
        assert_eq!(Opcode::from_code(code).is_request(), code < 0x20);
    }
}

#[test]
fn additional_header_segments_are_split_by_their_lengths() {
    let mut bytes = Vec::new();
    ahs::put_extended_cdb(&mut bytes, &[1, 2, 3, 4, 5, 6]);
    ahs::put_bidirectional_read(&mut bytes, 0x0001_0203);
    bytes.extend([0, 1, 0x3f, 0]);
    let segments: Vec<_> = ahs::segments(&bytes).collect();
    assert_eq!(
        segments,
        [
            Ok(Ahs::ExtendedCdb(&[1, 2, 3, 4, 5, 6])),
            Ok(Ahs::BidirectionalRead(0x0001_0203)),
            Ok(Ahs::Other(0x3f)),
        ]
    );
}

#[test]
fn additional_header_segments_longer_than_what_is_there_are_malformed() {
    for bytes in [
        &[0, 9, 1, 0, 5, 5, 5, 5][..],
        &[0, 4, 2, 0, 0, 0, 1, 0],
        &[0, 1, 1, 0],
        &[0, 0, 1],
    ] {
        assert_eq!(ahs::segments(bytes).last(), Some(Err(ahs::MalformedAhs)));
    }
}
