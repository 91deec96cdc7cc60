//! What others do at the same time: a second daemon, other administrators; and files without end.

use std::process::Command;
use std::thread;

use tests::server;
use tests::tool;

use super::super::LIMIT;
use super::super::rig::Rig;

/// Two that share a history would overwrite it.
#[test]
fn a_second_daemon_on_a_state_directory_is_refused() {
    let rig = Rig::start();
    let mut command = Command::new(server::binary().unwrap());
    command.arg("daemon");
    for (option, name) in [
        ("--config", "other.toml"),
        ("--state-dir", "state"),
        ("--socket", "other"),
    ] {
        command.arg(option).arg(rig.path(name));
    }
    let second = tool::run(&mut command, LIMIT).unwrap();
    let state = rig.path("state").display().to_string();
    let told = format!("uses the state directory {state}: stop it, or give another --state-dir");
    assert_eq!(
        second.status.and_then(|status| status.code()),
        Some(1),
        "{}",
        second.output
    );
    assert!(second.output.contains(&told), "{}", second.output);
    assert!(rig.says(&["plan"]).contains("there is nothing to do"));
}

#[test]
fn eight_who_set_different_rows_at_once_all_succeed() {
    let rig = Rig::start();
    let rows: Vec<_> = (0..8)
        .map(|number| format!("volume.v{number}.address=null:1G"))
        .collect();
    thread::scope(|scope| {
        let rig = &rig;
        let set = |row| scope.spawn(move || rig.says(&["set", row]));
        let all: Vec<_> = rows.iter().map(|row| set(&**row)).collect();
        all.into_iter().for_each(|one| drop(one.join().unwrap()));
    });
    let file = rig.file();
    assert!(
        (0..8).all(|number| file.contains(&format!("[volume.v{number}]"))),
        "{file}"
    );
    // Who has seen a generation is told that there is another one.
    let stale = rig.lunar(&["set", "volume.w.address=null:1G", "--based-on", "1"]);
    assert!(
        !stale.good() && stale.output.contains("look at it again"),
        "{}",
        stale.output
    );
}

#[test]
fn a_file_without_an_end_is_not_read_to_it() {
    let rig = Rig::start();
    for (verb, most) in [
        (&["plan", "/dev/zero"][..], 4 << 20),
        (&["apply", "/dev/zero"], 4 << 20),
        (&["import", "lio", "/dev/zero"], 64 << 20),
    ] {
        let ran = rig.lunar(verb);
        assert_eq!(
            ran.status.and_then(|status| status.code()),
            Some(2),
            "{verb:?}: {}",
            ran.output
        );
        let told = format!("cannot read /dev/zero: it has more than {most} bytes");
        assert!(ran.output.contains(&told), "{verb:?}: {}", ran.output);
    }
}
