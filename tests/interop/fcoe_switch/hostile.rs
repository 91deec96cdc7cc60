//! A host that does what it likes at one cable, beside a pair that is under load at two others.
//!
//! Nothing of the pair comes to the hostile host, nothing of it to the pair; the data of the pair
//! are right, memory does not grow, and the log has few lines.
//!
//! How fast the pair is meanwhile is printed and not judged, as other tests run beside this one
//! (docs/performance.md):
//! `LUNAR_SIEGE_ROUNDS=9 cargo test -p tests --test interop siege -- --nocapture`.

use std::io::ErrorKind;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use fc::fabric::DropReason;
use fc::tests::EnodeFrames;
use fc::wire::ethernet::{self, EthernetHeader, Mac};
use fc::wire::fcoe;
use fc::wire::fip::{Descriptor, FipMessage, FipOperation, Flags};
use fc::wire::names::FcId;
use serde_json::Value;
use tests::process::resident;

use super::hostile_frames::{KINDS, Known};
use super::{Fabric, members};
use crate::{LIMIT, lunar, words};

/// The hostile host's end of a cable. It hears all that is sent to it, whatever the address.
struct Hostile {
    /// Not connected: the switch sends from a socket without a name.
    socket: UnixDatagram,
    switch: PathBuf,
    /// Frames of FCoE that came: S_ID and D_ID.
    heard: Vec<(FcId, FcId)>,
    sent: u64,
    /// When it sent its last keep alive.
    alive: Instant,
}

impl Hostile {
    fn plug(dir: &Path) -> Self {
        let socket = UnixDatagram::bind(dir.join("c.peer")).unwrap();
        socket.set_nonblocking(true).unwrap();
        Self {
            socket,
            switch: dir.join("c"),
            heard: Vec::new(),
            sent: 0,
            alive: Instant::now(),
        }
    }

    /// Sends a frame when the switch takes it, and hears what comes meanwhile.
    fn send(&mut self, frame: &[u8]) {
        let until = Instant::now() + LIMIT;
        loop {
            match self.socket.send_to(frame, &self.switch) {
                Ok(_) => break self.sent += 1,
                Err(cause) if cause.kind() == ErrorKind::WouldBlock => {}
                Err(cause) => panic!("{cause}"),
            }
            assert!(Instant::now() < until, "the switch takes no frames");
            while self.hear(|_, _| None::<()>).is_some() {}
            thread::yield_now();
        }
    }

    /// The next frame, if there is one, and what `wanted` finds in it.
    fn hear<T>(
        &mut self,
        wanted: impl Fn(&EthernetHeader, &[u8]) -> Option<T>,
    ) -> Option<Option<T>> {
        let mut frame = [0; 4096];
        let len = self.socket.recv(&mut frame).ok()?;
        let (header, payload) = EthernetHeader::parse(&frame[..len]).unwrap();
        if header.ethertype == ethernet::FCOE {
            let header = fcoe::decode(payload).unwrap().header;
            self.heard.push((header.s_id, header.d_id));
        }
        Some(wanted(&header, payload))
    }

