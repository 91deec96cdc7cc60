use proptest::collection::vec;
use proptest::prelude::*;

use crate::wire::bls::{BaAcc, BaRjt};
use crate::wire::els::{
    Adisc, ClassParameters, Code, Els, ElsError, ExchangeName, ExchangeStatus, FcpParameters,
    Features, LinkErrors, Logo, LsRejectReason, NodeId, RecAccept, Reply, Rscn, ServicePage,
    ServiceParameters, Srr, TimeOuts,
};
use crate::wire::frame::{FrameType, OxId, RCtl, RxId};
use crate::wire::names::{FcId, Wwn};

fn fc_id() -> impl Strategy<Value = FcId> {
    (0..1u32 << 24).prop_map(FcId)
}

fn ids() -> impl Strategy<Value = (OxId, RxId)> {
    any::<(u16, u16)>().prop_map(|(ox, rx)| (OxId(ox), RxId(rx)))
}

fn login() -> impl Strategy<Value = ServiceParameters> {
    let halves = any::<[u16; 10]>();
    (halves, any::<u32>(), any::<(u64, u64)>(), any::<[u8; 2]>()).prop_map(
        |(halves, e_d_tov, (wwpn, wwnn), versions)| ServiceParameters {
            versions,
            bb_credit: halves[0],
            features: Features(halves[1]),
            receive_size: halves[2] & 0x0fff,
            total_sequences: halves[3],
            relative_offset: halves[4],
            e_d_tov,
            wwpn: Wwn(wwpn),
            wwnn: Wwn(wwnn),
            class_3: ClassParameters {
                options: halves[5],
                initiator: halves[6],
                recipient: halves[7],
                receive_size: halves[8] & 0x0fff,
                concurrent_sequences: halves[9],
                credit: halves[0],
                open_sequences: halves[1],
            },
        },
    )
}

fn pages() -> impl Strategy<Value = Vec<ServicePage>> {
    let page = any::<([u8; 3], [u32; 3])>().prop_map(|(bytes, words)| ServicePage {
        kind: FrameType(bytes[0]),
        extension: bytes[1],
        flags: bytes[2],
        originator: words[0],
        responder: words[1],
        parameters: words[2],
    });
    vec(page, 1..4)
}

fn adisc() -> impl Strategy<Value = Adisc> {
    let names = any::<(u64, u64)>();
    (fc_id(), names, fc_id()).prop_map(|(hard_address, (wwpn, wwnn), fc_id)| Adisc {
        hard_address,
        wwpn: Wwn(wwpn),
        wwnn: Wwn(wwnn),
        fc_id,
    })
}

fn exchange() -> impl Strategy<Value = ExchangeName> {
    (fc_id(), ids()).prop_map(|(originator, (ox_id, rx_id))| ExchangeName {
        originator,
        ox_id,
        rx_id,
    })
}

fn request() -> impl Strategy<Value = Els> {
    let logo = (fc_id(), any::<u64>()).prop_map(|(fc_id, wwpn)| Logo {
        fc_id,
        wwpn: Wwn(wwpn),
    });
    let srr = (ids(), any::<(u32, u8)>()).prop_map(|((ox_id, rx_id), (offset, unit))| Srr {
        ox_id,
        rx_id,
        offset,
        unit: RCtl(unit),
    });
    let other = any::<u8>().prop_map(|code| Els::parse(&[code, 4, 0, 8, 0, 0, 0, 1]));
    prop_oneof![
        login().prop_map(Els::Plogi),
        login().prop_map(Els::Flogi),
        login().prop_map(Els::Pdisc),
        login().prop_map(Els::Fdisc),
        logo.prop_map(Els::Logo),
        fc_id().prop_map(Els::Rls),
        vec(any::<u8>(), 0..20).prop_map(Els::Echo),
        exchange().prop_map(Els::Rrq),
        exchange().prop_map(Els::Rec),
        srr.prop_map(Els::Srr),
        pages().prop_map(Els::Prli),
        pages().prop_map(Els::Prlo),
        pages().prop_map(Els::Tprlo),
        adisc().prop_map(Els::Adisc),
        vec((any::<u8>(), fc_id()), 1..4).prop_map(|pages| Els::Rscn(Rscn(pages))),
        any::<u8>().prop_map(Els::Scr),
        any::<u8>().prop_map(Els::Rnid),
        other.prop_filter_map("too short for its kind", Result::ok),
    ]
}

