//! `--pin` and `--busy-poll`: on which CPUs threads run, and on which core sessions live.

use std::collections::BTreeMap;
use std::fs;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::namespace::Namespace;
use crate::rig::{LUNAR, PATIENCE, Ran, Run, first_line, folder, lunar, signal};

const TARGET: &str = "iqn.2026-11.org.example:san";

/// The CPUs that a thread may run on, as the kernel lists them.
fn cpus(status: &str) -> String {
    let status = fs::read_to_string(status).unwrap();
    let mut lines = status.lines();
    let list = lines.find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    list.unwrap().trim().to_owned()
}

/// The first and the last of those that this process may run on; they are one on a small machine.
fn own_cpus() -> (usize, usize) {
    let list = cpus("/proc/self/status");
    let mut numbers = list.split([',', '-']).map(|one| one.parse().unwrap());
    let first = numbers.next().unwrap();
    (first, numbers.next_back().unwrap_or(first))
}

/// The CPUs of each thread of a process, by the name of the thread.
fn threads(pid: u32) -> BTreeMap<String, String> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let tasks = tasks.map(|task| task.unwrap().path().display().to_string());
    let named = tasks.map(|task| {
        let name = fs::read_to_string(format!("{task}/comm")).unwrap();
        (name.trim().to_owned(), cpus(&format!("{task}/status")))
    });
    named.collect()
}

#[test]
fn each_thread_runs_on_its_cpu_and_others_where_they_may() {
    let (first, last) = own_cpus();
    let list = if first == last {
        first.to_string()
    } else {
        // The order of the list is that of the threads.
        format!("{last},{first}")
    };
    for ring in ["uring", "epoll"] {
        let namespace = Namespace::new();
        namespace.sh("ip link set lo up");
        let options = format!("--ring {ring} --pin {list}");
        let server = namespace.start(&format!("serve ram:1M --listen 127.0.0.1:0 {options}"));
        let threads = threads(server.id());
        assert_eq!(threads["lunar-0"], last.to_string(), "{threads:?}");
        if first != last {
            assert_eq!(threads["lunar-1"], first.to_string(), "{threads:?}");
        }
        let everywhere = cpus("/proc/self/status");
        for name in ["lunar", "lunar-file"] {
            assert_eq!(threads[name], everywhere, "{ring}: {threads:?}");
        }
    }
}

#[test]
fn a_cpu_that_cannot_be_had_is_told_with_those_that_can() {
    let (first, last) = own_cpus();
    let missing = last + 1;
    let line = lunar(&format!("serve ram:1M --pin {first},{missing}")).refused(2);
    let told = format!("no thread can be pinned to CPU {missing}: ");
    assert!(line.contains(&told), "{line}");
    let available = cpus("/proc/self/status");
    assert!(
        line.ends_with(&format!("choose from {available}")),
        "{line}"
    );
    if first != last {
        // Those that are there and not for this process are no better.
        let mut bound = Command::new("taskset");
        let bound = bound.args(["-c", &first.to_string(), LUNAR, "serve", "ram:1M"]);
        let line = bound.args(["--pin", &last.to_string()]).refused(2);
        assert!(line.ends_with(&format!("choose from {first}")), "{line}");
    }
}

/// On kernels before Linux 6.9 it says so, and does not start.
#[test]
fn network_cards_are_polled_or_it_is_told_why_not() {
    for ring in ["uring", "epoll"] {
        let options = format!("--listen 127.0.0.1:0 --ring {ring} --busy-poll 50us");
        let mut server = lunar(&format!("serve ram:1M {options}"));
        let server = server.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut server = server.spawn().unwrap();
        let line = first_line(&mut server);
        if line.is_empty() {
            let ended = Ran::from(server.wait_with_output().unwrap());
            assert_eq!(ended.err.lines().count(), 1, "{}", ended.err);
            assert!(ended.err.contains("cannot busy-poll"), "{}", ended.err);
            continue;
        }
        let address = line.split(' ').next().unwrap();
        let ran = lunar(&format!("bench {address} --rw randrw --verify --runtime 1")).ran();
        assert_eq!(ran.code, Some(0), "{ring}: {}", ran.err);
        signal("TERM", server.id());
        server.wait().unwrap();
    }
}

