//! Figures: panels side by side on one scale, or bars, laid out as a drawing.

use super::axis::Axis;
use super::raster::{fit, width};
use super::scene::{Ink, Point, Scene, SceneItem, Shape, TextAnchor};

/// Plots that belong together.
pub(super) struct Figure {
    /// What its files are named by.
    pub(super) name: &'static str,
    pub(super) title: String,
    pub(super) shape: ChartShape,
}

impl Figure {
    pub(super) fn of_panels(name: &'static str, title: String, panels: Panels) -> Self {
        let shape = ChartShape::Panels(panels);
        Self { name, title, shape }
    }
}

pub(super) enum ChartShape {
    Panels(Panels),
    Bars(Bars),
}

/// Panels that share what goes upwards and what colours mean.
pub(super) struct Panels {
    pub(super) y: Axis,
    pub(super) legend: Vec<LegendKey>,
    pub(super) panels: Vec<Panel>,
}

/// What a look stands for.
pub(super) struct LegendKey {
    pub(super) name: String,
    pub(super) ink: Ink,
    pub(super) dashed: bool,
}

impl LegendKey {
    pub(super) fn of(name: &str, ink: Ink) -> Self {
        let (name, dashed) = (name.to_owned(), ink.is_repeated());
        Self { name, ink, dashed }
    }
}

/// One plot.
pub(super) struct Panel {
    /// Empty if it stands alone.
    pub(super) title: String,
    pub(super) x: Axis,
    /// Places of vertical lines between things that do not touch.
    pub(super) walls: Vec<f64>,
    pub(super) curves: Vec<Curve>,
}

impl Panel {
    /// One without walls.
    pub(super) fn new(title: &str, x: Axis, curves: Vec<Curve>) -> Self {
        Self {
            title: title.to_owned(),
            x,
            walls: Vec::new(),
            curves,
        }
    }
}

/// A line from place to place, each from 0 to 1 on both axes.
pub(super) struct Curve {
    pub(super) ink: Ink,
    pub(super) dashed: bool,
    pub(super) points: Vec<(f64, f64)>,
    /// What each point says; none for a line without dots.
    pub(super) tips: Vec<String>,
}

impl Curve {
    /// A line without dots.
    pub(super) fn line(ink: Ink, points: Vec<(f64, f64)>) -> Self {
        Self {
            ink,
            dashed: ink.is_repeated(),
            points,
            tips: Vec::new(),
        }
    }

    /// A line with dots, each of which says something.
    pub(super) fn dotted(ink: Ink, dots: impl Iterator<Item = ((f64, f64), String)>) -> Self {
        let (points, tips) = dots.unzip();
        Self {
            tips,
            ..Self::line(ink, points)
        }
    }
}

/// Bars to the right, each with its number.
pub(super) struct Bars {
    /// What the numbers are.
    pub(super) unit: String,
    pub(super) bars: Vec<BarOf>,
}

/// One of the bars.
pub(super) struct BarOf {
    pub(super) name: String,
    pub(super) value: f64,
    pub(super) text: String,
    pub(super) ink: Ink,
}

const TITLE: f32 = 16.0;
const SMALL: f32 = 12.0;
const EDGE: f32 = 16.0;
/// Half of the longest word below the end of an axis.
const RIGHT: f32 = 26.0;
const HEIGHT: f32 = 360.0;
/// Widths that fit a page, alone or side by side.
const ALONE: f32 = 680.0;
const ROW: f32 = 1080.0;
const MOST_IN_A_ROW: usize = 3;

impl Figure {
    /// The drawing of it.
    pub(super) fn draw(&self) -> Scene {
        let mut pencil = Pencil::default();
        let at = (EDGE, EDGE + TITLE);
        pencil.words(at, &self.title, TITLE, TextAnchor::Start, Ink::Text);
        let top = EDGE + TITLE * 1.5;
        let (width, height) = match &self.shape {
            ChartShape::Panels(panels) => panels.draw(&mut pencil, top),
            ChartShape::Bars(bars) => bars.draw(&mut pencil, top),
        };
        Scene {
            width,
            height,
            title: self.title.clone(),
            items: pencil.0,
        }
    }
}

