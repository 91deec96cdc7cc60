//! A drawing: lines, dots and words, and how it is written as SVG.
//!
//! One SVG serves a page and a file: presentation attributes hold the light colours that every
//! viewer understands, classes let the page's style sheet, which wins over them, put in its own.

use std::fmt::Write;

use super::escape;
use super::raster::width;

/// A drawing.
pub(super) struct Scene {
    pub(super) width: f32,
    pub(super) height: f32,
    /// Alternative text.
    pub(super) title: String,
    pub(super) items: Vec<SceneItem>,
}

/// A point, from the upper left corner.
pub(super) type Point = (f32, f32);

/// Something drawn in one ink.
pub(super) struct SceneItem {
    pub(super) ink: Ink,
    pub(super) shape: Shape,
}

pub(super) enum Shape {
    /// Straight lines from point to point.
    Path {
        points: Vec<Point>,
        width: f32,
        dashed: bool,
    },
    /// A filled rectangle: its upper left corner and its size.
    Bar { at: Point, size: Point },
    /// A filled circle, and what it says when it is pointed at.
    Dot { at: Point, radius: f32, tip: String },
    /// Words on a base line.
    Words {
        at: Point,
        text: String,
        size: f32,
        anchor: TextAnchor,
    },
}

/// Which point of words is given.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum TextAnchor {
    Start,
    Middle,
    End,
}

/// What something is drawn for; its colour follows.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Ink {
    Paper,
    Text,
    /// Words that explain.
    Faint,
    Grid,
    Axis,
    /// One of several things of a kind.
    Series(usize),
    /// One of several degrees of a thing, the first one the lightest.
    Degree(usize),
}

/// Okabe and Ito's colours, which most colour-blind people can tell apart; the yellow, too light
/// on white, is a brown here. The style sheet has their brighter kin for dark pages.
pub(super) const SERIES: [u32; 7] = [
    0x0072b2, 0xd55e00, 0x009e73, 0xb3589a, 0x8a6d00, 0x2a9fd6, 0x5b5b5b,
];

const DEGREES: [u32; 4] = [0x8fbfe0, 0x3d8fc8, 0x0b5c97, 0x062f55];

impl Ink {
    /// Series beyond the last colour begin again; they are dashed.
    pub(super) fn is_repeated(self) -> bool {
        matches!(self, Self::Series(at) if at >= SERIES.len())
    }

    /// Its colour on white paper, as 0xRRGGBB.
    pub(super) fn rgb(self) -> u32 {
        match self {
            Self::Paper => 0xffffff,
            Self::Text => 0x1c2024,
            Self::Faint => 0x5d6670,
            Self::Grid => 0xe3e7eb,
            Self::Axis => 0x9aa4ae,
            Self::Series(at) => SERIES[at % SERIES.len()],
            Self::Degree(at) => DEGREES[at % DEGREES.len()],
        }
    }

    fn class(self) -> String {
        match self {
            Self::Paper => "paper".to_owned(),
            Self::Text => "text".to_owned(),
            Self::Faint => "faint".to_owned(),
            Self::Grid => "grid".to_owned(),
            Self::Axis => "axis".to_owned(),
            Self::Series(at) => format!("s{}", at % SERIES.len()),
            Self::Degree(at) => format!("d{}", at % DEGREES.len()),
        }
    }
}

/// The length of a dash, and of the gap after it.
pub(super) const DASH: (f32, f32) = (5.0, 4.0);

/// Fonts with metrics like Roboto's come first. Layout is measured in Roboto, and `textLength` has
/// every viewer draw each text at its measured width, so a reader's wider or narrower font is
/// squeezed or stretched and cannot leave the drawing.
const FONTS: &str = "Roboto, 'Helvetica Neue', Arial, 'DejaVu Sans', sans-serif";

impl Scene {
    pub(super) fn svg(&self) -> String {
        let (width, height, title) = (self.width, self.height, escape(&self.title));
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
             width=\"{width}\" height=\"{height}\" role=\"img\" aria-label=\"{title}\" \
             font-family=\"{FONTS}\">\n<title>{title}</title>\n"
        );
        let (at, size) = ((0.0, 0.0), (width, height));
        let paper = SceneItem {
            ink: Ink::Paper,
            shape: Shape::Bar { at, size },
        };
        for item in std::iter::once(&paper).chain(&self.items) {
            svg.push_str(&item.svg());
            svg.push('\n');
        }
        svg.push_str("</svg>\n");
        svg
    }
}

impl SceneItem {
    fn svg(&self) -> String {
        let (class, color) = (self.ink.class(), format!("#{:06x}", self.ink.rgb()));
        match &self.shape {
            Shape::Path {
                points,
                width,
                dashed,
            } => {
                let dashes = format!(" stroke-dasharray=\"{} {}\"", DASH.0, DASH.1);
                format!(
                    "<path class=\"line {class}\" d=\"{}\" fill=\"none\" stroke=\"{color}\" \
                     stroke-width=\"{width}\" stroke-linejoin=\"round\"{}/>",
                    steps(points),
                    if *dashed { &dashes } else { "" },
                )
            }
            Shape::Bar {
                at: (x, y),
                size: (width, height),
            } => format!(
                "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" \
                 height=\"{height:.1}\" fill=\"{color}\"/>"
            ),
            Shape::Dot {
                at: (x, y),
                radius,
                tip,
            } => format!(
                "<circle class=\"{class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius}\" \
                 fill=\"{color}\"><title>{}</title></circle>",
                escape(tip),
            ),
            Shape::Words {
                at: (x, y),
                text,
                size,
                anchor,
            } => format!(
                "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"{size}\" \
                 textLength=\"{:.1}\" lengthAdjust=\"spacingAndGlyphs\" \
                 text-anchor=\"{}\" fill=\"{color}\">{}</text>",
                width(text, *size),
                anchor.word(),
                escape(text),
            ),
        }
    }
}

fn steps(points: &[Point]) -> String {
    let mut path = String::new();
    for (at, (x, y)) in points.iter().enumerate() {
        let step = if at == 0 { 'M' } else { 'L' };
        let _ = write!(path, "{step}{x:.1} {y:.1}");
    }
    path
}

impl TextAnchor {
    fn word(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Middle => "middle",
            Self::End => "end",
        }
    }
}
