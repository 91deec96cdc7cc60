//! Each contradiction is found, and the plain ways pass.

mod ports;

use super::misuse::validate_chap;
use super::*;
use ::io::ether::Place;
use fc::wire::names::Wwn;
use std::time::Duration;

fn options() -> ServeOptions {
    let iqn = "iqn.2026-11.org.lunar:test".to_owned();
    ServeOptions::new(vec!["ram:1G".to_owned()], iqn, None)
}

/// What is wrong with options that differ from [`options`].
fn with(change: impl FnOnce(&mut ServeOptions)) -> Result<(), ServeMisuse> {
    let mut options = options();
    change(&mut options);
    options.validate()
}

fn chap(users: &[(&str, &str)], mutual: Option<(&str, &str)>) -> TargetChap {
    let pair = |&(user, secret): &(&str, &str)| (user.to_owned(), secret.as_bytes().to_vec());
    let user = |&(user, secret): &(&str, &str)| chap_user(user, secret.into());
    TargetChap {
        users: users.iter().map(user).collect(),
        mutual: mutual.as_ref().map(pair),
        minimum: ChapHash::Md5,
    }
}

/// The option whose text cannot be printed.
fn unprintable<T: std::fmt::Debug>(told: Result<T, ServeMisuse>) -> &'static str {
    match told {
        Err(ServeMisuse::Unprintable { option, .. }) => option,
        other => panic!("{other:?}"),
    }
}

fn listed(options: &mut ServeOptions) {
    options.allow = vec!["iqn.2026-11.org.example:a".into()];
}

fn authenticated(options: &mut ServeOptions) {
    options.chap = Some(chap(&[("a", "twelve bytes")], None));
}

#[test]
fn loopback_needs_no_access_rule() {
    let loopback = "[::1]:0".parse().unwrap();
    assert_eq!(with(|options| options.listen.push(loopback)), Ok(()));
}

#[test]
fn an_exposed_portal_needs_one() {
    let portal: SocketAddr = "192.0.2.1:3260".parse().unwrap();
    let exposed = |guard: fn(&mut ServeOptions)| {
        with(|options| {
            options.listen.push(portal);
            guard(options);
        })
    };
    assert_eq!(exposed(|_| {}), Err(ServeMisuse::Exposed(portal)));
    assert_eq!(exposed(listed), Ok(()));
    assert_eq!(exposed(authenticated), Ok(()));
    assert_eq!(exposed(|options| options.open = true), Ok(()));
}

fn port(text: &str) -> FcoePort {
    text.parse().unwrap()
}

#[test]
fn a_name_that_no_initiator_has_is_named() {
    let allowing = |name: &str| with(|options| options.allow = vec![name.into()]);
    let wrong = Err(ServeMisuse::NoInitiator("20:00".into()));
    assert_eq!(allowing("20:00"), wrong);
    for name in [
        "IQN.2026-11.org.example:a",
        "eui.0",
        "naa.5",
        "20:00:52:54:00:78:41:00",
    ] {
        assert_eq!(allowing(name), Ok(()), "{name}");
    }
}

#[test]
fn an_interface_needs_an_access_rule_of_its_own() {
    let exposed = ServeMisuse::ExposedInterface(Place::Interface("eth0".into()));
    let mut options = ServeOptions {
        fcoe: vec![port("eth0")],
        allow: vec!["iqn.2026-11.org.example:a".into()],
        ..options()
    };
    assert_eq!(options.validate(), Err(exposed));
    options.allow.push("20:00:52:54:00:78:41:00".into());
    assert_eq!(options.validate(), Ok(()));
    assert_eq!(options.allowed_names(), ["iqn.2026-11.org.example:a"]);
    let cable = ServeOptions {
        fcoe: vec![port("cable:/run/x.sock")],
        allow: Vec::new(),
        ..options
    };
    assert_eq!(cable.validate(), Ok(()));
}

#[test]
fn a_wwpn_lets_nobody_in_by_iscsi() {
    let portal: SocketAddr = "192.0.2.1:3260".parse().unwrap();
    let allowed = with(|options| {
        options.listen = vec![portal];
        options.allow = vec!["20:00:52:54:00:78:41:00".into()];
    });
    assert_eq!(allowed, Err(ServeMisuse::Exposed(portal)));
}

