use super::*;

#[test]
fn markup_is_text_again() {
    assert_eq!(
        escape("<script>alert(\"x\" & 'y')</script>\u{1b}[1m\0"),
        "&lt;script&gt;alert(&quot;x&quot; &amp; &#39;y&#39;)&lt;/script&gt;\u{fffd}[1m\u{fffd}"
    );
}

#[test]
fn no_name_of_a_file_leads_elsewhere() {
    assert_eq!(reference("a b\"#?.svg"), "./a%20b%22%23%3F.svg");
    assert_eq!(reference("javascript:x"), "./javascript%3Ax");
}
