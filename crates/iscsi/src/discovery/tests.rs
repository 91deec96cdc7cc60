use super::*;
use crate::parameters::Operational;
use crate::target::{IserPortals, NodeAccess, TargetLimits};
use crate::test_support;

fn node(letter: char) -> Arc<TargetNode> {
    let name = format!("iqn.2026-11.org.lunar:{letter}");
    Arc::new(TargetNode::new(name, NodeAccess::default()))
}

fn parameters(purpose: SessionPurpose, local: &str) -> Parameters {
    let mut parameters = test_support::parameters(Operational::default(), purpose, (1, 1));
    parameters.endpoints.local = local.parse().unwrap();
    parameters
}

fn config(portals: &[&str], advertise: &[&str]) -> TargetConfig {
    TargetConfig {
        nodes: vec![],
        portals: portals
            .iter()
            .map(|portal| portal.parse().unwrap())
            .collect(),
        iser: IserPortals::default(),
        advertise: advertise.iter().map(|&address| address.into()).collect(),
        limits: TargetLimits::default(),
    }
}

fn answer(value: &str, parameters: &Parameters, advertise: &[&str]) -> Result<String, KeyMisuse> {
    answer_of(value, parameters, &config(&[], advertise))
}

fn answer_of(
    value: &str,
    parameters: &Parameters,
    config: &TargetConfig,
) -> Result<String, KeyMisuse> {
    let mut out = Text::default();
    send_targets(value, parameters, config, &mut out)?;
    let text = String::from_utf8(out.next_segment(u32::MAX).0.to_vec()).unwrap();
    Ok(text.replace('\0', " ").trim_end().to_owned())
}

fn discovery() -> Parameters {
    parameters(
        SessionPurpose::Discovery(vec![node('a'), node('b')]),
        "10.9.0.1:3260",
    )
}

const A: &str = "TargetName=iqn.2026-11.org.lunar:a TargetAddress=10.9.0.1:3260,1";
const B: &str = "TargetName=iqn.2026-11.org.lunar:b TargetAddress=10.9.0.1:3260,1";

#[test]
fn a_discovery_is_told_of_all_or_of_one() {
    let told = |value| answer(value, &discovery(), &[]).unwrap();
    assert_eq!(told("All"), format!("{A} {B}"));
    assert_eq!(told("iqn.2026-11.org.lunar:b"), B);
    assert_eq!(told("IQN.2026-11.org.lunar:B"), B);
    assert_eq!(
        told("iqn.2026-11.org.lunar:c"),
        "",
        "hidden and absent look alike"
    );
    assert_eq!(told(""), "", "it is with no target");
}

#[test]
fn a_discovery_without_targets_is_told_nothing() {
    let nothing = parameters(SessionPurpose::Discovery(vec![]), "10.9.0.1:3260");
    assert_eq!(answer("All", &nothing, &[]).unwrap(), "");
}

#[test]
fn a_normal_session_is_told_of_its_own_target_only() {
    let normal = parameters(SessionPurpose::Normal(node('a')), "10.9.0.1:3260");
    let told = |value| answer(value, &normal, &[]).unwrap();
    assert_eq!(told(""), A);
    assert_eq!(told("All"), A);
    assert_eq!(told("iqn.2026-11.org.lunar:a"), A);
    assert_eq!(told("iqn.2026-11.org.lunar:b"), "");
}

#[test]
fn other_values_are_misuse() {
    for value in ["Alle", "A", "aLL", "all", " ", "iqn.", "All,All", "eui.1"] {
        assert_eq!(
            answer(value, &discovery(), &[]),
            Err(KeyMisuse::Inadmissible),
            "{value:?}"
        );
    }
}

#[test]
fn the_address_is_the_one_that_the_connection_came_to() {
    for (local, told) in [
        ("192.0.2.7:3261", " TargetAddress=192.0.2.7:3261,1"),
        ("[2001:db8::7]:3260", " TargetAddress=[2001:db8::7]:3260,1"),
        ("[fe80::7%3]:3260", " TargetAddress=[fe80::7]:3260,1"),
        ("[::ffff:192.0.2.7]:3260", " TargetAddress=192.0.2.7:3260,1"),
        ("0.0.0.0:3260", ""),
        ("[::]:3260", ""),
    ] {
        let session = parameters(SessionPurpose::Normal(node('a')), local);
        let expected = format!("TargetName=iqn.2026-11.org.lunar:a{told}");
        assert_eq!(answer("", &session, &[]).unwrap(), expected, "{local}");
    }
}

