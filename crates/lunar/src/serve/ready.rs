//! What is said on standard output when everything is ready: one line for each LUN at each portal,
//! or one JSON object a LUN, and nothing else.

use std::io::{self, Write};

use engine::serve::options::ReadyLun;

use crate::units::{human_size, printable};

/// Prints the lines. A reader that has gone away does not keep a server from serving.
pub(crate) fn print(luns: &[ReadyLun], json: bool) {
    let lines: String = luns.iter().map(|lun| line(lun, json) + "\n").collect();
    let mut out = io::stdout().lock();
    if let Err(cause) = out.write_all(lines.as_bytes()).and_then(|()| out.flush()) {
        tracing::warn!("the ready lines cannot be printed: {cause}");
    }
}

fn line(lun: &ReadyLun, json: bool) -> String {
    if json {
        // A struct of strings and numbers always has a JSON form.
        return serde_json::to_string(lun).unwrap_or_default();
    }
    let size = match lun.size_bytes {
        0 => "absent".to_owned(),
        bytes => human_size(bytes),
    };
    let volume = printable(&lun.volume, &[]);
    let lines = addresses(lun).map(|address| format!("{address}  {size}  {volume}"));
    lines.collect::<Vec<_>>().join("\n")
}

/// The addresses by which initiators reach a LUN: one a portal.
fn addresses(lun: &ReadyLun) -> impl Iterator<Item = String> {
    let is_iscsi = lun.address.starts_with("iscsi:");
    let (others, own) = if is_iscsi {
        (&lun.portals[..], None)
    } else {
        (&[][..], Some(lun.address.clone()))
    };
    let others = others.iter();
    others
        .map(|portal| format!("iscsi://{portal}/{}/{}", lun.target, lun.lun))
        .chain(own)
}

#[cfg(test)]
mod tests;
