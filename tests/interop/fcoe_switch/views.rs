//! `fcping`, `fcnsq` and `fcrls` by ports of ours, line by line as fcoe-utils prints them.

use std::fs;
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tests::server::Server;

use super::{Fabric, cable};
use crate::{lunar, lunar_says, refused, says};

/// A port that `fcoeadm` shows.
struct Shown {
    place: String,
    device: String,
    fc_id: String,
    wwpn: String,
    wwnn: String,
    max_frame: u32,
}

impl Shown {
    /// The one at this place; there is one.
    #[track_caller]
    fn at(place: &str) -> Self {
        let told = lunar_says(&["fcoeadm", "-i", place]);
        let max_frame = value(&told, "MaxFrameSize");
        Self {
            place: place.to_owned(),
            device: value(&told, "OS Device Name"),
            fc_id: value(&told, "FC-ID (Port ID)"),
            wwpn: value(&told, "Port Name"),
            wwnn: value(&told, "Node Name"),
            max_frame: max_frame.trim_end_matches(" bytes").parse().unwrap(),
        }
    }
}

/// What stands behind a label of `fcoeadm`, the first one of that name.
#[track_caller]
fn value(told: &str, label: &str) -> String {
    let lines = told.lines().map(str::trim);
    let mut values = lines.filter_map(|line| line.strip_prefix(label)?.strip_prefix(':'));
    let value = values.next();
    let value = value.unwrap_or_else(|| panic!("no {label}: {told}"));
    value.trim().to_owned()
}

/// Lines in which times are `N`.
fn lines(told: &str) -> Vec<String> {
    let is_time = |word: &str| word.contains('.') && word.parse::<f64>().is_ok();
    let lines = told.lines().map(|line| {
        let words = line.split(' ');
        let words = words.map(|word| if is_time(word) { "N" } else { word });
        let words: Vec<_> = words.filter(|word| !word.is_empty()).collect();
        words.join(" ")
    });
    lines.collect()
}

/// Two servers in a fabric, each at a cable of its own, and a reader of the first one.
struct Scene {
    fabric: Fabric,
    reader: Reader,
    servers: [Server; 2],
}

impl Scene {
    fn start(name: &str) -> Self {
        let dir = tests::scratch(name).unwrap();
        let options = ["--open", "--domain", "77"];
        let fabric = Fabric::with_cables(dir, &["a", "b", "c"], &options);
        let servers = ["a", "b"].map(|name| {
            let own = fabric.dir.join(format!("server-{name}"));
            fs::create_dir(&own).unwrap();
            let place = format!("{},mode=fabric", cable(&fabric.dir, name));
            Server::start_in(&own, &["ram:16M"], &["--fcoe", &place]).unwrap()
        });
        for name in ["a", "b"] {
            fabric.logs(&format!("/{name}: 20:"));
        }
        let [from, place] = ["a", "c"].map(|name| cable(&fabric.dir, name));
        let unit = servers[0].address(0).replace(&from, &place);
        let mut bench = lunar(&["bench", &unit, "--rate-iops", "10", "--runtime", "300s"]);
        let bench = bench.stdout(Stdio::null()).stderr(Stdio::null());
        let scene = Self {
            reader: Reader(bench.spawn().unwrap()),
            fabric,
            servers,
        };
        scene.reader_is_up();
        scene
    }

