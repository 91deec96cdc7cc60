//! Who is heard: for how long, how many, and what is none.

use super::rig::*;
use crate::lldp::{Dcbx, LldpEvent, LldpMode, NEIGHBOURS_MAX};
use crate::wire::ethernet::{self, EthernetHeader, Mac, VlanTag};
use crate::wire::lldp::tlv;

#[test]
fn a_neighbour_is_there_as_long_as_it_said() {
    let mut agent = agent(config(1, LldpMode::Listen));
    hear(&mut agent, s(10), 2, 20);
    assert_eq!(told(&mut agent), [LldpEvent::Neighbours, LldpEvent::Dcbx]);
    assert_eq!(agent.neighbours()[0].to_string(), "02:00:00:00:00:02 swp1");
    hear(&mut agent, s(20), 2, 20);
    assert_eq!(told(&mut agent), [], "the same again");
    assert_eq!(agent.next_deadline(), Some(s(40)));
    agent.expire(s(39));
    assert_eq!(agent.neighbours().len(), 1);
    agent.expire(s(40));
    assert_eq!(agent.neighbours().len(), 0);
    assert_eq!(told(&mut agent), [LldpEvent::Neighbours, LldpEvent::Dcbx]);
    assert_eq!(agent.statistics().aged_out, 1);
}

#[test]
fn a_neighbour_that_takes_its_leave_is_gone() {
    let mut agent = agent(config(1, LldpMode::Listen));
    hear(&mut agent, s(1), 2, 120);
    hear(&mut agent, s(2), 3, 0);
    assert_eq!(
        agent.neighbours().len(),
        1,
        "another one, which was never there"
    );
    hear(&mut agent, s(2), 2, 0);
    assert_eq!(agent.neighbours().len(), 0);
}

#[test]
fn what_was_told_goes_with_the_link() {
    let mut agent = agent(config(1, LldpMode::Listen));
    hear(&mut agent, s(1), 2, 120);
    told(&mut agent);
    agent.link(s(2), false);
    assert_eq!(agent.neighbours().len(), 0);
    assert_eq!(told(&mut agent), [LldpEvent::Neighbours, LldpEvent::Dcbx]);
    hear(&mut agent, s(3), 2, 120);
    assert_eq!(agent.neighbours().len(), 0, "the link is down");
}

#[test]
fn more_than_one_are_named_and_end_dcbx() {
    let mut agent = agent(config(1, LldpMode::Listen));
    for (low, name) in [(2, &b"leaf1"[..]), (3, b"leaf\x1b2\0")] {
        let mut to = begun(low, 120);
        to.put(tlv::SYSTEM_NAME, &[name]);
        hear_bytes(&mut agent, s(1), low, &to.end()).unwrap();
    }
    let names: Vec<_> = agent.neighbours().iter().map(ToString::to_string).collect();
    let expected = [
        "leaf1 swp1 (02:00:00:00:00:02)",
        "leaf 2 swp1 (02:00:00:00:00:03)",
    ];
    assert_eq!(names, expected);
    assert_eq!(*agent.dcbx(), Dcbx::Crowded);
    hear(&mut agent, s(2), 3, 0);
    assert_eq!(*agent.dcbx(), Dcbx::NotSpoken);
}

/// Those that are heard last are kept; one that says so each 30 s is soon there again.
#[test]
fn of_a_thousand_the_latest_are_kept() {
    let mut agent = agent(config(1, LldpMode::Listen));
    for number in 0..1000 {
        hear(&mut agent, s(number.into()), 2 + number, u16::MAX);
        assert!(agent.neighbours().len() <= NEIGHBOURS_MAX);
    }
    assert_eq!(agent.statistics().crowded_out, 1000 - NEIGHBOURS_MAX as u64);
    let macs: Vec<_> = agent.neighbours().iter().map(|one| one.mac).collect();
    let latest = 1002 - NEIGHBOURS_MAX as u16..1002;
    assert_eq!(macs, latest.map(mac).collect::<Vec<_>>());
    assert_eq!(*agent.dcbx(), Dcbx::Crowded);
    assert_eq!(told(&mut agent).len(), 2, "what changed is told once");
}

#[test]
fn our_own_address_is_another_agents() {
    let mut agent = agent(config(1, LldpMode::Listen));
    let error = hear_bytes(&mut agent, s(1), 1, &begun(7, 120).end()).unwrap_err();
    assert!(error.rule.contains("another agent"), "{error}");
    let statistics = agent.statistics();
    assert_eq!((statistics.from_our_address, statistics.refused), (1, 1));
    assert_eq!(agent.neighbours().len(), 0);
}

#[test]
fn what_breaks_a_rule_is_told_and_changes_nothing() {
    let mut agent = agent(config(1, LldpMode::Listen));
    let whole = begun(2, 120).end();
    let rule = |bytes: &[u8]| {
        let mut agent = super::rig::agent(config(1, LldpMode::Listen));
        hear_bytes(&mut agent, s(1), 2, bytes).unwrap_err().rule
    };
    assert!(rule(&whole[..8]).contains("truncated"));
    assert!(rule(&whole[9..]).contains("does not begin"));
    assert!(rule(&[&whole[..whole.len() - 2], &whole].concat()).contains("second"));
    hear(&mut agent, s(1), 2, 120);
    assert!(hear_bytes(&mut agent, s(2), 2, &whole[..8]).is_err());
    assert_eq!(
        (agent.neighbours().len(), agent.statistics().refused),
        (1, 1)
    );
}

#[test]
fn tags_and_other_groups_are_not_of_this_agent() {
    let mut agent = agent(config(1, LldpMode::Listen));
    let tagged = |vid| EthernetHeader {
        vlan: Some(VlanTag::decode(vid)),
        ..EthernetHeader::new(mac(2), Mac::NEAREST_BRIDGE, ethernet::LLDP)
    };
    let payload = begun(2, 120).end();
    let elsewhere = EthernetHeader::new(mac(2), mac(1), ethernet::LLDP);
    for header in [tagged(5), elsewhere] {
        agent.receive(s(1), &header, &payload).unwrap();
        assert_eq!(agent.statistics().received, 0);
    }
    agent.receive(s(1), &tagged(0x6000), &payload).unwrap();
    assert_eq!(agent.neighbours().len(), 1, "a priority alone is no VLAN");
}
