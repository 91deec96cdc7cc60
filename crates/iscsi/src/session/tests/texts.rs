//! Text requests in the full-feature phase (RFC 7143 §11.10, §11.11; UNH FFP 17.x).

use super::rig::{
    FIRST_CMD_SN, Rig, TARGET, over_all_but_iser, over_each_datamover, over_one_datamover,
};
use crate::wire::bhs::{Itt, Ttt};

over_each_datamover! {
    #[test]
    fn a_discovery_session_tells_all_targets() {
        let mut rig = Rig::discovery();
        rig.text(1, "SendTargets=All\0");
        let expected =
            format!("Text Response #1 F TargetName={TARGET}|TargetAddress=192.0.2.1:3260,1|");
        rig.sends([expected]);
    }

    #[test]
    fn a_normal_session_tells_its_own_target() {
        let mut rig = Rig::new();
        rig.text(1, "SendTargets=\0");
        rig.text(2, "SendTargets=iqn.2026-11.org.lunar:other\0");
        let own = format!("Text Response #1 F TargetName={TARGET}|TargetAddress=192.0.2.1:3260,1|");
        rig.sends([own, "Text Response #2 F ".into()]);
    }

    #[test]
    fn unknown_keys_are_not_understood_and_misplaced_ones_rejected() {
        let mut rig = Rig::new();
        rig.text(1, "X-com.example.color=blue\0");
        rig.text(2, "MaxBurstLength=4096\0");
        rig.sends([
                "Text Response #1 F X-com.example.color=NotUnderstood|",
                "Reject 04 of TextRequest",
            ]);
    }

    #[test]
    fn an_empty_text_request_is_answered_by_an_empty_response() {
        let mut rig = Rig::new();
        rig.text(1, "");
        rig.sends(["Text Response #1 F "]);
    }

    #[test]
    fn a_failed_negotiation_changes_nothing() {
        let mut rig = Rig::new();
        rig.text(
            1,
            "MaxRecvDataSegmentLength=512\0MaxRecvDataSegmentLength=1024\0",
        );
        rig.sends(["Reject 04 of TextRequest"]);
        assert_eq!(rig.rule(), "a key sent twice");
        assert_eq!(rig.session.parameters().keys.peer_data_segment, 1024);
    }

    #[test]
    fn a_key_may_span_requests() {
        let mut rig = Rig::discovery();
        let mut pdu = rig.text_pdu(1);
        (pdu.last, pdu.more) = (false, true);
        rig.send(pdu.encode(), b"SendTar");
        pdu.ttt = Ttt(1);
        (pdu.last, pdu.more) = (true, false);
        rig.send(pdu.encode(), b"gets=All\0");
        let sent = rig.sent();
        assert_eq!(sent[0], "Text Response #1 ttt=1 ");
        assert!(
            sent[1].starts_with("Text Response #1 F TargetName="),
            "{sent:?}"
        );
    }

    #[test]
    fn a_long_answer_is_fetched_part_by_part() {
        let mut rig = Rig::discovery();
        rig.session.parameters.keys.peer_data_segment = 40;
        let mut pdu = rig.text_pdu(1);
        rig.send(pdu.encode(), b"SendTargets=All\0");
        rig.sends(["Text Response #1 C ttt=1 TargetName=iqn.2026-11.org.lunar:test|Ta"]);
        pdu.ttt = Ttt(1);
        rig.send(pdu.encode(), b"");
        rig.sends(["Text Response #1 F rgetAddress=192.0.2.1:3260,1|"]);
    }

    #[test]
    fn text_in_the_middle_of_an_answer_is_rejected() {
        let mut rig = Rig::discovery();
        rig.session.parameters.keys.peer_data_segment = 40;
        let mut pdu = rig.text_pdu(1);
        rig.send(pdu.encode(), b"SendTargets=All\0");
        rig.sent();
        pdu.ttt = Ttt(1);
        rig.send(pdu.encode(), b"SendTargets=All\0");
        rig.sends(["Reject 04 of TextRequest"]);
    }

    #[test]
    fn a_stale_or_invented_tag_is_rejected() {
        let mut rig = Rig::new();
        let mut pdu = rig.text_pdu(1);
        pdu.ttt = Ttt(5);
        rig.send(pdu.encode(), b"");
        rig.sends(["Reject 09 of TextRequest"]);
    }

    #[test]
    fn continue_with_final_is_rejected() {
        let mut rig = Rig::new();
        let mut pdu = rig.text_pdu(1);
        pdu.more = true;
        rig.send(pdu.encode(), b"SendTargets=\0");
        rig.sends(["Reject 04 of TextRequest"]);
    }

    #[test]
    fn continue_without_data_is_answered() {
        let mut rig = Rig::new();
        let mut pdu = rig.text_pdu(1);
        (pdu.last, pdu.more) = (false, true);
        rig.send(pdu.encode(), b"");
        rig.sends(["Text Response #1 ttt=1 "]);
    }

    #[test]
    fn text_without_end_is_rejected() {
        let mut rig = Rig::new();
        let mut pdu = rig.text_pdu(1);
        (pdu.last, pdu.more) = (false, true);
        for _ in 0..4 {
            rig.send(pdu.encode(), &[b'a'; 4096]);
            pdu.ttt = Ttt(1);
        }
        rig.sends(vec!["Text Response #1 ttt=1 "; 4]);
        rig.send(pdu.encode(), &[b'a'; 4096]);
        rig.sends(["Reject 04 of TextRequest"]);
    }

    #[test]
    fn an_exchange_is_ended_by_abort_task() {
        let mut rig = Rig::new();
        let mut pdu = rig.text_pdu(1);
        pdu.last = false;
        rig.send(pdu.encode(), b"");
        rig.abort(2, 1, FIRST_CMD_SN);
        rig.sends(["Text Response #1 ttt=1 ", "Task Response #2 0"]);
        pdu.ttt = Ttt(1);
        rig.send(pdu.encode(), b"");
        rig.sends(["Reject 09 of TextRequest"]);
    }

    #[test]
    fn the_tag_of_a_running_command_is_refused() {
        let mut rig = Rig::new();
        rig.read(1, 512);
        let pdu = rig.text_pdu(1);
        assert_eq!(pdu.itt, Itt(1));
        rig.send(pdu.encode(), b"");
        rig.sends(["Reject 07 of TextRequest"]);
    }
}