#[test]
fn ports_do_not_share_what_is_theirs() {
    let wwpn = Wwn(0x2000_5254_0078_4100);
    let both = |fcoe: &[&str]| ServeOptions {
        fcoe: fcoe.iter().map(|text| port(text)).collect(),
        open: true,
        ..options()
    };
    let same = both(&["eth0", "eth0,wwpn=2000525400784100"]).validate();
    assert_eq!(
        same,
        Err(ServeMisuse::SameInterface(Place::Interface("eth0".into())))
    );
    let same = both(&["eth0,wwpn=2000525400784100", "eth1,wwpn=2000525400784100"]).validate();
    assert_eq!(same, Err(ServeMisuse::SameWwpn(wwpn)));
    let several = ServeOptions {
        target_per_volume: true,
        ..both(&["eth0"])
    };
    assert_eq!(several.validate(), Err(ServeMisuse::OnePortOneTarget));
}

#[test]
fn a_wildcard_portal_is_exposed() {
    for portal in ["0.0.0.0:3260", "[::]:3260"] {
        let portal = portal.parse().unwrap();
        let listening = with(|options| options.listen = vec![portal]);
        assert_eq!(listening, Err(ServeMisuse::Exposed(portal)));
    }
}

#[test]
fn open_excludes_every_guard() {
    for guard in [listed, authenticated] {
        let open = with(|options| {
            options.open = true;
            guard(options);
        });
        assert_eq!(open, Err(ServeMisuse::OpenAndGuarded));
    }
}

/// Options that serve these.
fn serving(volumes: &[&str], serials: &[&str]) -> ServeOptions {
    let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    let mut options = options();
    options.volumes = owned(volumes);
    options.units.serials = owned(serials);
    options
}

#[test]
fn a_number_stays_with_its_volume() {
    let numbers = |volumes: &[&str]| {
        let options = serving(volumes, &[]);
        assert_eq!(options.validate(), Ok(()));
        let numbered = options.numbered().unwrap();
        let owned = numbered
            .into_iter()
            .map(|(n, address)| (n, address.to_owned()));
        owned.collect::<Vec<_>>()
    };
    let found = |n, address: &str| (n, address.to_owned());
    let all = numbers(&[
        "ram:1G",
        "5=ram:2G",
        "ram:3G",
        "1=file:a=b?size=1G",
        "file:7=x",
    ]);
    let expected = [
        found(0, "ram:1G"),
        found(5, "ram:2G"),
        found(6, "ram:3G"),
        found(1, "file:a=b?size=1G"),
        found(2, "file:7=x"),
    ];
    assert_eq!(all, expected);
    assert_eq!(numbers(&["5=ram:2G"]), [found(5, "ram:2G")]);
    assert_eq!(numbers(&["16383=ram:2G"]), [found(16_383, "ram:2G")]);
}

#[test]
fn a_number_is_a_lun_of_one_volume() {
    let wrong = |volumes: &[&str]| serving(volumes, &[]).validate().unwrap_err();
    for volumes in [["2=ram:1G", "2=ram:2G"], ["ram:1G", "0=ram:2G"]] {
        assert!(
            matches!(wrong(&volumes), ServeMisuse::SameLun { .. }),
            "{volumes:?}"
        );
    }
    for volume in ["16384=ram:1G", "99999999999=ram:1G"] {
        assert_eq!(wrong(&[volume]), ServeMisuse::LunTooHigh(volume.to_owned()));
    }
    let behind = wrong(&["16383=ram:1G", "ram:2G"]);
    assert_eq!(behind, ServeMisuse::LunTooHigh("ram:2G".to_owned()));
}

#[test]
fn a_serial_number_belongs_to_one_volume() {
    let serials = |volumes: &[&str], serials: &[&str]| {
        let options = serving(volumes, serials);
        options.validate()?;
        let mut found: Vec<_> = options.serials()?.into_iter().collect();
        found.sort_unstable();
        Ok(found
            .into_iter()
            .map(|(n, s)| format!("{n}={s}"))
            .collect::<Vec<_>>())
    };
    let (one, two) = (["3=ram:1G"], ["ram:1G", "ram:2G"]);
    let texts = |given: &str| given.split(' ').map(str::to_owned).collect::<Vec<_>>();
    for (volumes, given, expected) in [
        (&one[..], "S1", Ok("3=S1")),
        (&one, "3=S1", Ok("3=S1")),
        (&one, "x=S1", Ok("3=x=S1")),
        (&two, "1=S1", Ok("1=S1")),
        (&two, "S1", Err(ServeMisuse::WhoseSerial("S1".into()))),
        (
            &two,
            "2=S1",
            Err(ServeMisuse::SerialOfNothing("2=S1".into())),
        ),
        (&two, "1=S1 1=S2", Err(ServeMisuse::TwoSerials(1))),
    ] {
        let given: Vec<_> = given.split(' ').collect();
        assert_eq!(serials(volumes, &given), expected.map(texts), "{given:?}");
    }
    let shared = serials(&two, &["0=S", "1=S"]);
    assert!(matches!(
        shared,
        Err(ServeMisuse::SharedSerial {
            one: 0,
            other: 1,
            ..
        })
    ));
    for wrong in ["0=", "0= ", "0=caf\u{e9}", &format!("0={}", "x".repeat(37))] {
        assert_eq!(unprintable(serials(&two, &[wrong])), "--serial", "{wrong}");
    }
}

