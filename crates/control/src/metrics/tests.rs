//! The text that Prometheus reads.

use std::collections::BTreeSet;
use std::time::Instant;

use engine::survey::{CoreTime, LoginResult};
use scsi::statistics::{ClockTicks, CoarseLatency};

use super::scrape::{Format, Numbers, ScrapeRequest};
use super::*;
use crate::alarm::{Alarm, AlarmKind};
use crate::plane::Session;

/// As many commands as there are buckets, each in its own; the first of them have failed.
fn operations(buckets: u64, errors: u64) -> OperationStats {
    let end = |at: u64| ((4 + at % 4) << (at / 4)) * 250;
    OperationStats {
        operations: buckets,
        errors,
        sum_ns: 1_500_000_000,
        buckets: (0..buckets).map(|at| (end(at), 1)).collect(),
    }
}

fn volume(name: &str, reads: u64) -> VolumeStats {
    VolumeStats {
        volume: name.to_owned(),
        absent: reads == 0,
        capacity_bytes: 1 << 30,
        used_bytes: (reads > 0).then_some(4096),
        retries: (reads > 0).then_some(3),
        reads,
        writes: reads,
        read_bytes: reads * 512,
        written_bytes: reads * 1024,
        read: operations(reads, 0),
        write: operations(reads, 1),
        other: operations(reads, 0),
    }
}

/// A peer chooses its name; it ends no line and no label.
fn session(portal: &str) -> Session {
    Session {
        id: Some(3),
        initiator: "iqn.2026-11.org.example:\"h\\1\n".to_owned(),
        isid: Some("400001370000".to_owned()),
        target: Some("iqn.2026-11.org.example:san".to_owned()),
        address: "192.0.2.7:41822".to_owned(),
        portal: portal.to_owned(),
        transport: "iscsi".to_owned(),
        device: None,
        user: None,
        proof: "none".to_owned(),
        digests: "none".to_owned(),
        core: 0,
        age_s: 12,
        commands: 5,
        read_bytes: 512,
        written_bytes: 1024,
        latency: latency(5),
    }
}

/// Times of 2 us, 8 us, and so on, one command each.
fn latency(commands: u32) -> CoarseLatency {
    let mut latency = CoarseLatency::default();
    for at in 0..commands {
        latency.count(ClockTicks(8 << (2 * at)));
    }
    latency
}

fn numbers(volumes: Vec<VolumeStats>) -> Numbers {
    let mut numbers = Numbers {
        volumes,
        sessions: vec![session("192.0.2.1:3260"), session("192.0.2.1:3260")],
        memory: vec![("volumes", 4096), ("buffers", 8192)],
        memory_limit: 1 << 30,
        generation: 17,
        alarms: vec![Alarm::new(AlarmKind::Secret, "it is gone").at("state:lab")],
        ..Numbers::default()
    };
    let survey = &mut numbers.survey;
    survey.queued.insert("db".to_owned(), 2);
    let login = ("192.0.2.1:3260".to_owned(), LoginResult::Accepted);
    survey.logins.insert(login, 2);
    survey.violations.insert("a header digest error", 3);
    survey
        .violations
        .insert("a second connection in one session", 1);
    survey.times.push(CoreTime::default());
    survey.uncopied = 65536;
    let losses = runtime::n_port::FrameLosses::default();
    let port = "20:00:00:00:5e:00:53:00".to_owned();
    survey.lost_frames.push((port, losses.places().into()));
    numbers
}

fn text(numbers: &Numbers) -> String {
    numbers.text(&ScrapeRequest::default())
}

fn value(text: &str, series: &str) -> f64 {
    let mut lines = text.lines();
    let line = lines.find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("{series}\n{text}"))
        .parse()
        .unwrap()
}

#[test]
fn numbers_have_names_and_labels_that_are_escaped() {
    let numbers = numbers(vec![volume("db", 7), volume("silent", 0)]);
    insta::assert_snapshot!(text(&numbers));
}

#[test]
fn histograms_add_up_to_the_counters() {
    let text = text(&numbers(vec![volume("db", 100)]));
    for op in ["read", "write"] {
        let labels = format!("volume=\"db\",op=\"{op}\"");
        let operations = value(&text, &format!("lunar_volume_operations_total{{{labels}}}"));
        let series = format!("lunar_volume_latency_seconds_bucket{{{labels}");
        let lines = text.lines().filter(|line| line.starts_with(&series));
        let counts: Vec<u64> = lines
            .map(|line| line.rsplit(' ').next().unwrap().parse().unwrap())
            .collect();
        assert_eq!(counts.len(), 13);
        assert!(counts.is_sorted(), "{counts:?}");
        // 4^n us is the end of bucket 8n, of which each has one.
        let expected: Vec<u64> = (0..12).map(|n| 8 * n + 1).chain([100]).collect();
        assert_eq!(counts, expected);
        let count = format!("lunar_volume_latency_seconds_count{{{labels}}}");
        assert_eq!(value(&text, &count).to_bits(), operations.to_bits());
        let sum = format!("lunar_volume_latency_seconds_sum{{{labels}}}");
        assert_eq!(value(&text, &sum).to_bits(), 1.5f64.to_bits());
    }
}

