//! Discovery, portals as targets write them, and the orderly end.

use super::rig::stories::over_both_transports;
use super::rig::{Carrier, INITIATOR, ISID, InitiatorRig, IserRig, Rig, config};
use crate::initiator::config::InitiatorConfig;
use crate::initiator::error::SessionEnd;
use crate::initiator::portal::ReportedPortal;
use crate::initiator::{InitiatorEvent, IscsiRefusal, TargetRecord, Tmf};
use crate::wire::bhs::{Itt, Ttt};
use crate::wire::control::TextResponse;
use crate::wire::login::LogoutResponse;
use scsi::wire::lun::Lun;

fn discovery<C: Carrier>() -> InitiatorRig<C> {
    let mut config = InitiatorConfig::discovery(INITIATOR, ISID);
    config.limits.targets = 1000;
    InitiatorRig::logged_in(config, "")
}

impl<C: Carrier> InitiatorRig<C> {
    /// A Text Response; without a tag it is the last.
    pub(super) fn text(&mut self, itt: u32, more: bool, ttt: Option<u32>, text: &str) {
        let pdu = TextResponse {
            last: ttt.is_none(),
            more,
            lun: Lun([0; 8]),
            itt: Itt(itt),
            ttt: ttt.map_or(Ttt::NONE, Ttt),
            stamps: self.next_stamps(),
        };
        self.send_text(pdu.encode(), text);
    }

    fn asked() -> Self {
        let mut rig = discovery();
        rig.initiator.send_targets(rig.now, "All").unwrap();
        rig.sends(["Text #1fff2 F SendTargets=All|"]);
        rig
    }

    #[track_caller]
    fn targets(&mut self) -> Vec<TargetRecord> {
        match self.event() {
            Some(InitiatorEvent::Targets(targets)) => targets,
            other => panic!("{other:?} where targets were expected"),
        }
    }

    pub(super) fn logged_out(&mut self, itt: u32, response: u8) {
        let pdu = LogoutResponse {
            response,
            itt: Itt(itt),
            stamps: self.next_stamps(),
            time_to_wait: 0,
            time_to_retain: 0,
        };
        self.send(pdu.encode(), &[]);
    }

    /// The target closes the connection. Over TCP the initiator may have closed it before.
    fn closed(&mut self) {
        self.initiator.lost();
    }
}

fn portal(host: &str, port: u16, group: u16) -> ReportedPortal {
    ReportedPortal {
        host: host.into(),
        port,
        group: Some(group),
    }
}

