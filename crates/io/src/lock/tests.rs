//! Two open file descriptions of one file.

use std::fs::{self, File};

use super::*;

#[test]
fn byte_is_locked_for_others_until_its_description_is_closed() {
    let path = std::env::temp_dir().join(format!("lunar-io-lock-{}", std::process::id()));
    fs::write(&path, []).unwrap();
    let [one, two] = [(); 2].map(|()| File::open(&path).unwrap());
    fs::remove_file(&path).unwrap();
    share_byte(&one, 100).unwrap();
    assert!(!is_byte_locked(&one, 100).unwrap(), "one's own is no other");
    assert!(is_byte_locked(&two, 100).unwrap());
    assert!(!is_byte_locked(&two, 101).unwrap());
    share_byte(&two, 100).unwrap();
    assert!(is_byte_locked(&one, 100).unwrap());
    drop(one);
    assert!(!is_byte_locked(&two, 100).unwrap());
}

#[test]
fn byte_that_no_file_can_have_is_refused() {
    let file = File::open("/dev/null").unwrap();
    assert!(is_byte_locked(&file, u64::MAX).is_err());
}
