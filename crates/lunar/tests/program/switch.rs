//! `lunar switch` as a user meets it: each wrong option is answered by one line with the way out.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::namespace::Namespace;
use crate::rig::{LUNAR, PATIENCE, Run, file, first_line, folder, lunar, signal};

/// A cable that is not there yet.
fn cable(name: &str) -> String {
    // The path of a socket is short.
    let path = std::env::temp_dir().join(format!("lunar-{}-{name}", std::process::id()));
    let _ = fs::remove_file(&path);
    format!("cable:{}", path.display())
}

#[test]
fn each_wrong_option_says_what_would_be_right() {
    for (words, told) in [
        ("", "PLACE"),
        ("eth0 eth0", "eth0 is given twice"),
        ("eth0 xdp:eth0", "eth0 is given twice"),
        ("fcoe://eth0", "without fcoe://, as in eth0"),
        ("fcoe:eth0", "without fcoe:, as in eth0"),
        ("eth0:1", "see ip link"),
        ("eth0/1", "see ip link"),
        ("cable:", "name an interface"),
        ("eth0 --domain 0", "give a number from 1 to 239"),
        ("eth0 --domain 240", "give a number from 1 to 239"),
        ("eth0 --domain x", "give a number from 1 to 239"),
        ("eth0 --vlan 0", "give a number from 1 to 4094"),
        ("eth0 --vlan 4095", "give a number from 1 to 4094"),
        ("eth0 --priority 256", "give a number from 0 to 255"),
        ("eth0 --fka 249ms", "250ms"),
        ("eth0 --fka 91s", "90s"),
        ("eth0 --fka soon", "--fka"),
        ("eth0 --fc-map 0efc", "6 hexadecimal digits"),
        ("eth0 --fc-map 0ffc00", "groups"),
        ("eth0 --fc-map 000000", "FC-MAP of 0"),
        ("eth0 --fc-map 0e:fd:00", "VN2VN"),
        ("eth0 --fabric-name x", "16 hexadecimal digits"),
        (
            "eth0 --fabric-name 0000000000000000",
            "this name is reserved",
        ),
        ("eth0 --switch-name x", "16 hexadecimal digits"),
        (
            "eth0 --switch-name ffffffffffffffff",
            "this name is reserved",
        ),
        ("eth0 --standby", "--switch-name and --fabric-name"),
        ("eth0 --open --zones f", "cannot be used with"),
        ("eth0 --lldp both", "send, listen, off"),
        ("eth0 --threads 0", "from 1 to 16, or auto"),
        ("eth0 --threads 17", "from 1 to 16, or auto"),
        ("eth0 --ring kqueue", "auto, uring, epoll"),
        ("eth0 --fast-path xdp", "auto, off"),
        ("eth0 --zone f", "'--zones'"),
    ] {
        lunar(&format!("switch {words}")).refused_with(2, told);
    }
}

#[test]
fn more_ports_than_a_switch_has() {
    let places: Vec<_> = (0..65).map(|number| format!("eth{number}")).collect();
    lunar(&format!("switch {}", places.join(" "))).refused_with(2, "at most 64");
}

#[test]
fn a_port_that_cannot_be_had_is_named() {
    let told = "no interface \"nosuch0\": see ip link";
    lunar("switch nosuch0 --open").refused_with(1, told);
    lunar("switch cable:/no/such/folder/a --open").refused_with(1, "its directory does not exist");
}

#[test]
fn zones_with_an_error_are_refused_with_its_place() {
    let zones = file("wrong-zones");
    let place = cable("zones");
    let line = format!("switch {place} --zones {}", zones.display());
    lunar(&line).refused_with(1, "wrong-zones: No such file");
    fs::write(&zones, "default permit\nzone a = nonsense\n").unwrap();
    lunar(&line).refused_with(1, "wrong-zones:2:");
    fs::write(&zones, [0xff, 0xfe]).unwrap();
    lunar(&line).refused_with(1, "not UTF-8");
    let folder = folder("zones-folder");
    let line = format!("switch {place} --zones {}", folder.display());
    lunar(&line).refused_with(1, "it is not a regular file");
}

#[test]
fn a_state_that_is_spoilt_is_refused_with_its_line() {
    let state = folder("switch-state");
    let line = format!(
        "switch {} --open --state {}",
        cable("state"),
        state.display()
    );
    fs::write(
        state.join("n-port-ids"),
        "20:00:02:00:00:00:00:01 010100\nx\n",
    )
    .unwrap();
    lunar(&line).refused_with(1, "n-port-ids:2: a WWPN and an N_Port_ID");
    let file = file("switch-state-file");
    fs::write(&file, "").unwrap();
    let line = format!(
        "switch {} --open --state {}",
        cable("state"),
        file.display()
    );
    lunar(&line).refused_with(1, "--state");
    assert!(Path::new(&file).exists());
}

