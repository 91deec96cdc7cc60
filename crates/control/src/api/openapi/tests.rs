//! The description is that of the routes that there are, and the one that is committed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde_json::Value;

use super::*;

/// Where the description of this version is.
fn committed() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/openapi.json")
}

fn described() -> Value {
    serde_json::from_str(&openapi()).unwrap()
}

/// The methods of a description: paths with methods, and what is told of them.
fn methods(document: &Value) -> BTreeMap<(String, String), &Value> {
    let paths = document["paths"].as_object().unwrap().iter();
    let methods = paths.flat_map(|(path, item)| {
        let methods = item.as_object().unwrap().iter();
        methods.map(move |(method, told)| ((path.clone(), method.to_uppercase()), told))
    });
    methods.collect()
}

/// What it is for is said to those who have changed the API: a client goes by the committed one.
#[test]
fn the_description_is_the_one_that_is_committed() {
    let (path, now) = (committed(), openapi());
    if std::env::var_os("RENEW").is_some() {
        fs::write(&path, &now).unwrap();
    }
    let before = fs::read_to_string(&path).unwrap_or_default();
    let changed = similar::TextDiff::from_lines(&before, &now);
    let changed = changed.unified_diff().to_string();
    let way_out = "RENEW=1 cargo test -p control openapi writes docs/openapi.json";
    assert!(before == now, "{way_out}:\n{changed}");
}

#[test]
fn every_route_is_described_and_no_other() {
    let document: Value = serde_json::from_str(&fs::read_to_string(committed()).unwrap()).unwrap();
    let described: BTreeSet<_> = methods(&document).into_keys().collect();
    let routes = routes::all();
    let there: BTreeSet<_> = routes
        .iter()
        .map(|route| (route.path.to_owned(), route.method.to_string()))
        .collect();
    assert_eq!(described, there);
    assert_eq!(there.len(), routes.len());
}

#[test]
fn each_method_tells_its_role_its_name_and_its_answers() {
    let document = described();
    let methods = methods(&document);
    let mut names = BTreeSet::new();
    for route in routes::all() {
        let at = (route.path.to_owned(), route.method.to_string());
        let told = methods[&at];
        let role = &told["security"][0]["token"][0];
        assert_eq!(role, route.least.name(), "{at:?}");
        let name = told["operationId"].as_str().unwrap();
        assert!(names.insert(name), "{name} is the name of two");
        let answers = told["responses"].as_object().unwrap();
        let successes = answers.keys().filter(|status| status.starts_with('2'));
        assert_eq!(successes.count(), 1, "{at:?}");
        let in_path = route.path.matches('{').count();
        let parameters = told["parameters"].as_array().into_iter().flatten();
        let found = parameters.filter(|one| one["in"] == "path").count();
        assert_eq!(found, in_path, "{at:?}");
    }
}

/// What a reference names.
fn references(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(members) => {
            let reference = members.get("$ref").and_then(Value::as_str);
            found.extend(reference.map(str::to_owned));
            members.values().for_each(|one| references(one, found));
        }
        Value::Array(items) => items.iter().for_each(|one| references(one, found)),
        _ => {}
    }
}

#[test]
fn every_reference_leads_somewhere_and_nothing_is_there_in_vain() {
    let document = described();
    let mut named = BTreeSet::new();
    references(&document, &mut named);
    let mut there = BTreeSet::new();
    for kind in ["schemas", "responses"] {
        let components = document["components"][kind].as_object().unwrap();
        there.extend(
            components
                .keys()
                .map(|name| format!("#/components/{kind}/{name}")),
        );
    }
    assert_eq!(named, there);
}

/// The page for people has every path.
#[test]
fn the_manual_names_every_path() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/manual/api.md");
    let page = fs::read_to_string(page).unwrap();
    for route in routes::all() {
        assert!(
            page.contains(&format!("`{}`", route.path)),
            "{}",
            route.path
        );
    }
}
