//! Names that go and come back, and locks of two open file descriptions of one file.

use std::fs::{self, File};
use std::os::unix::fs::symlink;

use super::*;

#[test]
fn path_leads_to_a_file_until_another_one_has_its_name() {
    let folder = std::env::temp_dir().join(format!("lunar-io-path-{}", std::process::id()));
    fs::create_dir(&folder).unwrap();
    let path = folder.join("file");
    let file = File::create(&path).unwrap();
    assert!(leads_to(&path, &file).unwrap());
    sync_parent(&path).unwrap();
    fs::rename(&path, folder.join("other")).unwrap();
    assert!(!leads_to(&path, &file).unwrap());
    symlink("other", &path).unwrap();
    assert!(!leads_to(&path, &file).unwrap(), "a link is not the file");
    assert!(!leads_to(&folder.join("other/none"), &file).unwrap());
    fs::remove_dir_all(&folder).unwrap();
    assert_eq!(sync_parent(&path), Err(Errno::NOENT));
}

#[test]
fn name_without_a_folder_is_in_the_current_one() {
    sync_parent(Path::new("name")).unwrap();
}

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
