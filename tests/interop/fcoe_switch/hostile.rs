//! A host that does what it likes at one cable, beside a pair that is under load at two others.
//!
//! Nothing of the pair comes to the hostile host, nothing of it to the pair; the data of the pair
//! are right, memory does not grow, and the log has few lines.
//!
//! How fast the pair is meanwhile is printed and not judged, as other tests run beside this one
//! (docs/performance.md):
//! `LUNAR_SIEGE_TURNS=9 cargo test -p tests --test interop siege -- --nocapture`.

use std::io::ErrorKind;
use std::ops::Range;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Child, Output, Stdio};
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
            // Its processor is the pair's here.
            thread::sleep(Duration::from_millis(1));
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

    /// Does what it can for so long.
    fn attack(&mut self, known: &Known, attack: &mut Attack, time: Duration) {
        let until = Instant::now() + time;
        while Instant::now() < until {
            self.stay(known);
            self.send(&attack.next(known));
        }
    }

    /// Only listens for so long, but says as much to itself as it has sent at this rate: the
    /// processors that it takes for that are the pair's.
    fn rest(&mut self, known: &Known, per_ms: u64, time: Duration) {
        let (there, here) = UnixDatagram::pair().unwrap();
        let (mut unsent, mut frame) = (Attack::default(), [0; 4096]);
        let until = Instant::now() + time;
        while Instant::now() < until {
            self.stay(known);
            while self.hear(|_, _| None::<()>).is_some() {}
            for _ in 0..per_ms {
                there.send(&unsent.next(known)).unwrap();
                here.recv(&mut frame).unwrap();
            }
            thread::sleep(Duration::from_millis(1));
        }
    }
}

/// All that a hostile host can do, again and again.
#[derive(Default)]
struct Attack {
    rounds: u32,
    kind: usize,
    number: u32,
}

impl Attack {
    /// The next frame.
    fn next(&mut self, known: &Known) -> Vec<u8> {
        let (_, count, forge) = KINDS[self.kind];
        let frame = forge(known, self.rounds.wrapping_mul(count) + self.number);
        self.number += 1;
        if self.number == count {
            self.number = 0;
            self.kind += 1;
        }
        if self.kind == KINDS.len() {
            self.kind = 0;
            self.rounds += 1;
        }
        frame
    }
}

#[test]
fn a_siege_beside_a_loaded_pair() {
    let besieged = Besieged::start("switch-siege");
    let mut hostile = Hostile::plug(&besieged.fabric.dir);
    let turns = turns();
    let load = besieged.load(TURN * 2 * turns);
    let load = thread::spawn(|| (load.wait_with_output().unwrap(), Instant::now()));
    let known = hostile.log_in(besieged.pair());
    let (mut attack, mut sieges, mut memory) = (Attack::default(), Vec::new(), Vec::new());
    while !load.is_finished() {
        let (begun, sent) = (Instant::now(), hostile.sent);
        hostile.attack(&known, &mut attack, TURN);
        sieges.push(begun..Instant::now());
        memory.push(besieged.resident());
        let per_ms = (hostile.sent - sent) / TURN.as_millis() as u64;
        hostile.rest(&known, per_ms, TURN);
    }
    // All kinds once, and what is remembered of them.
    while attack.rounds < 2 {
        hostile.attack(&known, &mut attack, TURN);
        memory.push(besieged.resident());
    }
    let (ran, ended) = load.join().unwrap();
    let [quiet, loud] = rates(&ran, ended, &sieges);
    eprintln!(
        "{} frames in {turns} turns: {quiet} and {loud} IOPS, {:.2}; {} KiB, then {} KiB",
        hostile.sent,
        loud / quiet,
        memory[0] >> 10,
        memory[memory.len() - 1] >> 10,
    );
    besieged.ends_well(&hostile, &memory);
}

fn turns() -> u32 {
    let set = std::env::var("LUNAR_SIEGE_TURNS").ok();
    set.map_or(1, |turns| turns.parse().unwrap())
}

fn median(mut all: Vec<f64>) -> f64 {
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
    fn load(&self, time: Duration) -> Child {
        let load = format!(
            "bench {} --json --fill --verify --rw randrw --bs 4k --iodepth 16 --runtime {}s",
            self.unit,
            time.as_secs()
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

/// I/Os a second of a load that came to its end well at `ended`, medians of its intervals: while
/// the hostile host rested, and while it attacked.
fn rates(ran: &Output, ended: Instant, sieges: &[Range<Instant>]) -> [f64; 2] {
    let said = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert!(ran.status.success(), "{said}");
    let outcome: Value = serde_json::from_slice(&ran.stdout).unwrap();
    let row = &outcome["rows"][0];
    for direction in ["reads", "writes"] {
        assert_eq!(row[direction]["errors"], 0, "{said}");
    }
    let begun = ended - Duration::from_micros(row["runtime_us"].as_u64().unwrap());
    let (mut quiet, mut loud, mut last) = (Vec::new(), Vec::new(), 0);
    for interval in row["series"].as_array().unwrap() {
        let number = |name: &str| interval[name].as_u64().unwrap();
        let end = number("end_ms");
        let rate = number("ios") as f64 * 1e3 / (end - last) as f64;
        let [from, until] = [last, end].map(|ms| begun + Duration::from_millis(ms));
        if sieges
            .iter()
            .any(|siege| siege.start + EDGE < from && until + EDGE < siege.end)
        {
            loud.push(rate);
        } else if sieges
            .iter()
            .all(|siege| until + EDGE < siege.start || siege.end + EDGE < from)
        {
            quiet.push(rate);
        }
        last = end;
    }
    [quiet, loud].map(median)
}

/// For how long the hostile host attacks, and then rests.
const TURN: Duration = Duration::from_secs(4);

/// What is not counted at either end of that, as the clocks of two processes are compared.
const EDGE: Duration = Duration::from_millis(300);

/// The switch waits for two and a half times 1 s.
const KEEP_ALIVE: Duration = Duration::from_millis(400);

/// Lines about the hostile host within a minute: 64 of logins, 16 and one a second of logins that
/// are rejected, 16 of each rule that it breaks.
const LINES_MAX: u64 = 256;

/// What the switch may take: by the table of docs/design.md.
const MEMORY_MAX: u64 = 64 << 20;

/// What it may take more than after the first turn, when not all kinds were sent yet: 16,384
/// N_Port_IDs are remembered after two rounds.
const GROWTH_MAX: u64 = 8 << 20;
