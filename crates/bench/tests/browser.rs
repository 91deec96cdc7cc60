//! The report in a real browser: it fetches nothing, complains of nothing, and its plots are seen.
#![forbid(unsafe_code)]
#![cfg(test)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use bench::outcome::RunResult;
use bench::{outcome, report};
use serde_json::Value;

#[path = "../src/testing.rs"]
mod testing;

/// Where a test's files are. They stay if it fails.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// What a visit to a page leaves.
struct Visit {
    /// The page after it was loaded, as markup.
    dom: String,
    /// What the page's console had to say.
    console: Vec<String>,
    /// The addresses that the page asked for.
    asked: Vec<String>,
}

/// Opens a page; `more` are words for the browser.
fn visit(page: &Path, more: &[&str]) -> Visit {
    let log = page.with_extension("net.json");
    let output = Command::new("chromium")
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"])
        .args(["--disable-background-networking", "--disable-component-update"])
        // A name that is asked for all the same is in the log and leads nowhere.
        .args(["--host-resolver-rules=MAP * ~NOTFOUND"])
        .args(["--enable-logging=stderr", "--dump-dom"])
        .arg(format!("--user-data-dir={}", page.with_extension("profile").display()))
        .arg(format!("--log-net-log={}", log.display()))
        .args(more)
        .arg(format!("file://{}", page.display()))
        .output()
        .expect("chromium: ./check installs it");
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr);
    let console = said.lines().filter(|line| line.contains(":CONSOLE:"));
    Visit {
        dom: String::from_utf8_lossy(&output.stdout).into_owned(),
        console: console.map(str::to_owned).collect(),
        asked: asked(&fs::read_to_string(log).unwrap()),
    }
}

/// The addresses in a network log that a page asked for. What the browser wants for itself, such
/// as updates, has no origin.
fn asked(log: &str) -> Vec<String> {
    let log: Value = serde_json::from_str(log).unwrap();
    let start = &log["constants"]["logEventTypes"]["URL_REQUEST_START_JOB"];
    assert!(start.is_number(), "the event has another name now");
    let events = log["events"].as_array().unwrap().iter();
    let starts = events.filter(|event| &event["type"] == start);
    let params = starts
        .map(|event| &event["params"])
        .filter(|params| params["url"].is_string());
    let of_page = params.filter(|params| params["initiator"] != "not an origin");
    of_page.map(|params| params["url"].to_string()).collect()
}

/// A page that takes the place of the one that was loaded: how large each plot is on the screen,
/// and whether words reach out of it.
const MEASURE: &str = "<script>
const plots = [...document.querySelectorAll('figure > svg')].map(svg => {
  const frame = svg.getBoundingClientRect();
  const out = [...svg.querySelectorAll('text')].filter(text => {
    const box = text.getBoundingClientRect();
    return box.left < frame.left || box.right > frame.right + 0.5
      || box.top < frame.top || box.bottom > frame.bottom;
  });
  const name = svg.closest('section').id;
  const words = out.map(text => text.textContent);
  return {name, width: frame.width, height: frame.height, out: words};
});
document.documentElement.textContent = 'PLOTS' + JSON.stringify(plots) + 'END';
</script>";

/// Fonts of different widths, each in a Debian package that `./check` installs.
const FAMILIES: [&str; 3] = ["Inconsolata", "Liberation Sans", "DejaVu Sans"];

/// Writes the report, and a copy of it that measures itself.
fn measured(folder: &Path, outcome: &RunResult, more: &[&str]) -> Vec<Value> {
    measured_in(None, folder, outcome, more)
}

/// The same for a reader whose machine shows plots in the given font family.
fn measured_in(
    family: Option<&str>,
    folder: &Path,
    outcome: &RunResult,
    more: &[&str],
) -> Vec<Value> {
    let page = folder.join("run.html");
    report::write(outcome, &page).unwrap();
    let html = fs::read_to_string(&page).unwrap();
    let html = html
        .replace("default-src 'none';", "")
        .replace("</body>", MEASURE);
    let html = match family {
        Some(family) => with_family(&html, family),
        None => html,
    };
    let copy = folder.join("copy.html");
    fs::write(&copy, html).unwrap();
    let dom = visit(&copy, more).dom;
    let (_, plots) = dom.split_once("PLOTS").expect("the copy measures itself");
    let (plots, _) = plots.split_once("END").unwrap();
    let plots = plots
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&amp;", "&");
    serde_json::from_str(&plots).unwrap()
}

/// Puts one family in the place of the fonts that the plots ask for.
fn with_family(html: &str, family: &str) -> String {
    let attribute = "font-family=\"";
    let mut parts = html.split(attribute);
    let mut page = parts.next().unwrap().to_owned();
    for part in parts {
        let (_, rest) = part.split_once('"').unwrap();
        page.push_str(&format!("{attribute}{family}\"{rest}"));
    }
    page
}

