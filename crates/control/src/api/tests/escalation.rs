//! What somebody with the role operate may not have by way of a change.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::sync::Arc;

use axum::body::Body;
use axum::http::{Method, Request};
use serde_json::json;
use tower::ServiceExt;

use super::{Rig, free_port, wait};
use crate::api::caller::{Peer, Role};
use crate::api::users::User;
use crate::api::{ApiState, Problem, Tokens, router};

/// What an operator is answered: a status, and what is wrong.
fn operator(rig: &Rig, method: Method, path: &str, body: &str) -> (u16, String) {
    let plane = rig.daemon.as_ref().unwrap().plane();
    let tokens = Tokens::read(rig.path("other.json"), Arc::default());
    let state = ApiState::new(Arc::clone(plane), tokens.into());
    let request = Request::builder().method(method).uri(path);
    let mut request = request.body(Body::from(body.to_owned())).unwrap();
    let user = User {
        name: "operator".to_owned(),
        role: Role::Operate,
    };
    request.extensions_mut().insert(Peer::User(user));
    wait(async {
        let answer = router(state).oneshot(request).await.unwrap();
        let status = answer.status().as_u16();
        let body = axum::body::to_bytes(answer.into_body(), 1 << 20).await;
        let problem = serde_json::from_slice::<Problem>(&body.unwrap());
        (
            status,
            problem.map_or_else(|_| String::new(), |one| one.detail),
        )
    })
}

#[test]
fn no_volume_is_made_of_what_the_daemon_keeps() {
    let rig = Rig::new("version = 1\n");
    let secret = rig.path("state/secrets/lab");
    fs::create_dir_all(secret.parent().unwrap()).unwrap();
    for file in [rig.path("state/tokens.json"), secret] {
        fs::write(file, vec![b'x'; 4096]).unwrap();
    }
    symlink(rig.path("state/tokens.json"), rig.path("link")).unwrap();
    symlink(rig.path("state"), rig.path("folder")).unwrap();
    fs::hard_link(rig.path("state/tokens.json"), rig.path("hard")).unwrap();
    let folder = rig.folder.path().display().to_string();
    for address in [
        "file:F/state/tokens.json",
        "file:F/state/tokens.json?readonly",
        "file:F/etc/../state/secrets/lab",
        "readonly(limit:iops=1k(stats(file:F/folder/secrets/lab)))",
        "concat(null:1M,file:F/link)",
        "file:F/hard",
        "file:F/etc/lunar.toml?size=1M&sparse",
        "file:F/state/history/000999.toml?size=1M&sparse",
    ] {
        let address = address.replace("F/", &format!("{folder}/"));
        for path in ["/v1/volumes/v", "/v1/volumes/v?absent-ok"] {
            let body = json!({ "address": address }).to_string();
            let (status, told) = operator(&rig, Method::PUT, path, &body);
            if path.ends_with("ok") {
                // It may be absent, and is.
                let allow = "/v1/volumes/v?allow=loses=v";
                assert_eq!(
                    (status, operator(&rig, Method::DELETE, allow, "").0),
                    (200, 200)
                );
                continue;
            }
            assert!(
                status == 409 && told.contains("keeps files of its own"),
                "{status} {told}"
            );
        }
    }
    assert!(!rig.path("state/history/000999.toml").exists());
    assert!(rig.file().starts_with("version = 1"));
}

/// Also where the file was edited by somebody who may: it is served as absent.
#[test]
fn such_a_volume_in_the_file_is_absent() {
    let mut rig = Rig::new("version = 1\n");
    let tokens = rig.path("state/tokens.json");
    fs::write(&tokens, "[]".to_owned() + &" ".repeat(4094)).unwrap();
    let text = format!(
        "version = 1\n[volume.v]\naddress = \"file:{}\"\n",
        tokens.display()
    );
    fs::write(rig.path("etc/lunar.toml"), text).unwrap();
    rig.restart();
    assert_eq!(
        rig.alarms(),
        [("absent".to_owned(), Some("volume.v".to_owned()))]
    );
}

/// Who could open or close it, or give it another certificate, could be shown the tokens of others.
#[test]
fn where_tokens_are_shown_is_for_admins_to_say() {
    let rig = Rig::new("version = 1\n");
    let listening = super::tcp::listening(free_port());
    let set = json!({ "set": [["api.listen", "[\"127.0.0.1:1\"]"]] }).to_string();
    for (method, path, body) in [
        (Method::PUT, "/v1/config", &listening),
        (Method::POST, "/v1/apply", &listening),
        (Method::POST, "/v1/set", &set),
    ] {
        let (status, told) = operator(&rig, method, path, body);
        assert!(
            status == 403 && told.contains("[api]"),
            "{path}: {status} {told}"
        );
        let dry = operator(&rig, Method::POST, "/v1/plan", &listening);
        assert_eq!(dry.0, 200);
    }
    rig.send(Method::PUT, "/v1/config", &listening).unwrap();
    // All else of the document is the operator's, and going back is a change too.
    let more = format!("{listening}[volume.n]\naddress = \"null:1G\"\n");
    assert_eq!(operator(&rig, Method::PUT, "/v1/config", &more).0, 200);
    let back = "/v1/rollback/1?allow=loses=n";
    assert_eq!(operator(&rig, Method::POST, back, "").0, 403);
}

#[test]
fn a_secret_of_the_state_directory_is_named_by_its_name_alone() {
    let rig = Rig::new("version = 1\n");
    let tokens = rig.path("state/tokens.json");
    fs::write(&tokens, "[\"more than twelve bytes\"]").unwrap();
    fs::set_permissions(&tokens, fs::Permissions::from_mode(0o600)).unwrap();
    symlink(&tokens, rig.path("link")).unwrap();
    for path in [
        tokens,
        rig.path("link"),
        rig.path("etc/../state/tokens.json"),
    ] {
        let secret = format!("file:{}", path.display());
        let body = json!({ "chap": { "user": "u", "secret": secret } }).to_string();
        let (status, told) = operator(&rig, Method::PUT, "/v1/groups/g", &body);
        assert!(
            status == 409 && told.contains("state:NAME"),
            "{status} {told}"
        );
    }
}
