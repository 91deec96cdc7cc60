//! Each contradiction is found, and the plain ways pass.

use super::*;

fn options() -> Options {
    let iqn = "iqn.2026-11.org.lunar:test".to_owned();
    Options::new(vec!["ram:1G".to_owned()], iqn, PathBuf::new())
}

fn chap(users: &[(&str, &str)], mutual: Option<(&str, &str)>) -> Chap {
    let pair = |&(user, secret): &(&str, &str)| (user.to_owned(), secret.as_bytes().to_vec());
    Chap {
        users: users.iter().map(pair).collect(),
        mutual: mutual.as_ref().map(pair),
        minimum: ChapHash::Md5,
    }
}

#[test]
fn loopback_needs_no_access_rule() {
    let mut options = options();
    options.listen.push("[::1]:0".parse().unwrap());
    assert_eq!(options.validate(), Ok(()));
}

#[test]
fn an_exposed_portal_needs_one() {
    let portal: SocketAddr = "192.0.2.1:3260".parse().unwrap();
    let mut options = options();
    options.listen.push(portal);
    assert_eq!(options.validate(), Err(Misuse::Exposed(portal)));

    let guarded = Options {
        allow: vec!["iqn.2026-11.org.example:a".into()],
        ..options.clone()
    };
    assert_eq!(guarded.validate(), Ok(()));
    let authenticated = Options {
        chap: Some(chap(&[("a", "twelve octets")], None)),
        ..options.clone()
    };
    assert_eq!(authenticated.validate(), Ok(()));
    options.open = true;
    assert_eq!(options.validate(), Ok(()));
}

#[test]
fn a_wildcard_portal_is_exposed() {
    for portal in ["0.0.0.0:3260", "[::]:3260"] {
        let portal = portal.parse().unwrap();
        let options = Options {
            listen: vec![portal],
            ..options()
        };
        assert_eq!(options.validate(), Err(Misuse::Exposed(portal)));
    }
}

#[test]
fn open_excludes_every_guard() {
    let open = Options {
        open: true,
        ..options()
    };
    let allow = Options {
        allow: vec!["iqn.2026-11.org.example:a".into()],
        ..open.clone()
    };
    assert_eq!(allow.validate(), Err(Misuse::OpenAndGuarded));
    let chap = Options {
        chap: Some(chap(&[("a", "twelve octets")], None)),
        ..open
    };
    assert_eq!(chap.validate(), Err(Misuse::OpenAndGuarded));
}

#[test]
fn a_serial_belongs_to_one_volume() {
    let mut options = options();
    options.units.serial = Some("S1".into());
    assert_eq!(options.validate(), Ok(()));
    options.volumes.push("ram:2G".into());
    assert_eq!(options.validate(), Err(Misuse::SharedSerial));
}

#[test]
fn inquiry_texts_are_short_and_printable() {
    let mut options = options();
    for (text, good) in [
        ("ACME", true),
        ("ACME-SAN", true),
        ("ACME-SAN!", false),
        ("", false),
    ] {
        options.units.vendor = Some(text.into());
        assert_eq!(options.validate().is_ok(), good, "{text:?}");
    }
    options.units.vendor = Some("A\tB".into());
    assert!(matches!(
        options.validate(),
        Err(Misuse::Unprintable {
            option: "--vendor",
            ..
        })
    ));
}

#[test]
fn secrets_have_12_to_255_octets() {
    for (octets, good) in [(11, false), (12, true), (255, true), (256, false)] {
        let chap = chap(&[("a", &"x".repeat(octets))], None);
        assert_eq!(chap.validate().is_ok(), good, "{octets} octets");
    }
}

#[test]
fn the_mutual_secret_is_nobody_elses() {
    let same = chap(
        &[("a", "secret number 1"), ("b", "same for both")],
        Some(("t", "same for both")),
    );
    assert_eq!(same.validate(), Err(Misuse::SharedSecret));
    let other = chap(&[("a", "secret number 1")], Some(("t", "secret number 2")));
    assert_eq!(other.validate(), Ok(()));
}

#[test]
fn a_user_has_one_name_and_one_secret() {
    let twice = chap(&[("a", "secret number 1"), ("a", "secret number 2")], None);
    assert_eq!(twice.validate(), Err(Misuse::DuplicateUser("a".into())));
    let nameless = chap(&[("", "secret number 1")], None);
    assert_eq!(nameless.validate(), Err(Misuse::EmptyUser));
}

#[test]
fn secrets_are_not_in_debug_output() {
    let text = format!(
        "{:?}",
        chap(&[("alice", "opensesame123")], Some(("t", "opensesame456")))
    );
    assert!(
        text.contains("alice") && !text.contains("opensesame"),
        "{text}"
    );
}

#[test]
fn limits_that_let_nothing_work_are_refused() {
    let mut options = options();
    options.limits.sessions = 0;
    assert!(matches!(
        options.validate(),
        Err(Misuse::TooLow {
            option: "--max-sessions",
            ..
        })
    ));
}

#[test]
fn there_are_no_more_volumes_than_luns() {
    let with = |count| {
        let volumes = vec!["ram:1M".to_owned(); count];
        let iqn = "iqn.2026-11.org.lunar:host".into();
        Options::new(volumes, iqn, "/var/lib/lunar".into()).validate()
    };
    assert_eq!(with(16_384), Ok(()));
    assert_eq!(with(16_385), Err(Misuse::TooManyVolumes(16_385)));
}

#[test]
fn exit_codes_tell_misuse_from_failure() {
    assert_eq!(Error::from(Misuse::NoVolume).exit_code(), 2);
    let cause = std::io::Error::from(std::io::ErrorKind::NotFound);
    assert_eq!(
        Error::Open {
            address: "file:/nowhere".into(),
            cause: cause.to_string()
        }
        .exit_code(),
        1
    );
}
