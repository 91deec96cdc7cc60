//! What the kernel is told of a request. Whether a host carries it out takes one.

use std::path::Path;
use std::time::Duration;

use super::{FcHostDevice, FcHostRequest, command};

#[test]
fn an_els_is_told_by_its_code_and_address() {
    let told = command((FcHostRequest::Els, [1, 2, 3]), &[0x10, 0, 0, 0, 9]).unwrap();
    assert_eq!(told[..4], 0x8000_0003_u32.to_ne_bytes());
    assert_eq!(told[4..8], [0x10, 1, 2, 3]);
    assert_eq!(told[8..], [0; 12]);
}

#[test]
fn a_ct_request_is_told_with_its_first_words() {
    let payload: Vec<u8> = (1..=20).collect();
    let told = command((FcHostRequest::Ct, [0xff, 0xff, 0xfc]), &payload).unwrap();
    assert_eq!(told[..4], 0x8000_0004_u32.to_ne_bytes());
    assert_eq!(told[4..8], [0, 0xff, 0xff, 0xfc]);
    assert_eq!(told[8..], payload[..12]);
}

#[test]
fn a_payload_without_its_header_is_refused() {
    assert_eq!(command((FcHostRequest::Els, [0; 3]), &[]), None);
    assert_eq!(command((FcHostRequest::Ct, [0; 3]), &[0; 11]), None);
}

#[test]
fn what_is_no_such_device_is_an_error() {
    assert!(FcHostDevice::open(Path::new("/dev/bsg/fc_host-none")).is_err());
    let null = FcHostDevice::open(Path::new("/dev/null")).unwrap();
    let request = (FcHostRequest::Els, [0; 3]);
    let refused = null.request(request, &[0x10, 0, 0, 0], 16, Duration::from_secs(1));
    assert_eq!(refused.unwrap_err().raw_os_error(), Some(libc::ENOTTY));
}