#[test]
fn inquiry_texts_are_short_and_printable() {
    let mut options = options();
    for (text, good) in [
        ("ACME", true),
        ("ACME-SAN", true),
        ("ACME-SAN!", false),
        (" ", false),
        ("", false),
    ] {
        options.units.vendor = Some(text.into());
        assert_eq!(options.validate().is_ok(), good, "{text:?}");
    }
    options.units.vendor = Some("A\tB".into());
    assert_eq!(unprintable(options.validate()), "--vendor");
}

#[test]
fn secrets_have_12_to_255_bytes() {
    for (bytes, good) in [(11, false), (12, true), (255, true), (256, false)] {
        let chap = chap(&[("a", &"x".repeat(bytes))], None);
        assert_eq!(validate_chap(&chap).is_ok(), good, "{bytes} bytes");
    }
}

#[test]
fn the_mutual_secret_is_nobody_elses() {
    let same = chap(
        &[("a", "secret number 1"), ("b", "same for both")],
        Some(("t", "same for both")),
    );
    assert_eq!(validate_chap(&same), Err(ServeMisuse::SharedSecret));
    let other = chap(&[("a", "secret number 1")], Some(("t", "secret number 2")));
    assert_eq!(validate_chap(&other), Ok(()));
}

#[test]
fn a_user_has_one_name_and_one_secret() {
    let twice = chap(&[("a", "secret number 1"), ("a", "secret number 2")], None);
    assert_eq!(
        validate_chap(&twice),
        Err(ServeMisuse::DuplicateUser("a".into()))
    );
    let secrets = ["secret number 1", "secret number 2"];
    for (one, other, good) in [
        ("a@iqn.2026-11.org:1", "a@iqn.2026-11.org:2", true),
        ("a@iqn.2026-11.org:1", "a@iqn.2026-11.org:1", false),
        ("a@iqn.2026-11.org:a", "a@iqn.2026-11.org:A", false),
        ("a@iqn.2026-11.org:1", "a", false),
    ] {
        let both = chap(&[(one, secrets[0]), (other, secrets[1])], None);
        assert_eq!(validate_chap(&both).is_ok(), good, "{one} {other}");
    }
}

#[test]
fn a_user_is_bound_to_what_follows_the_last_at_if_that_is_an_iscsi_name() {
    for (spec, name, initiator) in [
        ("alice", "alice", None),
        ("alice@example.org", "alice@example.org", None),
        (
            "alice@IQN.2026-11.org:A",
            "alice",
            Some("IQN.2026-11.org:A"),
        ),
        (
            "a@b@eui.0123456789abcdef",
            "a@b",
            Some("eui.0123456789abcdef"),
        ),
        ("naa.0123456789abcdef", "naa.0123456789abcdef", None),
    ] {
        let user = chap_user(spec, Vec::new());
        assert_eq!((&*user.name, user.initiator.as_deref()), (name, initiator));
    }
    for misspelled in ["alice@iqm.1993-08.org.debian:01:web", "alice@"] {
        let chap = chap(&[(misspelled, "secret number 1")], None);
        let refusal = ServeMisuse::BoundToNothing(misspelled.into());
        assert_eq!(validate_chap(&chap), Err(refusal));
    }
}

#[test]
fn a_user_name_fits_into_a_login() {
    let longest = "x".repeat(255);
    let long = "x".repeat(256);
    for (name, good) in [
        ("", false),
        ("a", true),
        ("a b", true),
        ("caf\u{e9}", true),
        (&longest, true),
        (&long, false),
        ("a\0b", false),
        ("a\nb", false),
    ] {
        let user = chap(&[(name, "secret number 1")], None);
        assert_eq!(validate_chap(&user).is_ok(), good, "{name:?}");
        let ours = chap(&[("a", "secret number 1")], Some((name, "secret number 2")));
        assert_eq!(validate_chap(&ours).is_ok(), good, "{name:?}");
    }
}

