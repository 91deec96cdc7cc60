//! What the seeds typed into targetcli, typed into the shell of a daemon that runs: the answers are
//! those of the seeds, and hosts at the other end of a cable find the LUNs.

use std::fs;
use std::process::Stdio;
use std::process::{Command, Output};

use tests::{server, tool};

use super::rig::Rig;
use super::{LoopDevice, says};

/// A line that is typed, with the answer that a seed shows.
struct Line {
    typed: String,
    answer: Vec<String>,
    /// It cannot work; the words of the refusal.
    cannot: Option<String>,
}

/// The lines before hosts look, and those behind.
fn transcript(name: &str) -> [Vec<Line>; 2] {
    let path = tests::top().join("tests/transcripts").join(name);
    let (mut parts, mut part) = ([Vec::<Line>::new(), Vec::new()], 0);
    let mut cannot = None;
    for line in fs::read_to_string(path).unwrap().lines() {
        if let Some(typed) = line.strip_prefix("/> ") {
            parts[part].push(Line {
                typed: typed.to_owned(),
                answer: Vec::new(),
                cannot: cannot.take(),
            });
        } else if let Some(words) = line.strip_prefix("# cannot: ") {
            cannot = Some(words.to_owned());
        } else if line.starts_with("# Hosts look") {
            part = 1;
        } else if !line.starts_with('#') {
            parts[part].last_mut().unwrap().answer.push(line.to_owned());
        }
    }
    parts
}

/// How lines come to the shell.
#[derive(Clone, Copy, Debug)]
enum Way {
    /// `lunar shell LINE`, a process each.
    OneShot,
    /// `lunar as targetcli WORD…`, a process each.
    AsTargetcli,
    /// Standard input: one process until a name that was left to chance has to be known.
    Stdin,
}

/// Someone who types.
struct Typist<'a> {
    rig: &'a Rig,
    way: Way,
    /// What braces stand for.
    names: Vec<(&'static str, String)>,
    /// Lines that cannot work.
    cannot: Vec<String>,
}

impl<'a> Typist<'a> {
    fn new(rig: &'a Rig, way: Way) -> Self {
        Self {
            rig,
            way,
            names: Vec::new(),
            cannot: Vec::new(),
        }
    }

    fn named(&self, text: &str) -> String {
        let names = self.names.iter();
        names.fold(text.to_owned(), |text, (name, value)| {
            text.replace(name, value)
        })
    }

    /// Types lines, and compares what comes back.
    fn run(&mut self, lines: &[Line]) {
        let mut waiting: Vec<&Line> = Vec::new();
        for line in lines {
            let is_known = !self.named(&line.typed).contains("{iqn}");
            if matches!(self.way, Way::Stdin) && line.cannot.is_none() && is_known {
                waiting.push(line);
                continue;
            }
            self.type_in(&std::mem::take(&mut waiting));
            match (&line.cannot, self.way) {
                (Some(words), _) => self.refused(line, words),
                (None, Way::Stdin) => waiting.push(line),
                (None, _) => self.type_in(&[line]),
            }
        }
        self.type_in(&waiting);
    }

    fn type_in(&mut self, lines: &[&Line]) {
        if lines.is_empty() {
            return;
        }
        let typed: Vec<_> = lines.iter().map(|line| self.named(&line.typed)).collect();
        let output = match self.way {
            Way::OneShot => self.shell(&["shell", &typed[0]], ""),
            Way::AsTargetcli => {
                let words = typed[0].split_whitespace();
                let args: Vec<_> = ["as", "targetcli"].into_iter().chain(words).collect();
                self.shell(&args, "")
            }
            Way::Stdin => self.shell(&["shell"], &(typed.join("\n") + "\n")),
        };
        let answer = String::from_utf8(output.stdout).unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{typed:?}: {answer}{said}");
        let iqn = answer.lines().find_map(|line| {
            let name = line.strip_prefix("Created target iqn.")?;
            Some(format!("iqn.{}", name.strip_suffix('.')?))
        });
        if let Some(iqn) = iqn {
            self.names.push(("{iqn}", iqn));
        }
        let expected = lines.iter().flat_map(|line| &line.answer);
        let expected: Vec<_> = expected.filter_map(|line| self.ours(line)).collect();
        let mut got = answer.lines().map(essence);
        for line in &expected {
            assert!(
                got.any(|got| got == *line),
                "{line:?} is not in order in\n{answer}"
            );
        }
    }

    /// A line of a seed's answer as it is here; none of what is not here.
    fn ours(&self, line: &str) -> Option<String> {
        let line = essence(&self.named(line));
        // Kernel modules of LIO.
        let foreign = ["pscsi", "rd_dr", "ib_srpt", "loopback", "qla2xxx"];
        if foreign
            .iter()
            .any(|name| line.starts_with(&format!("o- {name} ")))
        {
            return None;
        }
        // Zero is plural, as in seed 001.
        Some(line.replace("[0 Target]", "[0 Targets]"))
    }

    fn refused(&mut self, line: &Line, words: &str) {
        let output = self.shell(&["shell", &self.named(&line.typed)], "");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let said = said + &String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(1), "{}: {said}", line.typed);
        says(&said, &[words]);
        self.cannot.push(format!("{} ({words})", line.typed));
    }

    fn shell(&self, args: &[&str], input: &str) -> Output {
        let path = self.rig.path("typed");
        fs::write(&path, input).unwrap();
        let mut shell = self
            .rig
            .inside(None, server::binary().unwrap().to_str().unwrap());
        shell
            .args(args)
            .env("LUNAR_SOCKET", self.rig.path("socket"));
        shell.env("HOME", self.rig.folder.path());
        shell.stdin(Stdio::from(fs::File::open(&path).unwrap()));
        shell.output().unwrap()
    }

    /// Counts and names the lines that cannot work.
    fn tell(&self, seed: &str, lines: usize) {
        let (way, cannot) = (self.way, self.cannot.len());
        println!("seed {seed}, {way:?}: {cannot} of {lines} lines cannot work:");
        self.cannot.iter().for_each(|line| println!("  {line}"));
    }
}

