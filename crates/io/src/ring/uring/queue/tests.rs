use super::*;

#[test]
fn a_refusal_says_what_forbids_it() {
    let text = |errno| explain(&io::Error::from_raw_os_error(errno)).to_string();
    assert!(text(libc::EPERM).contains("kernel.io_uring_disabled"));
    assert!(text(libc::ENOSYS).contains("this kernel has none"));
    assert!(text(libc::EINVAL).contains("Linux 5.19"));
    assert!(text(libc::ENFILE).starts_with("io_uring: "));
    let kind = explain(&io::Error::from_raw_os_error(libc::EPERM)).kind();
    assert_eq!(kind, io::ErrorKind::PermissionDenied);
}
