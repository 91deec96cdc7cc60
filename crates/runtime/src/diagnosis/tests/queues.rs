//! Queues of this machine: disciplines, rings, the backlog, flow control, and what they lost.

use io::ether::dcb::DcbPfc;
use io::ether::survey::{PauseReading, QdiscReading, RingSizes};

use super::{hop, nothing, only, qdisc, sound, told};
use crate::diagnosis::readings::{BlastReading, HopPlace, Losses};

const PFIFO: &str = "qdisc eth0: tc qdisc replace dev eth0 root pfifo limit 20000";

#[test]
fn a_discipline_that_drops_or_delays_is_replaced() {
    for kind in [
        "fq_codel", "fq", "codel", "cake", "red", "sfq", "tbf", "netem",
    ] {
        let mut readings = sound();
        readings.hops[0].qdiscs = vec![qdisc(kind, None)];
        assert_eq!(only(&readings), PFIFO, "{kind}");
        // Those of a card with several queues hang under another one.
        readings.hops[0].qdiscs = vec![qdisc("mq", None), qdisc(kind, None), qdisc(kind, None)];
        assert_eq!(only(&readings), PFIFO, "mq with {kind}");
    }
    for kind in ["noqueue", "pfifo", "pfifo_fast", "mq", "prio"] {
        let mut readings = sound();
        readings.hops[0].qdiscs = vec![qdisc(kind, None)];
        nothing(&readings);
    }
}

/// What divides frames by priority among the queues of the card is kept.
#[test]
fn under_mqprio_only_what_delays_is_replaced() {
    let under = |class: u32, kind| QdiscReading {
        parent: 0x8001_0000 | class,
        ..qdisc(kind, Some(100).filter(|_| kind == "pfifo"))
    };
    let command = |classes: &str| {
        format!(
            "qdisc eth0: for class in {classes}; do tc qdisc replace dev eth0 parent $class pfifo \
             limit 20000; done"
        )
    };
    let mut readings = sound();
    let leaves = [
        under(1, "fq_codel"),
        under(2, "pfifo_fast"),
        under(0xa, "fq"),
    ];
    readings.hops[0].qdiscs = [&[qdisc("mqprio", None)], &leaves[..]].concat();
    assert_eq!(only(&readings), command("8001:1 8001:a"));
    readings.hops[0].qdiscs = vec![qdisc("mqprio", None), under(3, "pfifo")];
    assert_eq!(only(&readings), command("8001:3"));
    readings.hops[0].qdiscs = vec![qdisc("mqprio", None), under(2, "pfifo_fast")];
    nothing(&readings);
    readings.losses.during.qdisc = 7;
    assert_eq!(only(&readings), command("8001:2"));
}

#[test]
fn that_of_an_interface_at_the_same_bridge_is_its_own_affair() {
    let mut readings = sound();
    readings.hops.push(hop("tap1", 2500, HopPlace::Bridged));
    readings.hops[1].qdiscs = vec![qdisc("fq_codel", None)];
    nothing(&readings);
    readings.hops[1].place = HopPlace::Below;
    assert_eq!(only(&readings), PFIFO.replace("eth0", "tap1"));
}

#[test]
fn a_short_queue_is_told_with_what_it_holds() {
    for (kind, limit, is_short) in [
        ("pfifo", 100, true),
        ("pfifo", 20_000, false),
        ("bfifo", 100_000, true),
        ("bfifo", 100_000_000, false),
    ] {
        let mut readings = sound();
        readings.hops[0].qdiscs = vec![qdisc(kind, Some(limit))];
        let found = told(&readings);
        let expected: &[&str] = if is_short { &[PFIFO] } else { &[] };
        assert_eq!(found, expected, "{kind}");
    }
    let mut readings = sound();
    readings.hops[0].link.queue_len = 10;
    assert_eq!(
        only(&readings),
        "qdisc eth0: ip link set eth0 txqueuelen 10000"
    );
}

#[test]
fn drops_of_a_plain_queue_are_told_too() {
    let mut readings = sound();
    readings.losses.during.qdisc = 7;
    assert_eq!(only(&readings), PFIFO);
}

#[test]
fn small_rings_grow_and_so_do_full_ones() {
    let rings = |rx, rx_max| {
        let mut readings = sound();
        readings.hops[0].rings = Some(RingSizes {
            rx,
            rx_max,
            tx: rx,
            tx_max: rx_max,
        });
        readings
    };
    assert_eq!(
        only(&rings(512, 4096)),
        "rings eth0: ethtool -G eth0 rx 4096"
    );
    nothing(&rings(256, 256));
    nothing(&rings(1024, 4096));
    let mut readings = rings(1024, 4096);
    readings.losses.before.missed = 1;
    assert_eq!(only(&readings), "rings eth0: ethtool -G eth0 rx 4096");
}

