//! Opening: what there is, what is refused and how, and what is not built yet.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use block::file::ReservedPlaces;
use io::memory::MemoryLimit;
use iscsi::auth::Hash;
use iscsi::initiator::config::{Auth, HASHES};

use super::{Address, LeafReuse, OpenCause, OpenOptions, REPLACEMENT, portal_of};
use crate::open;
use crate::remote::IdlePorts;

/// What tests open volumes with.
pub(crate) fn options() -> OpenOptions {
    OpenOptions {
        initiator: "iqn.2026-11.org.lunar.test:initiator".into(),
        secret: None,
        mutual_secret: None,
        ports: IdlePorts::default(),
        replacement: REPLACEMENT,
        wait_until: None,
        reuse: None,
        block_size: None,
        read_only: false,
        as_is: false,
        keep_identity: false,
        reserved: ReservedPlaces::default(),
        undo: None,
        memory: Arc::new(MemoryLimit::new(1 << 30)),
    }
}

/// A folder that goes when the test ends.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!(
            "lunar-open-{}-{}",
            std::process::id(),
            COUNT.fetch_add(1, Relaxed)
        );
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    fn file(&self, rest: &str) -> String {
        format!("file:{}/{rest}", self.0.display())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn traits(address: &str, options: &OpenOptions) -> scsi::medium::Traits {
    let address: Address = address.parse().unwrap();
    let volume = open::volume(&address, options).unwrap_or_else(|error| panic!("{error}"));
    volume.traits()
}

fn refusal(address: &str) -> String {
    let address: Address = address.parse().unwrap();
    match open::volume(&address, &options()) {
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
    traits(&folder.file("a?size=1M"), &options());
    for address in [
        "ram:1M",
        "readonly(ram:1M)",
        &folder.file("a?size=1M"),
        &folder.file("a?size=512k"),
        &folder.file("a"),
    ] {
        assert!(traits(address, &protected).read_only, "{address}");
    }
    assert!(traits("readonly(readonly(null:1M))", &options()).read_only);
    assert!(traits(&folder.file("a?readonly"), &options()).read_only);
}

#[test]
fn what_is_only_read_is_neither_created_nor_extended() {
    let folder = Folder::new();
    let (read_only, as_is) = (true, true);
    let (usual, looks) = (options(), OpenOptions { as_is, ..options() });
    let reads = OpenOptions {
        read_only,
        ..options()
    };
    let refused = |address: &str, options: &OpenOptions| {
        let address: Address = address.parse().unwrap();
        open::volume(&address, options).unwrap_err().to_string()
    };
    let protected = format!("readonly({})", folder.file("a?size=1M"));
    let plain = folder.file("a?size=1M");
    let cases = [(&protected, &usual), (&plain, &reads), (&plain, &looks)];
    for (address, options) in cases {
        let line = refused(address, options);
        assert!(line.contains("no such file, and none is created"), "{line}");
        assert!(!folder.0.join("a").exists());
    }
    fs::write(folder.0.join("a"), [1; 4096]).unwrap();
    for (address, options) in cases {
        let line = refused(address, options);
        assert!(
            line.contains("it has 4096 bytes, fewer than the 1048576"),
            "{line}"
        );
        assert_eq!(fs::metadata(folder.0.join("a")).unwrap().len(), 4096);
    }
}

#[test]
fn a_refusal_names_the_address_the_cause_and_the_way_out() {
    assert_eq!(
        refusal("file:/nowhere-at-all"),
        "file:/nowhere-at-all: no such file; check its name, or give ?size=10G to create it"
    );
    assert_eq!(
        refusal("readonly(block:/dev/nothing)"),
        "block:/dev/nothing: no such device"
    );
    assert_eq!(
        refusal("file:/dev/null"),
        "file:/dev/null: this is neither a file nor a block device; name one that is"
    );
}

#[test]
fn what_is_not_built_yet_says_so() {
    let built = address::built();
    for address in [
        "ram:1M",
        "null:1M",
        "file:/nowhere",
        "block:/nowhere",
        "scsi:/dev/sg0",
        "rbd:pool/image",
        "iscsi://127.0.0.1:1/iqn.2026-11.org.lunar.test:none",
        "iser://127.0.0.1:1/iqn.2026-11.org.lunar.test:none",
        "fcoe://lunar-none/20:00:ac:de:48:23:45:67/0",
        "stripe:64k(ram:1M,ram:1M)",
        "concat(ram:1M,ram:1M)",
        "mirror(ram:1M,ram:1M)",
        "limit:iops=1(ram:1M)",
        "delay:5ms(ram:1M)",
        "fault:read=1(ram:1M)",
        "verify(ram:1M)",
        "stats(ram:1M)",
        "readonly(ram:1M)",
    ] {
        let address: Address = address.parse().unwrap();
        let error = open::volume(&address, &options()).err();
        let refused = error.as_ref().map(|error| &error.cause);
        let refused = matches!(refused, Some(OpenCause::NotBuilt(name)) if *name == address.name());
        assert_eq!(
            refused,
            !built.contains(&address.name()),
            "{address}: {error:?}"
        );
    }
    // Of what is not built nothing is offered, either.
    for typing_error in ["nothing:1", "scsii:/dev/sg0", "mirrored(ram:1M)"] {
        let error = typing_error.parse::<Address>().unwrap_err().one_line();
        for planned in ["scsi", "rbd", "mirror"] {
            let words = error.split(|c: char| !c.is_ascii_alphanumeric()).skip(5);
            assert!(words.into_iter().all(|word| word != planned), "{error}");
        }
    }
}

#[test]
fn a_composed_volume_is_made_of_what_is_inside() {
    let folder = Folder::new();
    let address = format!(
        "stripe:64k(ram:1M,concat({},ram:512k))",
        folder.file("a?size=1M")
    );
    let stripe = traits(&address, &options());
    assert_eq!((stripe.blocks, stripe.write_cache), (4096, true));
    let protected = OpenOptions {
        read_only: true,
        ..options()
    };
    assert!(traits(&address, &protected).read_only);
    let large = OpenOptions {
        block_size: Some(4096),
        ..options()
    };
    assert_eq!(traits(&address, &large).block_size, 4096);
}

#[test]
fn what_is_wrong_inside_is_told_by_its_own_address() {
    assert_eq!(
        refusal("stripe:64k(ram:1M,concat(ram:1M,file:/nowhere-at-all))"),
        "file:/nowhere-at-all: no such file; check its name, or give ?size=10G to create it"
    );
    assert_eq!(
        refusal("concat(ram:1M,stripe:1k(ram:1M,ram:512))"),
        "stripe:1k(ram:1M,ram:512): ram:512 is shorter than a chunk of 1024 bytes; give a \
         smaller chunk"
    );
    let folder = Folder::new();
    let twice = format!("concat({0},{0})", folder.file("a?size=1M"));
    assert!(refusal(&twice).contains("it is given twice"));
}

#[test]
fn both_secrets_are_asked_for_before_anybody_connects() {
    let address: Address = "iscsi://me@192.0.2.1/iqn.2026-11.org.example:d?mutual"
        .parse()
        .unwrap();
    let mut options = options();
    let cause = |options: &OpenOptions| open::volume(&address, options).unwrap_err().cause;
    assert!(matches!(cause(&options), OpenCause::NoSecret(user) if user == "me"));
    options.secret = Some(b"secretsecret".to_vec().into());
    assert!(matches!(cause(&options), OpenCause::NoMutualSecret));
    options.mutual_secret.clone_from(&options.secret);
    assert!(matches!(cause(&options), OpenCause::Session(_)));
}

#[test]
fn a_secret_of_the_environment_is_as_long_as_one_of_a_file() {
    let address: Address = "iscsi://me@192.0.2.1/iqn.2026-11.org.example:d"
        .parse()
        .unwrap();
    for length in [1, 11, 256] {
        let mut options = options();
        options.secret = Some(vec![b'a'; length].into());
        let told = open::volume(&address, &options).unwrap_err().to_string();
        let words = "LUNAR_SECRET is not a secret: 12 to 255 bytes are needed";
        assert!(told.ends_with(words), "{told}");
    }
}

#[test]
fn each_address_has_the_secret_of_its_file() {
    let folder = Folder::new();
    let file = |name: &str, text: &str| {
        let path = folder.0.join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        path.display().to_string()
    };
    let (ours, theirs) = (
        file("ours", "our own secret\n"),
        file("theirs", "their secret\n"),
    );
    let mut options = options();
    options.secret = Some(b"the usual secret".to_vec().into());
    let chap = |keys: String| {
        let address = format!("iscsi://me@host/iqn.2026-11.org.example:d?{keys}");
        let Address::Iscsi(unit) = address.parse().unwrap() else {
            panic!("another scheme");
        };
        match portal_of(&unit, None, &options).unwrap().config.auth {
            Auth::Chap(chap) => chap,
            Auth::None => panic!("no proof"),
        }
    };
    let both = chap(format!("secret-file={ours}&mutual-secret-file={theirs}"));
    assert_eq!(both.secret[..], *b"our own secret");
    assert_eq!(both.mutual.unwrap().secret[..], *b"their secret");
    let usual = chap(format!("mutual-secret-file={theirs}"));
    assert_eq!(usual.secret[..], *b"the usual secret");
    assert_eq!(usual.hashes, HASHES);
    assert_eq!(chap("chap-hash=md5".to_owned()).hashes, [Hash::Md5]);
}

/// What is open goes on under another address of the same unit.
#[test]
fn a_volume_stays_open_while_what_is_around_it_changes() {
    let folder = Folder::new();
    let path = folder.0.join("disk.img");
    let file = format!("file:{}?size=1M&sparse", path.display());
    let first = LeafReuse::default();
    let opened = |address: &str, reuse: &LeafReuse| {
        let address: Address = address.parse().unwrap();
        let options = OpenOptions {
            reuse: Some(reuse.clone()),
            ..options()
        };
        open::volume(&address, &options).unwrap()
    };
    let ram = "ram:1M";
    let whole = opened(&format!("concat({ram},{file},{ram})"), &first);
    assert_eq!(first.opened().len(), 3);
    // The file is locked by us, and RAM disks have what was written to them.
    let file = file.replace("1M", "3M");
    let again = LeafReuse::of(first.opened());
    let _other = opened(
        &format!("limit:iops=1k(concat({ram},{file},{ram}))"),
        &again,
    );
    assert!(first.opened().is_same(&again.opened()));
    // It grows when that is sure.
    let growth = again.growth();
    growth.reserve().unwrap();
    assert_eq!(fs::metadata(&path).unwrap().len(), 1 << 20);
    growth.release();
    growth.make().unwrap();
    assert_eq!(fs::metadata(&path).unwrap().len(), 3 << 20);
    // It gets other blocks without being opened.
    let blocks = LeafReuse::of(first.opened());
    let larger = OpenOptions {
        reuse: Some(blocks.clone()),
        block_size: Some(4096),
        ..options()
    };
    let larger = open::volume(&file.parse().unwrap(), &larger).unwrap();
    assert_eq!(
        (larger.traits().block_size, blocks.opened().len()),
        (4096, 1)
    );
    drop((larger, blocks));
    // One RAM disk more is another one.
    let more = LeafReuse::of(first.opened());
    opened(&format!("concat({ram},{ram},{ram})"), &more);
    assert_eq!(more.opened().len(), 3);
    assert!(!more.opened().is_same(&first.opened()));
    drop(whole);
}

/// What is only read, as its address says or for another reason, is written without being closed,
/// and no RAM disk loses what it has.
#[test]
fn what_was_only_read_is_written_and_back() {
    let folder = Folder::new();
    traits(&folder.file("a?size=1M&sparse"), &options());
    let (file, protected) = (folder.file("a"), folder.file("a?readonly"));
    for (reads, read_only, writes) in [
        (&*protected, false, &*file),
        (&file, true, &file),
        ("ram:1M", true, "ram:1M"),
    ] {
        let open = |address: &str, read_only, reuse: &LeafReuse| {
            let options = OpenOptions {
                reuse: Some(reuse.clone()),
                read_only,
                ..options()
            };
            open::volume(&address.parse().unwrap(), &options).unwrap()
        };
        let before = LeafReuse::default();
        let reader = open(reads, read_only, &before);
        let between = LeafReuse::of(before.opened());
        let writer = open(writes, false, &between);
        let after = LeafReuse::of(between.opened());
        let again = open(reads, read_only, &after);
        let protected = [&reader, &writer, &again].map(|volume| volume.traits().read_only);
        assert_eq!(protected, [true, false, true], "{reads}");
        assert!(after.opened().is_same(&between.opened()), "{reads}");
        let is_ram = reads == "ram:1M";
        assert_eq!(between.opened().is_same(&before.opened()), is_ram);
    }
}

/// A file that is served is locked by us: it stays open. Hosts would not notice a change of its
/// cache in time.
#[test]
fn a_file_is_used_in_another_way() {
    let folder = Folder::new();
    traits(&folder.file("a?size=1M"), &options());
    let open = |keys: &str, reuse: Option<&LeafReuse>| {
        let options = OpenOptions {
            reuse: reuse.cloned(),
            ..options()
        };
        let address = folder.file(&format!("a{keys}"));
        open::volume(&address.parse().unwrap(), &options)
    };
    let before = LeafReuse::default();
    let first = open("", Some(&before)).unwrap();
    let after = LeafReuse::of(before.opened());
    let second = open("?sparse", Some(&after)).unwrap();
    drop((first, before));
    open("", None).expect_err("it is still locked");
    let refused = open("?sync", Some(&LeafReuse::of(after.opened()))).unwrap_err();
    assert!(refused.to_string().contains("add them again"), "{refused}");
    drop((second, after));

    let before = LeafReuse::default();
    open("?readonly", Some(&before)).unwrap();
    let written = open("?sync", Some(&LeafReuse::of(before.opened()))).unwrap();
    assert!(!written.traits().write_cache);
}
