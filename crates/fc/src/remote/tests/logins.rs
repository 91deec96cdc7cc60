//! Logins that do not go straight.

use super::*;
use crate::wire::els::ClassParameters;

fn up(role: Role, theirs: Wwn) -> Rig {
    let mut rig = Rig::new(role, theirs);
    rig.lead_to(Stage::Up);
    rig
}

#[test]
fn a_second_copy_of_a_request_changes_nothing() {
    let mut rig = up(Role::Target, Wwn(9));
    assert_eq!(rig.plogi(1), "LS_ACC");
    assert_eq!(rig.prli(2), "LS_ACC 21");
    assert!(rig.remote.is_up());
    // After R_A_TOV no copy comes any more.
    rig.now += Duration::from_secs(4);
    assert_eq!(rig.plogi(1), "down: Replaced, LS_ACC");
}

#[test]
fn a_new_nexus_waits_for_the_end_of_the_old_one() {
    let mut rig = up(Role::Target, Wwn(9));
    assert_eq!(rig.plogi(7), "down: Replaced, LS_ACC");
    assert_eq!(rig.prli(8), "");
    assert_eq!(rig.act(RemotePort::ended), "LS_ACC 21, up");
}

#[test]
fn a_lost_port_that_is_found_again_waits_too() {
    let mut rig = up(Role::Target, Wwn(9));
    rig.act(|remote, cx| remote.lost(cx, NexusEnd::Lost(UnlinkReason::Silent)));
    assert!(!rig.remote.is_gone());
    let neighbour = *rig.remote.neighbour();
    rig.remote.found_again(neighbour);
    rig.act(RemotePort::begin);
    assert_eq!(rig.plogi(7), "LS_ACC");
    assert_eq!(rig.prli(8), "");
    assert_eq!(rig.act(RemotePort::ended), "LS_ACC 21, up");
}

/// Arrays do that with hosts that they do not know.
#[test]
fn a_target_that_logs_out_again_and_again_is_left_alone_for_a_while() {
    let mut rig = Rig::new(Role::Initiator, Wwn(1));
    rig.act(RemotePort::begin);
    let log_out = |rig: &mut Rig| {
        assert_eq!(rig.plogi_accepted(), "PRLI");
        rig.now += Duration::from_millis(1);
        rig.logo()
    };
    for _ in 1..3 {
        assert_eq!(log_out(&mut rig), "LS_ACC, PLOGI");
    }
    assert_eq!(log_out(&mut rig), "LS_ACC");
    assert_eq!(rig.remote.state(), RemoteState::Idle);
    assert_eq!(
        rig.remote.deadline(),
        Some(rig.now + Duration::from_secs(10))
    );
    assert_eq!(rig.wait(), "PLOGI");
    // One that was kept for longer was no refusal.
    rig.now += Duration::from_secs(60);
    assert_eq!(log_out(&mut rig), "LS_ACC, PLOGI");
}

#[test]
fn a_request_without_answer_is_repeated_and_at_last_left_alone() {
    let mut rig = Rig::new(Role::Initiator, Wwn(1));
    assert_eq!(rig.act(RemotePort::begin), "PLOGI");
    for sent in ["PLOGI"; 4].into_iter().chain(["", "PLOGI"]) {
        assert_eq!(rig.wait(), sent);
        let idle = rig.remote.state() == RemoteState::Idle;
        assert_eq!(idle, sent.is_empty());
    }
}

#[test]
fn an_answer_to_a_request_that_was_repeated_is_too_late() {
    let mut rig = Rig::new(Role::Initiator, Wwn(1));
    rig.act(RemotePort::begin);
    let first = rig.remote.asked.unwrap();
    rig.wait();
    let accept = Reply::Login(rig.theirs()).encode();
    rig.act(|remote, cx| remote.answer_came(cx, first, &accept));
    assert_eq!(rig.remote.state(), RemoteState::Plogi);
}

#[test]
fn who_is_not_allowed_is_told_so() {
    let mut rig = Rig::new(Role::Target, Wwn(9));
    rig.local.partners = Partners::Only([Wwn(8)].into());
    let found = "\"a port that is not allowed was discovered (--allow)\"";
    assert_eq!(rig.act(RemotePort::begin), found);
    let refused = "\"a PLOGI from a port that is not allowed (--allow)\", LS_RJT 09/0d";
    assert_eq!(rig.plogi(1), refused);
}

#[test]
fn parameters_that_cannot_work_are_refused() {
    let mut rig = Rig::new(Role::Target, Wwn(9));
    let mut theirs = rig.theirs();
    theirs.class_3 = ClassParameters::default();
    assert_eq!(rig.asked(1, Els::Plogi(theirs)), "LS_RJT 03/07");
    let mut theirs = rig.theirs();
    theirs.receive_size = 128;
    assert_eq!(rig.asked(1, Els::Plogi(theirs)), "LS_RJT 03/07");
    let mut theirs = rig.theirs();
    theirs.wwpn = Wwn(77);
    let refused = rig.asked(1, Els::Plogi(theirs));
    assert!(refused.ends_with("LS_RJT 03/0d"), "{refused}");
}

