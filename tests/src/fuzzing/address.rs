//! Addresses, as users write them: whatever is written, an error can be shown, and what was
//! understood is written so that it is understood the same again.

use address::{Address, HostPort, ParseError, PortalAddress, Size, Time};

/// See docs/fuzzing.md.
pub fn address(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    match text.parse::<Address>() {
        Ok(address) => {
            let written = address.to_string();
            let again = written.parse::<Address>();
            assert_eq!(again.as_ref(), Ok(&address), "{text:?} as {written:?}");
        }
        Err(error) => can_be_shown(&error, &text),
    }
    let parts = [
        text.parse::<Size>().err(),
        text.parse::<HostPort>().err(),
        text.parse::<PortalAddress>().err(),
        text.parse::<Time>().err(),
    ];
    for error in parts.iter().flatten() {
        can_be_shown(error, &text);
    }
}

fn can_be_shown(error: &ParseError, text: &str) {
    let span = error.span();
    assert!(text.get(span.clone()).is_some(), "{span:?} of {text:?}");
    assert!(error.to_string().lines().count() >= 3, "{error:?}");
    assert!(!error.one_line().is_empty());
}
