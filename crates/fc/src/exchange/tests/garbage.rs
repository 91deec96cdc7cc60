//! Frames that nobody in his right mind would send, among commands that are well: nothing panics,
//! and commands end.

use proptest::prelude::*;

use crate::port::Fc4Layer;
use crate::tests::pair::{Pair, REMOTE, all, peer, plain};
use crate::wire::frame::{FCtl, FrameHeader, FrameType, OxId, RCtl, RxId};

#[derive(Clone, Debug)]
enum Step {
    Read(u16),
    Write(u16),
    Test,
    /// To the target, or to the initiator.
    Frame(bool, FrameHeader, Vec<u8>),
    /// Frames leave, and are lost.
    Vanish,
    Settle,
    Wait,
    Stop(bool),
    Relogin(bool),
}

fn header() -> impl Strategy<Value = FrameHeader> {
    let kinds = [
        (FrameType::FCP, RCtl::UNSOLICITED_COMMAND),
        (FrameType::FCP, RCtl::SOLICITED_DATA),
        (FrameType::FCP, RCtl::DATA_DESCRIPTOR),
        (FrameType::FCP, RCtl::COMMAND_STATUS),
        (FrameType::FCP, RCtl::SOLICITED_CONTROL),
        (FrameType::FCP, RCtl::FC4_REQUEST),
        (FrameType::FCP, RCtl::FC4_REPLY),
        (FrameType::ELS, RCtl::ELS_REQUEST),
        (FrameType::ELS, RCtl::ELS_REPLY),
        (FrameType::BLS, RCtl::ABTS),
        (FrameType::BLS, RCtl::BA_ACC),
        (FrameType::BLS, RCtl::BA_RJT),
    ];
    let number = prop_oneof![0_u32..4, 500_u32..1100, Just(u32::MAX), any::<u32>()];
    let ids = (0_u16..6, prop_oneof![0_u16..6, Just(0xffff)]);
    let fields = (
        prop::sample::select(kinds.to_vec()),
        ids,
        number,
        any::<u32>(),
    );
    fields.prop_map(
        |((kind, r_ctl), (ox_id, rx_id), parameter, bits)| FrameHeader {
            parameter,
            f_ctl: FCtl(bits & 0xff_ffff),
            seq_id: (bits >> 24) as u8,
            ..peer(1, 2, all()).header(r_ctl, kind, OxId(ox_id), RxId(rx_id))
        },
    )
}

/// Payloads with small numbers in them are those that get far.
fn payload() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![5 => Just(0), 3 => 0_u8..8, 1 => any::<u8>(), 1 => 0x12_u8..0x15];
    prop::collection::vec(byte, 0..100)
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        1 => (1_u16..40).prop_map(Step::Read),
        1 => (1_u16..40).prop_map(Step::Write),
        1 => Just(Step::Test),
        8 => (any::<bool>(), header(), payload())
            .prop_map(|(to_target, header, payload)| Step::Frame(to_target, header, payload)),
        1 => Just(Step::Vanish),
        2 => Just(Step::Settle),
        1 => Just(Step::Wait),
        1 => any::<bool>().prop_map(Step::Stop),
        1 => any::<bool>().prop_map(Step::Relogin),
    ]
}

/// Goes through it all.
fn take(pair: &mut Pair, steps: Vec<Step>) {
    let mut begun = 0;
    for step in steps {
        match step {
            Step::Read(blocks) => pair.read(begun, 0, blocks),
            Step::Write(blocks) => pair.write(begun, 0, vec![1; usize::from(blocks) * 512]),
            Step::Test => pair.test(begun),
            _ => {}
        }
        begun += u64::from(matches!(step, Step::Read(_) | Step::Write(_) | Step::Test));
        match step {
            Step::Frame(true, header, payload) => {
                let f_ctl = FCtl(header.f_ctl.0 & !FCtl::RESPONDER.0);
                pair.reach_target(FrameHeader { f_ctl, ..header }, &payload);
            }
            Step::Frame(false, header, payload) => {
                let f_ctl = header.f_ctl.with(FCtl::RESPONDER);
                pair.reach_initiator(FrameHeader { f_ctl, ..header }, &payload);
            }
            Step::Vanish => {
                pair.sent();
                pair.answered();
            }
            Step::Settle => pair.settle(),
            Step::Wait => {
                pair.wait();
            }
            Step::Stop(stops) => pair.disk.is_stopped = stops,
            Step::Relogin(at_target) if at_target => {
                pair.target.peer_up(REMOTE, peer(2, 1, all()));
            }
            _ => {}
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]
    #[test]
    fn garbage_harms_nobody(steps in prop::collection::vec(step(), 1..60), recovers: bool) {
        let fcp = if recovers { all() } else { plain() };
        let mut pair = Pair::new(fcp);
        take(&mut pair, steps);
        pair.disk.is_stopped = false;
        pair.finish();
        pair.pass(std::time::Duration::from_secs(200));
        pair.initiator.peer_down(REMOTE);
        pair.target.peer_down(REMOTE);
        prop_assert!(pair.initiator.is_idle(REMOTE));
        prop_assert!(pair.answered().is_empty());
        pair.pass(std::time::Duration::from_secs(20));
        let left = pair.deadlines();
        prop_assert_eq!(left, [None, None]);
    }
}
