//! Files as users of the six programs have them: what becomes of them, and that nothing of them is
//! lost without a word.

mod robust;
mod silence;

use insta::assert_snapshot;

use super::{Format, ImportProblem, Imported, import, import_iet};
use crate::document;

/// The files, by their names.
pub(super) const SAMPLES: &[(&str, Format, &str)] = &[
    (
        "lio-targetcli",
        Format::Lio,
        include_str!("samples/lio-targetcli.json"),
    ),
    (
        "lio-fabrics",
        Format::Lio,
        include_str!("samples/lio-fabrics.json"),
    ),
    ("tgt", Format::Tgt, include_str!("samples/tgt.conf")),
    ("ctld", Format::Ctld, include_str!("samples/ctld.conf")),
    ("ctld-ucl", Format::Ctld, include_str!("samples/ctld.ucl")),
    ("iet", Format::Iet, include_str!("samples/ietd.conf")),
    ("scst", Format::Scst, include_str!("samples/scst.conf")),
    (
        "chiscsi",
        Format::Chiscsi,
        include_str!("samples/chiscsi.conf"),
    ),
    (
        "chiscsi-acl",
        Format::Chiscsi,
        include_str!("samples/chiscsi-acl.conf"),
    ),
];

const INITIATORS_ALLOW: &str = include_str!("samples/initiators.allow");

/// All secrets of the samples have one of these in them, and nothing else has.
pub(super) fn is_secret(word: &str) -> bool {
    let parts = [
        "Secret-",
        "-Horse-",
        "-Staple-",
        "Find-Me-",
        "-Sesame-",
        "Master-Of-",
    ];
    parts.iter().any(|part| word.contains(part))
}

pub(super) fn sample(name: &str) -> (Format, &'static str) {
    let (_, format, text) = SAMPLES.iter().find(|(known, ..)| *known == name).unwrap();
    (*format, text)
}

/// An import as its user sees it, with defaults of LIO counted only.
fn report(imported: &Imported) -> String {
    let document = document::write(&imported.tree);
    assert_eq!(
        document::parse(&document).as_ref(),
        Ok(&imported.tree),
        "{document}"
    );
    let (defaults, chosen): (Vec<_>, Vec<_>) =
        imported.left_out.iter().partition(|left| left.is_default);
    let lines = chosen.iter().map(|left| format!("- {left}\n"));
    let notes = imported.notes.iter().map(|note| format!("= {note}\n"));
    let secrets: Vec<_> = imported.secrets.keys().map(String::as_str).collect();
    format!(
        "{document}\nsecrets: {}\n{}{}and {} defaults\n",
        secrets.join(", "),
        lines.collect::<String>(),
        notes.collect::<String>(),
        defaults.len()
    )
}

#[test]
fn files_become_trees() {
    for (name, format, text) in SAMPLES {
        let imported = import(*format, text).unwrap_or_else(|problem| panic!("{name}: {problem}"));
        assert_snapshot!(*name, report(&imported));
    }
}

/// They say what is done anyway, or what cannot be done.
#[test]
fn login_keys_of_one_value_become_no_row() {
    let target = |keys: &str| {
        let text = format!("<target iqn.2026-11.org.example:t>\n{keys}</target>\n");
        import(Format::Tgt, &text).unwrap()
    };
    let same = target("MaxConnections 1\nErrorRecoveryLevel 0\nDefaultTime2Retain 0\n");
    let rows = same.tree.target.values();
    assert!(rows.clone().count() == 1 && rows.clone().all(|row| row.login.is_none()));
    assert_eq!(same.left_out, []);
    let others = target("MaxConnections 8\nErrorRecoveryLevel 2\nDefaultTime2Retain 20\n");
    let left: Vec<_> = others.left_out.iter().map(ToString::to_string).collect();
    let always = left.iter().filter(|line| line.contains(" is always "));
    assert_eq!(always.count(), 3, "{left:?}");
}