#[test]
fn sizes_and_times_are_those_that_suit_both() {
    let mut rig = Rig::new(Role::Target, Wwn(9));
    let mut theirs = rig.theirs();
    theirs.class_3.receive_size = 1455;
    theirs.e_d_tov = 3000;
    rig.asked(1, Els::Plogi(theirs));
    rig.prli(2);
    let peer = rig.remote.peer(&rig.local).unwrap();
    assert_eq!(peer.payload_max, 1452);
    assert_eq!(peer.e_d_tov, Duration::from_secs(3));
    assert_eq!(peer.r_a_tov, Duration::from_secs(6));
    assert!(peer.fcp.retry && peer.fcp.rec && peer.fcp.confirm);
}

/// What Linux's initiator and target say in PRLI (as captured).
#[test]
fn linux_offers_less() {
    let mut rig = Rig::new(Role::Target, Wwn(9));
    rig.lead_to(Stage::LoggedIn);
    let page = ServicePage::fcp(FcpParameters(0x1a2));
    assert_eq!(rig.asked(2, Els::Prli(vec![page])), "LS_ACC 21, up");
    let fcp = rig.remote.peer(&rig.local).unwrap().fcp;
    assert!(fcp.retry && fcp.confirm && !fcp.rec && !fcp.retry_identifier);

    let mut rig = Rig::new(Role::Initiator, Wwn(9));
    rig.lead_to(Stage::LoggedIn);
    let page = ServicePage::fcp(FcpParameters(0xb2));
    // It asks too, before it answers.
    assert_eq!(rig.asked(2, Els::Prli(vec![page])), "LS_ACC 21");
    let answer = Reply::Process(vec![page.answered(ServicePage::EXECUTED)]);
    assert_eq!(rig.answered(&answer), "up");
    // And may ask once more, while all is well.
    assert_eq!(rig.asked(3, Els::Prli(vec![page])), "LS_ACC 21");
    assert!(rig.remote.is_up());
}

#[test]
fn two_initiators_make_no_pair() {
    let mut rig = Rig::new(Role::Initiator, Wwn(9));
    rig.lead_to(Stage::LoggedIn);
    let page = local(Role::Initiator).process_login();
    assert_eq!(rig.asked(2, Els::Prli(vec![page])), "LS_ACC 05");
    let answer = Reply::Process(vec![page.answered(ServicePage::PRECLUDED)]);
    assert_eq!(rig.answered(&answer), "");
    assert_eq!(rig.remote.state(), RemoteState::Open);
    assert!(!rig.remote.is_up());
}

/// It may believe in a nexus that is no more: a late copy of its PLOGI has ended it.
#[test]
fn a_target_does_not_confirm_a_login_without_a_nexus() {
    let mut rig = up(Role::Target, Wwn(9));
    assert_eq!(rig.adisc(), "LS_ACC");
    rig.plogi(7);
    assert_eq!(rig.adisc(), "LS_RJT 09/1e");
    let theirs = rig.theirs();
    assert_eq!(rig.asked(8, Els::Pdisc(theirs)), "LS_RJT 09/1e");
    // The answer to a PRLI waits for the end of the old nexus.
    rig.prli(8);
    assert_eq!(rig.adisc(), "LS_ACC");
    rig.act(RemotePort::ended);
    assert_eq!(rig.adisc(), "LS_ACC");
}

#[test]
fn without_a_login_a_target_confirms_nothing() {
    let mut rig = Rig::new(Role::Target, Wwn(9));
    rig.lead_to(Stage::Idle);
    assert_eq!(rig.adisc(), "LS_RJT 09/1e");
}

/// Two targets log in with each other, but never have a nexus.
#[test]
fn a_target_confirms_the_login_of_another_target() {
    let mut rig = Rig::new(Role::Target, Wwn(9));
    rig.remote.neighbour.initiator = Some(false);
    rig.lead_to(Stage::LoggedIn);
    assert_eq!(rig.adisc(), "LS_ACC");
}

/// How our login was refused last, in words.
fn refusal(rig: &Rig) -> String {
    let refusal = rig.remote.refusal();
    refusal.map_or_else(String::new, ToString::to_string)
}

