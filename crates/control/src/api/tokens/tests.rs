//! What counts as a token, and what is kept of it.

use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, UNIX_EPOCH};

use super::*;

fn info(name: &str, expires: Option<u64>) -> TokenInfo {
    TokenInfo {
        name: name.to_owned(),
        role: Role::View,
        created: 100,
        expires,
        used: None,
    }
}

fn at(seconds: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(seconds)
}

#[test]
fn a_token_counts_until_it_expires_or_is_revoked() {
    let folder = tempfile::tempdir().unwrap();
    let tokens = Tokens::read(folder.path().join("tokens.json")).unwrap();
    let short = tokens.create(info("short", Some(200))).unwrap();
    let long = tokens.create(info("long", None)).unwrap();
    let name = |token: &str, now| Some(tokens.shown(token, at(now))?.name);
    assert_eq!(name(&short, 199).as_deref(), Some("short"));
    assert_eq!(name(&short, 200), None);
    assert_eq!(name(&long, 200).as_deref(), Some("long"));
    for wrong in ["", "lunar_", &long[1..], &format!("{}x", *long)] {
        assert_eq!(name(wrong, 200), None, "{wrong}");
    }
    tokens.revoke("long").unwrap();
    assert_eq!(name(&long, 200), None);
    assert!(matches!(tokens.revoke("long"), Err(TokenError::Unknown(_))));
    assert!(matches!(
        tokens.create(info("short", None)),
        Err(TokenError::Taken(_))
    ));
}

#[test]
fn what_is_kept_shows_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tokens.json");
    let tokens = Tokens::read(path.clone()).unwrap();
    let token = tokens.create(info("one", None)).unwrap();
    assert_eq!(token.len(), PREFIX.len() + LETTERS);
    let text = fs::read_to_string(&path).unwrap();
    assert!(!text.contains(&token[PREFIX.len()..]), "{text}");
    assert_eq!(
        fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o600
    );
    // And counts after a restart.
    let again = Tokens::read(path).unwrap();
    assert_eq!(again.shown(&token, at(100)).unwrap().used, Some(100));
    assert_eq!(again.list().len(), 1);
}

#[test]
fn a_file_that_is_spoilt_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tokens.json");
    fs::write(&path, "[{").unwrap();
    assert!(Tokens::read(path).unwrap_err().contains("tokens.json"));
}
