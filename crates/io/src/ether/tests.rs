//! One suite for every port, and what is peculiar to each.

mod cable;
mod dcb;
mod every;
mod fast_path;
mod interfaces;
mod link;
mod packet;
mod sharing;
mod survey;
mod xdp;

use std::env;
use std::fs::File;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::{EtherMac, EtherOptions, EtherPort, LinkStatus, Place};

const LONG: Duration = Duration::from_secs(10);
const SHORT: Duration = Duration::from_millis(30);

/// A frame and the tag that came with it.
type Taken = (Vec<u8>, Option<u16>);

const FCOE: u16 = 0x8906;
const FIP: u16 = 0x8914;

/// A frame of so many bytes.
fn frame(to: EtherMac, ethertype: u16, len: usize) -> Vec<u8> {
    let header = [&to[..], &[0x02, 0, 0, 0, 0, 0x77], &ethertype.to_be_bytes()].concat();
    let pattern = (header.len()..len).map(|at| (at * 7 + at / 251) as u8);
    header.iter().copied().chain(pattern).collect()
}

#[track_caller]
fn put(port: &mut EtherPort, frame: &[u8]) {
    port.slot(frame.len()).unwrap().copy_from_slice(frame);
    port.commit(frame.len());
}

#[track_caller]
fn send(port: &mut EtherPort, frame: &[u8]) {
    put(port, frame);
    assert!(port.flush().unwrap());
}

/// Whether the port becomes ready in time.
fn ready(port: &EtherPort, within: Duration) -> bool {
    let mut list = [PollFd::new(&**port.waited(), PollFlags::IN)];
    poll(&mut list, Some(&Timespec::try_from(within).unwrap())).unwrap() > 0
}

/// So many frames, waited for.
#[track_caller]
fn receive(port: &mut EtherPort, count: usize) -> Vec<Taken> {
    let mut taken = Vec::new();
    while taken.len() < count {
        assert!(ready(port, LONG), "{} of {count} frames", taken.len());
        port.receive(|frame, tag| taken.push((frame.to_vec(), tag)));
    }
    taken
}

/// That nothing comes in.
#[track_caller]
fn quiet(port: &mut EtherPort) {
    let deadline = Instant::now() + SHORT;
    while let Some(left) = deadline.checked_duration_since(Instant::now()) {
        ready(port, left);
        port.receive(|frame, tag| panic!("{frame:x?} {tag:?}"));
    }
}

/// The news that come next.
#[track_caller]
fn news(port: &mut EtherPort) -> LinkStatus {
    let deadline = Instant::now() + LONG;
    loop {
        assert!(Instant::now() < deadline && ready(port, LONG), "no news");
        port.receive(|_, _| {});
        if let Some(link) = port.news().unwrap() {
            assert_eq!(port.link(), link);
            return link;
        }
    }
}

/// Leaves this process no descriptor, until the result is dropped.
fn no_more_descriptors() -> Vec<File> {
    let before = getrlimit(Resource::Nofile);
    let current = Some(64);
    setrlimit(Resource::Nofile, Rlimit { current, ..before }).unwrap();
    std::iter::repeat_with(|| File::open("/dev/null"))
        .map_while(Result::ok)
        .collect()
}

/// Two ports that are connected with each other.
struct Pair {
    a: EtherPort,
    b: EtherPort,
    /// Of a cable.
    _folder: Option<Folder>,
}

impl Pair {
    fn cable() -> Self {
        let folder = Folder::new();
        let place = folder.cable();
        Self {
            a: EtherPort::open(&place, &EtherOptions::default()).unwrap(),
            b: EtherPort::open(&place, &EtherOptions::default()).unwrap(),
            _folder: Some(folder),
        }
    }

    fn veth(options: &EtherOptions) -> Self {
        Self::at(["va", "vb"], options)
    }

    fn xdp() -> Self {
        Self::at(["xdp:va", "xdp:vb"], &EtherOptions::default())
    }

    fn at(places: [&str; 2], options: &EtherOptions) -> Self {
        let [mut a, mut b] = places
            .map(|place| EtherPort::open(&place.parse().unwrap(), options))
            .map(Result::unwrap);
        // Each may hear that the interface of the other has changed.
        for port in [&mut a, &mut b] {
            while ready(port, Duration::ZERO) {
                port.receive(|_, _| {});
                port.news().unwrap();
            }
        }
        let _folder = None;
        Self { a, b, _folder }
    }
}

/// A folder that goes with its owner.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        let random = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic).tv_nsec;
        let name = format!("lunar-ether-{}-{random}", std::process::id());
        let path = env::temp_dir().join(name);
        std::fs::create_dir(&path).unwrap();
        Self(path)
    }

    fn cable(&self) -> Place {
        Place::Cable(self.0.join("x.sock"))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Runs a story where two interfaces, `va` and `vb`, are connected with each other: this very test
/// once more in a network namespace of its own, as interfaces and privileges are a process's.
fn in_namespace(test: &str, mtu: u32, story: fn()) {
    if env::var_os(INSIDE).is_some() {
        ip("link set lo up");
        ip(&format!(
            "link add va mtu {mtu} type veth peer name vb mtu {mtu}"
        ));
        ip("link set va up");
        ip("link set vb up");
        return story();
    }
    let (_, name) = test.split_once("::").unwrap();
    let mapped = (!rustix::process::geteuid().is_root()).then_some("--map-root-user");
    let inside = Command::new("unshare")
        .args(mapped)
        .arg("--net")
        .arg(env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env(INSIDE, "1")
        .output()
        .expect("unshare (package util-linux)");
    let told = String::from_utf8_lossy(&inside.stdout);
    let errors = String::from_utf8_lossy(&inside.stderr);
    let passed = inside.status.success() && told.contains("1 passed");
    assert!(passed, "{told}{errors}");
}

const INSIDE: &str = "LUNAR_ETHER_NAMESPACE";

#[track_caller]
fn ip(arguments: &str) {
    iproute2("ip", arguments);
}

#[track_caller]
fn tc(arguments: &str) {
    iproute2("tc", arguments);
}

#[track_caller]
fn iproute2(program: &str, arguments: &str) {
    let done = Command::new(program).args(arguments.split(' ')).status();
    let done = done.unwrap_or_else(|cause| panic!("{program} (package iproute2): {cause}"));
    assert!(done.success(), "{program} {arguments}");
}

/// Makes tests of stories, each with its interfaces of this MTU.
macro_rules! on_veth {
    ($mtu:literal: $($story:ident)*) => {
        $(#[test]
        fn $story() {
            let name = concat!(module_path!(), "::", stringify!($story));
            crate::ether::tests::in_namespace(name, $mtu, super::$story);
        })*
    };
}
use on_veth;

/// As [`on_veth`], for what a user may not do even in a namespace of his own.
macro_rules! on_veth_as_root {
    ($mtu:literal: $($story:ident)*) => {
        $(#[test]
        fn $story() {
            let name = concat!(module_path!(), "::", stringify!($story));
            if !rustix::process::geteuid().is_root() {
                return crate::ether::tests::not_run(name);
            }
            crate::ether::tests::in_namespace(name, $mtu, super::$story);
        })*
    };
}
use on_veth_as_root;

/// Past what captures the output of tests that pass, for `./check` to count and to name.
fn not_run(test: &str) {
    let words = format!(
        "\nnot run: {test}: it needs root\ntest result: ok. 0 passed; 0 failed; 1 not run\n"
    );
    let _ = std::io::stderr().write_all(words.as_bytes());
}
