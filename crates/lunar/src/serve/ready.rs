//! What is said on standard output when everything is ready: one line a LUN and nothing else.

use std::io::{self, Write};

use engine::serve::options::ReadyLun;

use crate::units::human_size;

/// Prints the lines. A reader that has gone away does not keep a server from serving.
pub(crate) fn print(luns: &[ReadyLun], json: bool) {
    let lines: String = luns.iter().map(|lun| line(lun, json) + "\n").collect();
    let mut out = io::stdout().lock();
    if let Err(cause) = out.write_all(lines.as_bytes()).and_then(|()| out.flush()) {
        tracing::warn!("the ready lines could not be printed: {cause}");
    }
}

fn line(lun: &ReadyLun, json: bool) -> String {
    if json {
        // A struct of strings and numbers always has a JSON form.
        return serde_json::to_string(lun).unwrap_or_default();
    }
    format!(
        "{}  {}  {}",
        lun.address,
        human_size(lun.size_bytes),
        lun.volume
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lun() -> ReadyLun {
        ReadyLun {
            address: "iscsi://127.0.0.1:3260/iqn.2026-11.org.lunar:host/0".into(),
            portals: vec!["127.0.0.1:3260".into(), "[::1]:3260".into()],
            target: "iqn.2026-11.org.lunar:host".into(),
            lun: 0,
            size_bytes: 1 << 30,
            block_size: 512,
            volume: "ram:1G".into(),
        }
    }

    #[test]
    fn a_line_for_people() {
        let expected = "iscsi://127.0.0.1:3260/iqn.2026-11.org.lunar:host/0  1.0 GiB  ram:1G";
        assert_eq!(line(&lun(), false), expected);
    }

    #[test]
    fn an_object_for_programs() {
        let expected = concat!(
            r#"{"address":"iscsi://127.0.0.1:3260/iqn.2026-11.org.lunar:host/0","#,
            r#""portals":["127.0.0.1:3260","[::1]:3260"],"target":"iqn.2026-11.org.lunar:host","#,
            r#""lun":0,"size_bytes":1073741824,"block_size":512,"volume":"ram:1G"}"#
        );
        assert_eq!(line(&lun(), true), expected);
    }
}
