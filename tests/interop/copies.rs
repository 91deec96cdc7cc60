//! `lunar copy` and `lunar verify`, with qemu-img as the witness; interrupted, killed, refused.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tests::server::{self, Server};
use tests::tool::{self, Ran};

use crate::must;

const SIZE: u64 = 64 << 20;

/// Every other 4 MiB of it have data, of which no two blocks are the same.
fn image(path: &Path) {
    let file = File::create(path).unwrap();
    file.set_len(SIZE).unwrap();
    for start in (0..SIZE).step_by(8 << 20) {
        let words = (start..start + (4 << 20)).step_by(8);
        let data: Vec<u8> = words.flat_map(|word| (word + 1).to_le_bytes()).collect();
        file.write_all_at(&data, start).unwrap();
    }
}

/// A folder with an image, and a server of a file of the same size.
struct Stage {
    dir: PathBuf,
    image: String,
    server: Server,
}

impl Stage {
    fn new(name: &str, options: &[&str]) -> Self {
        let dir = tests::scratch(name).unwrap();
        image(&dir.join("image"));
        File::create(dir.join("disk"))
            .and_then(|disk| disk.set_len(SIZE))
            .unwrap();
        let volume = format!("file:{}", dir.join("disk").display());
        Self {
            image: format!("file:{}", dir.join("image").display()),
            server: Server::start_in(&dir, &[&volume], options).unwrap(),
            dir,
        }
    }

    fn unit(&self) -> &str {
        self.server.address(0)
    }

    /// `lunar`, with a state directory of its own.
    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(server::binary().unwrap());
        command.args(args);
        command.env("STATE_DIRECTORY", self.dir.join("copies"));
        command
    }

    fn lunar(&self, args: &[&str]) -> Ran {
        tool::run(&mut self.command(args), Duration::from_secs(60)).unwrap()
    }

    #[track_caller]
    fn good(&self, args: &[&str]) -> String {
        let ran = self.lunar(args);
        assert!(ran.good(), "{args:?}: {}", ran.output);
        ran.output
    }

    /// What is refused, in one line.
    #[track_caller]
    fn refused(&self, args: &[&str]) -> String {
        let ran = self.lunar(args);
        assert_eq!(ran.status.unwrap().code(), Some(1), "{}", ran.output);
        assert_eq!(ran.output.lines().count(), 1, "{}", ran.output);
        ran.output
    }

    /// qemu-img finds the image and what the server has identical.
    #[track_caller]
    fn is_identical(&self, unit: &str) {
        let image = self.dir.join("image");
        let image = image.to_string_lossy();
        let said = must(
            "qemu-img",
            &["compare", "-f", "raw", "-F", "raw", &image, unit],
        );
        assert!(said.contains("identical"), "{said}");
    }

    /// Begins a copy of the image to the unit that takes some 8 s, and waits until `copied` holds
    /// of how much is remembered to be durable.
    fn begin(&self, copied: impl Fn(u64) -> bool) -> Child {
        self.begin_to(self.unit(), copied)
    }

    fn begin_to(&self, unit: &str, copied: impl Fn(u64) -> bool) -> Child {
        let slow = format!("limit:rate=4M({})", self.image);
        let mut command = self.command(&["copy", &slow, unit]);
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let limit = Instant::now() + Duration::from_secs(30);
        while !self.remembered().is_some_and(&copied) {
            assert!(child.try_wait().unwrap().is_none(), "it has ended");
            assert!(Instant::now() < limit, "{:?}", self.remembered());
            thread::sleep(Duration::from_millis(20));
        }
        child
    }

    fn remembered(&self) -> Option<u64> {
        let mut records = fs::read_dir(self.dir.join("copies")).ok()?;
        let record = records.find_map(|record| {
            let path = record.ok()?.path();
            path.extension().is_none().then_some(path)
        });
        let text = fs::read_to_string(record?).ok()?;
        text.lines().last()?.strip_prefix("copied ")?.parse().ok()
    }
}

#[test]
fn what_lunar_copies_qemu_finds_identical_both_ways() {
    let stage = Stage::new("copies-both-ways", &["--block-size", "4096"]);
    let said = stage.good(&["copy", &stage.image, stage.unit()]);
    assert!(
        said.contains("32.0 MiB of data") && said.contains("32.0 MiB of holes"),
        "{said}"
    );
    stage.is_identical(stage.unit());
    assert!(
        stage
            .good(&["verify", &stage.image, stage.unit()])
            .starts_with("the same: 64.0 MiB")
    );
    let back = stage.dir.join("back");
    let said = stage.good(&["copy", stage.unit(), &format!("file:{}", back.display())]);
    assert!(
        said.contains("32.0 MiB of data") && said.contains("32.0 MiB of holes"),
        "{said}"
    );
    stage.is_identical(&back.to_string_lossy());
}

