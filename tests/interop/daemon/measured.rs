//! What a daemon counts, as `lunar metrics` prints it.

use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use scsi::wire::lun::Lun;
use tests::client::Client;
use tests::initiator::Settings;

use crate::LIMIT;
use crate::rig::{Rig, TARGET, load};

/// The number of a series, once it is there and more than 0.
fn wait_for(rig: &Rig, series: &str) -> u64 {
    let until = Instant::now() + LIMIT;
    loop {
        let said = rig.says(&["metrics", "--detail"]);
        let mut lines = said.lines();
        let number = lines.find_map(|line| line.strip_prefix(series)?.trim().parse().ok());
        if let Some(number) = number.filter(|number| *number > 0) {
            return number;
        }
        assert!(Instant::now() < until, "{series}\n{said}\n{}", rig.log());
        thread::sleep(Duration::from_millis(50));
    }
}

/// Until a series stays the same for half a second.
fn wait_for_rest(rig: &Rig, series: &str) {
    let until = Instant::now() + LIMIT;
    let mut last = 0;
    loop {
        let now = wait_for(rig, series);
        if now == last {
            return;
        }
        assert!(Instant::now() < until, "{series} {now}\n{}", rig.log());
        last = now;
        thread::sleep(Duration::from_millis(500));
    }
}

#[test]
fn what_a_host_writes_is_in_the_metrics_and_in_those_for_ganglia() {
    let rig = Rig::start();
    let mut host = load(&rig.url(0));
    let series = "lunar_volume_latency_seconds_count{volume=\"a\",op=\"write\"}";
    wait_for(&rig, series);
    let said = rig.says(&["metrics", "--gmetric"]);
    assert_eq!(said.lines().count(), 8, "{said}");
    let rate = |name: &str| -> u64 {
        let begin = format!("gmetric -n {name} -v ");
        let mut lines = said.lines();
        let rest = lines.find_map(|line| line.strip_prefix(&*begin)).unwrap();
        rest.split(' ').next().unwrap().parse().unwrap()
    };
    assert!(rate("diskio_writeblks_a") > 0, "{said}");
    assert_eq!(rate("diskio_writeblks_b"), 0, "{said}");
    host.kill().unwrap();
    host.wait().unwrap();
}

/// A host that is still there, so that all its commands are those of a session.
#[test]
fn histograms_add_up_to_what_a_host_did() {
    let rig = Rig::start();
    let portal = SocketAddr::from(([127, 0, 0, 1], rig.port));
    let mut host = Client::connect(portal, Settings::new(1, TARGET)).unwrap();
    host.lun = Lun::from_index(1);
    let _ = host.keys();
    for lba in 0..20 {
        host.write(lba, vec![7; 512], false).unwrap();
        host.read(lba, 1).unwrap();
    }
    let said = rig.says(&["metrics", "--detail"]);
    let sum = |series: &str| -> u64 {
        let numbers = said.lines().filter_map(|line| line.strip_prefix(series));
        let number = |rest: &str| -> u64 { rest.rsplit(' ').next().unwrap().parse().unwrap() };
        numbers.map(number).sum()
    };
    for (op, operations) in [("read", 20), ("write", 20)] {
        let labels = format!("{{volume=\"b\",op=\"{op}\"");
        let counted = sum(&format!("lunar_volume_operations_total{labels}}}"));
        assert_eq!(counted, operations, "{said}");
        for latency in ["latency", "medium_latency"] {
            let count = format!("lunar_volume_{latency}_seconds_count{labels}}}");
            assert_eq!(sum(&count), operations, "{count}\n{said}");
            let all = format!("lunar_volume_{latency}_seconds_bucket{labels},le=\"+Inf\"}}");
            assert_eq!(sum(&all), operations, "{all}\n{said}");
        }
    }
    let commands = sum("lunar_session_commands_total{");
    assert!(commands >= 40, "{said}");
    assert_eq!(
        sum("lunar_session_latency_seconds_count{"),
        commands,
        "{said}"
    );
}

/// What was on its way to a target when that was killed is sent to it again.
#[test]
fn what_a_gateway_sends_again_is_counted() {
    let mut target = Rig::start();
    let disk = target.url(1);
    let gateway = Rig::serving(|_, port| {
        format!(
            "version = 1\n\n[volume.disk]\naddress = \"stats({disk})\"\n\n[volume.here]\n\
             address = \"null:1M\"\n\n[target.\"{TARGET}\"]\n\
             portals = [\"127.0.0.1:{port}\"]\nluns = {{ 0 = \"disk\", 1 = \"here\" }}\n\
             allow = [\"*\"]\n"
        )
    });
    let mut host = load(&gateway.url(0));
    let writes = "lunar_volume_latency_seconds_count{volume=\"disk\",op=\"write\"}";
    wait_for(&gateway, writes);
    // Killed as it runs, it may have answered all that it had got.
    target.freeze();
    wait_for_rest(&gateway, writes);
    target.kill();
    target.begin();
    wait_for(&gateway, "lunar_retries_total{volume=\"disk\"}");
    let said = gateway.says(&["metrics"]);
    assert!(
        !said.contains("lunar_retries_total{volume=\"here\"}"),
        "{said}"
    );
    assert!(host.try_wait().unwrap().is_none(), "{}", gateway.log());
    host.kill().unwrap();
    host.wait().unwrap();
}
