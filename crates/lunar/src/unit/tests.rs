//! What the unit lets the daemon do.

use super::UNIT;

/// The values of a setting, in the order in which they stand there.
fn values(setting: &str) -> Vec<&str> {
    let lines = UNIT.lines().filter_map(|line| line.split_once('='));
    let values = lines.filter_map(|(name, value)| (name == setting).then_some(value));
    values.collect()
}

/// Whether a system call is allowed behind the group of it that is refused.
fn is_allowed(call: &str, refused: &str) -> bool {
    let filters = values("SystemCallFilter");
    let place = |wanted: &str| filters.iter().position(|one| one.contains(wanted));
    place(refused).is_some() && place(call) > place(refused)
}

/// `setpriority` is one of @resources.
#[test]
fn the_control_plane_may_give_way() {
    assert!(is_allowed("setpriority", "@resources"), "{UNIT}");
}

/// `sched_setaffinity` is one of @resources.
#[test]
fn threads_may_be_pinned() {
    assert!(is_allowed("sched_setaffinity", "@resources"), "{UNIT}");
}

/// `bpf` is one of @privileged.
#[test]
fn the_kernel_may_be_asked_to_steer_frames() {
    assert!(is_allowed("bpf", "@privileged"), "{UNIT}");
    assert_eq!(
        values("CapabilityBoundingSet"),
        ["CAP_NET_RAW CAP_IPC_LOCK CAP_BPF"]
    );
}

/// A user who is not root has those alone that are ambient.
#[test]
fn all_capabilities_that_it_may_have_it_has() {
    assert_eq!(
        values("AmbientCapabilities"),
        values("CapabilityBoundingSet")
    );
}
