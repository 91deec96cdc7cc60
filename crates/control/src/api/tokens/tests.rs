//! What counts as a token, and what is kept of it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::UNIX_EPOCH;

use super::*;
use crate::alarm::AlarmKind;

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
    let tokens = Tokens::read(folder.path().join("tokens.json"), Arc::default());
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
    let tokens = Tokens::read(path.clone(), Arc::default());
    let token = tokens.create(info("one", None)).unwrap();
    assert_eq!(token.len(), PREFIX.len() + LETTERS);
    let text = fs::read_to_string(&path).unwrap();
    assert!(!text.contains(&token[PREFIX.len()..]), "{text}");
    assert_eq!(
        fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o600
    );
    // And counts after a restart.
    let again = Tokens::read(path, Arc::default());
    assert_eq!(again.shown(&token, at(100)).unwrap().used, Some(100));
    assert_eq!(again.list().len(), 1);
}

/// A folder that no file can be written to: what it is written by is a folder.
fn blocked(folder: &Path) -> PathBuf {
    let path = folder.join(".tokens.json.new");
    fs::create_dir(&path).unwrap();
    path
}

fn kinds(alarms: &AlarmBoard) -> Vec<AlarmKind> {
    alarms.list().iter().map(|alarm| alarm.kind).collect()
}

#[test]
fn a_file_that_is_spoilt_lies_aside_until_somebody_takes_it_away() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tokens.json");
    let aside = folder.path().join("tokens.json.spoilt");
    fs::write(&path, "[{").unwrap();
    let alarms = Arc::<AlarmBoard>::default();
    let tokens = Tokens::read(path.clone(), Arc::clone(&alarms));
    assert_eq!(tokens.list(), []);
    assert_eq!(fs::read_to_string(&aside).unwrap(), "[{");
    // Others are made, and the alarm is there after a restart too.
    tokens.create(info("one", None)).unwrap();
    let alarms = Arc::<AlarmBoard>::default();
    let again = Tokens::read(path, Arc::clone(&alarms));
    assert_eq!(again.list().len(), 1);
    assert_eq!(kinds(&alarms), [AlarmKind::Tokens]);
    fs::remove_file(aside).unwrap();
    assert_eq!(kinds(&alarms), []);
}

#[test]
fn a_second_file_that_is_spoilt_takes_the_place_of_none() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tokens.json");
    for text in ["[{", "]"] {
        fs::write(&path, text).unwrap();
        Tokens::read(path.clone(), Arc::default());
    }
    let aside = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    assert_eq!(aside("tokens.json.spoilt"), "[{");
    assert_eq!(aside("tokens.json.spoilt.1"), "]");
}

#[test]
fn what_is_revoked_and_not_kept_is_told_and_written_later() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tokens.json");
    let alarms = Arc::<AlarmBoard>::default();
    let tokens = Tokens::read(path.clone(), Arc::clone(&alarms));
    let token = tokens.create(info("one", None)).unwrap();
    let blocked = blocked(folder.path());
    let told = tokens.revoke("one").unwrap_err();
    assert!(matches!(told, TokenError::NotKept(_)));
    assert!(
        told.to_string()
            .contains("counts again after the next start")
    );
    assert_eq!(tokens.shown(&token, at(100)), None);
    assert_eq!(kinds(&alarms), [AlarmKind::Tokens]);
    tokens.write().unwrap_err();
    fs::remove_dir(blocked).unwrap();
    tokens.write().unwrap();
    assert_eq!(kinds(&alarms), []);
    assert_eq!(Tokens::read(path, Arc::default()).list(), []);
}

/// Each time anew, and by one task however often that is asked for.
#[tokio::test]
async fn what_is_revoked_and_not_kept_is_tried_until_it_is() {
    const SOON: Duration = Duration::from_millis(1);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tokens.json");
    let alarms = Arc::<AlarmBoard>::default();
    let tokens = Arc::new(Tokens::read(path.clone(), Arc::clone(&alarms)));
    for name in ["one", "other"] {
        tokens.create(info(name, None)).unwrap();
        let blocked = blocked(folder.path());
        tokens.revoke(name).unwrap_err();
        tokens.retry_every(SOON);
        tokens.retry_every(SOON);
        assert_eq!(Arc::strong_count(&tokens), 2);
        tokio::time::sleep(10 * SOON).await;
        assert_eq!(kinds(&alarms), [AlarmKind::Tokens], "in vain until now");
        fs::remove_dir(blocked).unwrap();
        let kept = async {
            while tokens.is_retried.load(SeqCst) {
                tokio::time::sleep(SOON).await;
            }
        };
        let in_time = tokio::time::timeout(Duration::from_secs(20), kept).await;
        assert!(in_time.is_ok(), "{name}");
        assert_eq!(kinds(&alarms), []);
        assert_eq!(Tokens::read(path.clone(), Arc::default()).list(), []);
    }
}

#[test]
fn a_token_that_cannot_be_kept_does_not_count() {
    let folder = tempfile::tempdir().unwrap();
    let tokens = Tokens::read(folder.path().join("tokens.json"), Arc::default());
    blocked(folder.path());
    assert!(matches!(
        tokens.create(info("one", None)),
        Err(TokenError::Store(_))
    ));
    assert_eq!(tokens.list(), []);
}

/// Whoever shows a token does not wait for the disk of another.
#[test]
fn tokens_are_shown_while_the_file_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let tokens = Tokens::read(folder.path().join("tokens.json"), Arc::default());
    let token = tokens.create(info("one", None)).unwrap();
    let _written = tokens.file();
    assert!(tokens.shown(&token, at(100)).is_some());
    // This one does not wait either: the next one keeps it.
    tokens.keep_use(SystemTime::now());
}

#[tokio::test]
async fn whoever_waits_for_its_end_is_told_at_once_and_by_key() {
    let folder = tempfile::tempdir().unwrap();
    let tokens = Tokens::read(folder.path().join("tokens.json"), Arc::default());
    let first = TokenKey::of(&tokens.create(info("one", None)).unwrap());
    let ended = async {
        tokens.ended(&first).await;
        tokens.list().len()
    };
    let again = async {
        tokens.revoke("one").unwrap();
        // Of the same name, and another.
        tokens.create(info("one", None)).unwrap();
    };
    let (left, ()) = tokio::join!(ended, again);
    assert_eq!(left, 1);
    let now = seconds(SystemTime::now());
    let passed = tokens.create(info("passed", Some(now))).unwrap();
    tokens.ended(&TokenKey::of(&passed)).await;
}