impl Panels {
    fn draw(&self, pencil: &mut Pencil, top: f32) -> (f32, f32) {
        let columns = self.panels.len().clamp(1, MOST_IN_A_ROW);
        let full = if columns == 1 { ALONE } else { ROW };
        let top = self.draw_legend(pencil, top, full);
        let texts = self.y.ticks.iter().map(|(_, text)| width(text, SMALL));
        let left = EDGE + texts.fold(0.0, f32::max) + 8.0;
        pencil.faint((EDGE, top + SMALL), &self.y.label, TextAnchor::Start);
        let top = top + SMALL + 10.0;
        let gap = 24.0;
        let each = (full - left - RIGHT - gap * (columns - 1) as f32) / columns as f32;
        let tall = if columns == 1 {
            (HEIGHT - top).max(220.0)
        } else {
            260.0
        };
        for (at, panel) in self.panels.iter().enumerate() {
            let (row, column) = ((at / columns) as f32, (at % columns) as f32);
            let room = PlotArea {
                left: left + column * (each + gap),
                top: top + row * tall,
                width: each,
                height: tall,
            };
            self.draw_panel(pencil, panel, &room, column == 0.0);
        }
        let rows = self.panels.len().div_ceil(columns) as f32;
        (full, top + rows * tall)
    }

    /// Keys beside each other, in as many lines as they need. Returns where they end.
    fn draw_legend(&self, pencil: &mut Pencil, top: f32, full: f32) -> f32 {
        if self.legend.is_empty() {
            return top;
        }
        let (mut x, mut y) = (EDGE, top + SMALL);
        for key in &self.legend {
            let name = fit(&key.name, SMALL, full / 2.0);
            let wide = 26.0 + width(&name, SMALL) + 18.0;
            if x + wide > full && x > EDGE {
                (x, y) = (EDGE, y + SMALL * 1.6);
            }
            let points = vec![(x, y - 4.0), (x + 20.0, y - 4.0)];
            pencil.path(points, key.ink, 2.5, key.dashed);
            pencil.text((x + 26.0, y), &name);
            x += wide;
        }
        y + SMALL
    }

    fn draw_panel(&self, pencil: &mut Pencil, panel: &Panel, room: &PlotArea, first: bool) {
        let above = if panel.title.is_empty() {
            4.0
        } else {
            SMALL * 2.0
        };
        let below = SMALL * 4.0;
        let frame = PlotArea {
            top: room.top + above,
            height: room.height - above - below,
            ..*room
        };
        let heading = (room.left, room.top + SMALL);
        let title = fit(&panel.title, SMALL + 1.0, room.width);
        pencil.words(heading, &title, SMALL + 1.0, TextAnchor::Start, Ink::Text);
        frame.grid(pencil, &self.y, first);
        frame.foot(pencil, panel);
        for curve in &panel.curves {
            frame.curve(pencil, curve);
        }
    }
}

/// Where a panel is, and inside it its curves.
struct PlotArea {
    left: f32,
    top: f32,
    width: f32,
    height: f32,
}

impl PlotArea {
    fn at(&self, (x, y): (f64, f64)) -> Point {
        let (x, y) = (x as f32, y as f32);
        (
            self.left + x * self.width,
            self.top + (1.0 - y) * self.height,
        )
    }

    fn grid(&self, pencil: &mut Pencil, y: &Axis, named: bool) {
        for (place, text) in &y.ticks {
            let (left, right) = (self.at((0.0, *place)), self.at((1.0, *place)));
            let ink = if *place == 0.0 { Ink::Axis } else { Ink::Grid };
            pencil.path(vec![left, right], ink, 1.0, false);
            if named {
                let at = (left.0 - 8.0, left.1 + SMALL * 0.35);
                pencil.faint(at, text, TextAnchor::End);
            }
        }
    }