    /// Says something until `wanted` finds the answer.
    fn ask<T>(
        &mut self,
        frame: &[u8],
        wanted: impl Fn(&EthernetHeader, &FipMessage<'_>) -> Option<T>,
    ) -> T {
        let until = Instant::now() + LIMIT;
        loop {
            self.send(frame);
            thread::sleep(Duration::from_millis(100));
            let fip = |header: &EthernetHeader, payload: &[u8]| {
                let message = FipMessage::parse(payload).ok();
                message
                    .filter(|_| header.ethertype == ethernet::FIP)
                    .and_then(|one| wanted(header, &one))
            };
            while let Some(found) = self.hear(fip) {
                if let Some(found) = found {
                    return found;
                }
            }
            assert!(Instant::now() < until, "no answer");
        }
    }

    /// Logs in, as a host that is right.
    fn log_in(&mut self, pair: [(Mac, FcId); 2]) -> Known {
        let mut own = EnodeFrames::new(Mac([2, 9, 9, 0xff, 0xff, 1]), Mac::ALL_FCF);
        own.fcf = self.ask(&own.solicitation(2158), |header, message| {
            message.flags.has(Flags::SOLICITED).then_some(header.src)
        });
        let fc_id = self.ask(&own.flogi(1), |_, message| {
            let is_reply = message.operation == FipOperation::ElsReply;
            let first = message.descriptors().next().filter(|_| is_reply)?;
            match first {
                Ok(Descriptor::Els(els)) => Some(els.header.d_id),
                _ => None,
            }
        });
        Known { own, fc_id, pair }
    }

    /// Its own login does not end by silence.
    fn stay(&mut self, known: &Known) {
        if self.alive.elapsed() > KEEP_ALIVE {
            self.alive = Instant::now();
            self.send(&known.own.keep_alive());
        }
    }

    /// All that it can do, once.
    fn attack(&mut self, known: &Known, round: u32) {
        for (_, count, forge) in KINDS {
            for number in 0..count {
                self.stay(known);
                self.send(&forge(known, round.wrapping_mul(count) + number));
            }
        }
    }
}

#[test]
fn a_siege_beside_a_loaded_pair() {
    let besieged = Besieged::start("switch-siege");
    let mut hostile = Hostile::plug(&besieged.fabric.dir);
    let (mut quiet, mut loud, mut memory) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rounds() {
        quiet.push(iops(besieged.load()));
        let mut load = besieged.load();
        let known = hostile.log_in(besieged.pair());
        // Another time after it has ended, so that it is one round at the least.
        let mut is_over = false;
        while !is_over {
            is_over = load.try_wait().unwrap().is_some();
            hostile.attack(&known, memory.len() as u32);
            memory.push(besieged.resident());
        }
        loud.push(iops(load));
    }
    eprintln!(
        "{} rounds of {} frames: {} and {} IOPS, {:.2}; {} KiB, then {} KiB",
        memory.len(),
        hostile.sent,
        median(&mut quiet),
        median(&mut loud),
        median(&mut loud) / median(&mut quiet),
        memory[0] >> 10,
        memory[memory.len() - 1] >> 10,
    );
    besieged.ends_well(&hostile, &memory);
}

fn rounds() -> usize {
    let set = std::env::var("LUNAR_SIEGE_ROUNDS").ok();
    set.map_or(1, |rounds| rounds.parse().unwrap())
}

fn median(all: &mut [f64]) -> f64 {
    all.sort_by(f64::total_cmp);
    all[all.len() / 2].round()
}

/// The pair: a server, and the user of its unit, whose zone has no other member.
struct Besieged {
    fabric: Fabric,
    server: tests::server::Server,
    unit: String,
    begun: Instant,
}

impl Besieged {
    fn start(name: &str) -> Self {
        let dir = tests::scratch(name).unwrap();
        let (zones, state) = (dir.join("zones"), dir.join("state"));
        let pair = members(&dir, &["a", "b"]);
        let text = format!("zone pair = {pair}\nzoneset day = pair\nactive day\n");
        std::fs::write(&zones, text).unwrap();
        let options = [
            "--zones",
            zones.to_str().unwrap(),
            "--state",
            state.to_str().unwrap(),
        ];
        let fabric = Fabric::with_cables(dir, &["a", "b", "c"], &options);
        let (server, unit) = fabric.serve(&["ram:16M"]);
        Self {
            fabric,
            server,
            unit,
            begun: Instant::now(),
        }
    }

    /// A load that verifies what it reads.
    fn load(&self) -> Child {
        let load = format!(
            "bench {} --json --fill --verify --rw randrw --bs 4k --iodepth 16 --runtime 3s",
            self.unit
        );
        let mut command = lunar(&words(&load));
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    }

