//! `lunar doctor` in network namespaces: what it finds, and that the commands it prints mend that.

use serde_json::Value;

use crate::namespace::Namespace;
use crate::rig::{LUNAR, Ran, Run, lunar};

/// Two interfaces that are connected with each other, of a bridge's width.
const PAIR: &str = "ip link add va mtu 2500 up type veth peer name vb mtu 2500 && \
                    ip link set vb up";

/// Two interfaces and a bridge between them, one of whose ports is too narrow.
const BRIDGE: &str = "ip link add name br0 up type bridge && \
     ip link add va mtu 2500 up type veth peer name pa mtu 2500 && \
     ip link add vb mtu 2500 up type veth peer name pb mtu 1500 && \
     ip link set vb up && ip link set pa master br0 up && ip link set pb master br0 up";

/// It has found this alone.
#[track_caller]
fn found(ran: &Ran, what: &str, command: &str) {
    assert_eq!(ran.code, Some(1), "{}{}", ran.out, ran.err);
    let [first, second] = &ran.out.lines().collect::<Vec<_>>()[..] else {
        panic!("{}", ran.out)
    };
    assert!(first.contains(what), "{first}");
    assert_eq!(second.trim_start(), command);
}

#[track_caller]
fn all_is_well(ran: &Ran) -> String {
    ran.is_silent_success();
    assert_eq!(ran.out.lines().count(), 1, "{}", ran.out);
    assert!(ran.out.starts_with("va: all is well"), "{}", ran.out);
    ran.out.clone()
}

#[test]
fn of_a_sound_path_it_says_one_line() {
    let namespace = Namespace::new();
    namespace.sh(PAIR);
    let alone = all_is_well(&namespace.lunar("doctor fcoe://va --listen 2s").ran());
    assert!(alone.contains("no other port answers"), "{alone}");
    assert!(alone.contains("no FCF: lunar fipvlan va"), "{alone}");
    let _server = namespace.serve("vb");
    let said = all_is_well(&namespace.lunar("doctor fcoe://va --listen 3s").ran());
    assert!(
        said.contains("with 1 other port and no FCF heard"),
        "{said}"
    );
}

#[test]
fn a_wrong_mtu_in_the_middle_is_found_and_mended() {
    let namespace = Namespace::new();
    namespace.sh(BRIDGE);
    let _server = namespace.serve("vb");
    let ran = namespace.lunar("doctor fcoe://va --listen 3s").ran();
    let command = "ip link set pb mtu 2500";
    found(
        &ran,
        "do not come in, and this interface in between",
        command,
    );
    namespace.sh(command);
    all_is_well(&namespace.lunar("doctor fcoe://va --listen 3s").ran());
}

/// A bridge of another machine is not seen: the command says where to run it.
#[test]
fn a_wrong_mtu_beyond_this_machine_is_found_and_mended_there() {
    let [near, middle, far] = [(); 3].map(|()| Namespace::new());
    middle.sh(BRIDGE);
    middle.sh(&format!("ip link set va netns {}", near.id()));
    middle.sh(&format!("ip link set vb netns {}", far.id()));
    near.sh("ip link set va up");
    far.sh("ip link set vb up");
    let _server = far.serve("vb");
    let ran = near.lunar("doctor fcoe://va --listen 3s --json").ran();
    let told = ran.json();
    let [finding] = &told["findings"].as_array().unwrap()[..] else {
        panic!("{told}")
    };
    assert_eq!(finding["rule"], "path-mtu");
    let place = finding["elsewhere"].as_str().unwrap();
    assert!(place.contains("between va and 20:00:"), "{place}");
    let command = finding["command"].as_str().unwrap();
    for port in ["pa", "pb"] {
        middle.sh(&command.replace("PORT", port));
    }
    all_is_well(&near.lunar("doctor fcoe://va --listen 3s").ran());
}

/// The discipline that each kernel has beside the plain ones.
#[test]
fn a_discipline_that_delays_frames_is_found_and_mended() {
    let namespace = Namespace::new();
    namespace.sh(PAIR);
    namespace.sh("tc qdisc replace dev va root fq_codel 2> /dev/null || \
         tc qdisc replace dev va root tbf rate 1mbit burst 3000 limit 3000");
    let ran = namespace.lunar("doctor fcoe://va --listen 0s").ran();
    let command = "tc qdisc replace dev va root pfifo limit 20000";
    found(&ran, "drops or delays frames under load", command);
    namespace.sh(command);
    all_is_well(&namespace.lunar("doctor fcoe://va --listen 0s").ran());
    namespace.sh("tc qdisc replace dev va root pfifo limit 20");
    let ran = namespace.lunar("doctor fcoe://va --listen 0s").ran();
    found(&ran, "va: its queue holds no more than 20 frames", command);
}

