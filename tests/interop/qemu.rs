//! QEMU's block layer as an initiator.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Seek, SeekFrom, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use tests::server::{self, Server};
use tests::tool;

use crate::{LIMIT, file, lunar, lunar_says, must, run, says, words};

const SIZE: u64 = 64 << 20;

/// A file of [`SIZE`] with data here and there and holes between.
fn image(path: &Path) {
    let mut file = File::create(path).unwrap();
    file.set_len(SIZE).unwrap();
    for (start, number) in (0..SIZE).step_by(5 << 20).zip(1_u32..) {
        let data: Vec<u8> = (0..300_000_u32)
            .map(|at| (at.wrapping_mul(number) >> 3) as u8)
            .collect();
        let room = usize::try_from(SIZE - start).unwrap();
        file.seek(SeekFrom::Start(start)).unwrap();
        file.write_all(&data[..data.len().min(room)]).unwrap();
    }
}

/// Runs commands of qemu-io, each of which has to do what it says.
#[track_caller]
fn io(address: &str, commands: &[&str]) {
    let mut args = vec!["-f", "raw"];
    args.extend(commands.iter().flat_map(|command| ["-c", command]));
    args.push(address);
    let said = must("qemu-io", &args);
    // A read that finds another pattern says so, and the exit code tells only of the last command.
    for wrong in ["failed", "error", "Error"] {
        assert!(!said.contains(wrong), "{said}");
    }
}

pub(crate) fn copies(name: &str, volume: &str, options: &[&str]) {
    let dir = tests::scratch(&format!("{name}-image")).unwrap();
    let path = dir.join("image");
    image(&path);
    let path = path.to_string_lossy();
    let server = Server::start(name, &[volume], options).unwrap();
    let ends = format!("{path} {}", server.address(0));
    let convert = format!("convert -n -f raw -O raw {ends}");
    must("qemu-img", &words(&convert));
    let compare = format!("compare -f raw -F raw {ends}");
    let said = must("qemu-img", &words(&compare));
    assert!(said.contains("identical"), "{name}: {said}");
    io(server.address(0), &["write -P 7 1M 4k"]);
    // Where it cannot compare, it ends with 2.
    let differs = run("qemu-img", &words(&compare));
    assert_eq!(differs.code(), Some(1), "{name}: {}", differs.output);
}

/// To each of these volumes, by a server of this name with these options.
#[test]
fn an_image_is_copied_and_compared() {
    let dir = tests::scratch("copy-volumes").unwrap();
    let disk = |name: &str, size: &str| file(&dir, &format!("{name}?size={size}"));
    let stripe = format!("stripe:64k(ram:32M,{})", disk("stripe", "32M"));
    let nest = "concat(stripe:4k(ram:10M,ram:20M,ram:11M),ram:1M,stripe:128k(ram:20M,ram:20M))";
    let part = format!("verify(delay:100us({}))", disk("part", "32M"));
    let every_wrapper = format!("stats(stripe:64k({part},fault:read=0(limit:iops=1M(ram:32M))))");
    let of_4096: &[&str] = &["--block-size", "4096"];
    for (name, volume, options) in [
        ("copy-ram", "ram:64M", &[][..]),
        ("copy-ram-4096", "ram:64M", of_4096),
        ("copy-file", &disk("file", "64M"), &[]),
        ("copy-stripe", &stripe, &[]),
        ("copy-nest", nest, of_4096),
        ("copy-every-wrapper", &every_wrapper, &[]),
    ] {
        copies(name, volume, options);
    }
}

#[test]
fn what_fails_inside_is_told_outside() {
    let volume = "concat(ram:1M,fault:write=eio(ram:1M))";
    let server = Server::start("fault", &[volume], &[]).unwrap();
    io(server.address(0), &["write -P 1 0 1M", "read -P 0 1M 1M"]);
    let write = ["-f", "raw", "-c", "write 1M 4k", server.address(0)];
    let ran = run("qemu-io", &write);
    let is_told = !ran.good() || ran.output.contains("failed");
    assert!(is_told, "{}", ran.output);
}

#[test]
fn chunks_of_a_stripe_go_round() {
    let dir = tests::scratch("stripe-volume").unwrap();
    let stripe = format!("stripe:64k({},ram:8M)", file(&dir, "disk?size=8M"));
    let server = Server::start("stripe", &[&stripe], &[]).unwrap();
    let write = ["write -P 0x11 32k 128k", "read -P 0x11 32k 128k", "flush"];
    io(server.address(0), &write);
    let bytes = fs::read(dir.join("disk")).unwrap();
    // The second half of the first chunk, the whole second one elsewhere, and half of the third.
    let written = |at: usize| bytes[at << 10] == 0x11;
    assert_eq!(
        [0, 31, 32, 95, 96].map(written),
        [false, false, true, true, false]
    );
}