    /// The ENodes and N_Port_IDs that the switch logged for the cables of the pair.
    fn pair(&self) -> [(Mac, FcId); 2] {
        ["a", "b"].map(|name| {
            let place = super::cable(&self.fabric.dir, name);
            self.fabric.logs(&format!("{place}: 2"));
            let log = self.fabric.log();
            let line = log.lines().rev().find(|line| {
                line.contains(&format!("{place}: ")) && line.contains("has logged in as")
            });
            parse(line.unwrap_or_else(|| panic!("{place}: {log}")))
        })
    }

    fn resident(&self) -> u64 {
        resident(self.fabric.switch.id()).unwrap()
    }

    /// Nothing went astray, and what the switch keeps and logs of the hostile host is bounded.
    fn ends_well(self, hostile: &Hostile, memory: &[u64]) {
        let astray = hostile.heard.iter().find(|(from, _)| !from.is_well_known());
        assert_eq!(astray, None, "a frame of another port");
        let place = super::cable(&self.fabric.dir, "c");
        let log = self.fabric.log();
        let lines = log.lines().filter(|line| line.contains(&place)).count() as u64;
        let minutes = self.begun.elapsed().as_secs() / 60 + 1;
        assert!(lines < LINES_MAX * minutes, "{lines} lines: {log}");
        self.fabric.signal("-USR1");
        self.fabric.logs("messages sent");
        let log = self.fabric.log();
        for name in ["a", "b"] {
            let place = super::cable(&self.fabric.dir, name);
            let of_place = log
                .lines()
                .filter(|line| line.contains(&format!("{place}: ")));
            // Answers to a load that has ended have nowhere to go.
            let reasons = DropReason::ALL
                .iter()
                .filter(|why| **why != DropReason::NoSuchPort);
            let names: Vec<_> = reasons.map(|why| format!("({})", why.name())).collect();
            let lost = of_place.filter(|line| names.iter().any(|name| line.contains(name)));
            assert_eq!(lost.collect::<Vec<_>>(), Vec::<&str>::new());
        }
        let (first, last) = (memory[0], memory[memory.len() - 1]);
        assert!(last < first + GROWTH_MAX, "{first}, then {last} bytes");
        assert!(last < MEMORY_MAX, "{last} bytes");
        self.server.stop_well().unwrap();
    }
}

/// `cable:a: 20:… (02:…) has logged in as 0x010101`.
fn parse(line: &str) -> (Mac, FcId) {
    let (_, enode) = line.rsplit_once('(').unwrap();
    let (mac, fc_id) = enode.split_once(") has logged in as 0x").unwrap();
    let mut octets = mac
        .split(':')
        .map(|octet| u8::from_str_radix(octet, 16).unwrap());
    let mac = Mac(std::array::from_fn(|_| octets.next().unwrap()));
    (mac, FcId(u32::from_str_radix(fc_id.trim(), 16).unwrap()))
}

/// I/Os a second of a load that came to its end well.
fn iops(load: Child) -> f64 {
    let ran = load.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert!(ran.status.success(), "{said}");
    let outcome: Value = serde_json::from_slice(&ran.stdout).unwrap();
    let row = &outcome["rows"][0];
    let number = |value: &Value| value.as_f64().unwrap();
    for direction in ["reads", "writes"] {
        assert_eq!(row[direction]["errors"], 0, "{said}");
    }
    let ios = number(&row["reads"]["ios"]) + number(&row["writes"]["ios"]);
    assert!(ios > 0.0, "{said}");
    ios * 1e6 / number(&row["runtime_us"])
}

/// The switch waits for two and a half times 1 s.
const KEEP_ALIVE: Duration = Duration::from_millis(400);

/// Lines about the hostile host within a minute: 64 of logins, 16 and one a second of logins that
/// are rejected, 16 of each rule that it breaks.
const LINES_MAX: u64 = 256;

/// What the switch may take: by the table of docs/design.md.
const MEMORY_MAX: u64 = 64 << 20;

/// What it may take more after the first round: 16,384 N_Port_IDs are remembered after the second.
const GROWTH_MAX: u64 = 8 << 20;
