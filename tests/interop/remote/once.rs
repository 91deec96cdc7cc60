//! How often whoever opens a unit logs in: arrays count sessions, and some let in only a few.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use block::volume::Volume;
use client::open::{self, OpenError, OpenOptions};
use client::worker::Worker;
use io::ring::RingKind;
use scsi::medium::{Extent, MediumOp, ReadMemory};
use tests::server::Server;

use super::redirector::Redirector;
use super::{TARGET, restart};

fn open(address: &str) -> Arc<dyn Volume> {
    opened(address).unwrap()
}

fn opened(address: &str) -> Result<Arc<dyn Volume>, OpenError> {
    let options = OpenOptions::new("iqn.2026-11.org.lunar.test:once".into()).unwrap();
    open::volume(&address.parse().unwrap(), &options)
}

/// A core that has attached the volume.
fn core(volume: &Arc<dyn Volume>) -> Worker {
    Worker::new(&[Arc::clone(volume)], RingKind::Auto, 16 << 20).unwrap()
}

/// Reads the first block, for at most ten seconds.
#[track_caller]
fn read(worker: &mut Worker) {
    let extent = Extent::new(0, 1);
    let memory = ReadMemory::Lent;
    worker.submit(0, 1, MediumOp::Read { extent, memory });
    let limit = Instant::now() + Duration::from_secs(10);
    let done = loop {
        worker.wait(Some(Duration::from_millis(20))).unwrap();
        if let Some(done) = worker.next_done() {
            break done;
        }
        assert!(Instant::now() < limit, "the read does not end");
    };
    done.result.unwrap();
}

/// So many logins have come to the server, and as many logouts, and nothing was lost.
#[track_caller]
pub(crate) fn has_seen(server: &Server, sessions: usize) {
    has_seen_each(server, [sessions, sessions]);
}

#[track_caller]
fn has_seen_each(server: &Server, [logins, logouts]: [usize; 2]) {
    let count = |words: &str| server.log().matches(words).count();
    let limit = Instant::now() + Duration::from_secs(10);
    let late = || count(" logged in ") < logins || count(" logged out of ") < logouts;
    while late() && Instant::now() < limit {
        thread::sleep(Duration::from_millis(20));
    }
    let counted = [" logged in ", " logged out of ", " lost"].map(count);
    assert_eq!(counted, [logins, logouts, 0], "{}", server.log());
}

#[test]
fn the_first_core_uses_the_session_that_asked_and_each_other_one_of_its_own() {
    let back = Server::start("once-cores", &["ram:1M"], &[]).unwrap();
    let volume = open(back.address(0));
    let [mut first, mut second] = [core(&volume), core(&volume)];
    read(&mut second);
    read(&mut first);
    first.leave().unwrap();
    second.leave().unwrap();
    has_seen(&back, 2);
}

#[test]
fn all_sessions_of_a_core_are_those_that_were_tried() {
    let back = Server::start("once-several", &["ram:1M"], &[]).unwrap();
    let volume = open(&format!("{}?sessions=3", back.address(0)));
    let mut first = core(&volume);
    read(&mut first);
    first.leave().unwrap();
    has_seen(&back, 3);
}

#[test]
fn what_no_core_attaches_or_uses_logs_out() {
    for (at, sessions) in [1, 3].into_iter().enumerate() {
        let name = format!("once-unused-{at}");
        let back = Server::start(&name, &["ram:1M"], &[]).unwrap();
        let address = format!("{}?sessions={sessions}", back.address(0));
        drop(open(&address));
        has_seen(&back, sessions);
        core(&open(&address)).leave().unwrap();
        has_seen(&back, 2 * sessions);
    }
}

#[test]
fn a_target_that_redirects_sees_one_login_where_it_sends_us() {
    let back = Server::start("once-redirected", &["ram:1M"], &["--iqn", TARGET]).unwrap();
    let redirector = Redirector::start(&back.luns[0].portals[0]);
    for (at, sessions) in [1, 2].into_iter().enumerate() {
        let portal = &redirector.portal;
        let volume = open(&format!("iscsi://{portal}/{TARGET}/0?sessions={sessions}"));
        let mut first = core(&volume);
        read(&mut first);
        first.leave().unwrap();
        has_seen(&back, sessions + at);
    }
}

#[test]
fn a_redirection_to_where_nothing_listens_is_named() {
    let dead = "127.0.0.1:1";
    let redirector = Redirector::start(dead);
    let address = format!("iscsi://{}/{TARGET}/0", redirector.portal);
    let refused = opened(&address).unwrap_err().to_string();
    let told = format!("the target redirects to {dead}: ");
    assert!(refused.contains(&told), "{refused}");
}

#[test]
fn a_target_that_restarts_before_the_first_use_is_found_again() {
    let dir = tests::scratch("once-restarted").unwrap();
    let volume = format!("file:{}?size=1M", dir.join("disk").display());
    let back = Server::start_in(&dir, &[&volume], &["--iqn", TARGET]).unwrap();
    let portal = back.luns[0].portals[0].clone();
    let unit = open(back.address(0));
    // A server that is killed does not write what it had still to tell.
    has_seen_each(&back, [1, 0]);
    back.kill().unwrap();
    let back = restart(&dir, &volume, &portal);
    let mut first = core(&unit);
    read(&mut first);
    first.leave().unwrap();
    // Both servers write to one log; the first had no time for a farewell.
    has_seen_each(&back, [2, 1]);
}

#[test]
fn a_session_that_has_rested_for_too_long_is_replaced() {
    let back = Server::start("once-stale", &["ram:1M"], &[]).unwrap();
    let volume = open(back.address(0));
    thread::sleep(Duration::from_millis(10_100));
    let mut first = core(&volume);
    read(&mut first);
    first.leave().unwrap();
    back.has_logged(" logged out of ").unwrap();
    assert_eq!(back.log().matches(" logged in ").count(), 2);
}
