//! Options that contradict a rule are refused by name, with the way out.

use std::time::Duration;

use super::super::options::*;

fn options(places: &[&str]) -> SwitchOptions {
    let places = places.iter().map(|text| place(text).unwrap());
    SwitchOptions::new(places.collect())
}

#[test]
fn ports_are_told_apart() {
    assert_eq!(options(&["eth0", "cable:a", "cable:b"]).validate(), Ok(()));
    for twice in [
        ["eth0", "eth0"],
        ["eth0", "xdp:eth0"],
        ["cable:a", "cable:a"],
    ] {
        let refused = options(&twice).validate().unwrap_err();
        assert!(matches!(refused, SwitchMisuse::SamePlace(_)), "{refused}");
    }
    assert_eq!(options(&[]).validate(), Err(SwitchMisuse::NoPlace));
    let many: Vec<_> = (0..65).map(|number| format!("eth{number}")).collect();
    let many: Vec<_> = many.iter().map(String::as_str).collect();
    assert_eq!(
        options(&many).validate(),
        Err(SwitchMisuse::TooManyPlaces(65))
    );
    assert_eq!(options(&many[1..]).validate(), Ok(()));
}

#[test]
fn what_is_no_port_is_refused() {
    for (text, told) in [
        ("", "name an interface"),
        ("cable:", "name an interface"),
        ("fcoe://eth0/", "without fcoe://, as in eth0"),
        ("eth0/1", "see ip link"),
        ("a-name-of-16-bytes", "see ip link"),
    ] {
        let refused = place(text).unwrap_err();
        assert!(refused.contains(told), "{text}: {refused}");
    }
}

#[test]
fn an_fc_map_is_unicast() {
    for text in ["0efc00", "0e:fc:00", "0x0EFC00"] {
        assert_eq!(text.parse(), Ok(FcMap::default()), "{text}");
    }
    assert_eq!(FcMap::default().to_string(), "0e:fc:00");
    for (text, wrong) in [
        ("000000", NotAnFcMap::Zero),
        ("0ffc00", NotAnFcMap::Group),
        ("0efd00", NotAnFcMap::Vn2Vn),
        ("0efc", NotAnFcMap::Malformed),
        ("0efc0000", NotAnFcMap::Malformed),
        ("0ef:c00", NotAnFcMap::Malformed),
        ("0e:fc0:0", NotAnFcMap::Malformed),
        ("+efc00", NotAnFcMap::Malformed),
        ("0efcgg", NotAnFcMap::Malformed),
        ("", NotAnFcMap::Malformed),
    ] {
        assert_eq!(text.parse::<FcMap>(), Err(wrong), "{text}");
    }
}

#[test]
fn names_periods_and_standby_are_checked() {
    let usual = options(&["eth0"]);
    let with = |change: fn(&mut SwitchOptions)| {
        let mut options = usual.clone();
        change(&mut options);
        options.validate()
    };
    assert_eq!(
        with(|it| it.fka = Duration::from_millis(249)),
        Err(SwitchMisuse::Fka)
    );
    assert_eq!(
        with(|it| it.fka = Duration::from_millis(90_001)),
        Err(SwitchMisuse::Fka)
    );
    assert_eq!(
        with(|it| it.switch_name = Some(Wwn(0))),
        Err(SwitchMisuse::Reserved("--switch-name", Wwn(0)))
    );
    assert_eq!(
        with(|it| it.standby = true),
        Err(SwitchMisuse::StandbyOfNone)
    );
    let named = |it: &mut SwitchOptions| {
        it.standby = true;
        (it.switch_name, it.fabric_name) = (Some(Wwn(1)), Some(Wwn(2)));
    };
    assert_eq!(with(named), Ok(()));
    let at_cables = |it: &mut SwitchOptions| {
        it.standby = true;
        (it.switch_name, it.fabric_name) = (Some(Wwn(1)), Some(Wwn(2)));
        it.places = vec![place("cable:a").unwrap(), place("cable:b").unwrap()];
    };
    assert_eq!(with(at_cables), Err(SwitchMisuse::StandbyAtCables));
}

#[test]
fn what_works_but_surprises_is_told() {
    let mut options = options(&["eth0"]);
    let told = options.remarks();
    assert!(told.len() == 1 && told[0].contains("--zones"), "{told:?}");
    options.zoning = Zoning::Open;
    options.fka = Duration::from_millis(499);
    let told = options.remarks();
    assert!(told.len() == 1 && told[0].contains("8 s"), "{told:?}");
    options.fka = Duration::from_millis(500);
    assert_eq!(options.remarks(), [""; 0]);
}
