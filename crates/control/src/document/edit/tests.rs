//! Rows change in documents of all kinds, and what is written is what would be read.

use std::fmt::Write;
use std::sync::Arc;

use proptest::prelude::*;

use super::{Edits, edit, edit_rows};
use crate::any;
use crate::document::rewrite::rewrite_from;
use crate::document::{parse, write};
use crate::tree::{LunNumber, LunRow, Tree, VolumeRow};

/// 10 LUNs in each target.
fn many(targets: usize) -> String {
    let mut text = "version = 1\n".to_owned();
    for lun in 0..targets * 10 {
        write!(text, "\n# of Ann\n[volume.v{lun}]\naddress = \"null:1G\"\n").unwrap();
    }
    for target in 0..targets {
        let luns = (0..10).map(|lun| format!("{lun} = \"v{}\"", target * 10 + lun));
        let luns = luns.collect::<Vec<_>>().join(", ");
        write!(
            text,
            "\n[target.\"iqn.2026-11.org.example:t{target}\"]\nportals = [\"192.0.2.1\"]\n\
             luns = {{ {luns} }}\nallow = [\"*\"]\n"
        )
        .unwrap();
    }
    text
}

/// One more LUN.
fn with_another(old: &Tree) -> Tree {
    let mut new = old.clone();
    new.volume
        .insert("more".to_owned(), VolumeRow::new("null:1G"));
    let target = new.target.get_mut("iqn.2026-11.org.example:t7").unwrap();
    let lun = LunRow::Volume("more".to_owned());
    target.luns.insert(LunNumber(10), lun);
    new
}

#[test]
fn one_more_lun_among_many_reads_two_rows() {
    let text = many(100);
    let old = parse(&text).unwrap();
    let new = with_another(&old);
    let edits = Edits::of(&text, &old, &new).unwrap();
    let written: Vec<_> = edits.edits.iter().map(|edit| &*edit.text).collect();
    let of_target = "\n[target.\"iqn.2026-11.org.example:t7\"]\nportals = [\"192.0.2.1\"]\n\
                     luns = { 0 = \"v70\", 1 = \"v71\", 2 = \"v72\", 3 = \"v73\", 4 = \"v74\", \
                     5 = \"v75\", 6 = \"v76\", 7 = \"v77\", 8 = \"v78\", 9 = \"v79\", \
                     10 = \"more\" }\nallow = [\"*\"]\n";
    let of_volume = "\n[volume.more]\naddress = \"null:1G\"\n";
    assert_eq!(written, [of_volume, of_target]);
    assert!(edits.sections.is_empty());
    let edited = edit_rows(&text, &old, &new).unwrap();
    assert_eq!(edited, rewrite_from(&text, &old, &new));
}

/// What `old` becomes if its text is edited to say `new`.
fn edited(old: &str, new: &str) -> Option<String> {
    edit_rows(old, &parse(old).unwrap(), &parse(new).unwrap())
}

const A: &str = "version = 1\n[volume.a]\naddress = \"ram:1G\"\n";

#[test]
fn what_is_written_in_another_form_is_read_whole() {
    for text in [
        "version = 1\nvolume.a.address = \"ram:1G\"\n",
        "version = 1\nvolume = { a = { address = \"ram:1G\" } }\n",
        "version = 1\n[volume]\na = { address = \"ram:1G\" }\n",
        "version = 1\n[volume]\n[volume.a]\naddress = \"ram:1G\"\n",
        "version = 1\n[volume.a.limit]\niops = \"5\"\n[group.g]\n[volume.a]\naddress = \"ram:1\"\n",
        "version = 1",
    ] {
        let old = parse(text).unwrap();
        let mut new = old.clone();
        new.volume.insert("b".to_owned(), VolumeRow::new("ram:1G"));
        assert_eq!(edit_rows(text, &old, &new), None, "{text}");
        let (text, tree) = edit(text, &old, &new.clone().into()).unwrap();
        assert_eq!((parse(&text), &*tree), (Ok(new.clone()), &new));
    }
    let text = format!("{A}[daemon]\nthreads = 2\n");
    assert_eq!(edited(&text, A), None);
}

