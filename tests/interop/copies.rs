//! `lunar copy` and `lunar verify`, with qemu-img as the witness; interrupted, killed, refused.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tests::server::Server;
use tests::tool;

use crate::remote::has_seen;
use crate::{LIMIT, file, must, says, secret, words};

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
        Self {
            image: file(&dir, "image"),
            server: Server::start_in(&dir, &[&file(&dir, "disk")], options).unwrap(),
            dir,
        }
    }

    fn unit(&self) -> &str {
        self.server.address(0)
    }

    /// `lunar`, with a state directory of its own.
    fn command(&self, args: &[&str]) -> Command {
        let mut command = crate::lunar(args);
        command.env("STATE_DIRECTORY", self.dir.join("copies"));
        command
    }

    #[track_caller]
    fn good(&self, args: &[&str]) -> String {
        tool::must(&mut self.command(args)).unwrap_or_else(|cause| panic!("{cause:#}"))
    }

    /// What is refused, in one line.
    #[track_caller]
    fn refused(&self, args: &[&str]) -> String {
        let said = crate::refused(&mut self.command(args));
        assert_eq!(said.lines().count(), 1, "{said}");
        said
    }

    /// qemu-img finds the image and what the server has identical.
    #[track_caller]
    fn is_identical(&self, unit: &str) {
        let image = self.dir.join("image");
        let image = image.to_string_lossy();
        let compare = ["compare", "-f", "raw", "-F", "raw", &image, unit];
        says(&must("qemu-img", &compare), &["identical"]);
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

    /// Whether two pieces or more are at the unit that were not flushed with the first `copied`
    /// bytes. Who is interrupted then has a flush to wait for.
    fn has_more_than(&self, copied: u64) -> bool {
        let data = copied / (8 << 20) * (4 << 20) + (copied % (8 << 20)).min(4 << 20);
        let written = fs::metadata(self.dir.join("disk")).unwrap().blocks() * 512;
        copied > 0 && written >= data + 2 * (256 << 10)
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
    let half = ["32.0 MiB of data", "32.0 MiB of holes"];
    says(&stage.good(&["copy", &stage.image, stage.unit()]), &half);
    stage.is_identical(stage.unit());
    let said = stage.good(&["verify", &stage.image, stage.unit()]);
    assert!(said.starts_with("the same: 64.0 MiB"), "{said}");
    let back = stage.dir.join("back");
    says(
        &stage.good(&["copy", stage.unit(), &file(&stage.dir, "back")]),
        &half,
    );
    stage.is_identical(&back.to_string_lossy());
}

#[test]
fn what_qemu_copies_lunar_finds_identical_and_one_byte_else() {
    let stage = Stage::new("copies-verified", &[]);
    let image = stage.dir.join("image");
    let image = image.to_string_lossy();
    let convert = format!("convert -n -f raw -O raw {image} {}", stage.unit());
    must("qemu-img", &words(&convert));
    let said = stage.good(&["verify", stage.unit(), &stage.image]);
    assert!(said.starts_with("the same: "), "{said}");
    let byte = 40_000_001;
    let other = stage.dir.join("image");
    let other = File::options().write(true).open(other).unwrap();
    other.write_all_at(&[0x5a], byte).unwrap();
    let told = crate::refused(&mut stage.command(&["verify", &stage.image, stage.unit()]));
    let said = "lunar: 1 of 131072 blocks differs, the first at byte 40000001 (block 78125)\n";
    assert!(told.ends_with(said), "{told}");
}

fn interrupt(copy: &Child) {
    must("kill", &["-INT", &copy.id().to_string()]);
}

/// What a copy says on standard error until it ends with this code.
fn ends(copy: Child, code: i32) -> String {
    let output = copy.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(code), "{said}");
    said
}

/// Arrays count sessions, and some let in only a few.
#[test]
fn who_opens_a_unit_to_use_it_or_to_look_at_it_logs_in_once() {
    let stage = Stage::new("once", &[]);
    stage.good(&["copy", &stage.image, stage.unit()]);
    has_seen(&stage.server, 1);
    stage.good(&["info", stage.unit()]);
    has_seen(&stage.server, 2);
    stage.good(&["verify", &stage.image, stage.unit()]);
    has_seen(&stage.server, 3);
}

#[test]
fn an_interrupted_copy_says_how_to_go_on_and_does() {
    let stage = Stage::new("copies-interrupted", &[]);
    let child = stage.begin(|_| true);
    interrupt(&child);
    let said = ends(child, 130);
    // On a busy machine it may say before that it waits for what is under way.
    let lines = said.lines().filter(|line| !line.contains("another ^C"));
    assert_eq!(lines.count(), 1, "{said}");
    says(
        &said,
        &["continue with: lunar copy --resume 'limit:rate=4M("],
    );
    stage.good(&["copy", "--resume", &stage.image, stage.unit()]);
    stage.is_identical(stage.unit());
}

#[test]
fn who_interrupts_a_copy_while_its_target_is_away_is_told_what_it_waits_for() {
    let stage = Stage::new("copies-away", &[]);
    let unit = format!("{}?replacement=4s", stage.unit());
    let child = stage.begin_to(&unit, |copied| stage.has_more_than(copied));
    stage.server.kill().unwrap();
    interrupt(&child);
    let said = ends(child, 130);
    let words = [
        "another ^C stops at once",
        "continue with: lunar copy --resume",
    ];
    says(&said, &words);
}

