//! What a daemon tells of hosts that have reserved its volumes, and of what takes its time.

use std::fs;
use std::net::SocketAddr;
use std::slice;
use std::thread;
use std::time::{Duration, Instant};

use control::api::{Job, JobKind, JobState, NexusPorts, VolumeReservations};
use control::client::{ApiClient, ApiError, ApiRequest, Method};
use control::plane::Session;
use scsi::wire::lun::Lun;
use tests::cdb::{self, Reserve};
use tests::client::Client;
use tests::initiator::{Data, Settings};
use tests::server::Server;

use crate::LIMIT;
use crate::rig::{Rig, TARGET};

/// Write exclusive, registrants only (SPC-5 §6.16.3.4).
const REGISTRANTS_WRITE: u8 = 5;

fn asked<T: serde::de::DeserializeOwned>(rig: &Rig, path: &str) -> T {
    let client = ApiClient::new(&rig.path("socket"), "a test");
    client.ask(Method::GET, &ApiRequest::new(path)).unwrap()
}

/// A session at LUN 0 that has heard that it is new.
fn log_in(rig: &Rig, number: u32) -> Client {
    let portal = SocketAddr::from(([127, 0, 0, 1], rig.port));
    let mut host = Client::connect(portal, Settings::new(number, TARGET)).unwrap();
    host.lun = Lun::from_index(0);
    let _ = host.keys();
    host
}

#[test]
fn reservations_are_told_with_the_ports_of_those_that_hold_them() {
    let rig = Rig::start();
    let told = || asked::<Vec<VolumeReservations>>(&rig, "/v1/reservations");
    let (mut one, mut other) = (log_in(&rig, 1), log_in(&rig, 2));
    assert_eq!(told(), []);
    one.reserve(Reserve::Register, 0, 0, 0xa1).unwrap();
    other.reserve(Reserve::Register, 0, 0, u64::MAX).unwrap();
    let only_registered = &told()[0];
    assert_eq!(
        (&*only_registered.volume, only_registered.generation),
        ("a", 2)
    );
    assert_eq!(only_registered.reservation, None);
    one.reserve(Reserve::Reserve, REGISTRANTS_WRITE, 0xa1, 0)
        .unwrap();
    let all = told();
    assert_eq!(all.len(), 1, "{all:?}");
    let keys: Vec<_> = all[0].registrations.iter().map(|one| &*one.key).collect();
    assert_eq!(keys, ["0x00000000000000a1", "0xffffffffffffffff"]);
    let reservation = all[0].reservation.as_ref().unwrap();
    assert_eq!(reservation.kind, "write-exclusive-registrants-only");
    let registered = &all[0].registrations[0].nexus;
    assert_eq!(reservation.holders, slice::from_ref(registered));
    let NexusPorts {
        initiator,
        isid,
        target,
        portal_group,
        port,
    } = registered;
    assert!(initiator.starts_with("iqn."), "{initiator}");
    assert_eq!(isid.as_ref().map(String::len), Some(12));
    assert_eq!((target.as_deref(), *portal_group), (Some(TARGET), Some(1)));
    assert!(*port >= 0x100, "{port}");
    one.reserve(Reserve::Clear, 0, 0xa1, 0).unwrap();
    assert_eq!(told(), []);
}

/// Its command is at a target that stands still, from which nothing can take it back.
#[test]
fn a_session_that_does_not_end_in_time_is_told_so() {
    let behind = Server::start("stands-still", &["ram:8M"], &[]).unwrap();
    let address = behind.address(0);
    let rig = Rig::serving(|_, port| {
        format!(
            "version = 1\n[volume.a]\naddress = \"{address}\"\n[target.\"{TARGET}\"]\n\
             portals = [\"127.0.0.1:{port}\"]\nluns = {{ 0 = \"a\" }}\nallow = [\"*\"]\n"
        )
    });
    let client = ApiClient::new(&rig.path("socket"), "a test");
    let mut host = log_in(&rig, 1);
    let mut is_ready = || host.command(&[0; 6], Data::None).unwrap().status == 0;
    assert!((0..8).any(|_| is_ready()));
    let id = asked::<Vec<Session>>(&rig, "/v1/sessions")[0].id.unwrap();
    // A core that had not logged in yet could give up what it had not sent.
    host.read(0, 8).unwrap();
    behind.freeze().unwrap();
    let read = Data::In(8 * 512);
    host.initiator.command(0, host.lun, &cdb::read(0, 8), read);
    host.exchange(Duration::from_millis(1)).unwrap();
    let metrics = ApiRequest::new("/metrics?volume=a");
    let is_there = "lunar_volume_queue_depth{volume=\"a\"} 1";
    let until = Instant::now() + LIMIT;
    while !client
        .text(Method::GET, &metrics)
        .unwrap()
        .contains(is_there)
    {
        assert!(Instant::now() < until, "{}", rig.log());
    }
    let end = ApiRequest::new(format!("/v1/sessions/{id}"));
    let Err(ApiError::Refused(late)) = client.text(Method::DELETE, &end) else {
        panic!("it has ended");
    };
    assert_eq!(late.status, 504);
    assert!(
        late.detail.contains("has not ended within 5 s"),
        "{}",
        late.detail
    );
    behind.signal("-CONT").unwrap();
    assert!(host.reply().is_err(), "its connection was not cut");
    let until = Instant::now() + LIMIT;
    while !asked::<Vec<Session>>(&rig, "/v1/sessions").is_empty() {
        assert!(Instant::now() < until, "{}", rig.log());
    }
}

#[test]
fn a_volume_that_is_away_is_a_job_until_it_is_back() {
    let mut rig = Rig::start();
    let jobs = |rig: &Rig| asked::<Vec<Job>>(rig, "/v1/jobs");
    assert_eq!(jobs(&rig), []);
    rig.kill();
    let (disk, away) = (rig.path("disk.img"), rig.path("away"));
    fs::rename(&disk, &away).unwrap();
    rig.begin();
    let waiting = jobs(&rig);
    assert_eq!(waiting.len(), 1, "{waiting:?}");
    let job = &waiting[0];
    assert_eq!((job.kind, job.state), (JobKind::Volume, JobState::Waiting));
    assert_eq!(job.at.as_deref(), Some("volume.b"));
    assert!(job.age_s.is_some());
    fs::rename(&away, &disk).unwrap();
    let until = Instant::now() + LIMIT;
    while !jobs(&rig).is_empty() {
        assert!(Instant::now() < until, "{}", rig.log());
        thread::sleep(Duration::from_millis(50));
    }
}