#[test]
fn what_contradicts_a_list_of_cpus_is_told_with_the_way_out() {
    let (first, _) = own_cpus();
    lunar(&format!("serve ram:1M --threads 3 --pin {first}"))
        .refused_with(2, "omit --threads, or list 3 CPUs");
    lunar("serve ram:1M --poll always --busy-poll 50us")
        .refused_with(2, "give --poll never or adaptive, or omit --busy-poll");
}

/// A daemon with two pinned cores in a namespace, and another one beside that, at the other end of
/// a cable.
struct Daemon {
    process: Child,
    here: Namespace,
    there: Namespace,
    folder: String,
}

impl Daemon {
    fn start(pin: &str) -> Self {
        let here = Namespace::new();
        let there = here.beside();
        let add = "ip link add va type veth peer name vb netns";
        here.sh(&format!("{add} {} && ip link set va up", there.id()));
        here.sh("ip link set lo up && ip address add 192.0.2.1/24 dev va");
        there.sh("ip link set vb up && ip address add 192.0.2.2/24 dev vb");
        let folder = folder("pinned").display().to_string();
        let config = format!("{folder}/lunar.toml");
        let text = format!(
            "version = 1\n[daemon]\npin = \"{pin}\"\n[volume.v]\n\
             address = \"ram:8M\"\n[target.\"{TARGET}\"]\n\
             portals = [\"192.0.2.1:3260\"]\nluns = {{ 0 = \"v\" }}\nallow = [\"*\"]\n"
        );
        fs::write(&config, text).unwrap();
        let mut daemon = here.command("setpriv");
        daemon.args(["--pdeathsig", "KILL", LUNAR, "daemon", "--config", &config]);
        daemon.args(["--state-dir", &folder]);
        daemon.args(["--socket", &format!("{folder}/socket")]);
        let process = daemon.stderr(Stdio::null()).spawn().unwrap();
        let daemon = Self {
            process,
            here,
            there,
            folder,
        };
        daemon.cores(0);
        daemon
    }

    /// What a verb says to the daemon.
    fn lunar(&self, line: &str) -> Command {
        self.here
            .lunar(&format!("{line} --socket {}/socket", self.folder))
    }

    /// The cores of its sessions, once it has as many.
    #[track_caller]
    fn cores(&self, sessions: usize) -> Vec<u64> {
        let until = Instant::now() + PATIENCE;
        loop {
            let ran = self.lunar("sessions --json").ran();
            let found = serde_json::from_str::<Vec<Value>>(&ran.out);
            if let Ok(found) = &found
                && found.len() == sessions
            {
                return found
                    .iter()
                    .filter_map(|one| one["core"].as_u64())
                    .collect();
            }
            assert!(Instant::now() < until, "{found:?}: {}", ran.err);
            thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// What comes over a cable of the kernel is taken by the CPU of who sent it. The load has looked at
/// the disk by another session before; where the end of that is still on its way, the next one is
/// better off on the other core, so there are several tries.
#[test]
fn a_session_lives_on_the_core_whose_cpu_its_packets_come_in_at() {
    let (first, last) = own_cpus();
    if first == last {
        return eprintln!("SKIPPED: one CPU");
    }
    let daemon = Daemon::start(&format!("{first},{last}"));
    for (core, cpu) in [(1, last), (0, first)] {
        let tries = (0..10).map(|_| {
            let mut host = daemon.there.command("taskset");
            host.args(["-c", &cpu.to_string(), LUNAR, "bench", "--runtime", "30s"]);
            let host = host.arg(format!("iscsi://192.0.2.1/{TARGET}/0"));
            let host = host.stdout(Stdio::null()).stderr(Stdio::null());
            let mut host = host.spawn().unwrap();
            let found = daemon.cores(1);
            host.kill().unwrap();
            host.wait().unwrap();
            daemon.cores(0);
            found
        });
        let found: Vec<_> = tries.take_while(|found| *found != [core]).collect();
        assert!(found.len() < 10, "from CPU {cpu}: {found:?}");
    }
}
