//! Plans by which portals take iSER, or take it no more.

use crate::document::parse;
use crate::plan::{Impact, SessionFact, plan};

/// A tree with a target at these portals, and another one at 192.0.2.1.
fn text(daemon: &str, portals: &str, other: &str) -> String {
    format!(
        "version = 1\n[daemon]\n{daemon}\n[volume.a]\naddress = \"null:1G\"\n\
         [target.\"iqn.2026-11.org.example:san\"]\nportals = {portals}\nluns = {{ 0 = \"a\" }}\n\
         allow = [\"*\"]\n[target.\"iqn.2026-11.org.example:other\"]\nportals = {other}\n\
         allow = [\"*\"]\n"
    )
}

/// The plan of going from one to the other while a host is logged in.
fn told(before: &str, after: &str) -> (Impact, String) {
    let session = SessionFact {
        target: "iqn.2026-11.org.example:san".to_owned(),
        initiator: "iqn.2026-11.org.example:node1".to_owned(),
        portal: Some("192.0.2.1:3260".parse().unwrap()),
    };
    let (before, after) = (parse(before).unwrap(), parse(after).unwrap());
    let plan = plan(&before, &after, &[session]);
    (plan.worst(), plan.to_string())
}

const PLAIN: &str = r#"["192.0.2.1", "192.0.2.2"]"#;
const ISER: &str = r#"[{ address = "192.0.2.1", iser = true }, "192.0.2.2"]"#;

#[test]
fn new_connections_alone_are_concerned() {
    let (plain, iser) = (text("", PLAIN, PLAIN), text("", ISER, PLAIN));
    let (on, off) = (told(&plain, &iser), told(&iser, &plain));
    assert_eq!((on.0, off.0), (Impact::Quiet, Impact::Quiet));
    insta::assert_snapshot!(format!("{}\n{}", on.1, off.1));
}

#[test]
fn a_portal_takes_iser_while_one_row_says_so() {
    let (both, one) = (text("", ISER, ISER), text("", PLAIN, ISER));
    let (impact, plan) = told(&both, &one);
    assert_eq!(impact, Impact::Quiet);
    assert!(!plan.contains("refused"), "{plan}");
}

#[test]
fn another_carrier_is_for_new_connections() {
    let by_device = ISER.replace("true", "\"device\"");
    let (soft, device) = (text("", ISER, PLAIN), text("", &by_device, PLAIN));
    let (impact, plan) = told(&soft, &device);
    assert_eq!(impact, Impact::Quiet);
    let meant = "iSER is taken by other means at 192.0.2.1:3260: sessions stay until they end";
    assert!(plan.contains(meant), "{plan}");
}

#[test]
fn a_portal_that_comes_or_goes_is_told_as_that() {
    let (one, two) = (
        text("", r#"["192.0.2.1"]"#, PLAIN),
        r#"{ address = "192.0.2.9", iser = true }"#,
    );
    let two = text("", &format!("[\"192.0.2.1\", {two}]"), PLAIN);
    for (before, after) in [(&one, &two), (&two, &one)] {
        let (impact, plan) = told(before, after);
        assert_eq!(impact, Impact::Quiet);
        assert!(!plan.contains("iSER"), "{plan}");
    }
}

#[test]
fn a_row_tells_of_luns_and_of_iser() {
    let (plain, iser) = (text("", PLAIN, PLAIN), text("", ISER, PLAIN));
    let (impact, plan) = told(&iser, &plain.replace("{ 0 = \"a\" }", "{ 1 = \"a\" }"));
    assert_eq!(impact, Impact::Told);
    insta::assert_snapshot!(plan);
}

#[test]
fn crcs_count_from_the_next_connection_on() {
    let without = text("iser-crc = false", ISER, PLAIN);
    let with = text("", ISER, PLAIN);
    let more = text("iser-crc = true\nthreads = 2", ISER, PLAIN);
    let threads = text("threads = 2", ISER, PLAIN);
    let pairs = [(&with, &without), (&without, &more), (&with, &threads)];
    let plans = pairs.map(|(before, after)| {
        let (impact, plan) = told(before, after);
        assert_eq!(impact, Impact::Quiet);
        plan
    });
    insta::assert_snapshot!(plans.join("\n"));
}