#[test]
fn an_interface_that_is_down_or_narrow_is_found_and_mended() {
    let namespace = Namespace::new();
    namespace.sh("ip link add va type veth peer name vb mtu 2500 && ip link set vb up");
    let ran = namespace.lunar("doctor fcoe://va").ran();
    assert_eq!(ran.code, Some(1), "{}", ran.err);
    let commands = ran.out.lines().filter(|line| line.starts_with("    "));
    let commands: Vec<_> = commands.map(str::trim_start).collect();
    assert!(
        commands.contains(&"ip link set va mtu 2500"),
        "{commands:?}"
    );
    commands.iter().for_each(|command| namespace.sh(command));
    all_is_well(&namespace.lunar("doctor fcoe://va --listen 2s").ran());
}

/// Nothing is lost on a pair of interfaces that has room for all that is on its way.
#[test]
fn with_a_floor_at_the_other_end_frames_go_both_ways() {
    let namespace = Namespace::new();
    namespace.sh(PAIR);
    let _floor = namespace.start("floor --listen fcoe://vb --open --size 4M");
    let ran = namespace
        .lunar("doctor fcoe://va --listen 1s --blast 300ms --json")
        .ran();
    let told = ran.json();
    let blast = &told["blast"];
    let count = |name: &str| blast[name].as_u64().unwrap_or_else(|| panic!("{told}"));
    assert!(count("received") > 100 && count("sent") > 100, "{told}");
    let lost = count("lost_in") + count("lost_out");
    let is_told = told["findings"] != Value::Array(Vec::new());
    assert_eq!(lost > 0, is_told, "{told}");
    // Neither of these has it send anything to the floor.
    for silent in ["--listen 1s --blast 0s", "--listen 0s"] {
        let line = format!("doctor fcoe://va {silent} --json");
        let told = namespace.lunar(&line).ran().json();
        assert_eq!(told["blast"], Value::Null, "{silent}");
    }
}

/// What sends nothing needs no socket.
#[test]
fn the_settings_alone_are_read_without_a_privilege() {
    let namespace = Namespace::new();
    namespace.sh(PAIR);
    let mut doctor = namespace.command("setpriv");
    doctor.args(["--bounding-set", "-all", "--no-new-privs", LUNAR]);
    doctor.args(["doctor", "fcoe://va", "--listen", "0s"]);
    let said = all_is_well(&doctor.ran());
    assert!(said.contains("not measured behind it"), "{said}");
}

#[test]
fn every_field_of_its_json_is_in_the_manual() {
    let namespace = Namespace::new();
    namespace.sh(PAIR);
    let told = namespace
        .lunar("doctor fcoe://va --listen 2s --json")
        .ran()
        .json();
    let manual = include_str!("../../../../docs/manual/doctor.md");
    for field in told.as_object().unwrap().keys() {
        assert!(manual.contains(&format!("`{field}`")), "{field}");
    }
    let own = &told["interfaces"][0];
    assert_eq!((&own["name"], &own["place"]), (&"va".into(), &"own".into()));
}

#[test]
fn what_is_no_interface_is_refused_with_the_way_out() {
    for (place, way_out) in [
        ("eth0", "give fcoe://IFACE"),
        ("iscsi://127.0.0.1", "give fcoe://IFACE"),
        ("fcoe://cable:/run/x.sock", "a cable has no settings"),
        ("fcoe://", "fcoe://"),
        ("fcoe://eth0/20:00:ac:de:48:23:45:67/0", "fcoe://"),
    ] {
        let line = lunar(&format!("doctor {place}")).refused(2);
        assert!(line.contains(place) && line.contains(way_out), "{line}");
    }
    lunar("doctor").refused_with(2, "lunar doctor --help");
    lunar("doctor fcoe://eth0 --listen soon").refused_with(2, "--listen");
    lunar("doctor fcoe://eth0 --blast 1y").refused_with(2, "--blast");
    lunar("doctor fcoe://lunar-none").refused_with(1, "no interface \"lunar-none\": see ip link");
}