/// A switch that is ready, and its first line. It is killed if the test fails.
struct Switch(Child, String);

impl Switch {
    fn start(words: &str) -> Self {
        let mut child = Command::new(LUNAR)
            .arg("switch")
            .args(words.split_whitespace())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let line = first_line(&mut child);
        Self(child, line)
    }

    fn signal(&self, name: &str) {
        signal(name, self.0.id());
    }

    /// Reads the log up to a line that says this.
    fn logs(&self, log: &mut impl BufRead, words: &str) -> String {
        let mut text = String::new();
        while !text.contains(words) {
            assert_ne!(log.read_line(&mut text).unwrap(), 0, "{words}: {text}");
        }
        text
    }

    fn log(&mut self) -> BufReader<ChildStderr> {
        BufReader::new(self.0.stderr.take().unwrap())
    }
}

impl Drop for Switch {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_port_that_is_ready_has_a_line() {
    let places = (cable("line-a"), cable("line-b"));
    let words = format!("{} {} --open --vlan 152", places.0, places.1);
    let Switch(_, line) = &Switch::start(&words);
    let columns: Vec<_> = line.trim_end().split("  ").collect();
    let [place, mac, mtu, vlan, switch, fabric] = columns[..] else {
        panic!("{line}")
    };
    assert_eq!((place, mtu, vlan), (&*places.0, "MTU 2500", "VLAN 152"));
    assert_eq!(switch, format!("switch 10:00:{mac}"));
    assert_eq!(fabric, format!("fabric 20:98:{mac}"));
    let json = Switch::start(&format!("{} --open --json", cable("json")));
    let port: Value = serde_json::from_str(&json.1).unwrap();
    assert_eq!(port["vlan"], Value::Null);
    assert!(port["switch_name"].as_str().unwrap().starts_with("10:00:"));
}

#[test]
fn a_switch_without_zones_says_so_once() {
    let mut switch = Switch::start(&cable("closed"));
    let mut log = switch.log();
    switch.logs(&mut log, "no port sees another");
    switch.signal("TERM");
    assert!(switch.0.wait().unwrap().success());
    let mut rest = String::new();
    log.read_to_string(&mut rest).unwrap();
    assert!(!rest.contains("no port sees another"), "{rest}");
}

#[test]
fn a_period_that_linux_takes_for_another_is_told() {
    let mut switch = Switch::start(&format!("{} --open --fka 499ms", cable("fka")));
    let mut log = switch.log();
    switch.logs(&mut log, "Linux takes a period below 500ms for 8 s");
}

#[test]
fn signals_read_zones_tell_counters_and_end_it() {
    let zones = file("zones-of-signals");
    fs::write(
        &zones,
        "zone z = 20:00:02:00:00:00:00:01\nzoneset s = z\nactive s\n",
    )
    .unwrap();
    let words = format!("{} --zones {}", cable("signals"), zones.display());
    let mut switch = Switch::start(&words);
    let mut log = switch.log();
    switch.signal("HUP");
    switch.logs(&mut log, "the zones were read again");
    fs::write(&zones, "default deny\nactive nothing\n").unwrap();
    switch.signal("HUP");
    let told = switch.logs(&mut log, "zones-of-signals:2:");
    assert!(told.contains("the zones stay as they were"), "{told}");
    switch.signal("USR1");
    switch.logs(&mut log, "0 frames of 0 bytes forwarded");
    switch.logs(&mut log, "zones: 20:00:02:00:00:00:00:01 is not logged in");
    switch.signal("TERM");
    assert!(switch.0.wait().unwrap().success());
}

#[test]
fn zones_cannot_be_read_again_where_there_were_none() {
    let mut switch = Switch::start(&format!("{} --open", cable("no-zones")));
    let mut log = switch.log();
    switch.signal("HUP");
    switch.logs(&mut log, "started without --zones");
    switch.signal("INT");
    assert!(switch.0.wait().unwrap().success());
}

/// A server and a third program behind one switch: what runs here, and what is in the fabric.
#[test]
fn switches_and_their_fabrics_are_listed() {
    let (near, far) = (cable("listed-a"), cable("listed-b"));
    let words = format!("{near} {far} --open --vlan 152 --fka 1s");
    let _switch = Switch::start(&words);
    let line = format!("serve ram:1M --open --fcoe {near},mode=fabric,vlan=auto");
    let mut server = Command::new(LUNAR);
    let server = server.args(line.split_whitespace()).stdout(Stdio::piped());
    let _server = Switch(server.stderr(Stdio::null()).spawn().unwrap(), String::new());
    let listed = || {
        let told = lunar("ls switch --json").ran();
        let mut all = told
            .out
            .lines()
            .map(|line| serde_json::from_str(line).unwrap());
        let ours = |told: &Value| told["ports"][0]["place"] == near;
        all.find(ours).unwrap_or(Value::Null)
    };
    let deadline = Instant::now() + PATIENCE;
    while listed()["logins"][0]["place"] != near {
        assert!(Instant::now() < deadline, "{}", listed());
        thread::sleep(Duration::from_millis(50));
    }
    let told = listed();
    assert_eq!(
        (&told["vlan"], &told["fka_ms"]),
        (&Value::from(152), &Value::from(1000))
    );
    let table = lunar("ls switch").ran();
    assert!(
        table
            .out
            .contains(told["logins"][0]["port_name"].as_str().unwrap())
    );
    let ran = lunar(&format!("ls fcoe://{far}?mode=fabric&vlan=auto --json")).ran();
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let rows = ran
        .out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap());
    let rows: Vec<Value> = rows.collect();
    let [target, ours, port] = &rows[..] else {
        panic!("{}", ran.out)
    };
    assert_eq!(target["units"][0]["size_bytes"], 1 << 20, "{target}");
    let nic = &ours["nic"];
    assert_eq!(
        (&nic["VLAN ID"], &nic["User Priority"]),
        (&Value::from(152), &Value::from(3))
    );
    assert_eq!(nic["FCF MAC"], told["ports"][1]["fcf_mac"]);
    shows_what_esxcli_does(nic, &far);
    assert_eq!(port["port_name"], told["logins"][0]["port_name"]);
    assert_eq!(port["role"], "FCP Target");
}