    /// It looks at the unit by a port that ends before it reads by another one, so that it has to
    /// be up for a while.
    #[track_caller]
    fn reader_is_up(&self) {
        let until = Instant::now() + crate::LIMIT;
        let mut up_since = None;
        while up_since.is_none_or(|at: Instant| at.elapsed() < Duration::from_secs(3)) {
            assert!(Instant::now() < until, "the reader is not up");
            let is_up = self.targets().contains(": Online");
            up_since = up_since.or_else(|| Some(Instant::now())).filter(|_| is_up);
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// The targets that the reader knows, with one blank after each colon.
    fn targets(&self) -> String {
        let place = cable(&self.fabric.dir, "c");
        let told = tests::tool::run(&mut lunar(&["fcoeadm", "-t", &place]), crate::LIMIT);
        let told = told.unwrap().output;
        let words: Vec<_> = told
            .lines()
            .map(|line| crate::words(line).join(" "))
            .collect();
        words.join("\n")
    }

    /// The remote port of the reader that a server is.
    #[track_caller]
    fn rport(&self, server: &Shown) -> String {
        let told = self.targets();
        let mut ports = told.split("Interface:");
        let id = format!("FC-ID (Port ID): {}\n", server.fc_id);
        let port = ports.find(|port| port.contains(&id));
        value(port.unwrap_or_else(|| panic!("{told}")), "OS Device Name")
    }

    fn shown(&self, name: &str) -> Shown {
        Shown::at(&cable(&self.fabric.dir, name))
    }

    #[track_caller]
    fn ends(self) {
        drop(self.reader);
        for server in self.servers {
            server.stop_well().unwrap();
        }
    }
}

/// A program that ends with the test.
struct Reader(Child);

impl Drop for Reader {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What a port with room for so much says before its ECHOs of `size` bytes.
fn head(from: &Shown, to: &Shown, target: u32, asked: u32, size: u32) -> Vec<String> {
    let (own, its) = (&from.fc_id, &to.fc_id);
    let digits = its.trim_start_matches("0x").to_uppercase();
    let source = from.max_frame - 4;
    vec![
        "Maximum ECHO data allowed by the Fabric (0xfffffd) : 2108 bytes.".to_owned(),
        format!("Maximum ECHO data allowed by the Source ({own}) : {source} bytes."),
        format!("Maximum ECHO data allowed by the Target ({its}) : {target} bytes."),
        format!("Maximum ECHO data requested from user input (-s) : {asked} (default 32) bytes."),
        format!("Actual FC ELS ECHO data size used : {size} bytes."),
        format!(
            "Actual FC ELS ECHO payload size used : {} bytes (including 4 bytes ECHO command).",
            size + 4
        ),
        format!(
            "Sending FC ELS ECHO from {own} (fc_{}) to 0x{digits}:",
            from.device
        ),
    ]
}

/// Servers have no login with each other, and answer nevertheless.
#[test]
fn a_server_sends_echoes_to_another() {
    let scene = Scene::start("views-fcping");
    let (one, other, reader) = (scene.shown("a"), scene.shown("b"), scene.shown("c"));
    let told = lunar_says(&[
        "fcping",
        "-h",
        &one.place,
        "-c",
        "3",
        "-i",
        "0.01",
        "-F",
        &other.fc_id,
    ]);
    let mut expected = head(&one, &other, 32, 32, 32);
    expected.extend((1..=3).map(|number| format!("echo {number} accepted N ms")));
    expected.push("3 frames sent, 3 received 0 errors, 0.000% loss, avg. rt time N ms".to_owned());
    assert_eq!(lines(&told), expected);
    // The reader knows the server that it is logged in to, and how much its frames carry.
    let most = reader.max_frame.min(one.max_frame) - 4;
    let told = lunar_says(&[
        "fcping",
        "-h",
        &reader.wwpn,
        "-c",
        "1",
        "-s",
        "2108",
        "-P",
        &one.wwpn,
    ]);
    assert_eq!(
        lines(&told)[..7],
        head(&reader, &one, one.max_frame - 4, 2108, most)
    );
    says(
        &told,
        &[
            "echo    1 accepted",
            "1 frames sent, 1 received 0 errors, 0.000% loss",
        ],
    );
    let told = lunar_says(&[
        "fcping",
        "-h",
        &one.device,
        "-c",
        "1",
        "-x",
        "-N",
        &other.wwnn,
    ]);
    says(
        &told,
        &["response length 36\n     0 02000000 00000001 00010203 04050607\n"],
    );
    // Not only ports: the F_Port does so too.
    let told = lunar_says(&[
        "fcping", "-q", "-h", &one.fc_id, "-c", "2", "-f", "-F", "0xfffffe",
    ]);
    says(&told, &["to 0xFFFFFE:\n2 frames sent, 2 received 0 errors"]);
    scene.ends();
}

#[test]
fn echoes_that_get_no_answer_are_told_one_by_one() {
    let scene = Scene::start("views-fcping-lost");
    let one = scene.shown("a");
    let ping = |to: &[&str]| {
        let args = [&["fcping", "-h", &one.place, "-c", "1"], to].concat();
        refused(&mut lunar(&args))
    };
    let told = ping(&["-F", "0x4dffff"]);
    says(
        &told,
        &[
            "echo    1 error: no answer within 2000 ms\n",
            "1 frames sent, 0 received 1 errors, 100.000% loss, avg. rt time 0.000 ms\n",
        ],
    );
    let told = ping(&["-P", "20:00:00:00:00:00:00:07"]);
    let wwpn = "cannot find fcid of destination @ wwpn 0x2000000000000007: command failed: \
                Unable to perform command request, Port Name not registered";
    says(&told, &[wwpn]);
    let other = scene.shown("b").fc_id;
    scene.fabric.signal("-KILL");
    // Those that are sent before the port misses the FCF get no answer.
    let until = Instant::now() + crate::LIMIT;
    let mut told = ping(&["-F", &other]);
    while !told.contains("echo    1 error: the port is not online: fcoeadm -i shows its state\n") {
        assert!(Instant::now() < until, "{told}");
        told = ping(&["-F", &other]);
    }
}

#[test]
fn a_server_asks_the_name_server() {
    let scene = Scene::start("views-fcnsq");
    let (one, other) = (scene.shown("a"), scene.shown("b"));
    let ask = |of: &str, query: &str, about: &str| lunar_says(&["fcnsq", of, query, about]);
    let digits = |name: &str| name.trim_start_matches("0x").to_owned();
    let told = ask(&one.device, "--gpn", &other.fc_id);
    assert_eq!(told, format!("Port Name: {}\n", digits(&other.wwpn)));
    let told = ask(&one.place, "--gnn", &other.fc_id);
    assert_eq!(told, format!("Node Name: {}\n", digits(&other.wwnn)));
    let told = ask(&one.wwpn, "--gspn", &other.fc_id);
    says(&told, &["Symbolic Port Name: ", " over a cable\n"]);
    let told = ask(&one.fc_id, "--gsnn", &other.wwnn);
    says(&told, &["Symbolic Node Name: ", " over a cable\n"]);
    let told = lunar_says(&["fcnsq", &one.device, "-q", "--gpn", &other.fc_id]);
    assert_eq!(told, format!("{}\n", digits(&other.wwpn)));
    let unknown = ["fcnsq", &one.device, "--gpn", "0x4dffff"];
    let told = refused(&mut lunar(&unknown));
    let words = "gpn_id command failed: Unable to perform command request, Port Identifier not \
                 registered\n";
    says(&told, &[words]);
    assert_eq!(refused(&mut lunar(&[&unknown[..], &["-q"]].concat())), "");
    scene.ends();
}

#[test]
fn an_initiator_reads_the_link_errors_of_its_target() {
    let scene = Scene::start("views-fcrls");
    let target = scene.shown("a");
    let rport = scene.rport(&target);
    let begin = format!("rport-lunar-{}-0-", scene.reader.0.id());
    assert!(rport.starts_with(&begin), "{rport}");
    let counters = "RLS request accepted (LS_ACC), dumping status counters:
\tLink Failure Count                   = 0
\tVirtual Link Failure Count           = 0
\tMissed Discovery Advertisement Count = 0
\tSymbol Error During Carrier Count    = 0
\tErrored Block Count                  = 0
\tFrame Check Sequence Error Count     = 0
";
    assert_eq!(lunar_says(&["fcrls", "--port", &rport]), counters);
    assert_eq!(
        lunar_says(&["fcrls", "--port", &rport, "--quiet"]),
        counters
    );
    let found = format!("found rport {} as {rport}\n{counters}", target.fc_id);
    assert_eq!(lunar_says(&["fcrls", "--fcid", &target.fc_id]), found);
    let quiet = lunar_says(&["fcrls", "--quiet", "--fcid", &target.fc_id]);
    assert_eq!(quiet, counters);
    scene.ends();
}

/// Each names what is wrong, and the way out.
#[test]
fn what_is_not_there_is_told_in_one_line() {
    let scene = Scene::start("views-wrong");
    let one = scene.shown("a");
    let gone = cable(&scene.fabric.dir, "nothing");
    for (args, words) in [
        (
            &["fcping", "-h", &gone, "-F", "1"][..],
            "of those that fcoeadm -i shows",
        ),
        (
            &["fcnsq", &gone, "--gpn", "1"],
            "of those that fcoeadm -i shows",
        ),
        (
            &["fcnsq", "lunar-1-0", "--gpn", "1"],
            "FCoE interface lunar-1-0 not found",
        ),
        (
            &["fcrls", "--fcid", "0x4dfffe"],
            "0x4DFFFE is not a rport: fcoeadm -t shows",
        ),
        (
            &["fcrls", "--port", "rport-lunar-1-0-0"],
            "rport-lunar-1-0-0 is not a rport",
        ),
    ] {
        let told = refused(&mut lunar(args));
        says(&told, &[words]);
        assert_eq!(told.lines().count(), 1, "{told}");
    }
    for args in [
        &["fcping", "-h", &one.place, "-F", "0x1000000"][..],
        &["fcping", "-h", &one.place, "-F", "port"],
        &["fcping", "-h", &one.place, "-s", "2109", "-F", "1"],
        &["fcnsq", &one.place, "--gpn", "zz"],
        &["fcrls", "--fcid", ""],
    ] {
        let ran = tests::tool::run(&mut lunar(args), crate::LIMIT).unwrap();
        assert_eq!(ran.code(), Some(2), "{args:?}: {}", ran.output);
    }
    let rport = scene.rport(&one);
    scene.ends();
    let told = refused(&mut lunar(&["fcrls", "--port", &rport]));
    says(&told, &[" is not a rport"]);
}
