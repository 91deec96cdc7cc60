use super::*;

#[test]
fn fio_is_understood() {
    let text = r#"{"fio version": "fio-3.39", "jobs": [{
        "read": {"iops": 250000.5, "clat_ns": {"percentile": {
            "50.000000": 12000, "95.000000": 15000, "99.000000": 31000}}},
        "write": {"iops": 0.0, "clat_ns": {"min": 0}}}]}"#;
    let said = serde_json::from_str(text).unwrap();
    let read = figures(&said, false, 0.5).unwrap();
    assert_eq!(
        (read.iops, read.p50_us, read.p99_us),
        (250_000.5, 12.0, 31.0)
    );
    assert_eq!(read.target_us, Some(0.5e6 / 250_000.5));
    let written = figures(&said, true, 0.0).unwrap();
    assert_eq!((written.iops, written.target_us), (0.0, None));
}
