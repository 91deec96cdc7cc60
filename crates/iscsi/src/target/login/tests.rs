use super::*;
use crate::keys::TABLE;

/// A value of each kind that differs from what the server chooses.
fn all() -> NodeLogin {
    NodeLogin {
        header_digest: Some(true),
        data_digest: Some(true),
        initial_r2t: Some(true),
        immediate_data: Some(false),
        data_segment: Some(8192),
        max_burst: Some(65_536),
        first_burst: Some(4096),
        time2wait: Some(3),
        outstanding_r2t: Some(2),
        pdu_in_order: Some(true),
        sequence_in_order: Some(true),
        sessions: Some(1),
    }
}

#[test]
fn a_node_without_values_chooses_as_the_server_does() {
    let limits = TargetLimits::default();
    let none = NodeLogin::default();
    assert_eq!(none.preferences(&limits), limits.preferences());
    assert!(TABLE.iter().all(|row| !none.sets(row.key)));
}

#[test]
fn each_value_of_a_node_takes_the_place_of_the_servers() {
    let limits = TargetLimits::default();
    let (ours, node) = (limits.preferences(), all().preferences(&limits));
    for row in &TABLE {
        let differs = ours.value(row.key) != node.value(row.key);
        assert_eq!(differs, all().sets(row.key), "{}", row.name);
    }
    assert_eq!(node.own_data_segment, 8192);
}

/// Data that nobody asked for has to be held.
#[test]
fn a_first_burst_is_not_longer_than_the_memory_of_a_session_allows() {
    let limits = TargetLimits::default();
    let node = NodeLogin {
        first_burst: Some(16_777_215),
        ..NodeLogin::default()
    };
    let most = limits.most_first_burst();
    assert_eq!(node.preferences(&limits).first_burst, most);
    assert_eq!(most, 1 << 20);
}
