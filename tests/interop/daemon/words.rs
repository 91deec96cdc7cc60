//! What the command line says of a daemon where nothing comes of it, or something is in the way.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use crate::rig::{Rig, TARGET};

/// What a verb says that fails.
#[track_caller]
fn refused(rig: &Rig, verb: &[&str]) -> String {
    let ran = rig.lunar(verb);
    assert!(!ran.good(), "{verb:?}: {}", ran.output);
    ran.output
}

#[test]
fn a_plan_refuses_what_could_not_be_made() {
    let rig = Rig::start();
    rig.says(&["set", "volume.held.address=ram:2M?locked"]);
    let all = format!("0.0.0.0:{}", rig.port);
    let one = format!("127.0.0.1:{}", rig.port);
    for (value, told) in [
        (
            "daemon.memory-limit=1M".to_owned(),
            "1M is less than the 2M of locked RAM disks: held: give at least 2M".to_owned(),
        ),
        (
            format!("target.{TARGET}.portals={{ 1 = [\"{one}\"], 2 = [\"{all}\"] }}"),
            format!("{one} is among the addresses of {all}, of target {TARGET}: write the same"),
        ),
    ] {
        for verb in [&["set", &value, "--dry-run"][..], &["set", &value]] {
            let said = refused(&rig, verb);
            assert!(said.contains(&told), "{said}");
            assert_eq!(said.lines().count(), 1, "{said}");
        }
    }
}

#[test]
fn what_does_not_differ_is_told_as_that() {
    let rig = Rig::start();
    let same = "nothing differs between generation 1 and generation 1\n";
    assert_eq!(rig.says(&["diff", "1", "1"]), same);
    assert_eq!(rig.says(&["diff", "1"]), same);
    let object = rig.says(&["diff", "1", "1", "--json"]);
    assert!(object.contains("\"diff\":\"\""), "{object}");
    rig.says(&["set", "volume.c.address=ram:1M"]);
    assert!(rig.says(&["diff", "1"]).starts_with("--- generation 1\n"));
}

#[test]
fn what_is_wrong_in_a_file_is_told_with_its_name() {
    let rig = Rig::start();
    let (other, own) = (rig.path("other.toml"), rig.path("etc/lunar.toml"));
    let wrong = rig.file().replace("address", "adress");
    fs::write(&other, &wrong).unwrap();
    let name = other.display().to_string();
    for verb in ["plan", "apply"] {
        let said = refused(&rig, &[verb, &name]);
        assert!(said.contains(&format!("{name}: line 5, ")), "{said}");
    }
    fs::write(&own, &wrong).unwrap();
    for verb in ["plan", "apply"] {
        let said = refused(&rig, &[verb]);
        assert!(
            said.contains(&format!("{}: line 5, ", own.display())),
            "{said}"
        );
    }
}

#[test]
fn at_the_start_nothing_counts_at_the_next_one() {
    let rig = Rig::serving(|_, port| {
        format!(
            "version = 1\n[daemon]\nthreads = 1\n[target.\"{TARGET}\"]\n\
             portals = [\"127.0.0.1:{port}\"]\nallow = [\"*\"]\n"
        )
    });
    let history = rig.says(&["history"]);
    assert!(history.contains("~ daemon  + threads = 1\n"), "{history}");
    let plan = rig.says(&["set", "daemon.threads=2", "--dry-run"]);
    assert!(plan.contains("counts at the next start"), "{plan}");
}

/// It counts at the next start, which it would keep from being one.
#[test]
fn a_cpu_that_is_not_there_is_refused_before_it_counts() {
    let rig = Rig::start();
    for (value, told) in [
        (
            "daemon.pin=1023",
            "daemon.pin: no thread can be pinned to CPU 1023: ",
        ),
        ("daemon.pin=0-x", "daemon.pin: \"0-x\" is no list of CPUs: "),
        ("daemon.busy-poll=2s", "daemon.busy-poll: 2s is not a time "),
    ] {
        let said = refused(&rig, &["set", value]);
        assert!(said.contains(told), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
    assert!(!rig.file().contains("pin"), "{}", rig.file());
}

#[test]
fn an_api_without_a_free_place_says_so() {
    let rig = Rig::start();
    let mut idle: Vec<_> = (0..64)
        .map(|_| UnixStream::connect(rig.path("socket")).unwrap())
        .collect();
    for stream in &mut idle {
        let request = b"GET /v1/status HTTP/1.1\r\nHost: lunar\r\n\r\n";
        stream.write_all(request).unwrap();
        assert!(stream.read(&mut [0; 64]).unwrap() > 0);
    }
    for verb in ["stats", "sessions", "plan", "history"] {
        let said = refused(&rig, &[verb]);
        assert!(
            said.contains("the API has 64 connections here already"),
            "{said}"
        );
    }
}
