//! What is written as a list, and is to be a table.

use crate::tree::{GroupRow, SwitchRow, TargetRow, Tree, VolumeRow};

#[test]
fn a_list_in_place_of_a_table_is_refused() {
    let refusals = [
        serde_json::from_str::<VolumeRow>(r#"["ram:1M"]"#).unwrap_err(),
        serde_json::from_str::<VolumeRow>(r#"{"address": "ram:1M", "limit": ["20k"]}"#)
            .unwrap_err(),
        serde_json::from_str::<TargetRow>(r#"{"login": [null, null]}"#).unwrap_err(),
        serde_json::from_str::<SwitchRow>(r#"[["eth1"]]"#).unwrap_err(),
        serde_json::from_str::<GroupRow>(r#"{"chap": ["user", "file:/a"]}"#).unwrap_err(),
        serde_json::from_str::<Tree>(r#"{"version": 1, "volume": {"a": ["ram:1M"]}}"#).unwrap_err(),
        serde_json::from_str::<Tree>(r#"{"version": 1, "daemon": [2]}"#).unwrap_err(),
    ];
    for refusal in refusals {
        let refusal = refusal.to_string();
        assert!(
            refusal.contains("invalid type: sequence, expected a table"),
            "{refusal}"
        );
    }
}

#[test]
fn a_table_that_is_null_is_missing() {
    let row: VolumeRow = serde_json::from_str(r#"{"address": "ram:1M", "limit": null}"#).unwrap();
    assert_eq!(row.limit, None);
}