/// What `qemu-img map` finds in an image or at an address: start, length and whether there is data.
fn map(address: &str) -> Vec<(u64, u64, bool)> {
    let said = must("qemu-img", &["map", "-f", "raw", "--output=json", address]);
    let extents: Vec<serde_json::Value> = serde_json::from_str(&said).unwrap();
    let number = |value: &serde_json::Value| value.as_u64().unwrap();
    let extent = |extent: &serde_json::Value| {
        let data = extent["data"].as_bool().unwrap();
        (number(&extent["start"]), number(&extent["length"]), data)
    };
    extents.iter().map(extent).collect()
}

#[test]
fn holes_stay_holes_on_every_way() {
    let dir = tests::scratch("holes-image").unwrap();
    let path = dir.join("image");
    image(&path);
    let readonly = file(&dir, "image?readonly");
    let sparse = file(&dir, "copy?size=64M&sparse");
    let volumes = [readonly.as_str(), "ram:64M", sparse.as_str()];
    let server = Server::start("holes", &volumes, &[]).unwrap();
    let expected = map(&path.to_string_lossy());
    assert!(expected.len() > 20, "{expected:?}");
    for lun in [1, 2] {
        let ends = [server.address(0), server.address(lun)];
        let copy = words("convert -n -f raw -O raw");
        must("qemu-img", &[&copy[..], &ends].concat());
        assert_eq!(map(ends[1]), expected, "LUN {lun}");
    }
    assert_eq!(map(server.address(0)), expected, "the image itself");
}

#[test]
fn patterns_are_read_back() {
    let server = Server::start("patterns", &["ram:64M"], &[]).unwrap();
    io(
        server.address(0),
        &[
            "read -P 0 0 1M",
            "write -P 0xa5 512 512",
            "write -P 0x11 1M 1M",
            "write -P 0x22 1200k 3k",
            "read -P 0xa5 512 512",
            "read -P 0 0 512",
            "read -P 0x11 1M 176k",
            "read -P 0x22 1200k 3k",
            "read -P 0x11 1203k 100k",
            "write -P 0x33 63M 1M",
            "read -P 0x33 63M 1M",
        ],
    );
}

#[test]
fn zeroes_and_discards_read_as_zeroes() {
    let server = Server::start("zeroes", &["ram:64M"], &[]).unwrap();
    io(
        server.address(0),
        &[
            "write -P 0xff 0 8M",
            "write -z 1M 1M",
            "read -P 0 1M 1M",
            "write -z -u 3M 64k",
            "read -P 0 3M 64k",
            "discard 4M 1M",
            "read -P 0 4M 1M",
            "read -P 0xff 2M 1M",
            "read -P 0xff 5M 3M",
            "flush",
        ],
    );
}

#[test]
fn many_writes_at_once() {
    let server = Server::start("many", &["ram:64M"], &[]).unwrap();
    let all = |what: &str| -> Vec<String> {
        let one = |n| format!("{what} -P {} {n}M 700k", n + 1);
        (0..64).map(one).collect()
    };
    let commands = [all("aio_write"), vec!["aio_flush".into()], all("read")].concat();
    let commands: Vec<_> = commands.iter().map(String::as_str).collect();
    io(server.address(0), &commands);
}

#[test]
fn a_file_holds_what_was_flushed() {
    let dir = tests::scratch("file-volume").unwrap();
    let server = Server::start("file", &[&file(&dir, "disk?size=16M")], &[]).unwrap();
    io(server.address(0), &["write -P 0x5a 4M 128k", "flush"]);
    let bytes = fs::read(dir.join("disk")).unwrap();
    assert_eq!(bytes.len(), 16 << 20);
    let (start, end) = (4 << 20, (4 << 20) + (128 << 10));
    assert!(bytes[start..end].iter().all(|byte| *byte == 0x5a));
    let mut others = bytes[..start].iter().chain(&bytes[end..]);
    assert!(others.all(|byte| *byte == 0));
}