over_all_but_iser! {
    /// Over iSER MaxRecvDataSegmentLength is ignored (RFC 7145 §6.2), and nothing else can be
    /// negotiated in the full-feature phase.
    #[test]
    fn a_negotiation_that_is_not_finished_changes_nothing() {
        let mut rig = Rig::new();
        let mut pdu = rig.text_pdu(1);
        pdu.last = false;
        rig.send(pdu.encode(), b"MaxRecvDataSegmentLength=512\0");
        rig.sends(["Text Response #1 ttt=1 "]);
        assert_eq!(rig.session.parameters().keys.peer_data_segment, 1024);
        // A request without the Target Transfer Tag begins anew.
        rig.text(1, "");
        rig.sends(["Text Response #1 F "]);
        assert_eq!(rig.session.parameters().keys.peer_data_segment, 1024);
    }

    /// Over iSER MaxRecvDataSegmentLength is ignored (RFC 7145 §6.2), and nothing else can be
    /// negotiated in the full-feature phase.
    #[test]
    fn a_negotiation_goes_on_by_its_tag() {
        let mut rig = Rig::new();
        let mut pdu = rig.text_pdu(1);
        pdu.last = false;
        rig.send(pdu.encode(), b"MaxRecvDataSegmentLength=512\0");
        pdu.ttt = Ttt(1);
        pdu.last = true;
        rig.send(pdu.encode(), b"");
        rig.sends(["Text Response #1 ttt=1 ", "Text Response #1 F "]);
        assert_eq!(rig.session.parameters().keys.peer_data_segment, 512);
    }
}

#[test]
fn a_new_max_recv_data_segment_length_holds_at_once() {
    let mut rig = Rig::new();
    rig.text(1, "MaxRecvDataSegmentLength=512\0");
    let command = rig.read(2, 1024);
    rig.data_in(command.tag, 0, &[0; 1024]);
    rig.good(command.tag, 1024, 0);
    rig.sends([
        "Text Response #1 F ",
        "Data-In #2 sn=0 [0+512]",
        "Data-In #2 sn=1 [512+512] F S 00",
    ]);
}