#[test]
fn defaults_of_lio_are_named() {
    let (format, text) = sample("lio-targetcli");
    let imported = import(format, text).unwrap();
    let defaults = imported.left_out.iter().filter(|left| left.is_default);
    let first: Vec<_> = defaults.take(20).map(ToString::to_string).collect();
    assert_snapshot!(first.join("\n"));
}

#[test]
fn initiators_allow_says_who_gets_in() {
    let (_, text) = sample("iet");
    assert_snapshot!(report(&import_iet(text, INITIATORS_ALLOW).unwrap()));
}

#[test]
fn the_paper_of_chelsio_is_imported() {
    let (format, text) = sample("chiscsi");
    let tree = import(format, text).unwrap().tree;
    let row = &tree.target["iqn.2004-05.com.chelsio.target6"];
    let portals = row.portals.iter();
    let portals: Vec<_> = portals.map(|(tag, at)| (tag.0, &*at.address)).collect();
    assert_eq!(portals, [(6, "102.5.5.2")]);
    assert_eq!(tree.volume["ramdisk3"].address, "null:128M");
}

#[test]
fn formats_are_known_by_their_names() {
    for format in Format::ALL {
        assert_eq!(format.to_string().parse(), Ok(format));
    }
    assert_snapshot!("lioo".parse::<Format>().unwrap_err());
}

#[test]
fn secrets_are_shown_nowhere() {
    for (name, format, text) in SAMPLES {
        let imported = import(*format, text).unwrap();
        let shown = format!("{imported:?}{}", document::write(&imported.tree));
        let words = text.split(|c: char| c.is_whitespace() || "\"':;,{}".contains(c));
        for word in words.filter(|word| is_secret(word)) {
            assert!(!shown.contains(word), "{name}: {word}");
        }
        for secret in imported.secrets.values() {
            assert!(is_secret(secret), "{name}");
        }
    }
}

fn problem(format: Format, text: &str) -> ImportProblem {
    import(format, text).unwrap_err()
}

#[test]
fn what_is_no_such_file_is_told_with_its_line() {
    let said = [
        (Format::Lio, ""),
        (
            Format::Lio,
            "{\n\"storage_objects\": [\n  {\"name\" \"a\"}\n]}",
        ),
        (Format::Lio, "{\"targets\": [], \"targets\": []}"),
        (Format::Lio, "{\"targets\": hunter2}"),
        (Format::Lio, "{\"targets\": []} x"),
        (Format::Lio, "{\"a\": 1}"),
        (Format::Lio, "[1, 2]"),
        (
            Format::Tgt,
            "<target iqn.2026-11.org.example:a>\nbacking-store /a\n",
        ),
        (
            Format::Tgt,
            "<target iqn.2026-11.org.example:a>\n</backing-store>\n",
        ),
        (Format::Tgt, "</target>\n"),
        (Format::Tgt, "<target iqn.2026-11.org.example:a\n"),
        (
            Format::Ctld,
            "target iqn.2026-11.org.example:a {\n lun 0 {\n}\n",
        ),
        (Format::Ctld, "target a {\n}\n}\n"),
        (Format::Ctld, "portal-group a {\n listen = [1.2.3.4\n}\n"),
        (Format::Ctld, "auth-group a {\n chap \"ann \n}\n"),
        (Format::Iet, "Target disks\n"),
        (Format::Scst, "HANDLER a {\n"),
        (Format::Scst, "\n{\n}\n"),
        (Format::Chiscsi, "TargetName=iqn.2026-11.org.example:a\n"),
        (Format::Chiscsi, "target:\n  TargetAlias=a\n"),
        (Format::Chiscsi, "targets:\n"),
        (Format::Chiscsi, "global:\n  nothing\n"),
    ];
    let said = said.map(|(format, text)| format!("{format}: {}", problem(format, text)));
    assert_snapshot!(said.join("\n"));
}

/// The daemon takes every imported tree as it is.
#[test]
fn imported_trees_fit_together() {
    for (name, format, text) in SAMPLES {
        let tree = import(*format, text).unwrap().tree;
        assert_eq!(crate::check::check(&tree).problems, [], "{name}");
    }
}
