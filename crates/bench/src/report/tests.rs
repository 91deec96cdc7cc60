use std::path::PathBuf;

use super::*;
use crate::testing;

/// A folder that goes when the test is over.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("lunar-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn page(&self, outcome: &RunResult) -> String {
        let page = self.0.join("run.html");
        write(outcome, &page).unwrap();
        fs::read_to_string(page).unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn each_plot_is_in_the_page_and_in_two_files() {
    let folder = Folder::new("files");
    let page = folder.0.join("run.html");
    let files = write(&testing::sweep(), &page).unwrap();
    let html = fs::read_to_string(&page).unwrap();
    for plot in ["iops", "throughput", "latency", "cpu", "time"] {
        assert!(html.contains(&format!("id=\"{plot}\"")), "{plot}");
        for extension in ["svg", "png"] {
            let file = folder.0.join(format!("run-{plot}.{extension}"));
            assert!(files.contains(&file), "{plot}.{extension}");
            assert!(
                fs::metadata(&file).unwrap().len() > 2_000,
                "{plot}.{extension}"
            );
        }
    }
    assert_eq!((files.len(), html.matches("<svg ").count()), (11, 5));
}

#[test]
fn words_of_others_are_no_markup() {
    let html = Folder::new("words").page(&testing::two_addresses());
    assert!(!html.contains("<script"), "{html}");
    assert!(html.contains("&lt;script&gt;alert(1)&lt;/script&gt;&amp;&quot;&#39;"));
}

#[test]
fn turns_are_compared_in_words_and_numbers() {
    let html = Folder::new("race").page(&testing::race());
    assert!(html.contains("<h2>By turns</h2>"), "{html}");
    let said = "<li>randread 64k: ram:1G is faster than file:/tmp/&lt;script&gt;";
    assert!(html.contains(said), "{html}");
    assert!(html.contains("<td>1.25 (1.25 to 1.25)</td>"), "{html}");
    assert!(!html.contains("<script"), "{html}");
}

#[test]
fn failures_are_told() {
    let html = Folder::new("failures").page(&testing::one_address());
    assert!(html.contains("1 I/O failed.</strong> The first: the medium &lt;b&gt;failed"));
}

#[test]
fn what_was_not_measured_has_no_plot() {
    let html = Folder::new("lacking").page(&testing::two_addresses());
    assert!(!html.contains("id=\"cpu\""));
}

#[test]
fn nothing_measured_is_a_page_too() {
    let html = Folder::new("nothing").page(&RunResult::default());
    assert!(
        html.ends_with("</html>\n") && !html.contains("NaN"),
        "{html}"
    );
}

#[test]
fn no_number_is_lost_on_the_way() {
    for outcome in [
        testing::sweep(),
        testing::one_address(),
        testing::two_addresses(),
    ] {
        let html = Folder::new("numbers").page(&outcome);
        assert!(!html.contains("NaN") && !html.contains("inf"));
    }
}

#[test]
fn a_folder_that_is_not_there_is_named() {
    let error = write(&testing::sweep(), Path::new("/nowhere/run.html")).unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot write /nowhere/run-iops.svg: No such file or directory (os error 2)"
    );
}