#[test]
fn a_name_is_found_however_it_is_quoted() {
    let text = "version = 1\n[ volume . 'a' ] # [volume.b]\naddress = \"\"\"ram:1G\"\"\"\n\
                [\"vol\\u0075me\".b]\naddress = \"ram:2G\"\nproduct = '''\n[volume.a]\n'''\n";
    let tree = parse(text).unwrap();
    let mut new = tree.clone();
    new.volume.get_mut("b").unwrap().product = Some("disk".to_owned());
    let text = edit_rows(text, &tree, &new).unwrap();
    assert_eq!(parse(&text), Ok(new));
    assert!(text.contains("# [volume.b]"), "{text}");
}

#[test]
fn a_list_of_many_lines_is_one_value() {
    let text = "version = 1\n[target.\"iqn.x:a\"]\nportals = [ # two\n  # [volume.x]\n  \
                \"192.0.2.1\",\n\n  \"192.0.2.2\", ]\n\n# the end\n";
    let with_volume = format!("{A}{}", text.strip_prefix("version = 1\n").unwrap());
    let said = edited(text, &with_volume).unwrap();
    let (before, end) = text.split_once("\n# the end").unwrap();
    let more = "\n[volume.a]\naddress = \"ram:1G\"\n";
    assert_eq!(said, format!("{before}{more}\n# the end{end}"));
}

#[test]
fn the_last_line_may_have_no_end() {
    let text = A.trim_end();
    let said = edited(text, &format!("{A}[volume.b]\naddress = \"ram:1G\"\n"));
    assert_eq!(
        said.unwrap(),
        format!("{A}\n[volume.b]\naddress = \"ram:1G\"\n")
    );
}

/// A document of a tree: its sections in another order, comments above, and its ends of lines.
fn document(tree: &Tree, turned: bool, line_end: &str) -> String {
    let text = write(tree);
    let mut parts: Vec<_> = text.split_inclusive("\n\n").collect();
    if turned && !parts.is_empty() {
        parts[1..].reverse();
    }
    let lines = parts.concat();
    let line = |line: &str| {
        if line.starts_with('[') {
            format!("# about {line}\n{line} # {line}\n")
        } else {
            format!("{line}\n")
        }
    };
    let text: String = lines.lines().map(line).collect();
    text.replace('\n', line_end)
}

proptest! {
    /// A chain of changes, each made in the text that the last one has left.
    #[test]
    fn what_is_written_row_by_row_is_read_as_the_tree(
        (first, then) in (any::tree(), prop::collection::vec(any::tree(), 1..4)),
        (turned, ends) in (any::<bool>(), any::<bool>()),
    ) {
        let mut text = document(&first, turned, if ends { "\r\n" } else { "\n" });
        let mut old = parse(&text).unwrap();
        prop_assert_eq!(&old, &first);
        for new in then {
            let told = edit_rows(&text, &old, &new);
            let (edited, tree) = edit(&text, &old, &Arc::new(new.clone())).unwrap();
            prop_assert_eq!(parse(&edited), Ok(new.clone()), "{}\n---\n{}", text, edited);
            prop_assert_eq!(&*tree, &new);
            prop_assert!(told.is_some_and(|told| told == edited), "{text}");
            if !turned {
                prop_assert_eq!(&edited, &rewrite_from(&text, &old, &new), "{}", text);
            }
            (text, old) = (edited, new);
        }
    }

    /// Lines of rows that stay are not touched.
    #[test]
    fn what_does_not_change_stays_byte_for_byte(
        (old, other) in (any::tree(), any::tree()), turned in any::<bool>(),
    ) {
        let text = document(&old, turned, "\n");
        let mut new = old.clone();
        new.volume = other.volume;
        let edited = edit_rows(&text, &old, &new).unwrap();
        for part in text.split("# about ").filter(|part| !part.starts_with("[volume")) {
            prop_assert!(edited.contains(part.trim_end()), "{part}\n{edited}");
        }
        prop_assert_eq!(edit_rows(&text, &old, &old), Some(text));
    }
}
