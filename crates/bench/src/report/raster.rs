//! A drawing as PNG, with a font of our own: it looks the same on a machine that has none.

#[cfg(test)]
mod tests;

use std::io;
use std::sync::LazyLock;

use tiny_skia::{
    Color, FillRule, LineJoin, Paint, Path, PathBuilder, Pixmap, Rect, Stroke, StrokeDash,
    Transform,
};
use ttf_parser::{Face, GlyphId, OutlineBuilder};

use super::scene::{DASH, Ink, Point, Scene, SceneItem, Shape, TextAnchor};

/// Pixels a unit: sharp on today's screens and on paper.
const SCALE: f32 = 2.0;

/// Roboto, Apache-2.0, unhinted, cut down to Latin, Greek, Cyrillic and the signs used here.
static FONT: LazyLock<Face<'static>> = LazyLock::new(|| {
    let font = include_bytes!("font/Roboto-Regular.ttf");
    Face::parse(font, 0).expect("the font that is compiled in")
});

/// The width of words in the font of the drawings.
pub(super) fn width(text: &str, size: f32) -> f32 {
    let advances = text.chars().map(|c| advance(glyph(c)));
    advances.sum::<f32>() * em(size)
}

/// Text of at most this width. Its middle is replaced by an ellipsis if need be, as addresses
/// differ at their ends.
pub(super) fn fit(text: &str, size: f32, room: f32) -> String {
    if width(text, size) <= room {
        return text.to_owned();
    }
    let chars: Vec<char> = text.chars().collect();
    let shortened = |kept: usize| {
        let (head, tail) = (kept.div_ceil(2), chars.len() - kept / 2);
        let (head, tail) = (chars[..head].iter(), chars[tail..].iter());
        head.chain(&['…']).chain(tail).collect::<String>()
    };
    let candidates = (0..chars.len()).rev().map(shortened);
    let mut fitting = candidates.filter(|text| width(text, size) <= room);
    fitting.next().unwrap_or_default()
}

fn em(size: f32) -> f32 {
    size / f32::from(FONT.units_per_em())
}

/// The first glyph of a font stands for all that it has not.
fn glyph(c: char) -> GlyphId {
    FONT.glyph_index(c).unwrap_or(GlyphId(0))
}

fn advance(glyph: GlyphId) -> f32 {
    f32::from(FONT.glyph_hor_advance(glyph).unwrap_or(0))
}

/// # Errors
///
/// When there is no memory for the picture, or it cannot be encoded.
pub(super) fn png(scene: &Scene) -> io::Result<Vec<u8>> {
    let size = [scene.width, scene.height].map(|length| (length * SCALE) as u32);
    let pixmap = Pixmap::new(size[0], size[1]).ok_or(io::ErrorKind::OutOfMemory)?;
    let mut canvas = Canvas(pixmap);
    canvas.0.fill(color(Ink::Paper));
    for item in &scene.items {
        // A path that does not exist, such as one of a single point, leaves no trace.
        let _ = canvas.draw(item);
    }
    canvas.0.encode_png().map_err(io::Error::other)
}

fn color(ink: Ink) -> Color {
    let [_, red, green, blue] = ink.rgb().to_be_bytes();
    Color::from_rgba8(red, green, blue, 255)
}

struct Canvas(Pixmap);

impl Canvas {
    fn draw(&mut self, SceneItem { ink, shape }: &SceneItem) -> Option<()> {
        let mut paint = Paint::default();
        paint.set_color(color(*ink));
        let scale = Transform::from_scale(SCALE, SCALE);
        let filled = match shape {
            Shape::Path {
                points,
                width,
                dashed,
            } => {
                let dash = StrokeDash::new(vec![DASH.0, DASH.1], 0.0);
                let stroke = Stroke {
                    width: *width,
                    dash: dash.filter(|_| *dashed),
                    line_join: LineJoin::Round,
                    ..Stroke::default()
                };
                let path = open_path(points)?;
                self.0.stroke_path(&path, &paint, &stroke, scale, None);
                return Some(());
            }
            Shape::Bar { at, size } => {
                PathBuilder::from_rect(Rect::from_xywh(at.0, at.1, size.0, size.1)?)
            }
            Shape::Dot { at, radius, .. } => PathBuilder::from_circle(at.0, at.1, *radius)?,
            Shape::Words {
                at,
                text,
                size,
                anchor,
            } => {
                let before = match anchor {
                    TextAnchor::Start => 0.0,
                    TextAnchor::Middle => width(text, *size) / 2.0,
                    TextAnchor::End => width(text, *size),
                };
                outline(text, (at.0 - before, at.1), *size)?
            }
        };
        self.0
            .fill_path(&filled, &paint, FillRule::Winding, scale, None);
        Some(())
    }
}

fn open_path(points: &[Point]) -> Option<Path> {
    let mut path = PathBuilder::new();
    let (first, rest) = points.split_first()?;
    path.move_to(first.0, first.1);
    rest.iter().for_each(|(x, y)| path.line_to(*x, *y));
    path.finish()
}

fn outline(text: &str, at: Point, size: f32) -> Option<Path> {
    let em = em(size);
    let mut pen = Pen {
        path: PathBuilder::new(),
        at,
        em,
    };
    for glyph in text.chars().map(glyph) {
        let _ = FONT.outline_glyph(glyph, &mut pen);
        pen.at.0 += advance(glyph) * em;
    }
    pen.path.finish()
}

/// Draws glyphs, whose y grows upwards, where they belong.
struct Pen {
    path: PathBuilder,
    at: Point,
    em: f32,
}

impl Pen {
    fn map(&self, x: f32, y: f32) -> Point {
        (self.at.0 + x * self.em, self.at.1 - y * self.em)
    }
}

impl OutlineBuilder for Pen {
    fn move_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.map(x, y);
        self.path.move_to(x, y);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.map(x, y);
        self.path.line_to(x, y);
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        let ((x1, y1), (x, y)) = (self.map(x1, y1), self.map(x, y));
        self.path.quad_to(x1, y1, x, y);
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        let ((x1, y1), (x2, y2), (x, y)) = (self.map(x1, y1), self.map(x2, y2), self.map(x, y));
        self.path.cubic_to(x1, y1, x2, y2, x, y);
    }

    fn close(&mut self) {
        self.path.close();
    }
}
