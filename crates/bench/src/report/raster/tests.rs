use super::*;

fn picture(item: SceneItem) -> Pixmap {
    let scene = Scene {
        width: 40.0,
        height: 20.0,
        title: String::new(),
        items: vec![item],
    };
    Pixmap::decode_png(&png(&scene).unwrap()).unwrap()
}

fn inked(pixmap: &Pixmap) -> usize {
    let white = color(Ink::Paper).premultiply().to_color_u8();
    pixmap
        .pixels()
        .iter()
        .filter(|pixel| **pixel != white)
        .count()
}

fn words(text: &str) -> SceneItem {
    let (text, size) = (text.to_owned(), 12.0);
    SceneItem::Words {
        at: (0.0, 15.0),
        text,
        size,
        anchor: TextAnchor::Start,
        ink: Ink::Text,
    }
}

#[test]
fn words_leave_ink_even_when_the_font_lacks_them() {
    assert_eq!(inked(&picture(words(""))), 0);
    assert!(inked(&picture(words("p99"))) > 50);
    assert!(inked(&picture(words("\u{4e2d}"))) > 50);
}

#[test]
fn a_bar_is_where_it_was_put() {
    let (at, size) = ((10.0, 5.0), (20.0, 10.0));
    let pixmap = picture(SceneItem::Bar {
        at,
        size,
        ink: Ink::Series(0),
    });
    assert_eq!((pixmap.width(), pixmap.height()), (80, 40));
    assert_eq!(inked(&pixmap), 40 * 20);
    let pixel = pixmap.pixel(40, 20).unwrap();
    assert_eq!(
        (pixel.red(), pixel.green(), pixel.blue()),
        (0x00, 0x72, 0xb2)
    );
}

#[test]
fn a_line_without_length_is_no_failure() {
    let points = vec![(1.0, 1.0)];
    let pixmap = picture(SceneItem::Path {
        points,
        ink: Ink::Text,
        width: 1.0,
        dashed: true,
    });
    assert_eq!(inked(&pixmap), 0);
}

#[test]
fn what_does_not_fit_loses_its_middle() {
    assert_eq!(fit("READ", 12.0, 100.0), "READ");
    let text = fit("iscsi://san/iqn.2026-11.org.example:disk0/7", 12.0, 100.0);
    assert!(
        text.starts_with("iscsi") && text.ends_with("0/7") && text.contains('…'),
        "{text}"
    );
    assert!(width(&text, 12.0) <= 100.0);
    assert_eq!(fit("READ", 12.0, 0.0), "");
}
