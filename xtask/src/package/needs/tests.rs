//! Symbols of binaries, and what manifests say.

use super::{newest, told};

#[test]
fn the_newest_symbol_counts() {
    let symbols = "DF *UND* (GLIBC_2.9) read\nDF *UND* (GLIBC_2.34) stat64\n\
                   DF *UND* (GLIBC_2.2.5) free\nw   D  *UND* (GCC_3.0) _Unwind_Resume\n";
    assert_eq!(newest(symbols), Some((2, 34)));
    assert_eq!(newest("(GCC_3.0) _Unwind_Resume"), None);
    let depends = "depends = \"libc6 (>= 2.34), libgcc-s1\"";
    assert_eq!(told(depends), Some((2, 34)));
    assert_eq!(told("depends = \"libc6\""), None);
}
