//! Opening: what there is, what is refused and how, and what is not built yet.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use io::memory::MemoryLimit;

use super::{Address, Cause, OpenOptions};

fn options() -> OpenOptions {
    OpenOptions {
        block_size: None,
        read_only: false,
        memory: Arc::new(MemoryLimit::new(1 << 30)),
    }
}

/// A folder that goes when the test ends.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!(
            "lunar-open-{}-{}",
            std::process::id(),
            COUNT.fetch_add(1, Relaxed)
        );
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).unwrap();
        Self(path)
    }

    fn file(&self, rest: &str) -> String {
        format!("file:{}/{rest}", self.0.display())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn traits(address: &str, options: &OpenOptions) -> scsi::medium::Traits {
    let address: Address = address.parse().unwrap();
    let volume = address
        .open(options)
        .unwrap_or_else(|error| panic!("{error}"));
    volume.traits()
}

fn refusal(address: &str) -> String {
    let address: Address = address.parse().unwrap();
    match address.open(&options()) {
        Ok(volume) => panic!("{address} opens as {volume:?}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn sizes_become_blocks() {
    let ram = traits("ram:1G", &options());
    assert_eq!(
        (ram.block_size, ram.blocks, ram.physical_exponent),
        (512, 2 << 20, 3)
    );
    let null = OpenOptions {
        block_size: Some(4096),
        ..options()
    };
    let null = traits("null:1T", &null);
    assert_eq!(
        (null.block_size, null.blocks, null.physical_exponent),
        (4096, 256 << 20, 0)
    );
}

#[test]
fn a_file_is_created_by_its_size_and_opened_without() {
    let folder = Folder::new();
    let created = traits(&folder.file("a?size=1M&sparse"), &options());
    let opened = traits(&folder.file("a"), &options());
    assert_eq!(created.blocks, 2048);
    assert_eq!(opened.blocks, 2048);
}

#[test]
fn everything_can_be_protected() {
    let folder = Folder::new();
    let protected = OpenOptions {
        read_only: true,
        ..options()
    };
    for address in [
        "ram:1M",
        "readonly(ram:1M)",
        &folder.file("a?size=1M"),
        &folder.file("a"),
    ] {
        assert!(traits(address, &protected).read_only, "{address}");
    }
    assert!(traits("readonly(readonly(null:1M))", &options()).read_only);
    assert!(traits(&folder.file("a?readonly"), &options()).read_only);
}

#[test]
fn a_refusal_names_the_address_the_cause_and_the_way_out() {
    assert_eq!(
        refusal("file:/nowhere-at-all"),
        "file:/nowhere-at-all: no such file; give ?size=10G to create it"
    );
    assert_eq!(
        refusal("readonly(block:/dev/nothing)"),
        "block:/dev/nothing: no such device"
    );
    assert_eq!(
        refusal("file:/dev/null"),
        "file:/dev/null: this is neither a file nor a block device"
    );
    assert_eq!(
        refusal("ram:511"),
        "ram:511: 511 octets hold not a single block of 512"
    );
}

#[test]
fn what_is_not_built_yet_says_so() {
    for (address, name) in [
        ("scsi:/dev/sg0", "scsi"),
        ("rbd:pool/image", "rbd"),
        ("iscsi://host/iqn.a", "iscsi"),
        ("stripe:64k(ram:1G,ram:1G)", "stripe"),
        ("limit:iops=1(ram:1G)", "limit"),
    ] {
        let address: Address = address.parse().unwrap();
        let error = address.open(&options()).unwrap_err();
        assert!(
            matches!(error.cause, Cause::NotBuilt(n) if n == name),
            "{error}"
        );
    }
}
