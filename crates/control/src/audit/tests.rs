//! Lines come before what they tell, and a log that cannot be written stops changes.

use super::*;
use crate::plan::Impact;

fn author() -> Author {
    Author {
        who: "root".to_owned(),
        from: "unix socket".to_owned(),
        by: "lunar set".to_owned(),
    }
}

fn generation(number: u64) -> Generation {
    Generation {
        number,
        at: 0,
        who: "root".to_owned(),
        by: "lunar set".to_owned(),
        impact: Impact::Quiet,
        differences: vec!["+ volume db".to_owned()],
    }
}

fn lines(folder: &Path) -> Vec<AuditEntry> {
    let text = fs::read_to_string(folder.join("audit.jsonl")).unwrap();
    let read = |line| serde_json::from_str(line).unwrap();
    text.lines().map(read).collect()
}

#[test]
fn a_change_has_one_line_and_a_second_if_it_fails_after_it() {
    let folder = tempfile::tempdir().unwrap();
    let audit = Audit::new(folder.path());
    audit.begin(&author(), &Candidate::File);
    audit.commit(&generation(2)).unwrap();
    assert_eq!(lines(folder.path()).len(), 1, "before it is visible");
    audit.end(None).unwrap();
    audit.begin(&author(), &Candidate::Generation(1));
    audit.commit(&generation(3)).unwrap();
    audit.end(Some("a host owes data")).unwrap();
    let lines = lines(folder.path());
    let told: Vec<_> = lines
        .iter()
        .map(|line| (line.outcome, line.generation))
        .collect();
    let expected = [
        (AuditOutcome::Made, Some(2)),
        (AuditOutcome::Made, Some(3)),
        (AuditOutcome::Failed, None),
    ];
    assert_eq!(told, expected);
    assert_eq!(
        (&*lines[0].what, &*lines[0].from),
        ("apply the file", "unix socket")
    );
    assert_eq!(lines[0].plan, ["+ volume db"]);
}

#[test]
fn what_is_refused_or_changes_nothing_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let audit = Audit::new(folder.path());
    audit.begin(&author(), &Candidate::File);
    audit.end(Some("a LUN twice")).unwrap();
    audit.begin(&author(), &Candidate::File);
    audit.end(None).unwrap();
    let told: Vec<_> = lines(folder.path())
        .iter()
        .map(|line| line.outcome)
        .collect();
    assert_eq!(told, [AuditOutcome::Refused, AuditOutcome::Unchanged]);
}

#[test]
fn a_log_that_cannot_be_written_says_so() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("audit.jsonl")).unwrap();
    let audit = Audit::new(folder.path());
    audit.begin(&author(), &Candidate::File);
    let cause = audit.commit(&generation(2)).unwrap_err();
    assert!(
        cause.contains("audit.jsonl") && cause.contains("nothing is changed"),
        "{cause}"
    );
    // It goes on where that is mended.
    fs::remove_dir(folder.path().join("audit.jsonl")).unwrap();
    audit.commit(&generation(2)).unwrap();
    assert_eq!(lines(folder.path()).len(), 1);
}

#[test]
fn a_line_that_a_crash_cut_off_does_not_take_the_next_one_with_it() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("audit.jsonl"), "{\"at\":1,").unwrap();
    Audit::new(folder.path())
        .act(&author(), "end session 3".to_owned())
        .unwrap();
    let text = fs::read_to_string(folder.path().join("audit.jsonl")).unwrap();
    let last: AuditEntry = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    assert_eq!(last.what, "end session 3");
}

#[test]
fn files_have_a_bound_and_few_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let audit = Audit::bounded(folder.path(), 400);
    for number in 0..40 {
        audit
            .act(&author(), format!("end session {number}"))
            .unwrap();
    }
    let files = fs::read_dir(folder.path()).unwrap();
    let sizes: Vec<_> = files
        .map(|file| file.unwrap().metadata().unwrap().len())
        .collect();
    assert_eq!(sizes.len(), 5);
    assert!(sizes.iter().all(|bytes| *bytes <= 400), "{sizes:?}");
    assert_eq!(lines(folder.path()).last().unwrap().what, "end session 39");
}
