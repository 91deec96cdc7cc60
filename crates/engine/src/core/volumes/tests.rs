//! What the log is told of looks that fail.

use std::io::{self, ErrorKind};

use scsi::unit::UnitId;

use super::VolumeWatch;

const UNIT: UnitId = UnitId::first(3);

#[test]
fn a_failure_is_told_once_until_it_changes() {
    let mut looks = VolumeWatch::default();
    let mut told = |failed: Option<ErrorKind>| {
        assert!(looks.begin(UNIT) && !looks.begin(UNIT));
        let failed = failed.map(io::Error::from);
        looks.end(UNIT, failed.as_ref()).is_some()
    };
    let (denied, stale) = (
        ErrorKind::PermissionDenied,
        ErrorKind::StaleNetworkFileHandle,
    );
    let each = [
        Some(denied),
        Some(denied),
        Some(stale),
        Some(stale),
        None,
        Some(stale),
    ];
    let expected = [true, false, true, false, false, true];
    assert_eq!(each.map(&mut told), expected);
}
