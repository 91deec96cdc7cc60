//! What is told of two looks.

use scsi::statistics::ClockTicks;

use super::*;
use crate::alarm::AlarmKind;

fn session(id: u16, initiator: &str, age_s: u64) -> (SessionKey, Session) {
    let mut latency = CoarseLatency::default();
    (0..10 * age_s).for_each(|_| latency.count(ClockTicks(1)));
    let session = Session {
        id: Some(id),
        initiator: initiator.to_owned(),
        isid: Some("800000000000".to_owned()),
        target: None,
        address: "192.0.2.7:40000".to_owned(),
        portal: "192.0.2.1:3260".to_owned(),
        transport: "iscsi".to_owned(),
        device: None,
        user: None,
        proof: "none".to_owned(),
        digests: "none".to_owned(),
        core: 0,
        age_s,
        commands: 10 * age_s,
        read_bytes: 4096 * age_s,
        written_bytes: 512 * age_s,
        latency,
    };
    (key(&session), session)
}

fn kinds(before: &Facts, now: &Facts) -> Vec<&'static str> {
    let told = happened(before, now).into_iter();
    told.map(|(kind, _)| kind).collect()
}

#[test]
fn where_nothing_has_happened_nothing_is_told() {
    let facts = |age| Facts {
        sessions: Some([session(1, "iqn.a", age)].into()),
        ..Facts::default()
    };
    assert_eq!(kinds(&facts(1), &facts(2)), [""; 0]);
}

/// One initiator at two ports of Fibre Channel has two logins, neither of which has a number.
#[test]
fn logins_at_two_ports_are_two() {
    let login = |target: &str| {
        let (_, session) = session(1, "20:00:00:00:5e:00:53:00", 5);
        let login = Session {
            id: None,
            target: Some(target.to_owned()),
            ..session
        };
        (key(&login), login)
    };
    let facts = |sessions: Vec<_>| Facts {
        sessions: Some(sessions.into_iter().collect()),
        ..Facts::default()
    };
    let both = facts(vec![login("port 1"), login("port 2")]);
    assert_eq!(kinds(&both, &facts(vec![login("port 2")])), ["session-out"]);
}

#[test]
fn sessions_that_nobody_tells_of_have_not_left() {
    let known = Facts {
        sessions: Some([session(1, "iqn.a", 5)].into()),
        ..Facts::default()
    };
    assert_eq!(kinds(&known, &Facts::default()), [""; 0]);
    assert_eq!(kinds(&Facts::default(), &known), [""; 0]);
}

/// A switch that waits for its disk has not lost its ports.
#[test]
fn logins_to_a_switch_that_does_not_answer_have_not_ended() {
    let member = |switch: &str| {
        let member = FabricMember {
            wwpn: "20:00:00:00:5e:00:53:00".to_owned(),
            wwnn: "10:00:00:00:5e:00:53:00".to_owned(),
            fc_id: "0x010100".to_owned(),
            place: "eth1".to_owned(),
            enode: "00:00:5e:00:53:00".to_owned(),
        };
        ((switch.to_owned(), member.wwpn.clone()), member)
    };
    let before = Facts {
        members: [member("blue"), member("red")].into(),
        ..Facts::default()
    };
    let mut now = Facts {
        silent: ["blue".to_owned()].into(),
        ..Facts::default()
    };
    now.keep_untold(&before);
    assert_eq!(now.members, [member("blue")].into());
    let [(kind, told)] = &happened(&before, &now)[..] else {
        panic!("the logins of one switch");
    };
    assert_eq!((*kind, &told["switch"]), ("fabric-out", &json!("red")));
    let answered = Facts::default();
    assert_eq!(kinds(&now, &answered), ["fabric-out"]);
}

#[test]
fn each_thing_is_told_in_its_own_words() {
    let names = |name: &str| [name.to_owned()].into();
    let alarms = |what: &str| [Alarm::new(AlarmKind::Reload, what)].into();
    let before = Facts {
        generation: 1,
        sessions: Some([session(1, "iqn.a", 5), session(2, "iqn.b", 5)].into()),
        absent: names("old"),
        alarms: alarms("it is late"),
        ..Facts::default()
    };
    let now = Facts {
        generation: 2,
        sessions: Some([session(2, "iqn.c", 0)].into()),
        absent: names("new"),
        alarms: alarms("it is dark"),
        ..Facts::default()
    };
    let told: Vec<_> = happened(&before, &now)
        .iter()
        .map(|(kind, data)| {
            let what = ["initiator", "volume", "detail", "generation"];
            let what = what.iter().find_map(|key| data.get(key)).unwrap();
            format!("{kind} {what}")
        })
        .collect();
    let expected = [
        "applied 2",
        "session-out \"iqn.a\"",
        "session-out \"iqn.b\"",
        "session-in \"iqn.c\"",
        "volume-absent \"new\"",
        "volume-back \"old\"",
        "alarm \"it is dark\"",
        "alarm-over \"it is late\"",
    ];
    assert_eq!(told, expected);
}

#[test]
fn an_interval_is_from_a_second_to_an_hour() {
    let every = |query: &str| {
        let uri: Uri = format!("/v1/stats{query}").parse().unwrap();
        every(&uri).map(|every| every.as_secs()).map_err(|_| ())
    };
    let good = ["", "?every=5", "?every=5s", "?every=3600"].map(every);
    assert_eq!(good, [Ok(1), Ok(5), Ok(5), Ok(3600)]);
    for bad in ["?every=0", "?every=3601", "?every=x", "?every", "?each=5"] {
        assert_eq!(every(bad), Err(()), "{bad}");
    }
}

#[test]
fn logins_to_a_fabric_come_and_go_with_their_switch() {
    let member = |fc_id: &str| FabricMember {
        wwpn: "20:00:00:00:5e:00:53:00".to_owned(),
        wwnn: "10:00:00:00:5e:00:53:00".to_owned(),
        fc_id: fc_id.to_owned(),
        place: "eth1".to_owned(),
        enode: "00:00:5e:00:53:00".to_owned(),
    };
    let facts = |members: &[FabricMember]| {
        let keyed = |one: &FabricMember| (("a".to_owned(), one.wwpn.clone()), one.clone());
        Facts {
            members: members.iter().map(keyed).collect(),
            ..Facts::default()
        }
    };
    let (none, one, other) = (
        facts(&[]),
        facts(&[member("010100")]),
        facts(&[member("010101")]),
    );
    let [("fabric-in", told)] = &happened(&none, &one)[..] else {
        panic!("one event");
    };
    assert_eq!(
        (&told["switch"], &told["fc_id"]),
        (&json!("a"), &json!("010100"))
    );
    assert_eq!(kinds(&one, &one), [""; 0]);
    assert_eq!(kinds(&one, &none), ["fabric-out"]);
    assert_eq!(
        kinds(&one, &other),
        ["fabric-out", "fabric-in"],
        "another N_Port_ID"
    );
}
