//! Where test volumes are kept; everything goes when the test ends.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};

use crate::error::VolumeError;
use crate::file::FileOptions;
use crate::volume::OpenMode;

/// A folder of its own.
pub(super) struct Folder(PathBuf);

impl Folder {
    /// On the disk.
    pub(super) fn on_disk() -> Self {
        Self::in_folder(&std::env::temp_dir())
    }

    /// In memory.
    pub(super) fn in_memory() -> Self {
        Self::in_folder(Path::new("/dev/shm"))
    }

    fn in_folder(parent: &Path) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Relaxed);
        let path = parent.join(format!("lunar-block-{}-{number}", std::process::id()));
        std::fs::create_dir(&path).unwrap();
        Self(path)
    }

    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A mounted file system, where the machine lets us mount one.
pub(super) struct Mount(PathBuf);

impl Mount {
    /// Mounts with the given arguments at a folder that there is.
    pub(super) fn new(arguments: &[&str], at: &Path) -> Option<Self> {
        run("mount", arguments, Some(at))?;
        Some(Self(at.to_owned()))
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        run("umount", &["--lazy"], Some(&self.0));
    }
}

/// A file system of so many bytes in memory, where the machine lets us mount one.
pub(super) struct SmallDisk {
    #[expect(dead_code, reason = "held")]
    mount: Mount,
    folder: Folder,
}

impl SmallDisk {
    pub(super) fn mount(bytes: u64) -> Option<Self> {
        let folder = Folder::on_disk();
        let size = format!("size={bytes}");
        let arguments = ["-t", "tmpfs", "-o", &size, "tmpfs"];
        let mount = Mount::new(&arguments, &folder.0)?;
        Some(Self { mount, folder })
    }

    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.folder.file(name)
    }
}

/// A loop device, where the machine lets us make one.
pub(super) struct LoopDevice {
    pub(super) node: PathBuf,
    file: PathBuf,
    folder: Folder,
}

impl LoopDevice {
    pub(super) fn new(bytes: u64, options: &[&str]) -> Option<Self> {
        Self::in_folder(Folder::on_disk(), bytes, options)
    }

    pub(super) fn in_folder(folder: Folder, bytes: u64, options: &[&str]) -> Option<Self> {
        let file = folder.file("disk");
        std::fs::File::create(&file)
            .unwrap()
            .set_len(bytes)
            .unwrap();
        let arguments = [&["--find", "--show"], options].concat();
        let node = run("losetup", &arguments, Some(&file))?.into();
        Some(Self { node, file, folder })
    }

    /// Makes the file behind it longer or shorter, and tells the kernel so.
    pub(super) fn resize(&self, bytes: u64) {
        let file = std::fs::File::options()
            .write(true)
            .open(&self.file)
            .unwrap();
        file.set_len(bytes).unwrap();
        run("losetup", &["--set-capacity"], Some(&self.node)).unwrap();
    }

    pub(super) fn folder(&self) -> &Folder {
        &self.folder
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        run("losetup", &["--detach"], Some(&self.node));
    }
}

/// A way to use what is open already.
pub(super) fn mode(block_size: Option<u32>, read_only: bool) -> OpenMode {
    OpenMode {
        block_size,
        read_only,
        ..OpenMode::default()
    }
}

/// Opens what was just closed. Another test that starts a program meanwhile has all descriptors
/// twice for a moment, and with them all locks.
pub(super) fn reopen<T>(open: impl Fn() -> Result<T, VolumeError>) -> T {
    let begin = Instant::now();
    loop {
        match open() {
            Err(VolumeError::Locked(_) | VolumeError::Held) if begin.elapsed() < PATIENCE => {
                std::thread::sleep(Duration::from_millis(5));
            }
            result => return result.unwrap(),
        }
    }
}

const PATIENCE: Duration = Duration::from_secs(10);

/// Runs a program of the machine and returns what it says; says loudly when it cannot.
pub(super) fn run(program: &str, arguments: &[&str], path: Option<&Path>) -> Option<String> {
    let output = Command::new(program).args(arguments).args(path).output();
    match output {
        Ok(output) if output.status.success() => {
            Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
        }
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            eprintln!("SKIPPED: {program} {arguments:?} {path:?}: {said}");
            None
        }
        Err(error) => {
            eprintln!("SKIPPED: {program}: {error}");
            None
        }
    }
}

/// A folder on the disk, and where a file in it may be.
pub(super) fn disk() -> (Folder, PathBuf) {
    let folder = Folder::on_disk();
    let path = folder.file("disk");
    (folder, path)
}

/// A file as it is.
pub(super) fn at(path: PathBuf) -> FileOptions {
    FileOptions {
        path,
        ..FileOptions::default()
    }
}

/// A file that is not to be written.
pub(super) fn read_only(path: PathBuf) -> FileOptions {
    FileOptions {
        read_only: true,
        ..at(path)
    }
}

/// A file that is made this long.
pub(super) fn sized(path: PathBuf, size: u64) -> FileOptions {
    FileOptions {
        size: Some(size),
        ..at(path)
    }
}

/// A file that is made this long without storage.
pub(super) fn sparse(path: PathBuf, size: u64) -> FileOptions {
    FileOptions {
        sparse: true,
        ..sized(path, size)
    }
}

/// What a volume is refused with.
macro_rules! fails {
    ($told:expr, $kind:pat) => {{
        let told = $told;
        assert!(matches!(told, $kind), "{told:?}");
    }};
}
pub(super) use fails;
