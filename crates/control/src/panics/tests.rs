//! Processes of their own that panic.

use std::env;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Output};
use std::thread;

use super::{abort_on_panic, contained, let_unwind};

/// What the process of a test does that this test starts.
const ROLE: &str = "LUNAR_TEST_PANIC";

/// Runs `play_a_role` in a process of its own.
fn process(role: &str) -> Output {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", "panics::tests::play_a_role", "--nocapture"]);
    command.env(ROLE, role).output().unwrap()
}

#[test]
fn play_a_role() {
    let Some(role) = env::var_os(ROLE) else {
        return;
    };
    abort_on_panic();
    let thread = thread::Builder::new().name("a thread".to_owned());
    let thread = thread.spawn(move || match role.to_str() {
        Some("control") => {
            let_unwind();
            panic!("a handler is wrong");
        }
        Some("contained") => assert!(contained(|| panic!("a reload is wrong")).is_none()),
        Some("after") => {
            contained(|| ());
            panic!("a core is wrong");
        }
        _ => panic!("a core is wrong"),
    });
    let ended = thread.unwrap().join();
    println!("the process goes on, and the thread {:?}", ended.is_ok());
}

#[test]
fn a_thread_that_serves_ends_the_process_with_a_message() {
    for role in ["core", "after"] {
        let output = process(role);
        assert_eq!(output.status.signal(), Some(6), "{role}: {output:?}");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains("'a thread'") && said.contains("a core is wrong"));
        assert!(!String::from_utf8_lossy(&output.stdout).contains("goes on"));
    }
}

#[test]
fn a_thread_of_the_control_plane_ends_alone() {
    for (role, thread) in [("control", false), ("contained", true)] {
        let output = process(role);
        assert!(output.status.success(), "{role}: {output:?}");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let last = format!("the process goes on, and the thread {thread}");
        assert!(said.contains(&last), "{role}: {said}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("is wrong"));
    }
}