#[test]
fn a_volume_alone_and_in_detail() {
    let mut numbers = numbers(vec![volume("db", 7), volume("vm1", 7)]);
    let medium = |count| operations(count, 0);
    let request = |query: &[(&str, &str)]| {
        let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
        ScrapeRequest::new(&query.iter().map(owned).collect::<Vec<_>>(), "")
    };
    let alone = numbers.text(&request(&[("volume", "vm1")]).unwrap());
    assert!(
        !alone.contains("\"db\"") && !alone.contains("lunar_sessions"),
        "{alone}"
    );
    numbers.media.insert("db".to_owned(), [7, 6, 0].map(medium));
    let detail = numbers.text(&request(&[("detail", "1")]).unwrap());
    let other = "lunar_volume_latency_seconds_bucket{volume=\"db\",op=\"other\"";
    let buckets = detail.lines().filter(|line| line.starts_with(other));
    assert_eq!(buckets.count(), 28);
    for (op, at_medium) in [("read", 7.0), ("write", 6.0)] {
        let labels = format!("{{volume=\"db\",op=\"{op}\"}}");
        let count = format!("lunar_volume_medium_latency_seconds_count{labels}");
        assert_eq!(value(&detail, &count).to_bits(), f64::to_bits(at_medium));
    }
    assert_eq!(detail.matches("_sum{volume=\"db\"").count(), 5, "{detail}");
    for wrong in [("detail", "2"), ("volumes", "db"), ("", "")] {
        let cause = request(&[wrong]).unwrap_err();
        assert!(cause.contains("give detail=1 or volume=NAME"), "{cause}");
    }
}

/// Sessions of one initiator with one target by one portal are added up.
#[test]
fn histograms_of_sessions_add_up_to_their_commands() {
    let mut numbers = numbers(Vec::new());
    let other = Session {
        commands: 14,
        latency: latency(14),
        ..session("192.0.2.1:3260")
    };
    let idle = Session {
        commands: 0,
        latency: latency(0),
        ..session("192.0.2.2:3260")
    };
    numbers.sessions.extend([other, idle]);
    assert!(!text(&numbers).contains("session_latency"));
    let request = ScrapeRequest {
        detail: true,
        ..ScrapeRequest::default()
    };
    let text = numbers.text(&request);
    let of = |series: &str| {
        let begin = format!("lunar_session_{series}{{");
        let lines = text.lines().filter(move |line| line.starts_with(&begin));
        lines.map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap())
    };
    let within: Vec<u64> = of("latency_seconds_bucket").collect();
    // Of three sessions each, and after the fifth bucket of one alone, which has three beyond 4 s.
    assert_eq!(
        within,
        [0, 3, 6, 9, 12, 15, 16, 17, 18, 19, 20, 21, 24],
        "{text}"
    );
    let counts = ["latency_seconds_count", "commands_total"].map(|series| of(series).sum::<u64>());
    assert_eq!(counts, [24, 24]);
}

/// A counter that fell to 0 for once would be taken for another start.
#[test]
fn sessions_of_a_core_that_does_not_answer_have_no_counts() {
    let mut numbers = numbers(Vec::new());
    let silent = Session {
        target: Some("iqn.2026-11.org.example:other".to_owned()),
        core: 1,
        commands: 0,
        ..session("192.0.2.1:3260")
    };
    numbers.sessions.push(silent);
    numbers.survey.silent.push(1);
    let text = text(&numbers);
    let other = "lunar_sessions{target=\"iqn.2026-11.org.example:other\",transport=\"iscsi\"} 1\n";
    assert!(text.contains(other), "{text}");
    let counts = text
        .lines()
        .filter(|line| line.starts_with("lunar_session_commands_total{"));
    assert_eq!(counts.count(), 1, "{text}");
}

#[test]
fn open_metrics_is_told_where_it_is_asked_for() {
    let accept = "application/openmetrics-text;version=1.0.0,text/plain;q=0.5";
    let request = ScrapeRequest::new(&[], accept).unwrap();
    assert_eq!(request.format, Format::OpenMetrics);
    let text = numbers(vec![volume("db", 7)]).text(&request);
    assert!(text.ends_with("\n# EOF\n"));
    assert!(text.contains("# TYPE lunar_volume_bytes counter\n# UNIT lunar_volume_bytes bytes\n"));
    assert!(text.contains("lunar_volume_bytes_total{volume=\"db\",op=\"read\"} 3584\n"));
    let plain = ScrapeRequest::new(&[], "text/plain").unwrap();
    assert_eq!(plain.format, Format::Prometheus);
}

/// Each family is told whole, once, and is in the table; no series comes twice.
#[test]
fn families_and_series_come_once() {
    let request = ScrapeRequest {
        detail: true,
        ..ScrapeRequest::default()
    };
    let text = numbers(vec![volume("db", 7), volume("vm1", 3)]).text(&request);
    let told: Vec<_> = text
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE "))
        .collect();
    let names: Vec<_> = told
        .iter()
        .map(|line| line.split(' ').next().unwrap())
        .collect();
    let expected: Vec<_> = series::ALL.iter().map(series::Family::told).collect();
    assert_eq!(names, expected);
    let samples = text.lines().filter(|line| !line.starts_with('#'));
    let mut seen = BTreeSet::new();
    for sample in samples {
        let (series, _) = sample.rsplit_once(' ').unwrap();
        assert!(seen.insert(series), "{series}");
    }
}

#[test]
fn what_came_since_is_told_apart() {
    let since = operations(8, 1).since(&operations(5, 1));
    assert_eq!(
        (since.operations, since.errors, since.buckets.len()),
        (3, 0, 3)
    );
    assert_eq!(since.percentile(1.0), operations(8, 0).percentile(1.0));
    assert_eq!(OperationStats::default().percentile(0.5), None);
}

/// 1,000 volumes at work, with names of 24 characters: prints the time that their text takes.
#[test]
fn a_thousand_active_volumes_fit() {
    let name = |number| format!("vm-production-db-{number:07}");
    let numbers = numbers((0..1000).map(|number| volume(&name(number), 100)).collect());
    let begun = Instant::now();
    let text = text(&numbers);
    println!("{} bytes in {:?}", text.len(), begun.elapsed());
    assert!(text.len() < 4 << 20, "{}", text.len());
}
