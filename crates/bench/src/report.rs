//! An outcome as a page for browsers and paper, and as pictures.
//!
//! The page needs nothing but itself: its style and plots are inside, and there is no script. A
//! policy in it forbids the browser to fetch anything, whatever words of others it holds.

mod axis;
mod figure;
mod page;
mod plots;
mod raster;
mod scene;
#[cfg(test)]
mod tests;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::outcome::RunResult;
use crate::series::Series;
use figure::Figure;

/// A file of the report that cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}: {cause}", path.display())]
pub struct CannotWrite {
    /// Which one.
    pub path: PathBuf,
    /// What the kernel says.
    pub cause: io::Error,
}

/// Writes the page, and beside it each plot as SVG and PNG: `run.html` gets `run-iops.svg`,
/// `run-iops.png` and so on. Returns the files, the page first. The page is written last, so that
/// one that is there is whole.
///
/// # Errors
///
/// [`CannotWrite`], for the first file that cannot be written.
pub fn write(outcome: &RunResult, page: &Path) -> Result<Vec<PathBuf>, CannotWrite> {
    let series = Series::of(&outcome.rows);
    let figures = plots::figures(outcome, &series);
    let mut written = vec![page.to_owned()];
    for figure in &figures {
        written.extend(save_figure(figure, page)?);
    }
    let html = page::html(outcome, &series, &figures, page);
    save(page, Ok(html.into_bytes()))?;
    Ok(written)
}

/// Writes a plot beside the page, as SVG and as PNG.
fn save_figure(figure: &Figure, page: &Path) -> Result<[PathBuf; 2], CannotWrite> {
    let scene = figure.draw();
    let paths = ["svg", "png"].map(|extension| beside(page, figure, extension));
    save(&paths[0], Ok(scene.svg().into_bytes()))?;
    save(&paths[1], raster::png(&scene))?;
    Ok(paths)
}

/// Where a plot of the page goes.
fn beside(page: &Path, figure: &Figure, extension: &str) -> PathBuf {
    let stem = page.file_stem().unwrap_or_default().to_string_lossy();
    page.with_file_name(format!("{stem}-{}.{extension}", figure.name))
}

fn save(path: &Path, content: io::Result<Vec<u8>>) -> Result<(), CannotWrite> {
    let saved = content.and_then(|content| fs::write(path, content));
    saved.map_err(|cause| CannotWrite {
        path: path.to_owned(),
        cause,
    })
}

/// Text as markup, good for content and for attributes in double quotes. Characters that XML
/// cannot hold become U+FFFD.
pub(super) fn escape(text: &str) -> String {
    let mut markup = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => markup.push_str("&amp;"),
            '<' => markup.push_str("&lt;"),
            '>' => markup.push_str("&gt;"),
            '"' => markup.push_str("&quot;"),
            '\'' => markup.push_str("&#39;"),
            '\n' | '\t' => markup.push(' '),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => markup.push('\u{fffd}'),
            c => markup.push(c),
        }
    }
    markup
}

/// A file's name as a relative reference: RFC 3986 §3.3 with all but unreserved characters encoded.
/// The leading `./` keeps a colon from naming a scheme.
pub(super) fn reference(name: &str) -> String {
    let mut reference = "./".to_owned();
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            reference.push(char::from(byte));
        } else {
            reference.push_str(&format!("%{byte:02X}"));
        }
    }
    reference
}