/// It needs no privilege for that.
#[test]
fn dcb_shows_the_switch_at_the_other_end_of_a_cable() {
    let cable = cable("dcb");
    let _switch = Switch::start(&format!("{cable} --open"));
    let told = lunar(&format!("dcb {cable} --seconds 2 --json"))
        .ran()
        .json();
    assert_eq!(told["interface"], cable);
    assert_eq!(told["neighbors"].as_array().unwrap().len(), 1, "{told}");
    assert!(told["neighbors"][0]["ieee"].is_object(), "{told}");
}

/// The fields of `esxcli fcoe nic list` and `adapter list`.
#[track_caller]
fn shows_what_esxcli_does(nic: &Value, place: &str) {
    for (field, value) in [
        ("Underlying PNIC", Value::from(place)),
        ("Priority Class", Value::from(3)),
        ("Active", Value::from(true)),
        ("Priority Settable", Value::from(false)),
        ("Source MAC Settable", Value::from(false)),
        ("VLAN Range Settable", Value::from(true)),
    ] {
        assert_eq!(nic[field], value, "{field} of {nic}");
    }
    assert!(nic["VNPort MAC"].as_str().unwrap().starts_with("0e:fc:00:"));
    assert_eq!(nic["Source MAC"].as_str().unwrap().len(), 17);
}

/// It is there, and nothing else tells of it. Nor is it waited for without end.
#[test]
fn a_switch_that_is_stopped_is_named_with_the_way_out() {
    let namespace = Namespace::new();
    let switch = namespace.start(&format!("switch {} --open", cable("stopped")));
    signal("STOP", switch.id());
    let way_out = format!("is stopped: kill -CONT {} lets it go on", switch.id());
    namespace.lunar("ls switch").refused_with(1, &way_out);
    signal("CONT", switch.id());
    let ran = namespace.lunar("ls switch").ran();
    assert_eq!(ran.code, Some(0), "{}", ran.err);
}

#[test]
fn a_portal_of_a_fabric_that_is_wrong_says_what_would_be_right() {
    for (portal, told) in [
        ("fcoe://eth0?mode=switch", "fabric"),
        ("fcoe://eth0?vlan=152", "mode=fabric"),
        ("fcoe://eth0?mode=fabric&vlan=5000", "4094"),
        ("fcoe://eth0?lun=1", "lun"),
        ("fcoe://eth0/x?mode=fabric", "without a port name"),
    ] {
        let ran = lunar(&format!("ls {portal}")).ran();
        assert_eq!(ran.code, Some(2), "{portal}: {}", ran.err);
        assert!(ran.err.contains(told), "{portal}: {}", ran.err);
    }
}
