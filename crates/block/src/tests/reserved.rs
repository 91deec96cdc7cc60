//! Every way into a folder that volumes must not be in.

use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::symlink;

use super::places::Folder;
use crate::error::VolumeError;
use crate::file::{FileOptions, FileVolume, ReservedPlaces};

/// `own` is reserved, and has a file; `else` is beside it.
fn folder() -> Folder {
    let folder = Folder::on_disk();
    fs::create_dir_all(folder.file("own/deep")).unwrap();
    fs::create_dir(folder.file("else")).unwrap();
    for name in ["own/tokens", "own/deep/secret", "else/disk"] {
        fs::write(folder.file(name), [7; 4096]).unwrap();
    }
    folder
}

fn open(folder: &Folder, name: &str, size: Option<u64>) -> Result<FileVolume, VolumeError> {
    FileVolume::open(&FileOptions {
        path: folder.file(name),
        size,
        sparse: true,
        reserved: ReservedPlaces::new([folder.file("nowhere"), folder.file("own")]),
        ..FileOptions::default()
    })
}

#[test]
fn no_way_leads_into_a_reserved_folder() {
    let folder = folder();
    let at = |name: &str| folder.file(name);
    symlink(at("own/tokens"), at("else/link")).unwrap();
    symlink("link", at("else/link-to-it")).unwrap();
    symlink(at("own"), at("else/folder")).unwrap();
    fs::hard_link(at("own/deep/secret"), at("else/hard")).unwrap();
    for name in [
        "own/tokens",
        "own/deep/secret",
        "else/../own/tokens",
        "else/link",
        "else/link-to-it",
        "else/folder/deep/../tokens",
        "else/hard",
    ] {
        let refused = open(&folder, name, None).unwrap_err();
        assert!(matches!(refused, VolumeError::Reserved(_)), "{name}");
        assert!(refused.to_string().contains("another folder"), "{refused}");
        // It is neither locked nor made longer.
        open(&folder, name, Some(1 << 20)).unwrap_err();
        assert_eq!(fs::read(at(name)).unwrap(), [7; 4096]);
    }
    open(&folder, "else/disk", None).unwrap();
}

#[test]
fn nothing_is_made_in_a_reserved_folder() {
    let folder = folder();
    symlink(folder.file("own"), folder.file("else/folder")).unwrap();
    for name in ["own/new", "own/deep/new", "else/folder/new"] {
        let refused = open(&folder, name, Some(4096)).unwrap_err();
        assert!(matches!(refused, VolumeError::Reserved(_)), "{name}");
        assert!(!folder.file(name).exists());
    }
    open(&folder, "else/new", Some(4096)).unwrap();
    let nowhere = open(&folder, "none/new", Some(4096)).unwrap_err();
    assert!(matches!(nowhere, VolumeError::NoDirectory));
}

/// A path that led elsewhere when it was looked at, as the opened file tells.
#[test]
fn the_open_file_counts_and_not_its_path() {
    let folder = folder();
    let reserved = ReservedPlaces::new([folder.file("own")]);
    let file = OwnedFd::from(fs::File::open(folder.file("own/tokens")).unwrap());
    fs::remove_file(folder.file("own/tokens")).unwrap();
    symlink("../else/disk", folder.file("own/tokens")).unwrap();
    reserved.refuse(&file).unwrap_err();
    let by_link = OwnedFd::from(fs::File::open(folder.file("own/tokens")).unwrap());
    reserved.refuse(&by_link).unwrap();
}

#[test]
fn a_single_file_can_be_reserved() {
    let folder = folder();
    let reserved = ReservedPlaces::new([folder.file("else/disk")]);
    let file = |name: &str| OwnedFd::from(fs::File::open(folder.file(name)).unwrap());
    reserved.refuse(&file("else/disk")).unwrap_err();
    reserved.refuse(&file("own/tokens")).unwrap();
}
