use super::axis::Axis;
use super::scene::{Ink, SERIES, Scene, SceneItem, Shape, TextAnchor};
use super::*;
use crate::testing;

/// The page of an outcome.
fn page_of(outcome: &RunResult) -> String {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("run.html");
    write(outcome, &page).unwrap();
    fs::read_to_string(page).unwrap()
}

#[test]
fn each_plot_is_in_the_page_and_in_two_files() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("run.html");
    let files = write(&testing::sweep(), &page).unwrap();
    let html = fs::read_to_string(&page).unwrap();
    for plot in ["iops", "throughput", "latency", "cpu", "time"] {
        assert!(html.contains(&format!("id=\"{plot}\"")), "{plot}");
        for extension in ["svg", "png"] {
            let file = folder.path().join(format!("run-{plot}.{extension}"));
            assert!(files.contains(&file), "{plot}.{extension}");
            let size = fs::metadata(&file).unwrap().len();
            assert!(size > 2_000, "{plot}.{extension}");
        }
    }
    assert_eq!((files.len(), html.matches("<svg ").count()), (11, 5));
}

#[test]
fn words_of_others_are_no_markup() {
    let html = page_of(&testing::two_addresses());
    assert!(!html.contains("<script"), "{html}");
    assert!(html.contains("&lt;script&gt;alert(1)&lt;/script&gt;&amp;&quot;&#39;"));
}

#[test]
fn turns_are_compared_in_words_and_numbers() {
    let html = page_of(&testing::race());
    assert!(html.contains("<h2>By turns</h2>"), "{html}");
    let said = "<li>randread 64k: ram:1G is faster than file:/tmp/&lt;script&gt;";
    assert!(html.contains(said), "{html}");
    assert!(html.contains("<td>1.25 (1.25 to 1.25)</td>"), "{html}");
    assert!(!html.contains("<script"), "{html}");
}

#[test]
fn failures_are_told() {
    let html = page_of(&testing::one_address());
    assert!(html.contains("1 I/O failed.</strong> The first: the medium &lt;b&gt;failed"));
}

#[test]
fn what_was_not_measured_has_no_plot() {
    let html = page_of(&testing::two_addresses());
    assert!(!html.contains("id=\"cpu\""));
}

#[test]
fn nothing_measured_is_a_page_too() {
    let html = page_of(&RunResult::default());
    assert!(html.ends_with("</html>\n"), "{html}");
    assert!(!html.contains("NaN"), "{html}");
}

#[test]
fn no_number_is_lost_on_the_way() {
    let samples = [testing::sweep, testing::one_address, testing::two_addresses];
    for sample in samples {
        let html = page_of(&sample());
        assert!(!html.contains("NaN") && !html.contains("inf"));
    }
}

#[test]
fn a_folder_that_is_not_there_is_named() {
    let error = write(&testing::sweep(), Path::new("/nowhere/run.html")).unwrap_err();
    let told = "cannot write /nowhere/run-iops.svg: No such file or directory (os error 2)";
    assert_eq!(error.to_string(), told);
}

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

#[test]
fn words_of_others_stay_words_in_a_drawing() {
    let words = Shape::Words {
        at: (1.0, 2.0),
        text: "</text><script>".to_owned(),
        size: 12.0,
        anchor: TextAnchor::Middle,
    };
    let scene = Scene {
        width: 10.0,
        height: 10.0,
        title: "\"onload=".to_owned(),
        items: vec![SceneItem {
            ink: Ink::Text,
            shape: words,
        }],
    };
    let svg = scene.svg();
    assert!(svg.contains(">&lt;/text&gt;&lt;script&gt;</text>"), "{svg}");
    assert!(svg.contains("aria-label=\"&quot;onload=\""), "{svg}");
}

#[test]
fn every_series_has_a_look_of_its_own() {
    let looks = |at| (Ink::Series(at).rgb(), Ink::Series(at).is_repeated());
    let all: std::collections::BTreeSet<_> = (0..2 * SERIES.len()).map(looks).collect();
    assert_eq!(all.len(), 2 * SERIES.len());
}

fn ticks(axis: &Axis) -> Vec<&str> {
    axis.ticks.iter().map(|(_, text)| text.as_str()).collect()
}

#[test]
fn linear_axes_end_at_round_numbers_past_all_values() {
    let axis = Axis::linear("", 291_000.0);
    let told = ["0", "50k", "100k", "150k", "200k", "250k", "300k"];
    assert_eq!(ticks(&axis), told);
    assert_eq!(axis.place(150_000.0), 0.5);
    let told = ["0", "0.05", "0.1", "0.15", "0.2", "0.25", "0.3"];
    assert_eq!(ticks(&Axis::linear("", 0.3)), told);
}

#[test]
fn nothing_at_all_still_has_an_axis() {
    assert_eq!(ticks(&Axis::linear("", 0.0)), ["0", "1"]);
    assert_eq!(ticks(&Axis::times("", 0.0, 0.0)), ["1 ns", "10 ns"]);
    assert_eq!(ticks(&Axis::nines("", 0)), ["0", "50", "90"]);
}

#[test]
fn times_go_by_powers_of_ten() {
    let axis = Axis::times("", 15_000.0, 2_300_000.0);
    assert_eq!(ticks(&axis), ["10 us", "100 us", "1 ms", "10 ms"]);
    assert!((axis.place(1e6) - 2.0 / 3.0).abs() < 1e-9);
}

#[test]
fn percentiles_go_as_far_as_there_are_values() {
    let axis = Axis::nines("", 5_000);
    assert_eq!(ticks(&axis), ["0", "50", "90", "99", "99.9", "99.99"]);
    assert!((axis.place(99.0) - 0.5).abs() < 1e-9);
    assert!((axis.percentile(0.5) - 99.0).abs() < 1e-9);
}

#[test]
fn marks_stand_side_by_side() {
    let axis = Axis::marks("", &["512".to_owned(), "4k".to_owned()]);
    assert_eq!([axis.place(0.0), axis.place(1.0)], [0.25, 0.75]);
}
