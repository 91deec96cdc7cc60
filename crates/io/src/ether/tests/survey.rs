//! What the kernel tells of interfaces in a network namespace of two, and what it told elsewhere.

use std::fs;

use super::super::survey::{
    LinkReading, QdiscReading, links, parse_qdisc, pause, pfc, qdiscs, ring_sizes,
};
use super::*;

mod on_veth {
    super::on_veth! { 2500:
        links_tell_how_they_hang_together
        what_an_interface_has_dropped_is_told
        queueing_disciplines_are_told_with_what_they_dropped
        what_a_driver_does_not_have_is_not_told
        an_interface_that_is_not_there_is_an_error
    }
}

#[track_caller]
fn link(name: &str) -> LinkReading {
    let all = links().unwrap();
    let mut named = all.into_iter().filter(|link| link.name == name);
    named.next().unwrap_or_else(|| panic!("no {name}"))
}

fn links_tell_how_they_hang_together() {
    ip("link add name br0 type bridge");
    ip("link set vb master br0");
    ip("link add link va name mac0 type macvlan");
    let (a, b, bridge, above) = (link("va"), link("vb"), link("br0"), link("mac0"));
    assert_eq!((a.kind.as_str(), bridge.kind.as_str()), ("veth", "bridge"));
    assert_eq!((a.lower, b.lower), (Some(b.index), Some(a.index)));
    assert_eq!((a.master, b.master), (None, Some(bridge.index)));
    assert_eq!((above.lower, above.tag_priority), (Some(a.index), None));
    assert_eq!((a.mtu, a.is_up, a.is_ethernet), (2500, true, true));
    assert_eq!((above.is_up, link("lo").is_ethernet), (false, false));
    assert_eq!(a.queue_len, 1000);
}

/// The other end of a veth pair in another network namespace has a number there, which may be
/// another interface's here.
#[test]
fn the_end_of_a_pair_elsewhere_is_none_of_ours() {
    in_namespace(
        concat!(
            module_path!(),
            "::the_end_of_a_pair_elsewhere_is_none_of_ours"
        ),
        2500,
        || {
            let mut other = Command::new("unshare")
                .args(["--net", "sleep", "60"])
                .spawn()
                .unwrap();
            let moved = || {
                let pid = other.id();
                // Until it has its own.
                let own = fs::read_link("/proc/self/ns/net").unwrap();
                let theirs = fs::read_link(format!("/proc/{pid}/ns/net"));
                theirs.is_ok_and(|theirs| theirs != own)
            };
            let deadline = Instant::now() + LONG;
            while !moved() {
                assert!(Instant::now() < deadline, "unshare does not begin");
                std::thread::sleep(SHORT);
            }
            ip(&format!("link set vb netns {}", other.id()));
            let lower = link("va").lower;
            other.kill().unwrap();
            other.wait().unwrap();
            assert_eq!(lower, None);
        },
    );
}

fn what_an_interface_has_dropped_is_told() {
    let before = link("vb").losses;
    let mut pair = Pair::veth(&EtherOptions::default());
    tc("qdisc add dev va root tbf rate 8kbit burst 3000 limit 3000");
    let to = pair.b.mac();
    for _ in 0..50 {
        put(&mut pair.a, &frame(to, FCOE, 1000));
        let _ = pair.a.flush();
    }
    let all = qdiscs().unwrap();
    let shaped = all.iter().find(|one| one.kind == "tbf").unwrap();
    assert!(shaped.dropped > 0, "{shaped:?}");
    assert_eq!(link("vb").losses, before, "none came so far");
}

fn queueing_disciplines_are_told_with_what_they_dropped() {
    let index = link("va").index;
    let of_va = || {
        let all = qdiscs().unwrap();
        all.into_iter()
            .filter(|one| one.index == index)
            .collect::<Vec<_>>()
    };
    assert_eq!(of_va()[0].kind, "noqueue");
    tc("qdisc replace dev va root tbf rate 8kbit burst 3000 limit 3000");
    let of_rate = of_va();
    let top = of_rate.iter().find(|one| one.kind == "tbf").unwrap();
    assert_eq!((top.parent, top.limit), (QdiscReading::ROOT, None));
    tc("qdisc replace dev va root pfifo limit 20000");
    assert_eq!(of_va()[0].limit, Some(20000));
    // What comes in has none.
    tc("qdisc add dev va clsact");
    assert_eq!(of_va().len(), 1, "{:?}", of_va());
}

fn what_a_driver_does_not_have_is_not_told() {
    assert_eq!(ring_sizes("va").unwrap(), None);
    assert_eq!(pause("va").unwrap(), None);
    assert_eq!(pfc("va").unwrap(), None);
}

fn an_interface_that_is_not_there_is_an_error() {
    for failed in [
        ring_sizes("none").map(drop),
        pause("none").map(drop),
        pfc("none").map(drop),
    ] {
        assert_eq!(failed.unwrap_err().raw_os_error(), Some(libc::ENODEV));
    }
}

#[test]
fn a_queueing_discipline_that_is_cut_off_is_none() {
    for len in 0..20 {
        assert_eq!(parse_qdisc(&vec![0; len]), None, "{len}");
    }
    assert_eq!(parse_qdisc(&[0; 20]), Some(QdiscReading::default()));
}