/// An answer, and what it answers.
fn reply() -> impl Strategy<Value = (Code, Reply)> {
    let rec = (ids(), fc_id(), fc_id(), any::<(u32, u32)>()).prop_map(|(ids, from, to, words)| {
        Reply::Rec(RecAccept {
            ox_id: ids.0,
            rx_id: ids.1,
            originator: from,
            responder: to,
            transferred: words.0,
            status: ExchangeStatus(words.1),
        })
    });
    let rtv = any::<[u32; 3]>().prop_map(|words| {
        Reply::Rtv(TimeOuts {
            r_a_tov_ms: words[0],
            e_d_tov: words[1],
            qualifier: words[2],
        })
    });
    let rls = any::<[u32; 6]>().prop_map(|words| {
        Reply::Rls(LinkErrors {
            link_failures: words[0],
            sync_losses: words[1],
            signal_losses: words[2],
            protocol_errors: words[3],
            invalid_words: words[4],
            invalid_crcs: words[5],
        })
    });
    let names = proptest::option::of(any::<(u64, u64)>());
    let node = (any::<u8>(), names, vec(any::<u8>(), 0..60));
    let rnid = node.prop_map(|(format, names, specific)| {
        Reply::Rnid(NodeId {
            format,
            names: names.map(|(wwpn, wwnn)| (Wwn(wwpn), Wwn(wwnn))),
            specific,
        })
    });
    let reject = any::<[u8; 3]>().prop_map(|[reason, explanation, vendor]| {
        Reply::Reject(LsRejectReason {
            reason,
            explanation,
            vendor,
        })
    });
    let to = |code: Code| move |reply| (code, reply);
    prop_oneof![
        login().prop_map(Reply::Login).prop_map(to(Code::PLOGI)),
        pages().prop_map(Reply::Process).prop_map(to(Code::PRLI)),
        adisc().prop_map(Reply::Adisc).prop_map(to(Code::ADISC)),
        rec.prop_map(to(Code::REC)),
        rtv.prop_map(to(Code::RTV)),
        rls.prop_map(to(Code::RLS)),
        rnid.prop_map(to(Code::RNID)),
        vec(any::<u8>(), 0..20)
            .prop_map(Reply::Echo)
            .prop_map(to(Code::ECHO)),
        Just((Code::LOGO, Reply::Accept)),
        reject.prop_map(to(Code::PRLI)),
    ]
}

