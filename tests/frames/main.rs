//! PDUs and frames that were captured between an initiator and a target of other people: cut,
//! decoded, and encoded again to the very same bytes.
#![forbid(unsafe_code)]
#![cfg(test)]

mod fcoe;
mod iscsi;
mod iser;
mod iser_frames;
mod iser_initiator;
mod iser_messages;
mod iser_target;
mod n_port;

/// The frames of a file: title and bytes.
fn frames(file: &str) -> Vec<(&str, Vec<u8>)> {
    let mut frames: Vec<(&str, Vec<u8>)> = Vec::new();
    for line in file.lines().filter(|line| !line.starts_with('#')) {
        if let Some(title) = line.strip_prefix("= ") {
            frames.push((title, Vec::new()));
        } else if let Some((_, bytes)) = frames.last_mut() {
            let hex = line.split_whitespace();
            bytes.extend(hex.map(|digits| u8::from_str_radix(digits, 16).unwrap()));
        }
    }
    frames
}
