//! What a copy that cannot begin leaves behind.

use std::fs;

use crate::open::REPLACEMENT;
use crate::open::tests::{self as open_tests, Folder};
use crate::pair::{self, CopyOptions, PairError, PairOptions};

/// Copies the file `a` to `b`, in which `{}` stands for the folder.
fn refused(folder: &Folder, b: &str) -> PairError {
    let place = folder.0.display().to_string();
    let options = PairOptions {
        a: format!("file:{place}/a").parse().unwrap(),
        b: b.replace("{}", &place).parse().unwrap(),
        depth: 1,
        open: open_tests::options(),
        state_dir: None,
        timeout: REPLACEMENT,
    };
    pair::copy(&options, CopyOptions::default(), &mut |_| true).unwrap_err()
}

#[test]
fn a_destination_that_is_too_small_is_what_it_was() {
    let folder = Folder::new();
    fs::write(folder.0.join("a"), [1; 8 << 10]).unwrap();
    fs::write(folder.0.join("b"), [2; 512]).unwrap();
    let error = refused(&folder, "file:{}/b?size=4k");
    assert!(matches!(error, PairError::Misfit(_)), "{error}");
    assert_eq!(fs::read(folder.0.join("b")).unwrap(), [2; 512]);
}

#[test]
fn parts_of_a_destination_that_cannot_be_opened_are_not_left_behind() {
    let folder = Folder::new();
    fs::write(folder.0.join("a"), [1; 8 << 10]).unwrap();
    refused(&folder, "concat(file:{}/b?size=8k,file:{}/none)");
    assert!(!folder.0.join("b").exists());
}
