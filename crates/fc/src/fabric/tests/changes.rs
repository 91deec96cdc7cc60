//! What changes about a switch while it runs.

use super::rig::{fcoe_frame, host, ms, receive, sent, switch, told};
use crate::fabric::{DropReason, PortNumber, Verdict};
use crate::wire::names::{FcId, Wwn};

#[test]
fn a_smaller_mtu_has_those_at_the_port_log_in_anew_with_shorter_frames() {
    let mut switch = switch();
    let (a, b) = (host(0, 1), host(1, 2));
    let (from, to) = (a.log_in(&mut switch, 1), b.log_in(&mut switch, 1));
    let long = || fcoe_frame(0, from, to, 2112);
    let is_forwarded = |verdict| matches!(verdict, Verdict::Forward(_));
    assert!(is_forwarded(receive(&mut switch, 2, 0, &mut long())));
    told(&mut switch);
    switch.resize(ms(3), PortNumber(1), 1500);
    assert_eq!(told(&mut switch), ["010101 out, SmallerMtu"]);
    assert_eq!(sent(&mut switch, 1).len(), 1, "Clear Virtual Links");
    assert_eq!(b.log_in(&mut switch, 4), to);
    let too_long = Verdict::Dropped(DropReason::TooLong);
    assert_eq!(receive(&mut switch, 5, 0, &mut long()), too_long);
    let mut short = fcoe_frame(0, from, to, 1448);
    assert!(is_forwarded(receive(&mut switch, 5, 0, &mut short)));
    told(&mut switch);
    switch.resize(ms(6), PortNumber(1), 2500);
    assert!(told(&mut switch).is_empty(), "they stay");
    assert!(is_forwarded(receive(&mut switch, 7, 0, &mut long())));
    switch.resize(ms(7), PortNumber(7), 2500);
}

#[test]
fn a_login_after_the_change_has_the_frame_size_of_the_new_mtu() {
    let mut switch = switch();
    switch.resize(ms(0), PortNumber(0), 1500);
    host(0, 1).log_in(&mut switch, 1);
    let login = switch.logins().next().unwrap();
    assert_eq!(login.max_payload, 1452);
}

#[test]
fn n_port_ids_of_another_switch_are_taken_over_but_for_those_in_use() {
    let mut switch = switch();
    let remembered = |low: u32| [(host(0, 1).wwpn, FcId(0x01_0000 | low))];
    switch.restore_ids(&remembered(0x0300));
    let fc_id = host(0, 1).log_in(&mut switch, 1);
    assert_eq!(fc_id, FcId(0x01_0300));
    switch.restore_ids(&[(Wwn(7), fc_id), (host(0, 2).wwpn, FcId(0x01_0400))]);
    let late = (host(0, 2).wwpn, FcId(0x01_0400));
    let all = [remembered(0x0300)[0], late];
    assert_eq!(switch.ids().collect::<Vec<_>>(), all);
    assert_eq!(host(0, 2).log_in(&mut switch, 2), late.1);
}