proptest! {
    #[test]
    fn a_request_is_read_as_it_was_written(els in request(), trailing in vec(any::<u8>(), 0..3)) {
        let mut bytes = els.encode();
        let len = bytes.len();
        // What pads a frame, or belongs to an older form, is not looked at.
        if !matches!(els, Els::Echo(_)) {
            bytes.extend(trailing);
        }
        prop_assert_eq!(Els::parse(&bytes), Ok(els.clone()));
        if !matches!(els, Els::Echo(_)) {
            for len in 0..len {
                prop_assert!(Els::parse(&bytes[..len]).is_err() || short_is_whole(&els, len));
            }
        }
    }

    #[test]
    fn an_answer_is_read_as_it_was_written((to, reply) in reply()) {
        let bytes = reply.encode();
        prop_assert_eq!(Reply::parse(to, &bytes), Ok(reply.clone()));
        if !matches!(reply, Reply::Echo(_)) {
            for len in 0..bytes.len() {
                prop_assert!(Reply::parse(to, &bytes[..len]).is_err());
            }
        }
    }

    #[test]
    fn basic_link_services(
        seq_id in proptest::option::of(any::<u8>()), (ox_id, rx_id) in ids(),
        counts: (u16, u16), codes: [u8; 3],
    ) {
        let (low_seq_cnt, high_seq_cnt) = counts;
        let accept = BaAcc { seq_id, ox_id, rx_id, low_seq_cnt, high_seq_cnt };
        prop_assert_eq!(BaAcc::parse(&accept.encode()), Ok(accept));
        prop_assert!(BaAcc::parse(&accept.encode()[..11]).is_err());
        let [reason, explanation, vendor] = codes;
        let reject = BaRjt { reason, explanation, vendor };
        prop_assert_eq!(BaRjt::parse(&reject.encode()), Ok(reject));
        prop_assert!(BaRjt::parse(&reject.encode()[..3]).is_err());
    }
}

/// The data format of RNID stands before reserved bytes, which need not be there.
fn short_is_whole(els: &Els, len: usize) -> bool {
    matches!(els, Els::Rnid(_) if len >= 5)
}

#[test]
fn lengths_that_contradict_each_other_are_told() {
    let page = ServicePage::fcp(FcpParameters::INITIATOR);
    let whole = Els::Prli(vec![page]).encode();
    let with = |at: usize, value: u8| {
        let mut bytes = whole.clone();
        bytes[at] = value;
        Els::parse(&bytes)
    };
    // The length of a page, and that of all: no page, half a page, more than there is.
    for (at, value) in [
        (1, 0),
        (1, 8),
        (1, 20),
        (3, 0),
        (3, 4),
        (3, 12),
        (3, 21),
        (2, 1),
    ] {
        assert_eq!(
            with(at, value),
            Err(ElsError::Length(Code::PRLI)),
            "{at} {value}"
        );
    }
    let mut rscn = Els::Rscn(Rscn(vec![(0, FcId(1))])).encode();
    rscn[3] = 9;
    assert_eq!(Els::parse(&rscn), Err(ElsError::Length(Code::RSCN)));
    let rnid = [2, 0, 0, 0, 0xdf, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    assert_eq!(
        Reply::parse(Code::RNID, &rnid),
        Err(ElsError::Length(Code::RNID))
    );
}

#[test]
fn an_answer_is_an_accept_or_a_reject() {
    let logo = Els::Rtv.encode();
    let error = Reply::parse(Code::PLOGI, &logo).unwrap_err();
    assert_eq!(error.to_string(), "RTV as a response");
    assert_eq!(Els::parse(&[0x7e, 0, 0, 0]), Ok(Els::Other(Code(0x7e))));
    assert_eq!(Code(0x7e).to_string(), "ELS 7eh");
}

#[test]
fn time_outs_are_milliseconds_or_nanoseconds() {
    let plain = TimeOuts {
        r_a_tov_ms: 4000,
        e_d_tov: 2000,
        qualifier: 0,
    };
    assert_eq!(plain.e_d_tov_ms(), 2000);
    let fine = TimeOuts {
        e_d_tov: 1_500_001,
        qualifier: TimeOuts::E_D_TOV_NS,
        ..plain
    };
    assert_eq!(fine.e_d_tov_ms(), 2);
}

#[test]
fn a_page_is_answered_with_its_own_flags_and_a_code() {
    let asked = ServicePage::fcp(FcpParameters::TARGET.with(FcpParameters::RETRY));
    let answer = asked.answered(ServicePage::EXECUTED);
    assert_eq!(
        (answer.flags, answer.response(), answer.image_pair()),
        (0x21, 1, true)
    );
    assert!(FcpParameters(answer.parameters).has(FcpParameters::RETRY));
    assert!(!FcpParameters(answer.parameters).has(FcpParameters::INITIATOR));
}
