//! A file and its copies.

use std::fs;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{InodeKey, NAME, StoredIdentity, of};

/// A folder on the disk, which goes when the test ends.
struct Folder(PathBuf);

impl Folder {
    fn new(parent: &Path, name: &str) -> Self {
        let path = parent.join(format!("lunar-identity-{}-{name}", std::process::id()));
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    fn file(&self, name: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, [7; 4096]).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn opened(path: &Path) -> OwnedFd {
    let file = fs::OpenOptions::new().read(true).write(true).open(path);
    file.unwrap().into()
}

fn identity(path: &Path, keep: bool) -> Option<String> {
    of(&opened(path), path, keep)
}

fn kept(path: &Path) -> Option<StoredIdentity> {
    StoredIdentity::read(&opened(path))
}

#[test]
fn it_stays_when_the_file_is_renamed_grows_and_is_opened_for_reading() {
    let folder = Folder::new(&std::env::temp_dir(), "stays");
    let (path, other) = (folder.file("disk"), folder.0.join("other"));
    let first = identity(&path, true).unwrap();
    fs::rename(&path, &other).unwrap();
    fs::OpenOptions::new()
        .write(true)
        .open(&other)
        .unwrap()
        .set_len(1 << 20)
        .unwrap();
    assert_eq!(identity(&other, false).as_ref(), Some(&first));
    assert_eq!(identity(&other, true), Some(first));
}

#[test]
fn looking_at_a_file_leaves_it_as_it_is() {
    let folder = Folder::new(&std::env::temp_dir(), "looks");
    let path = folder.file("disk");
    let seen = identity(&path, false);
    assert_eq!(kept(&path), None);
    assert_eq!(seen, identity(&path, false));
}

/// `cp -a` copies extended attributes.
#[test]
fn a_copy_is_another_one() {
    let folder = Folder::new(&std::env::temp_dir(), "copied");
    let (path, copy) = (folder.file("disk"), folder.0.join("copy"));
    let first = identity(&path, true);
    let done = Command::new("cp").arg("-a").args([&path, &copy]).status();
    assert!(done.unwrap().success());
    let carried = kept(&copy).map(|kept| kept.id);
    assert_eq!(
        carried,
        kept(&path).map(|kept| kept.id),
        "the attribute came along"
    );
    assert_ne!(identity(&copy, false), first, "opened for reading");
    assert_ne!(identity(&copy, true), first);
    assert_eq!(identity(&copy, false), identity(&copy, true), "and is kept");
    assert_eq!(identity(&path, true), first, "the original is what it was");
}

/// As on a file system that takes no extended attributes.
#[test]
fn a_file_without_attributes_has_one_too() {
    let folder = Folder::new(&std::env::temp_dir(), "without");
    let (path, other) = (folder.file("disk"), folder.file("other"));
    let read = |path| {
        let file: OwnedFd = fs::File::open(path).unwrap().into();
        of(&file, path, false).unwrap()
    };
    assert_eq!(read(&path), read(&path));
    assert_ne!(read(&path), read(&other));
}

#[test]
fn a_file_in_memory_has_one() {
    let folder = Folder::new(Path::new("/dev/shm"), "memory");
    let path = folder.file("disk");
    let first = identity(&path, true);
    assert!(first.is_some());
    assert_eq!(first, identity(&path, false));
}

const HERE: InodeKey = InodeKey {
    inode: 12,
    born: Some((1_795_395_949, 248_183_162)),
    subvolume: 0,
    device: (254, 0),
};

#[test]
fn what_is_kept_is_read_as_it_was_written() {
    let id = "0123456789abcdef".repeat(2);
    for born in [HERE.born, None] {
        let place = InodeKey { born, ..HERE };
        let kept = StoredIdentity {
            id: id.clone(),
            place,
        };
        let read = StoredIdentity::parse(&kept.text()).unwrap();
        assert!(read.place.matches(&place) && read.id == id, "{read:?}");
    }
    for wrong in [
        "",
        "1",
        "2 a 1 - 0",
        "1 xyz 1 - 0",
        &format!("1 {id} 1 5 0"),
        "1 \u{e9} 1 - 0",
    ] {
        assert_eq!(StoredIdentity::parse(wrong), None, "{wrong:?}");
    }
}

#[test]
fn a_place_is_an_inode_and_when_it_was_made() {
    let others = [
        InodeKey { inode: 13, ..HERE },
        InodeKey {
            born: Some((1_795_395_949, 248_183_163)),
            ..HERE
        },
        InodeKey {
            subvolume: 5,
            ..HERE
        },
    ];
    for other in others {
        assert!(!HERE.matches(&other), "{other:?}");
        assert_ne!(HERE.id(Some("m")), other.id(Some("m")), "{other:?}");
    }
    let moved = InodeKey {
        device: (8, 1),
        ..HERE
    };
    assert!(HERE.matches(&moved), "disks get other numbers at each boot");
    assert_eq!(HERE.id(Some("m")), moved.id(Some("m")));
    assert!(HERE.matches(&InodeKey { born: None, ..HERE }));
}

#[test]
fn machines_have_different_files_at_one_place() {
    assert_ne!(HERE.id(Some("a")), HERE.id(Some("b")));
    assert_eq!(HERE.lasting_id(None), None, "drawn, without a machine-id");
    let unborn = InodeKey { born: None, ..HERE };
    assert_eq!(
        unborn.lasting_id(Some("a")),
        None,
        "an inode number comes again"
    );
    assert_eq!(unborn.id(None), None);
}

#[test]
fn what_somebody_else_put_into_the_attribute_counts_for_nothing() {
    let folder = Folder::new(&std::env::temp_dir(), "garbage");
    let path = folder.file("disk");
    let first = identity(&path, true);
    for garbage in [&b""[..], b"1 2 3", &[0xff; 300]] {
        let flags = rustix::fs::XattrFlags::empty();
        rustix::fs::fsetxattr(opened(&path), NAME, garbage, flags).unwrap();
        assert!(identity(&path, true).is_some());
        assert!(kept(&path).is_some(), "{garbage:?}");
    }
    assert!(first.is_some());
}
