//! PDUs and frames that were captured between an initiator and a target of other people: cut,
//! decoded, and encoded again to the very same octets.
#![forbid(unsafe_code)]
#![cfg(test)]

mod fcoe;
mod iscsi;
mod n_port;

/// The frames of a file: title and octets.
fn frames(file: &str) -> Vec<(&str, Vec<u8>)> {
    let mut frames: Vec<(&str, Vec<u8>)> = Vec::new();
    for line in file.lines().filter(|line| !line.starts_with('#')) {
        if let Some(title) = line.strip_prefix("= ") {
            frames.push((title, Vec::new()));
        } else if let Some((_, octets)) = frames.last_mut() {
            let hex = line.split_whitespace();
            octets.extend(hex.map(|digits| u8::from_str_radix(digits, 16).unwrap()));
        }
    }
    frames
}
