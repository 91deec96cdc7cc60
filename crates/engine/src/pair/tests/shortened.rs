//! A source that others make shorter while it is copied: what was there reads as zeros, which is no
//! copy of it.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use ::io::memory::MemoryLimit;
use scsi::medium::MediumError;

use crate::address::OpenOptions;
use crate::pair::{self, Failure, Manner, Options, Side};
use crate::remote::IdlePorts;

const LEN: u64 = 4 << 20;
const LEFT: u64 = 1 << 20;

/// A folder that goes when the test ends.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn options(folder: &Folder) -> Options {
    let file = |name| format!("file:{}/{name}", folder.0.display());
    Options {
        a: file("a").parse().unwrap(),
        b: file("b").parse().unwrap(),
        depth: 1,
        open: OpenOptions {
            initiator: "iqn.2026-11.org.lunar.test:initiator".into(),
            secret: None,
            mutual_secret: None,
            ports: IdlePorts::default(),
            block_size: None,
            read_only: false,
            memory: Arc::new(MemoryLimit::new(1 << 30)),
        },
        state_dir: Some(folder.0.join("state")),
    }
}

#[test]
fn a_source_that_others_shorten_is_not_copied() {
    let name = format!("lunar-shortened-{}", std::process::id());
    let folder = Folder(std::env::temp_dir().join(name));
    fs::create_dir(&folder.0).unwrap();
    let data: Vec<u8> = (0..LEN).map(|at| (at >> 9) as u8 | 1).collect();
    let source = folder.0.join("a");
    fs::write(&source, &data).unwrap();
    let options = options(&folder);
    let mut shorten = |_: &_| {
        let file = fs::File::options().write(true).open(&source);
        file.unwrap().set_len(LEFT).unwrap();
        true
    };
    let copied = pair::copy(&options, Manner::default(), &mut shorten).unwrap();
    let (at, error) = (Some(LEFT), MediumError::Gone);
    let side = Side::A;
    assert_eq!(copied.failure, Some(Failure { side, at, error }));
    assert_eq!(copied.durable, LEFT);

    // As it was, it is copied on from there.
    fs::write(&source, &data).unwrap();
    let resume = Manner {
        resume: true,
        ..Manner::default()
    };
    let copied = pair::copy(&options, resume, &mut |_| true).unwrap();
    assert!(copied.is_complete(), "{copied:?}");
    assert!(fs::read(folder.0.join("b")).unwrap() == data);
}