#[test]
fn a_portal_is_listened_on_once() {
    let listen = |portals: &[&str]| {
        let listen = portals.iter().map(|portal| portal.parse().unwrap());
        with(|options| (options.listen, options.open) = (listen.collect(), true))
    };
    for (portals, good) in [
        (["127.0.0.1:3260", "127.0.0.1:3260"], false),
        (["127.0.0.1:3260", "0.0.0.0:3260"], false),
        (["[::]:3260", "[::1]:3260"], false),
        (["127.0.0.1:3260", "127.0.0.1:3261"], true),
        (["127.0.0.1:0", "127.0.0.1:0"], true),
        (["0.0.0.0:3260", "[::]:3260"], true),
    ] {
        assert_eq!(listen(&portals).is_ok(), good, "{portals:?}");
    }
}

#[test]
fn iser_needs_a_portal() {
    let iser = |options: &mut ServeOptions| options.iser = Some(IserProvider::Software);
    assert_eq!(with(iser), Ok(()));
    let port = "cable:/tmp/cable".parse::<FcoePort>().unwrap();
    let alone = with(|options| {
        iser(options);
        options.listen.clear();
        options.fcoe = vec![port.clone()];
    });
    assert_eq!(alone, Err(ServeMisuse::IserWithoutPortal));
    let beside = with(|options| {
        iser(options);
        options.fcoe = vec![port];
    });
    assert_eq!(beside, Ok(()));
}

#[test]
fn a_limit_is_told_as_it_is_written() {
    let said = |change: fn(&mut ServeOptions)| with(change).unwrap_err().to_string();
    let login = said(|options| options.limits.login_timeout = Duration::ZERO);
    assert_eq!(login, "--login-timeout 0s is too low: at least 1s");
    let nop = said(|options| options.limits.nop_timeout = Duration::from_millis(999));
    assert_eq!(nop, "--nop-timeout 999ms is too low: at least 1s");
    let memory = said(|options| options.limits.held_bytes = 1024);
    assert_eq!(memory, "--connection-memory 1k is too low: at least 1M");
    let sessions = said(|options| options.limits.sessions = 65_536);
    assert_eq!(sessions, "--max-sessions 65536 is too high: at most 65535");
    let threads = said(|options| options.threads = NonZeroUsize::new(1025));
    assert_eq!(threads, "--threads 1025 is too high: at most 1024");
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
    match with(|options| options.limits.sessions = 0) {
        Err(ServeMisuse::TooLow { option, .. }) => assert_eq!(option, "--max-sessions"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn there_are_no_more_volumes_than_luns() {
    let with = |count| {
        let volumes = vec!["ram:1M".to_owned(); count];
        let iqn = "iqn.2026-11.org.lunar:host".into();
        ServeOptions::new(volumes, iqn, None).validate()
    };
    assert_eq!(with(16_384), Ok(()));
    assert_eq!(with(16_385), Err(ServeMisuse::TooManyVolumes(16_385)));
}

#[test]
fn exit_codes_tell_misuse_from_failure() {
    assert_eq!(ServeError::from(ServeMisuse::NoVolume).exit_code(), 2);
    let cause = std::io::Error::from(std::io::ErrorKind::NotFound);
    let (address, cause) = ("file:/nowhere".into(), cause.to_string());
    assert_eq!(ServeError::Open { address, cause }.exit_code(), 1);
}

#[test]
fn there_is_a_thread_for_each_cpu_of_a_list() {
    let pinned = |threads, list: &str| {
        with(|options| {
            options.threads = NonZeroUsize::new(threads);
            options.pin = Some(list.parse().unwrap());
        })
    };
    for (threads, list) in [(0, "0"), (0, "0,2-5"), (1, "7"), (5, "0,2-5")] {
        assert_eq!(pinned(threads, list), Ok(()), "{threads} {list}");
    }
    for (threads, list) in [(2, "0"), (4, "0,2-5"), (6, "0,2-5")] {
        let error = pinned(threads, list).unwrap_err().to_string();
        assert!(error.contains(&format!("--pin {list}")), "{error}");
        assert!(
            error.ends_with(&format!("or list {threads} CPUs")),
            "{error}"
        );
    }
}

#[test]
fn network_cards_are_polled_for_a_while_before_a_sleep() {
    let polled =
        |time, poll| with(|options| (options.busy_poll, options.poll) = (Some(time), poll));
    for time in [Duration::from_micros(1), Duration::from_secs(1)] {
        assert_eq!(polled(time, PollMode::Never), Ok(()));
        assert_eq!(polled(time, PollMode::Adaptive), Ok(()));
        let sleepless = polled(time, PollMode::Always);
        assert_eq!(sleepless, Err(MachineMisuse::NeverAsleep.into()));
    }
    for time in [
        Duration::ZERO,
        Duration::from_nanos(999),
        Duration::from_secs(2),
    ] {
        let wrong = polled(time, PollMode::Never);
        assert_eq!(wrong, Err(MachineMisuse::BusyPoll(time).into()));
    }
}