over_both_transports! {
    #[test]
    fn targets_and_their_portals() {
        let mut rig = Rig::asked();
        assert_eq!(
            rig.initiator.send_targets(rig.now, "All"),
            Err(IscsiRefusal::Full)
        );
        let text = "TargetName=iqn.2026-11.org.x:a|TargetAddress=192.0.2.1:3260,1|\
            TargetAddress=[2001:db8::1]:860,2|TargetAddress=?,1|TargetName=iqn.2026-11.org.x:b|";
        rig.text(0x1fff2, false, None, text);
        let expected = [
            TargetRecord {
                name: "iqn.2026-11.org.x:a".into(),
                portals: vec![portal("192.0.2.1", 3260, 1), portal("2001:db8::1", 860, 2)],
            },
            TargetRecord {
                name: "iqn.2026-11.org.x:b".into(),
                portals: vec![],
            },
        ];
        assert_eq!(rig.targets(), expected);
        assert!(rig.initiator.is_idle());
    }

    /// istgt 0.4 does so, though these requests are immediate (RFC 7143 §4.2.2.1).
    #[test]
    fn a_target_that_counts_immediate_requests() {
        let mut rig = Rig::asked();
        rig.cmd_sn += 1;
        rig.text(0x1fff2, false, None, "TargetName=iqn.2026-11.org.x:a|");
        assert_eq!(rig.targets()[0].name, "iqn.2026-11.org.x:a");
        rig.initiator.logout(rig.now).unwrap();
        rig.sends(["Logout #2fff3 0"]);
        rig.cmd_sn += 1;
        rig.logged_out(0x2fff3, 0);
        rig.closed();
        assert_eq!(rig.end(), SessionEnd::LoggedOut);
    }

    #[test]
    fn targets_in_parts() {
        let mut rig = Rig::asked();
        rig.text(0x1fff2, true, Some(7), "TargetName=iqn.2026-1");
        rig.sends(["Text #1fff2 F ttt=7 "]);
        rig.text(0x1fff2, false, Some(8), "1.org.x:a|");
        rig.sends(["Text #1fff2 F ttt=8 "]);
        rig.text(0x1fff2, false, None, "");
        assert_eq!(rig.targets()[0].name, "iqn.2026-11.org.x:a");
    }

    #[test]
    fn names_that_a_terminal_would_act_upon() {
        let mut rig = Rig::asked();
        rig.text(
            0x1fff2,
            false,
            None,
            "TargetName=\x1b[2Jiqn.2026-11.org.x:a\r|",
        );
        assert_eq!(rig.targets()[0].name, "[2Jiqn.2026-11.org.x:a");
    }

    #[test]
    fn no_targets() {
        let mut rig = Rig::asked();
        rig.text(0x1fff2, false, None, "");
        assert_eq!(rig.targets(), []);
    }

    #[test]
    fn answers_to_send_targets_that_cannot_be() {
        let flags =
            "a Text Response whose F bit, C bit and Target Transfer Tag contradict each other";
        let no_name = "a SendTargets response with a TargetName missing";
        type Story = (&'static str, fn(&mut Rig));
        let stories: [Story; 8] = [
            (flags, |rig| rig.text(0x1fff2, true, None, "")),
            (flags, |rig| rig.text(0x1fff2, true, Some(u32::MAX), "")),
            (no_name, |rig| {
                rig.text(0x1fff2, false, None, "TargetAddress=host|");
            }),
            (no_name, |rig| {
                rig.text(0x1fff2, false, None, "TargetName=|");
            }),
            ("malformed text", |rig| {
                rig.text(0x1fff2, false, None, "TargetName");
            }),
            ("more text than the limit", |rig| {
                rig.text(0x1fff2, false, None, &"A=1|".repeat(300));
            }),
            ("more text than the limit", |rig| {
                for _ in 0..21 {
                    rig.text(0x1fff2, true, Some(1), "");
                    rig.sent();
                }
            }),
            ("a MaxRecvDataSegmentLength out of bounds", |rig| {
                rig.text(0x1fff2, false, None, "MaxRecvDataSegmentLength=1|");
            }),
        ];
        for (rule, story) in stories {
            let mut rig = Rig::asked();
            story(&mut rig);
            assert_eq!(rig.rule(), rule);
        }
    }

    #[test]
    fn a_target_that_does_not_tell() {
        let mut rig: Rig = discovery();
        rig.initiator.send_targets(rig.now, "All").unwrap();
        rig.reject_sent(5);
        assert!(matches!(
            rig.event(),
            Some(InitiatorEvent::TargetsRefused(5))
        ));
        rig.initiator.send_targets(rig.now, "All").unwrap();
        rig.sent();
        rig.wait(30);
        assert_eq!(rig.end(), SessionEnd::Unanswered("text"));
    }

    #[test]
    fn a_discovery_session_carries_text_only() {
        let mut rig: Rig = discovery();
        assert_eq!(rig.refused(1), IscsiRefusal::Discovery);
        let refused = rig.initiator.manage(rig.now, 1, Lun([0; 8]), Tmf::ClearAca);
        assert_eq!(refused, Err(IscsiRefusal::Discovery));
        let long = "x".repeat(224);
        assert_eq!(
            rig.initiator.send_targets(rig.now, &long),
            Err(IscsiRefusal::Value)
        );
        rig.wait(3600);
        assert!(rig.sent().is_empty(), "no ping");
        rig.respond(1, 0);
        assert_eq!(
            rig.rule(),
            "a PDU that a target must not send in this phase"
        );
    }

    #[test]
    fn logged_out_in_good_order() {
        let mut rig = Rig::open();
        rig.initiator.logout(rig.now).unwrap();
        rig.sends(["Logout #1fff3 0"]);
        rig.logged_out(0x1fff3, 0);
        rig.closed();
        assert_eq!(rig.end(), SessionEnd::LoggedOut);
    }

    #[test]
    fn what_is_under_way_ends_before_the_logout() {
        let mut rig = Rig::open();
        rig.test_unit(1);
        rig.test_unit(2);
        rig.sent();
        rig.initiator.logout(rig.now).unwrap();
        assert_eq!(rig.initiator.logout(rig.now), Err(IscsiRefusal::Over));
        assert_eq!(rig.initiator.room(), 0, "no command goes behind it");
        rig.refused(3);
        rig.sends_nothing();
        rig.respond(0x10000, 0);
        rig.done();
        rig.sent();
        rig.respond(0x20001, 0);
        rig.done();
        rig.sends(["Logout #3fff3 0"]);
    }

    #[test]
    fn logouts_that_fail() {
        let asked = || {
            let mut rig = Rig::open();
            rig.initiator.logout(rig.now).unwrap();
            rig
        };
        for code in [1, 2, 3, 99] {
            let mut rig = asked();
            rig.sent();
            rig.logged_out(0x1fff3, code);
            let end = rig.end();
            assert_eq!(end, SessionEnd::LogoutRefused(code));
            assert!(
                end.to_string()
                    .starts_with("the target refused the logout: ")
            );
        }
        let mut rig = asked();
        rig.reject_sent(4);
        assert_eq!(rig.end(), SessionEnd::LogoutRejected(4));
        let mut rig = asked();
        rig.sent();
        rig.wait(5);
        assert_eq!(rig.end(), SessionEnd::Unanswered("logout"));
        let mut rig = asked();
        rig.initiator.give_up();
        assert_eq!(rig.end(), SessionEnd::GivenUp);
    }

    #[test]
    fn nothing_is_taken_before_the_login_is_over() {
        let mut rig = Rig::new(config());
        assert_eq!(rig.refused(1), IscsiRefusal::NotYet);
        assert_eq!(rig.initiator.logout(rig.now), Err(IscsiRefusal::NotYet));
        assert_eq!(
            rig.initiator.send_targets(rig.now, "All"),
            Err(IscsiRefusal::NotYet)
        );
        assert!(!rig.initiator.is_idle());
    }

    #[test]
    fn addresses_of_portals() {
        let portal = |host: &str, port, group| {
            Some(ReportedPortal {
                host: host.into(),
                port,
                group,
            })
        };
        let stories = [
            ("host", portal("host", 3260, None)),
            ("host:860", portal("host", 860, None)),
            ("192.0.2.1:3260,1", portal("192.0.2.1", 3260, Some(1))),
            ("[2001:db8::1]", portal("2001:db8::1", 3260, None)),
            (
                "[2001:db8::1]:860,65535",
                portal("2001:db8::1", 860, Some(65_535)),
            ),
            ("host,65536", None),
            ("host:+1", None),
            ("[host]:1", None),
            ("[::1]x", None),
            ("a:b:c", None),
        ];
        for (text, expected) in stories {
            assert_eq!(ReportedPortal::parse(text), expected, "{text}");
            if let Some(portal) = expected {
                let again = ReportedPortal::parse(&portal.to_string()).unwrap();
                assert_eq!((again.host, again.port), (portal.host, portal.port));
            }
        }
    }
}

#[test]
fn targets_in_a_normal_session() {
    let mut rig = Rig::open();
    rig.initiator.send_targets(rig.now, "").unwrap();
    rig.sends(["Text #1fff2 F SendTargets=|"]);
    rig.text(
        0x1fff2,
        false,
        None,
        "TargetName=iqn.2026-11.org.x:a|MaxRecvDataSegmentLength=1024|",
    );
    assert_eq!(rig.targets().len(), 1);
    rig.write(1, 1024);
    rig.sends(["Command #20000 F W 2a 1024 [0+1024]"]);
}

/// RFC 7145 §5.2.1; a target that does not is not waited for any longer.
#[test]
fn over_rdma_the_target_closes() {
    for closes in [true, false] {
        let mut rig = IserRig::open();
        rig.initiator.logout(rig.now).unwrap();
        rig.sends(["Logout #1fff3 0"]);
        rig.logged_out(0x1fff3, 0);
        rig.quiet();
        if closes {
            rig.closed();
        } else {
            rig.wait(1);
        }
        assert_eq!(rig.end(), SessionEnd::LoggedOut);
    }
}