#[test]
fn the_backlog_grows_where_it_is_small_or_was_full() {
    let mut readings = sound();
    readings.kernel.max_backlog = Some(100);
    let grows = "backlog this machine: sysctl -w net.core.netdev_max_backlog=20000";
    assert_eq!(only(&readings), grows);
    readings.kernel.max_backlog = Some(30_000);
    nothing(&readings);
    readings.losses.during.backlog = 5;
    assert_eq!(only(&readings), grows.replace("20000", "60000"));
    // In a network namespace that does not tell the setting.
    readings.kernel.max_backlog = None;
    assert_eq!(only(&readings), grows);
}

/// Turns that end with more to do are no loss by themselves.
#[test]
fn the_budget_grows_where_frames_were_lost_for_it() {
    let mut readings = sound();
    readings.losses.during.squeezed = 100;
    nothing(&readings);
    readings.losses.during.missed = 1;
    let grows = "budget this machine: sysctl -w net.core.netdev_budget=600";
    assert_eq!(only(&readings), grows);
    readings = sound();
    readings.kernel.budget = Some(64);
    assert_eq!(only(&readings), grows);
}

#[test]
fn one_kind_of_flow_control_is_on() {
    let pause = |rx, tx| {
        Some(PauseReading {
            rx,
            tx,
            ..PauseReading::default()
        })
    };
    let pfc = |enabled| {
        Some(DcbPfc {
            enabled,
            ..DcbPfc::default()
        })
    };
    let dcb = "flow-control eth0: dcb pfc set dev eth0 prio-pfc 3:on";
    let on = "flow-control eth0: ethtool -A eth0 rx on tx on";
    let off = "flow-control eth0: ethtool -A eth0 rx off tx off";
    for (pause, pfc, found) in [
        (None, None, None),
        (pause(true, true), None, None),
        (pause(false, true), None, Some(on)),
        (None, pfc(0b1000), None),
        (pause(false, false), pfc(0b1000), None),
        (pause(true, true), pfc(0b1000), Some(off)),
        (pause(false, false), pfc(0b0111), Some(dcb)),
        (pause(true, true), pfc(0), None),
    ] {
        let mut readings = sound();
        (readings.hops[0].pause, readings.hops[0].pfc) = (pause, pfc);
        let told = told(&readings);
        assert_eq!(
            told,
            found.into_iter().collect::<Vec<_>>(),
            "{pause:?} {pfc:?}"
        );
    }
}

#[test]
fn frames_lost_in_other_places_are_told() {
    for (losses, command) in [
        (
            Losses {
                too_long: 1,
                ..Losses::default()
            },
            "ip link set eth0 mtu 2500",
        ),
        (
            Losses {
                damaged: 1,
                ..Losses::default()
            },
            "",
        ),
        (
            Losses {
                transmitted: 1,
                ..Losses::default()
            },
            "ip link set eth0 txqueuelen 10000",
        ),
    ] {
        let mut readings = sound();
        readings.losses.after = losses;
        assert_eq!(only(&readings), format!("losses eth0: {command}"));
    }
    // Those of protocols that no program takes are counted there.
    let mut readings = sound();
    readings.losses.before.received = 100;
    nothing(&readings);
}

#[test]
fn what_is_lost_behind_this_machine_is_looked_for_at_the_other_end() {
    let mut readings = sound();
    let blast = BlastReading {
        received: 1000,
        sent: 1000,
        ..BlastReading::default()
    };
    readings.blast = Some(blast);
    nothing(&readings);
    readings.blast = Some(BlastReading {
        lost_out: 3,
        ..blast
    });
    let there = "losses eth0: lunar doctor fcoe://IFACE @ the other end";
    assert_eq!(only(&readings), there);
    readings.blast = Some(BlastReading {
        lost_in: 3,
        ..blast
    });
    assert_eq!(only(&readings), there);
    // It is known where these were lost.
    readings.losses.during.backlog = 3;
    assert_eq!(
        only(&readings),
        "backlog this machine: sysctl -w net.core.netdev_max_backlog=20000"
    );
}

#[test]
fn a_full_ring_of_our_socket_has_no_command() {
    let mut readings = sound();
    readings.blast = Some(BlastReading {
        lost_in: 5,
        ring_full: 5,
        ..BlastReading::default()
    });
    assert_eq!(only(&readings), "losses eth0: ");
}