/// A line without the dots between names and values, and without the branches before them: those
/// depend on how wide the terminal is, and on what stands below.
fn essence(line: &str) -> String {
    let line = line.trim_start_matches(['|', ' ']).trim_end();
    match (line.find(" .."), line.rfind(".. [")) {
        (Some(from), Some(to)) if line.starts_with("o- ") => {
            format!("{}{}", &line[..from], &line[to + 2..])
        }
        _ => line.to_owned(),
    }
}

/// A daemon at the interface `int0` with the addresses of seed 000, and a host at `eth0` of another
/// network, whose process is in `$FOLDER/host`.
const CABLE: &str = "
ip link set lo up
ip link add int0 address ac:de:48:23:45:67 mtu 2500 type veth \
    peer name eth0 address 00:00:5e:00:53:00 mtu 2500
setpriv --pdeathsig KILL unshare -n sleep 600 & host=$!
until ! [ /proc/$host/ns/net -ef /proc/$$/ns/net ]; do sleep 0.01; done
echo $host >$FOLDER/host
ip link set eth0 netns $host
ip link set int0 up
ip addr add 2001:db8::aede:48ff:fe23:4567/64 dev int0 nodad
ip addr add 10.10.1.3/24 dev int0
nsenter -t $host -n sh -c '
    ip link set lo up && ip link set eth0 up &&
    ip addr add 2001:db8::1/64 dev eth0 nodad && ip addr add 10.10.1.1/24 dev eth0'
";

/// A command at the other end of the cable.
fn at_host(rig: &Rig, program: &str) -> Command {
    let host = fs::read_to_string(rig.path("host")).unwrap();
    rig.inside(Some(host.trim().parse().unwrap()), program)
}

#[track_caller]
fn host_says(rig: &Rig, program: &str, args: &[&str]) -> String {
    let said = tool::must(at_host(rig, program).args(args));
    said.unwrap_or_else(|cause| panic!("{cause:#}\n{}", rig.log()))
}

const HOST: &str = "iqn.1993-08.org.debian:01:a41f7afa2fc8";

#[test]
fn seed_000_serves_one_volume_by_two_fabrics() {
    let rig = Rig::within(CABLE);
    let image = rig.path("fcoetest");
    fs::File::create(&image).unwrap().set_len(64 << 20).unwrap();
    let Some(device) = LoopDevice::new(&image) else {
        return;
    };
    let lines = transcript("seed-000.txt");
    let mut typist = Typist::new(&rig, Way::Stdin);
    let node = device.address().replace("block:", "");
    typist.names = vec![("{dev}", node), ("{host}", HOST.to_owned())];
    typist.run(&lines[0]);

    let lunar = server::binary().unwrap();
    let lunar = lunar.to_str().unwrap();
    // The ACL is of the port that a kernel makes; the first one of ours has a name of its own.
    let strange = host_says(&rig, lunar, &["ls", "fcoe://eth0"]);
    says(&strange, &["20:00:ac:de:48:23:45:67", "not logged in"]);
    assert!(!strange.contains("64.0 MiB"), "{strange}");
    let acls = "/tcm_fc/20:00:ac:de:48:23:45:67/acls";
    rig.says(&["shell", &format!("{acls} create 20:01:00:00:5e:00:53:00")]);
    let over_fcoe = host_says(&rig, lunar, &["ls", "fcoe://eth0"]);
    says(&over_fcoe, &["20:00:ac:de:48:23:45:67", "64.0 MiB"]);
    let portal = "[2001:db8::aede:48ff:fe23:4567]";
    let over_tcp = host_says(&rig, lunar, &["ls", portal, "--initiator", HOST]);
    says(&over_tcp, &["iqn.2000-01.arpa.ip6.f.e.8.0", "64.0 MiB"]);
    let url = format!("iscsi://{portal}");
    let libiscsi = host_says(&rig, "iscsi-ls", &["-s", "-i", HOST, &url]);
    says(&libiscsi, &["iqn.2000-01.arpa.ip6", "Lun:0", "Size:63M"]);
    let stranger = at_host(&rig, "iscsi-ls")
        .args(["-s", &url])
        .output()
        .unwrap();
    assert!(!String::from_utf8_lossy(&stranger.stdout).contains("Lun:0"));

    typist.run(&lines[1]);
    let gone = at_host(&rig, lunar)
        .args(["ls", "fcoe://eth0"])
        .output()
        .unwrap();
    assert!(!String::from_utf8_lossy(&gone.stdout).contains("64.0 MiB"));
    typist.tell("000", lines.iter().map(Vec::len).sum());
    assert_eq!(typist.cannot.len(), 2);
}

#[test]
fn seed_001_serves_a_ram_disk_whichever_way_it_is_typed() {
    for way in [Way::OneShot, Way::AsTargetcli, Way::Stdin] {
        let rig = Rig::within(CABLE);
        let [lines, _] = transcript("seed-001.txt");
        let mut typist = Typist::new(&rig, way);
        typist.run(&lines);
        let found = host_says(&rig, "iscsi-ls", &["-s", "iscsi://10.10.1.3"]);
        let iqn = typist.named("{iqn}");
        says(&found, &[&iqn, "Lun:0", "Size:49G"]);
        typist.tell("001", lines.len());
        assert_eq!(typist.cannot.len(), 0);
    }
}