#[test]
fn a_readonly_volume_is_read_only() {
    let server = Server::start("ro", &["ram:16M"], &["--readonly"]).unwrap();
    let read = ["-r", "-f", "raw", "-c", "read -P 0 0 1M", server.address(0)];
    must("qemu-io", &read);
    let write = ["-f", "raw", "-c", "write 0 4k", server.address(0)];
    let ran = run("qemu-io", &write);
    assert!(!ran.good(), "{}", ran.output);
}

/// Runs `lunar info` of a file that cannot be had, and returns what it says.
fn refusal(path: &str) -> String {
    let ran = tool::run(&mut lunar(&["info", path]), LIMIT).unwrap();
    assert!(!ran.good(), "{}", ran.output);
    ran.output
}

#[test]
fn what_is_served_is_not_opened_by_qemu() {
    let dir = tests::scratch("served-lock").unwrap();
    let path = dir.join("disk").display().to_string();
    let server = Server::start("served-lock", &[&format!("file:{path}?size=16M")], &[]).unwrap();
    let write = run("qemu-io", &["-f", "raw", "-c", "write 0 4k", &path]);
    let is_locked = !write.good() && write.output.contains("lock");
    assert!(is_locked, "{}", write.output);
    let read = ["-r", "-U", "-f", "raw", "-c", "read 0 4k", &path];
    must("qemu-io", &read);
    let told = refusal(&format!("file:{path}?readonly"));
    let holder = format!("lunar serve (pid {}) has it open", server.pid());
    says(&told, &[&holder]);
    drop(server);
}

#[test]
fn what_qemu_has_open_is_not_served() {
    let dir = tests::scratch("qemu-lock").unwrap();
    let path = dir.join("disk");
    image(&path);
    let path = path.display().to_string();
    let mut qemu = Command::new("qemu-io")
        .args(["-f", "raw", &path])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // It answers once it has opened the file.
    let mut commands = qemu.stdin.take().unwrap();
    commands.write_all(b"read 0 512\n").unwrap();
    let lines = BufReader::new(qemu.stdout.take().unwrap()).lines();
    let mut lines = lines.map(Result::unwrap);
    assert!(lines.any(|line| line.contains("read 512/512")));
    let told = refusal(&format!("file:{path}"));
    let holder = format!("qemu-io (pid {}) has it open", qemu.id());
    says(&told, &[&holder]);
    drop(commands);
    assert!(qemu.wait().unwrap().success());
    lunar_says(&["info", &format!("file:{path}")]);
}

#[test]
fn what_is_not_the_disk_it_may_be_taken_for_is_warned_of() {
    let dir = tests::scratch("no-disk").unwrap();
    let at = |name: &str| dir.join(name).display().to_string();
    for format in ["qcow2", "vmdk", "vdi", "vhdx"] {
        must("qemu-img", &["create", "-f", format, &at(format), "16M"]);
    }
    fs::write(at("tail"), [7; 1221]).unwrap();
    image(Path::new(&at("raw")));
    let names = ["qcow2", "vmdk", "vdi", "vhdx", "tail", "raw"];
    let volumes = names.map(|name| format!("file:{}", at(name)));
    let volumes = volumes.each_ref().map(String::as_str);
    let server = Server::start("no-disk-server", &volumes, &[]).unwrap();
    let log = server.stop_well().unwrap();
    let warns = |name: &str, words: &str| {
        let place = format!("file:{}: ", at(name));
        let is_it = |line: &str| {
            ["WARN", &place, words]
                .iter()
                .all(|word| line.contains(word))
        };
        log.lines().any(is_it)
    };
    for format in &names[..4] {
        let convert = format!("qemu-img convert -f {format} -O raw");
        assert!(warns(format, &convert), "{format}: {log}");
    }
    assert!(warns("tail", "last 197 bytes"), "{log}");
    assert!(!warns("raw", ""), "{log}");
}

#[test]
fn what_lacks_proc_is_told_so() {
    let dir = tests::scratch("no-proc").unwrap();
    fs::write(dir.join("disk"), [0; 4096]).unwrap();
    let hide = "mount -t tmpfs none /proc && exec \"$@\"";
    let mut serve = Command::new("unshare");
    serve.args(["--mount", "sh", "-c", hide, "sh"]);
    serve.arg(server::binary().unwrap());
    let (disk, state) = (file(&dir, "disk"), dir.join("state"));
    let options = "--listen 127.0.0.1:0 --memory-limit 64M --state-dir";
    serve.args(["serve", &disk]).args(words(options)).arg(state);
    let ran = tool::run(&mut serve, LIMIT).unwrap();
    let is_told = !ran.good() && ran.output.contains("mount /proc");
    assert!(is_told, "{}", ran.output);
}