#[test]
fn what_qemu_copies_lunar_finds_identical_and_one_byte_else() {
    let stage = Stage::new("copies-verified", &[]);
    let image = stage.dir.join("image");
    let image = image.to_string_lossy();
    let convert = [
        "convert",
        "-n",
        "-f",
        "raw",
        "-O",
        "raw",
        &image,
        stage.unit(),
    ];
    must("qemu-img", &convert);
    assert!(
        stage
            .good(&["verify", stage.unit(), &stage.image])
            .starts_with("the same: ")
    );
    let byte = 40_000_001;
    let other = stage.dir.join("image");
    let other = File::options().write(true).open(other).unwrap();
    other.write_all_at(&[0x5a], byte).unwrap();
    let ran = stage.lunar(&["verify", &stage.image, stage.unit()]);
    assert_eq!(ran.status.unwrap().code(), Some(1));
    let said = "lunar: 1 of 131072 blocks differs, the first at byte 40000001 (block 78125)\n";
    assert!(ran.output.ends_with(said), "{}", ran.output);
}

#[test]
fn an_interrupted_copy_says_how_to_go_on_and_does() {
    let stage = Stage::new("copies-interrupted", &[]);
    let child = stage.begin(|_| true);
    must("kill", &["-INT", &child.id().to_string()]);
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(130), "{said}");
    // On a busy machine it may say before that it waits for what is under way.
    let lines = said.lines().filter(|line| !line.contains("another ^C"));
    assert_eq!(lines.count(), 1, "{said}");
    assert!(
        said.contains("continue with: lunar copy --resume 'limit:rate=4M("),
        "{said}"
    );
    stage.good(&["copy", "--resume", &stage.image, stage.unit()]);
    stage.is_identical(stage.unit());
}

#[test]
fn who_interrupts_a_copy_while_its_target_is_away_is_told_what_it_waits_for() {
    let stage = Stage::new("copies-away", &[]);
    let child = stage.begin_to(&format!("{}?replacement=4s", stage.unit()), |_| true);
    stage.server.kill().unwrap();
    must("kill", &["-INT", &child.id().to_string()]);
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(130), "{said}");
    assert!(said.contains("another ^C stops at once"), "{said}");
    assert!(
        said.contains("continue with: lunar copy --resume"),
        "{said}"
    );
}

#[test]
fn a_second_interruption_ends_a_copy_at_once_and_says_so() {
    let stage = Stage::new("copies-twice-interrupted", &[]);
    let unit = format!("{}?replacement=1m", stage.unit());
    let child = stage.begin_to(&unit, |copied| copied > 0);
    stage.server.kill().unwrap();
    // What is read of A meanwhile is in flight to a target that is gone, so there is no quick end.
    thread::sleep(Duration::from_secs(1));
    let pid = child.id().to_string();
    must("kill", &["-INT", &pid]);
    // Any sooner it would be the same order by another way.
    thread::sleep(Duration::from_millis(1500));
    must("kill", &["-INT", &pid]);
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(130), "{said}");
    let last = said.lines().last().unwrap();
    let words = "interrupted again: stopped at once, without a final flush; continue with: lunar \
                 copy";
    assert!(last.contains(words), "{said}");
}

#[test]
fn a_second_copy_of_the_same_two_is_refused() {
    let stage = Stage::new("copies-twice", &[]);
    let mut child = stage.begin(|_| true);
    for options in [&[] as &[_], &["--resume"]] {
        let args = [&["copy", &stage.image, stage.unit()], options].concat();
        let line = stage.refused(&args);
        assert!(
            line.contains("another lunar copy is running on these two"),
            "{line}"
        );
    }
    child.kill().unwrap();
    child.wait().unwrap();
    stage.good(&["copy", "--resume", &stage.image, stage.unit()]);
}

#[test]
fn a_killed_copy_goes_on_from_what_was_flushed() {
    let stage = Stage::new("copies-killed", &[]);
    let mut child = stage.begin(|copied| copied > 0);
    child.kill().unwrap();
    child.wait().unwrap();
    let copied = stage.remembered().unwrap();
    assert!(copied < SIZE, "{copied}");
    let said = stage.good(&["copy", "--resume", "--json", &stage.image, stage.unit()]);
    let report: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert_eq!(report["resumed_at_bytes"], copied);
    stage.is_identical(stage.unit());
    assert_eq!(stage.remembered(), None);
}

/// It caches, so each time what was not flushed is copied again, and nothing else.
#[test]
fn a_target_that_is_killed_again_and_again_gets_all_of_a_copy() {
    let dir = tests::scratch("copies-target-killed").unwrap();
    image(&dir.join("image"));
    let disk = dir.join("disk");
    let volume = format!("file:{}?size=64M&sparse", disk.display());
    let name = ["--iqn", "iqn.2026-11.org.lunar.test:copied"];
    let mut target = Server::start_in(&dir, &[&volume], &name).unwrap();
    let portal = target.luns[0].portals[0].clone();
    let slow = format!("limit:rate=8M(file:{})", dir.join("image").display());
    let mut command = Command::new(server::binary().unwrap());
    command.args(["copy", "--json", &slow, target.address(0), "--state-dir"]);
    command.arg(dir.join("copies"));
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let copy = command.spawn().unwrap();
    for _ in 0..3 {
        thread::sleep(Duration::from_millis(900));
        target.kill().unwrap();
        let again = [&name[..], &["--listen", &portal]].concat();
        target = Server::start_in(&dir, &[&volume], &again).unwrap();
    }
    let ran = copy.wait_with_output().unwrap();
    let said = String::from_utf8(ran.stderr).unwrap();
    assert_eq!(ran.status.code(), Some(0), "{said}");
    assert!(said.contains("may be lost: going back to byte"), "{said}");
    let report: serde_json::Value = serde_json::from_slice(&ran.stdout).unwrap();
    assert_eq!(report["data_bytes"], 32 << 20, "{report}");
    let again = report["again_bytes"].as_u64().unwrap();
    assert!((1..32 << 20).contains(&again), "{report}");
    target.stop().unwrap();
    assert!(fs::read(disk).unwrap() == fs::read(dir.join("image")).unwrap());
}