#[test]
fn a_second_interruption_ends_a_copy_at_once_and_says_so() {
    let stage = Stage::new("copies-twice-interrupted", &[]);
    let unit = format!("{}?replacement=1m", stage.unit());
    let child = stage.begin_to(&unit, |copied| stage.has_more_than(copied));
    stage.server.kill().unwrap();
    interrupt(&child);
    // Any sooner it would be the same order by another way.
    thread::sleep(Duration::from_millis(1500));
    interrupt(&child);
    let said = ends(child, 130);
    let last = said.lines().last().unwrap();
    let words = "interrupted again: stopped at once, without a final flush; continue with: lunar \
                 copy";
    says(last, &[words]);
}

#[test]
fn a_second_copy_of_the_same_two_is_refused() {
    let stage = Stage::new("copies-twice", &[]);
    let mut child = stage.begin(|_| true);
    for options in [&[] as &[_], &["--resume"]] {
        let args = [&["copy", &stage.image, stage.unit()], options].concat();
        let line = stage.refused(&args);
        says(&line, &["another lunar copy is running on these two"]);
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
    let volume = file(&dir, "disk?size=64M&sparse");
    let name = ["--iqn", "iqn.2026-11.org.lunar.test:copied"];
    let mut target = Server::start_in(&dir, &[&volume], &name).unwrap();
    let portal = target.luns[0].portals[0].clone();
    let slow = format!("limit:rate=8M({})", file(&dir, "image"));
    let mut command = crate::lunar(&["copy", "--json", &slow, target.address(0), "--state-dir"]);
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
    says(&said, &["may be lost: going back to byte"]);
    let report: serde_json::Value = serde_json::from_slice(&ran.stdout).unwrap();
    assert_eq!(report["data_bytes"], 32 << 20, "{report}");
    let again = report["again_bytes"].as_u64().unwrap();
    assert!((1..32 << 20).contains(&again), "{report}");
    target.stop().unwrap();
    assert!(fs::read(dir.join("disk")).unwrap() == fs::read(dir.join("image")).unwrap());
}

#[test]
fn what_cannot_be_copied_says_why_in_one_line() {
    let stage = Stage::new("copies-refused", &["--readonly"]);
    let unit = stage.unit().to_owned();
    let image = stage.image.as_str();
    let missing = unit.replace("/0", "/7");
    let elsewhere = unit.replace("iqn.", "iqn.1999-01.none:");
    let too_short = "only 64 MiB: nothing was done; choose a larger one";
    let nowhere = "this portal has no such target";
    let cases = [
        (
            ["copy", image, &unit],
            "cannot be written: nothing was done",
        ),
        (["copy", "ram:65M", &unit], too_short),
        (["verify", "ram:65M", &unit], too_short),
        (["copy", &missing, image], "no such LUN: `lunar ls` lists"),
        // A unit that is not there is named.
        (["copy", image, &missing], "LUN 7: no such LUN"),
        (["copy", image, &elsewhere], nowhere),
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
    assert_eq!(unit["size_bytes"], SIZE);
    assert_eq!(unit["block_size"], 4096);
    assert_eq!(unit["vendor"], "LUNAR");
    assert_eq!(unit["product"], "VOLUME");
    let address = unit["address"].as_str().unwrap();
    assert_eq!(address, stage.unit());
    let rows = stage.good(&["ls", portal]);
    assert!(rows.lines().nth(1).unwrap().ends_with(address), "{rows}");
    assert!(unit["identity"].is_string(), "{unit}");
    let info = stage.good(&["info", address, "--json"]);
    let info: serde_json::Value = serde_json::from_str(&info).unwrap();
    assert_eq!(info["size_bytes"], SIZE);
    assert_eq!(info["identity"], unit["identity"]);
    assert_eq!(info["negotiated"]["ErrorRecoveryLevel"], "0");
    assert_eq!(info["session"]["portal"], portal.as_str());
}

#[test]
fn a_wrong_secret_is_told_from_none() {
    let dir = tests::scratch("copies-secret").unwrap();
    let file = secret(&dir, "secret", "a secret of twenty o");
    let chap = ["--chap", "alice", "--secret-file", &file];
    let stage = Stage::new("copies-chap", &chap);
    let unit = stage.unit().replace("iscsi://", "iscsi://alice@");
    let args = ["copy", &stage.image, &unit];
    says(&stage.refused(&args), &["LUNAR_SECRET"]);
    let line = stage.refused(&["copy", &stage.image, stage.unit()]);
    says(&line, &["requires CHAP: give a user and secret"]);
    for (secret, code) in [("another of twenty oc", 1), ("a secret of twenty o", 0)] {
        let mut command = stage.command(&args);
        command.env("LUNAR_SECRET", secret);
        let ran = tool::run(&mut command, LIMIT).unwrap();
        assert_eq!(ran.code(), Some(code), "{}", ran.output);
        let told = ran.output.contains("rejected CHAP user");
        assert_eq!(told, code == 1, "{}", ran.output);
    }
}
