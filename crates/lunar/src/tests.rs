//! Names, folders and texts as verbs have them in common.

use std::path::PathBuf;

use crate::client::{choose_state_dir, name_part};
use crate::units::without_codes;

fn chosen(set: &[(&str, &str)], root: bool) -> Option<PathBuf> {
    let find = |name: &str| {
        set.iter()
            .find(|(key, _)| *key == name)
            .map(|(_, v)| (*v).into())
    };
    choose_state_dir(find, root)
}

#[test]
fn host_names_become_name_parts() {
    let names = [
        ("Alpha.Example", "alpha.example"),
        ("a_b", "a-b"),
        ("", "localhost"),
    ];
    for (host, part) in names {
        assert_eq!(name_part(host), part);
    }
}

#[test]
fn systemd_says_first_where_state_is_kept() {
    let set = [
        ("STATE_DIRECTORY", "/var/lib/a:/var/lib/b"),
        ("HOME", "/home/u"),
    ];
    assert_eq!(chosen(&set, true), Some("/var/lib/a".into()));
}

#[test]
fn root_keeps_it_in_var_and_users_at_home() {
    let set = [("HOME", "/home/u"), ("XDG_STATE_HOME", "/x")];
    assert_eq!(chosen(&set, true), Some("/var/lib/lunar".into()));
    assert_eq!(chosen(&set, false), Some("/x/lunar".into()));
    assert_eq!(
        chosen(&set[..1], false),
        Some("/home/u/.local/state/lunar".into())
    );
    assert_eq!(chosen(&[], false), None);
}

#[test]
fn relative_directories_do_not_count() {
    // The XDG base directory specification says to ignore them.
    let set = [("XDG_STATE_HOME", "state"), ("HOME", "/home/u")];
    assert_eq!(
        chosen(&set, false),
        Some("/home/u/.local/state/lunar".into())
    );
}

#[test]
fn errors_lose_their_number_and_nothing_else() {
    let pairs = [
        (
            "a: Connection refused (os error 111)",
            "a: Connection refused",
        ),
        ("(os error 2): b (os error 3)\n", "(os error 2): b\n"),
        ("a (os error x) b", "a (os error x) b"),
        ("a (os error ) b", "a (os error ) b"),
        ("a (os error 5", "a (os error 5"),
        ("", ""),
    ];
    for (error, plain) in pairs {
        assert_eq!(without_codes(error), plain);
    }
}