#[test]
fn what_cannot_be_copied_says_why_in_one_line() {
    let stage = Stage::new("copies-refused", &["--readonly"]);
    let unit = stage.unit().to_owned();
    let image = stage.image.as_str();
    let missing = unit.replace("/0", "/7");
    let elsewhere = unit.replace("iqn.", "iqn.1999-01.none:");
    let cases = [
        (
            ["copy", image, &unit],
            "cannot be written: nothing was done",
        ),
        (
            ["copy", "ram:65M", &unit],
            "only 64 MiB: nothing was done; choose a larger one",
        ),
        (
            ["verify", "ram:65M", &unit],
            "only 64 MiB: nothing was done; choose a larger one",
        ),
        (["copy", &missing, image], "no such LUN: `lunar ls` lists"),
        (
            ["copy", image, &elsewhere],
            "this portal has no such target",
        ),
        (["copy", &unit, &unit], "are the same volume"),
    ];
    for (args, words) in cases {
        let line = stage.refused(&args);
        assert!(line.contains(words), "{args:?}: {line}");
    }
}

#[test]
fn a_portal_tells_what_can_be_copied() {
    let stage = Stage::new("copies-listed", &["--block-size", "4096"]);
    let portal = &stage.server.luns[0].portals[0];
    let said = stage.good(&["ls", portal, "--json"]);
    let told: serde_json::Value = serde_json::from_str(&said).unwrap();
    let unit = &told["units"][0];
    assert_eq!(told["target"], stage.server.luns[0].target);
    assert_eq!(
        (&unit["size_bytes"], &unit["block_size"]),
        (&SIZE.into(), &4096.into())
    );
    assert_eq!(
        (&unit["vendor"], &unit["product"]),
        (&"LUNAR".into(), &"VOLUME".into())
    );
    let address = unit["address"].as_str().unwrap();
    assert_eq!(address, stage.unit());
    assert!(
        stage
            .good(&["ls", portal])
            .lines()
            .nth(1)
            .unwrap()
            .ends_with(address)
    );
    assert!(unit["identity"].is_string(), "{unit}");
    let info = stage.good(&["info", address, "--json"]);
    let info: serde_json::Value = serde_json::from_str(&info).unwrap();
    assert_eq!(
        (&info["size_bytes"], &info["identity"]),
        (&SIZE.into(), &unit["identity"])
    );
    assert_eq!(info["negotiated"]["ErrorRecoveryLevel"], "0");
    assert_eq!(info["session"]["portal"], portal.as_str());
}

#[test]
fn a_wrong_secret_is_told_from_none() {
    let dir = tests::scratch("copies-secret").unwrap();
    let secret = dir.join("secret");
    fs::write(&secret, "a secret of twenty o\n").unwrap();
    fs::set_permissions(&secret, Permissions::from_mode(0o600)).unwrap();
    let secret = secret.to_string_lossy();
    let stage = Stage::new(
        "copies-chap",
        &["--chap", "alice", "--secret-file", &secret],
    );
    let unit = stage.unit().replace("iscsi://", "iscsi://alice@");
    let args = ["copy", &stage.image, &unit];
    let line = stage.refused(&args);
    assert!(line.contains("LUNAR_SECRET"), "{line}");
    let line = stage.refused(&["copy", &stage.image, stage.unit()]);
    assert!(
        line.contains("requires CHAP: give a user and secret"),
        "{line}"
    );
    for (secret, code) in [("another of twenty oc", 1), ("a secret of twenty o", 0)] {
        let mut command = stage.command(&args);
        command.env("LUNAR_SECRET", secret);
        let ran = tool::run(&mut command, Duration::from_secs(60)).unwrap();
        assert_eq!(ran.status.unwrap().code(), Some(code), "{}", ran.output);
        let told = ran.output.contains("rejected CHAP user");
        assert_eq!(told, code == 1, "{}", ran.output);
    }
}

#[test]
fn a_unit_that_is_not_there_is_named() {
    let stage = Stage::new("copies-absent", &[]);
    let unit = stage.unit().strip_suffix("/0").unwrap();
    let line = stage.refused(&["copy", &stage.image, &format!("{unit}/7")]);
    assert!(line.contains("LUN 7: no such LUN"), "{line}");
}