#[test]
fn why_a_plogi_is_rejected_is_kept_until_there_is_a_nexus() {
    let mut rig = Rig::new(Role::Initiator, Wwn(1));
    rig.act(RemotePort::begin);
    reject(&mut rig, reason::UNABLE, explanation::PORT_NAME);
    let told = "it rejects the login (PLOGI): unable to perform, invalid N_Port name (LS_RJT \
        09h/0dh)";
    assert_eq!(refusal(&rig), told);
    rig.wait();
    assert_eq!(refusal(&rig), told, "it is asked again");
    rig.plogi_accepted();
    rig.prli_accepted();
    assert_eq!(refusal(&rig), "");
}

#[test]
fn why_a_prli_is_rejected_is_kept() {
    let mut rig = Rig::new(Role::Initiator, Wwn(1));
    rig.lead_to(Stage::LoggedIn);
    reject(&mut rig, reason::LOGICAL_BUSY, 0);
    let told = "it rejects the process login (PRLI): busy (LS_RJT 05h/00h)";
    assert_eq!(refusal(&rig), told);
    rig.wait();
    let page = rig.page().answered(ServicePage::PRECLUDED);
    rig.answered(&Reply::Process(vec![page]));
    let told = "it makes no nexus by the process login (PRLI): a nexus of these two ports is \
        precluded (response code 5)";
    assert_eq!(refusal(&rig), told);
}

#[test]
fn a_plogi_that_crosses_its_own_is_not_refused() {
    let mut rig = Rig::new(Role::Initiator, Wwn(1));
    rig.act(RemotePort::begin);
    reject(&mut rig, reason::IN_PROGRESS, 0);
    assert_eq!(refusal(&rig), "");
}

/// The other end accepts our ADISC.
fn adisc_accepted(rig: &mut Rig) -> String {
    rig.answered(&Reply::Adisc(rig.other_end().adisc()))
}

/// A PLOGI that was given up, or a copy of one, has come to the target after the login: it has
/// begun a login anew, of which the initiator knows nothing.
#[test]
fn once_no_old_frame_can_come_an_initiator_asks_whether_its_login_holds() {
    let mut rig = up(Role::Initiator, Wwn(1));
    let since = rig.now;
    assert_eq!(rig.wait(), "ADISC");
    assert_eq!(rig.now, since + rig.local.r_a_tov);
    let told = reject(&mut rig, reason::UNABLE, explanation::LOGIN_REQUIRED);
    assert_eq!(told, "down: LoggedOut, PLOGI");
    rig.plogi_accepted();
    assert_eq!(rig.prli_accepted(), "up");
    assert_eq!(rig.wait(), "ADISC");
    assert_eq!(adisc_accepted(&mut rig), "");
    assert_eq!(rig.remote.deadline(), None, "once is enough");
}

#[test]
fn a_port_that_was_asked_too_early_is_asked_once_more() {
    let mut rig = up(Role::Initiator, Wwn(1));
    let certain = rig.now + rig.local.r_a_tov;
    rig.now += Duration::from_secs(1);
    assert_eq!(rig.act(RemotePort::state_changed), "ADISC");
    adisc_accepted(&mut rig);
    assert_eq!(rig.remote.deadline(), Some(certain));
}

#[test]
fn a_port_that_was_asked_in_vain_too_early_is_asked_once_more() {
    let mut rig = Rig::new(Role::Initiator, Wwn(1));
    rig.local.r_a_tov = Duration::from_secs(60);
    rig.lead_to(Stage::Up);
    let certain = rig.now + rig.local.r_a_tov;
    rig.act(RemotePort::state_changed);
    for sent in ["ADISC"; 4].into_iter().chain(["", "ADISC"]) {
        assert_eq!(rig.wait(), sent);
    }
    adisc_accepted(&mut rig);
    assert_eq!(rig.remote.deadline(), Some(certain));
}

#[test]
fn a_port_that_is_busy_is_asked_again_later() {
    let mut rig = up(Role::Initiator, Wwn(1));
    assert_eq!(rig.wait(), "ADISC");
    assert_eq!(reject(&mut rig, reason::LOGICAL_BUSY, 0), "");
    assert_eq!(rig.wait(), "ADISC");
    assert!(rig.remote.is_up());
}

#[test]
fn a_nexus_that_ends_while_its_login_is_verified_is_made_again() {
    let mut rig = up(Role::Initiator, Wwn(1));
    assert_eq!(rig.wait(), "ADISC");
    let page = ServicePage::fcp(FcpParameters(0));
    assert_eq!(
        rig.asked(9, Els::Prlo(vec![page])),
        "LS_ACC 01, down: LoggedOut"
    );
    adisc_accepted(&mut rig);
    assert_eq!(rig.wait(), "PRLI");
}

#[test]
fn a_port_that_does_not_answer_is_asked_again_later() {
    let mut rig = up(Role::Initiator, Wwn(1));
    for sent in ["ADISC"; 5].into_iter().chain(["", "ADISC"]) {
        assert_eq!(rig.wait(), sent);
    }
    assert!(rig.remote.is_up());
}
