//! Files that are cut off or deep, and lines in great number.

use proptest::prelude::*;

use super::{SAMPLES, is_secret, problem};
use crate::import::{Format, import, import_iet};

#[test]
fn a_file_that_is_cut_off_anywhere_is_read_or_refused_with_a_way_out() {
    for (name, format, text) in SAMPLES {
        for end in (0..text.len()).filter(|end| text.is_char_boundary(*end)) {
            if let Err(problem) = import(*format, &text[..end]) {
                assert!(
                    problem.line > 0 && !problem.way_out.is_empty(),
                    "{name}: {problem}"
                );
                assert!(
                    problem.line <= text[..end].matches('\n').count() + 1,
                    "{name}: {problem}"
                );
            }
        }
    }
}

#[test]
fn blocks_are_not_too_deep() {
    let said = [
        problem(
            Format::Lio,
            &format!("{{\"targets\": {}", "[".repeat(10_000)),
        ),
        problem(Format::Tgt, &"<a b>\n".repeat(100)),
        problem(Format::Ctld, &"a {\n".repeat(100)),
        problem(Format::Scst, &"a {\n".repeat(100)),
    ];
    insta::assert_snapshot!(said.map(|problem| problem.to_string()).join("\n"));
}

#[test]
fn a_file_has_4_mib_at_most() {
    let text = "#".repeat((4 << 20) + 1);
    for format in Format::ALL {
        assert_eq!(problem(format, &text).line, 1);
    }
}

/// By the square of the number of lines this would take minutes.
#[test]
fn many_rows_of_one_name_take_little_time() {
    let lun = |number| format!("  Lun {number} Path=/srv/{number}/disk.img,Type=fileio\n");
    let luns: String = (0..16_000).map(lun).collect();
    let user = |number| {
        format!("Target iqn.2026-11.org.example:{number}\n  IncomingUser ann Secret-{number:08}\n")
    };
    let users: String = (0..16_000).map(user).collect();
    let text = format!("Target iqn.2026-11.org.example:a\n{luns}{users}");
    let imported = import_iet(&text, "ALL ALL\n").unwrap();
    assert_eq!(imported.tree.volume.len(), 16_000);
    assert_eq!(imported.secrets.len(), 16_000);
    assert_eq!(imported.tree.group.len(), 16_000);
}

#[test]
fn a_key_that_is_broken_in_two_hides_its_secret() {
    let text = "auth-group a {\n  chap {\n    user = u\n    se cret = Node-Secret-0001\n  \
                }\n}\n";
    let imported = import(Format::Ctld, text).unwrap();
    let left_out = format!("{:?}", imported.left_out);
    assert!(left_out.contains("se cret ***"), "{left_out}");
}

proptest! {
    #[test]
    fn a_changed_file_shows_no_secret(
        which in 0..SAMPLES.len(),
        at in any::<prop::sample::Index>(),
        put in "[ -~]?",
        take in 0_usize..2,
    ) {
        let (_, format, text) = SAMPLES[which];
        let at = at.index(text.len());
        let end = (at + take).min(text.len());
        let (Some(before), Some(after)) = (text.get(..at), text.get(end..)) else {
            return Ok(());
        };
        let changed = format!("{before}{put}{after}");
        let shown = match import(format, &changed) {
            Ok(imported) => format!("{:?}{:?}", imported.left_out, imported.notes),
            Err(problem) => problem.to_string(),
        };
        let words = text.split(|c: char| c.is_whitespace() || "\"':;,{}".contains(c));
        for word in words.filter(|word| is_secret(word)) {
            prop_assert!(!shown.contains(word), "{}: {}", word, shown);
        }
    }

    #[test]
    fn no_text_is_too_much(text in "(?s).{0,200}", which in 0..Format::ALL.len()) {
        let _ = import(Format::ALL[which], &text);
    }
}
