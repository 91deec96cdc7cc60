use super::*;

#[test]
fn words_of_others_stay_words() {
    let item = SceneItem::Words {
        at: (1.0, 2.0),
        text: "</text><script>".to_owned(),
        size: 12.0,
        anchor: TextAnchor::Middle,
        ink: Ink::Text,
    };
    let scene = Scene {
        width: 10.0,
        height: 10.0,
        title: "\"onload=".to_owned(),
        items: vec![item],
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