#[test]
fn advertised_addresses_take_its_place() {
    let told = answer(
        "iqn.2026-11.org.lunar:a",
        &discovery(),
        &["san.example.com:860", "[2001:db8::1]:3260"],
    );
    assert_eq!(
        told.unwrap(),
        "TargetName=iqn.2026-11.org.lunar:a TargetAddress=san.example.com:860,1 \
         TargetAddress=[2001:db8::1]:3260,1"
    );
}

/// RFC 7143 Appendix C: all path information of the targets that the initiator may use.
#[test]
fn every_portal_that_the_initiator_can_use_is_told() {
    let bound = [
        "10.9.0.1:3260",
        "10.9.1.1:3260",
        "127.0.0.1:3260",
        "[2001:db8::1]:3260",
        "[fe80::1%2]:3260",
        "0.0.0.0:3261",
    ];
    for (local, told) in [
        (
            "10.9.1.1:3260",
            "10.9.1.1:3260 10.9.0.1:3260 [2001:db8::1]:3260 10.9.1.1:3261",
        ),
        (
            "[2001:db8::1]:3260",
            "[2001:db8::1]:3260 10.9.0.1:3260 10.9.1.1:3260",
        ),
        (
            "127.0.0.1:3260",
            "127.0.0.1:3260 10.9.0.1:3260 10.9.1.1:3260 [2001:db8::1]:3260 127.0.0.1:3261",
        ),
        (
            "[fe80::1%2]:3260",
            "[fe80::1]:3260 10.9.0.1:3260 10.9.1.1:3260 [2001:db8::1]:3260",
        ),
    ] {
        let session = parameters(SessionPurpose::Normal(node('a')), local);
        let answer = answer_of("", &session, &config(&bound, &[])).unwrap();
        let addresses = answer.split(' ').skip(1);
        let expected = told
            .split(' ')
            .map(|portal| format!("TargetAddress={portal},1"));
        assert!(addresses.eq(expected), "{local}: {answer}");
    }
}

/// A node with these portals, in groups.
fn grouped(groups: &[(u16, &[&str])]) -> Arc<TargetNode> {
    let group = |&(tag, portals): &(u16, &[&str])| PortalGroup {
        tag,
        port: tag,
        portals: portals.iter().map(|one| one.parse().unwrap()).collect(),
    };
    let groups = groups.iter().map(group);
    Arc::new(TargetNode {
        portal_groups: groups.collect(),
        ..TargetNode::clone(&node('c'))
    })
}

#[test]
fn a_target_is_told_with_its_own_portals_and_their_tags() {
    let portals = [
        "10.9.0.1:3260",
        "10.9.0.2:3260",
        "10.9.0.3:3261",
        "127.0.0.1:3260",
    ];
    let all = config(&portals, &[]);
    let own = grouped(&[
        (1, &["10.9.0.2:3260"]),
        (6, &["10.9.0.3:3261", "0.0.0.0:3262"]),
    ]);
    let hidden = grouped(&[(1, &["127.0.0.1:3260"])]);
    let nodes = vec![node('b'), own, hidden];
    let told = |local| {
        let asking = parameters(SessionPurpose::Discovery(nodes.clone()), local);
        answer_of("All", &asking, &all).unwrap()
    };
    let name = "TargetName=iqn.2026-11.org.lunar:c";
    assert_eq!(
        told("10.9.0.1:3260"),
        format!(
            "{B} TargetAddress=10.9.0.2:3260,1 TargetAddress=10.9.0.3:3261,1 \
             {name} TargetAddress=10.9.0.2:3260,1 TargetAddress=10.9.0.3:3261,6 \
             TargetAddress=10.9.0.1:3262,6"
        ),
        "it is not at the portal that is asked, and one is not to be reached from there"
    );
    let second = told("10.9.0.3:3261");
    let first = format!("{name} TargetAddress=10.9.0.3:3261,6 TargetAddress=10.9.0.3:3262,6");
    assert!(
        second.contains(&first),
        "the group that was asked comes first: {second}"
    );
}

#[test]
fn an_address_to_advertise_has_the_tag_of_a_portal_group() {
    let nodes = vec![grouped(&[(1, &["10.9.0.2:3260"]), (6, &["10.9.0.1:3260"])])];
    let asking = parameters(SessionPurpose::Discovery(nodes), "10.9.0.1:3260");
    let told = answer("All", &asking, &["192.0.2.7:3260"]).unwrap();
    assert_eq!(
        told,
        "TargetName=iqn.2026-11.org.lunar:c TargetAddress=192.0.2.7:3260,6"
    );
}
