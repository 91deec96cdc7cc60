use super::*;

fn picture(ink: Ink, shape: Shape) -> Pixmap {
    let scene = Scene {
        width: 40.0,
        height: 20.0,
        title: String::new(),
        items: vec![SceneItem { ink, shape }],
    };
    Pixmap::decode_png(&png(&scene).unwrap()).unwrap()
}

fn inked(pixmap: &Pixmap) -> usize {
    let white = color(Ink::Paper).premultiply().to_color_u8();
    let pixels = pixmap.pixels().iter();
    pixels.filter(|pixel| **pixel != white).count()
}

fn words(text: &str) -> Pixmap {
    let words = Shape::Words {
        at: (0.0, 15.0),
        text: text.to_owned(),
        size: 12.0,
        anchor: TextAnchor::Start,
    };
    picture(Ink::Text, words)
}

#[test]
fn words_leave_ink_even_when_the_font_lacks_them() {
    assert_eq!(inked(&words("")), 0);
    assert!(inked(&words("p99")) > 50);
    assert!(inked(&words("\u{4e2d}")) > 50);
}

#[test]
fn a_bar_is_where_it_was_put() {
    let (at, size) = ((10.0, 5.0), (20.0, 10.0));
    let pixmap = picture(Ink::Series(0), Shape::Bar { at, size });
    assert_eq!((pixmap.width(), pixmap.height()), (80, 40));
    assert_eq!(inked(&pixmap), 40 * 20);
    let pixel = pixmap.pixel(40, 20).unwrap();
    let color = (pixel.red(), pixel.green(), pixel.blue());
    assert_eq!(color, (0x00, 0x72, 0xb2));
}

#[test]
fn a_line_without_length_is_no_failure() {
    let point = Shape::Path {
        points: vec![(1.0, 1.0)],
        width: 1.0,
        dashed: true,
    };
    let pixmap = picture(Ink::Text, point);
    assert_eq!(inked(&pixmap), 0);
}

#[test]
fn what_does_not_fit_loses_its_middle() {
    assert_eq!(fit("READ", 12.0, 100.0), "READ");
    let text = fit("iscsi://san/iqn.2026-11.org.example:disk0/7", 12.0, 100.0);
    assert!(text.starts_with("iscsi") && text.ends_with("0/7"), "{text}");
    assert!(text.contains('…'), "{text}");
    assert!(width(&text, 12.0) <= 100.0);
    assert_eq!(fit("READ", 12.0, 0.0), "");
}
