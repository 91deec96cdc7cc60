//! Hosts at interfaces of a switch: pairs of veth, in a network namespace of the test's own.

use std::env;
use std::num::NonZeroUsize;
use std::process::Command;

use super::super::options::{Place, SwitchOptions, Zoning};
use super::super::run;
use super::carry::Running;
use super::enode::Enode;

/// Runs a story where `va` and `vb`, and `vc` and `vd`, are pairs of interfaces.
pub(super) fn in_namespace(test: &str, story: impl FnOnce()) {
    if env::var_os(INSIDE).is_some() {
        for pair in ["va type veth peer name vb", "vc type veth peer name vd"] {
            ip(&format!("link add {pair}"));
        }
        for name in ["va", "vb", "vc", "vd"] {
            ip(&format!("link set {name} mtu 2500 up"));
        }
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

const INSIDE: &str = "LUNAR_SWITCH_NAMESPACE";

#[track_caller]
pub(super) fn ip(arguments: &str) {
    let done = Command::new("ip").args(arguments.split(' ')).status();
    let done = done.unwrap_or_else(|cause| panic!("ip (package iproute2): {cause}"));
    assert!(done.success(), "ip {arguments}");
}

pub(super) fn interface(name: &str) -> Place {
    Place::Interface(name.to_owned())
}

pub(super) fn options() -> SwitchOptions {
    let mut options = SwitchOptions::new(vec![interface("va"), interface("vc")]);
    options.zoning = Zoning::Open;
    options
}

pub(super) fn start(options: SwitchOptions) -> Running {
    Running::start_again(tempfile::tempdir().unwrap(), options)
}

/// Hosts at both interfaces, which send each other frames.
fn both_ways(vid: Option<u16>) {
    let hosts = ["vb", "vd"].map(|name| Enode::plug(&interface(name), vid));
    let [mut one, mut other] = hosts;
    one.log_in();
    other.log_in();
    for number in 0..300_u32 {
        one.send(other.fc_id, &number.to_be_bytes());
    }
    for number in 0..300_u32 {
        let frame = (one.fc_id, number.to_be_bytes().to_vec());
        assert_eq!(other.next_frame(), frame);
    }
    other.send(one.fc_id, &[7; 2112]);
    assert_eq!(one.next_frame(), (other.fc_id, vec![7; 2112]));
}

#[test]
fn frames_pass_between_interfaces() {
    let test = concat!(module_path!(), "::frames_pass_between_interfaces");
    in_namespace(test, || {
        let switch = start(options());
        both_ways(None);
        switch.stop();
    });
}

/// The kernel takes the tag out of what comes in.
#[test]
fn frames_of_a_vlan_pass_between_interfaces() {
    let test = concat!(module_path!(), "::frames_of_a_vlan_pass_between_interfaces");
    in_namespace(test, || {
        let mut options = options();
        options.vlan = Some(152);
        let switch = start(options);
        let mut asking = Enode::plug(&interface("vb"), None);
        assert_eq!(asking.vlans(), [152]);
        drop(asking);
        both_ways(Some(152));
        switch.stop();
    });
}

#[test]
fn a_link_that_was_down_is_used_when_it_is_up() {
    let test = concat!(
        module_path!(),
        "::a_link_that_was_down_is_used_when_it_is_up"
    );
    in_namespace(test, || {
        ip("link set va down");
        let switch = start(options());
        ip("link set va up");
        both_ways(None);
        switch.stop();
    });
}

/// Each core sends by a socket of its own, which has to be bound to the new one.
#[test]
fn an_interface_that_is_made_anew_is_used_by_all_cores() {
    let test = concat!(
        module_path!(),
        "::an_interface_that_is_made_anew_is_used_by_all_cores"
    );
    in_namespace(test, || {
        let mut options = options();
        options.threads = NonZeroUsize::new(2);
        let switch = start(options);
        both_ways(None);
        ip("link del va");
        ip("link add va type veth peer name vb");
        ip("link set va mtu 2500 up");
        ip("link set vb mtu 2500 up");
        both_ways(None);
        switch.stop();
    });
}

#[test]
fn an_interface_that_is_no_use_is_refused() {
    let test = concat!(module_path!(), "::an_interface_that_is_no_use_is_refused");
    in_namespace(test, || {
        let refused = || run(&options(), |_, _| Ok(())).unwrap_err().to_string();
        ip("link set va mtu 301");
        let narrow = refused();
        assert!(narrow.contains("ip link set va mtu 2500"), "{narrow}");
        ip("link set va mtu 2500");
        let switch = start(options());
        let taken = refused();
        let way_out = format!("stop it (kill {})", std::process::id());
        assert!(taken.contains(&way_out), "{taken}");
        switch.stop();
    });
}