    fn foot(&self, pencil: &mut Pencil, panel: &Panel) {
        for wall in &panel.walls {
            let ends = [0.0, 1.0].map(|end| self.at((*wall, end)));
            pencil.path(ends.to_vec(), Ink::Grid, 1.0, false);
        }
        let mut free = f32::MIN;
        for (place, text) in &panel.x.ticks {
            let (x, y) = self.at((*place, 0.0));
            let half = width(text, SMALL) / 2.0;
            // A word that would touch the one before is left out.
            if x - half > free + 4.0 {
                let at = (x, y + SMALL * 1.5);
                pencil.faint(at, text, TextAnchor::Middle);
                free = x + half;
            }
        }
        let (x, y) = self.at((0.5, 0.0));
        pencil.faint((x, y + SMALL * 3.0), &panel.x.label, TextAnchor::Middle);
    }

    fn curve(&self, pencil: &mut Pencil, curve: &Curve) {
        let points: Vec<_> = curve.points.iter().map(|point| self.at(*point)).collect();
        for (at, tip) in points.iter().zip(&curve.tips) {
            let dot = Shape::Dot {
                at: *at,
                radius: 3.5,
                tip: tip.clone(),
            };
            pencil.draw(curve.ink, dot);
        }
        let thickness = if curve.dashed { 1.5 } else { 2.0 };
        pencil.path(points, curve.ink, thickness, curve.dashed);
    }
}

impl Bars {
    fn draw(&self, pencil: &mut Pencil, top: f32) -> (f32, f32) {
        const THICK: f32 = 18.0;
        const STEP: f32 = 44.0;
        pencil.faint((EDGE, top + SMALL), &self.unit, TextAnchor::Start);
        let top = top + SMALL + 12.0;
        let texts = self.bars.iter().map(|bar| width(&bar.text, SMALL));
        let room = ALONE - 2.0 * EDGE - texts.fold(0.0, f32::max) - 16.0;
        let values = self.bars.iter().map(|bar| bar.value);
        let max = values.fold(f64::MIN_POSITIVE, f64::max);
        for (row, bar) in self.bars.iter().enumerate() {
            let y = top + row as f32 * STEP;
            let name = fit(&bar.name, SMALL, ALONE - 2.0 * EDGE);
            pencil.text((EDGE, y + SMALL), &name);
            let long = (bar.value / max) as f32 * room;
            let (at, size) = ((EDGE, y + SMALL + 5.0), (long.max(1.0), THICK));
            pencil.draw(bar.ink, Shape::Bar { at, size });
            pencil.text((EDGE + long + 8.0, y + SMALL + 18.0), &bar.text);
        }
        (ALONE, top + self.bars.len() as f32 * STEP + EDGE)
    }
}

/// Draws.
#[derive(Default)]
struct Pencil(Vec<SceneItem>);

impl Pencil {
    fn draw(&mut self, ink: Ink, shape: Shape) {
        self.0.push(SceneItem { ink, shape });
    }

    fn text(&mut self, at: Point, text: &str) {
        self.words(at, text, SMALL, TextAnchor::Start, Ink::Text);
    }

    fn faint(&mut self, at: Point, text: &str, anchor: TextAnchor) {
        self.words(at, text, SMALL, anchor, Ink::Faint);
    }

    fn words(&mut self, at: Point, text: &str, size: f32, anchor: TextAnchor, ink: Ink) {
        let words = Shape::Words {
            at,
            text: text.to_owned(),
            size,
            anchor,
        };
        self.draw(ink, words);
    }

    fn path(&mut self, points: Vec<Point>, ink: Ink, width: f32, dashed: bool) {
        let path = Shape::Path {
            points,
            width,
            dashed,
        };
        self.draw(ink, path);
    }
}
