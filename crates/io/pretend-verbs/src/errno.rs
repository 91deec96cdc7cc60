//! How the libraries tell of errors.

use std::ffi::c_int;
use std::ptr;

/// Sets errno, and gives what a call returns that failed.
pub(crate) fn failed(number: c_int) -> c_int {
    // SAFETY: the calling thread's own.
    unsafe { *libc::__errno_location() = number };
    -1
}

/// The same for a call that returns a pointer.
pub(crate) fn nothing<T>(number: c_int) -> *mut T {
    failed(number);
    ptr::null_mut()
}