/// Words as wide as the font makes them.
const WIDTHS: &str = "<script>
const pen = document.createElement('canvas').getContext('2d');
const widths = FAMILIES.map(family => {
  pen.font = `100px ${family}`;
  return pen.measureText('iscsi://192.0.2.1:3260/iqn.2026-11.org.example:disk0/7').width;
});
document.documentElement.textContent = 'WIDTHS' + JSON.stringify(widths) + 'END';
</script>";

/// A family that is not installed would be shown as the browser's default, twice over.
#[test]
fn the_fonts_differ_in_width() {
    let families = serde_json::to_string(&FAMILIES.map(|family| format!("'{family}'"))).unwrap();
    let page = folder("fonts").join("fonts.html");
    fs::write(&page, WIDTHS.replace("FAMILIES", &families)).unwrap();
    let dom = visit(&page, &[]).dom;
    let (_, widths) = dom.split_once("WIDTHS").unwrap();
    let (widths, _) = widths.split_once("END").unwrap();
    let mut widths: Vec<f64> = serde_json::from_str(widths).unwrap();
    widths.sort_by(f64::total_cmp);
    let differ = widths.windows(2).all(|pair| pair[1] > pair[0] * 1.01);
    assert!(differ, "{FAMILIES:?}: {widths:?}");
}

#[test]
fn nothing_is_fetched_and_the_console_is_silent() {
    let samples = [
        testing::sweep(),
        testing::one_address(),
        testing::two_addresses(),
        testing::race(),
    ];
    for (outcome, name) in samples.iter().zip(["sweep", "one", "two", "race"]) {
        let page = folder(name).join("run.html");
        report::write(outcome, &page).unwrap();
        let Visit {
            dom,
            console,
            asked,
        } = visit(&page, &[]);
        assert!(dom.contains("All numbers"), "{dom}");
        assert_eq!((console, asked), (vec![], vec![]), "{name}");
    }
}

/// What is found nowhere above would be found.
#[test]
fn a_page_that_fetches_and_complains_is_seen_through() {
    let page = folder("bad").join("bad.html");
    let image = "<img src=\"http://example.invalid/x.png\">";
    fs::write(
        &page,
        format!("{image}<script>console.error('boo')</script>"),
    )
    .unwrap();
    let Visit { console, asked, .. } = visit(&page, &[]);
    assert!(
        console.iter().any(|line| line.contains("boo")),
        "{console:?}"
    );
    assert_eq!(asked, ["\"http://example.invalid/x.png\""]);
}

/// If words of others ever became markup, the page's own policy still stops them.
#[test]
fn the_policy_of_the_page_forbids_fetching() {
    let page = folder("policy").join("run.html");
    report::write(&testing::one_address(), &page).unwrap();
    let image = "<img src=\"http://example.invalid/x.png\"><script>console.log('ran')</script>";
    let html = fs::read_to_string(&page).unwrap();
    fs::write(&page, html.replace("<main>", image)).unwrap();
    let Visit { console, asked, .. } = visit(&page, &[]);
    assert_eq!(asked, Vec::<String>::new());
    assert!(
        console.iter().all(|line| !line.contains("\"ran\"")),
        "{console:?}"
    );
    assert!(!console.is_empty(), "the browser tells of what it refused");
}

#[test]
fn plots_are_seen_whole_on_wide_and_on_narrow_screens() {
    let folder = folder("plots");
    for (window, narrowest) in [
        ("--window-size=1240,900", 600.0),
        ("--window-size=600,900", 400.0),
    ] {
        let plots = measured(&folder, &testing::sweep(), &[window]);
        let names: Vec<_> = plots
            .iter()
            .map(|plot| plot["name"].as_str().unwrap())
            .collect();
        assert_eq!(names, ["iops", "throughput", "latency", "cpu", "time"]);
        for plot in &plots {
            let [width, height] = ["width", "height"].map(|key| plot[key].as_f64().unwrap());
            assert!(width > narrowest && height > 100.0, "{window}: {plot}");
            assert_eq!(plot["out"], serde_json::json!([]), "{window}: {plot}");
        }
    }
}

#[test]
fn long_names_stay_inside() {
    let mut outcome = testing::two_addresses();
    outcome.rows[1].address = format!("file:/{}", "very-long-name/".repeat(12));
    for family in FAMILIES {
        let plots = measured_in(Some(family), &folder("long"), &outcome, &[]);
        assert!(!plots.is_empty());
        for plot in plots {
            assert_eq!(plot["out"], serde_json::json!([]), "{family}: {plot}");
        }
    }
}
