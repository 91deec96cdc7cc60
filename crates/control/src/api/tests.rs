//! A daemon in this process, asked over its socket.

mod alarms;
mod audit;

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use io::ring::RingKind;
use tempfile::TempDir;

use super::{SetRequest, Status};
use crate::client::{ApiClient, ApiError, ApiRequest, Method};
use crate::daemon::{Daemon, DaemonError, DaemonOptions};
use crate::gate::{Generation, Outcome};
use crate::plan::Impact;

mod escalation;
mod iser;
pub(super) mod problems;
mod roles;
mod streams;
mod switches;
mod tcp;
mod users;

/// A folder with a configuration, and the daemon that serves it.
struct Rig {
    folder: TempDir,
    daemon: Option<Daemon>,
}

impl Rig {
    fn new(text: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("etc")).unwrap();
        fs::write(folder.path().join("etc/lunar.toml"), text).unwrap();
        let daemon = Some(Self::start(&folder).unwrap());
        Self { folder, daemon }
    }

    fn start(folder: &TempDir) -> Result<Daemon, DaemonError> {
        let path = |name: &str| folder.path().join(name);
        Daemon::start(&DaemonOptions {
            config: path("etc/lunar.toml"),
            state: path("state"),
            socket: path("socket"),
            credentials: None,
            machine: "a machine".to_owned(),
            initiator: "iqn.2026-11.org.example:initiator".to_owned(),
            ring: RingKind::Auto,
            ended: Arc::new(|_| ()),
        })
    }

    fn restart(&mut self) {
        self.daemon.take().unwrap().stop().unwrap();
        self.daemon = Some(Self::start(&self.folder).unwrap());
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn file(&self) -> String {
        fs::read_to_string(self.path("etc/lunar.toml")).unwrap()
    }

    fn client(&self) -> ApiClient {
        ApiClient::new(&self.path("socket"), "a test")
    }

    /// As SIGHUP does, and waits for what comes of it.
    fn reload(&self) {
        let (told, done) = mpsc::channel();
        let daemon = self.daemon.as_ref().unwrap();
        daemon.reload(move |_| told.send(()).unwrap());
        done.recv().unwrap();
    }

    fn status(&self) -> Status {
        self.client()
            .ask(Method::GET, &ApiRequest::new("/v1/status"))
            .unwrap()
    }

    /// Kind and place of each alarm.
    fn alarms(&self) -> Vec<(String, Option<String>)> {
        let alarms = self
            .client()
            .ask(Method::GET, &ApiRequest::new("/v1/alarms"));
        let alarms: Vec<super::Alarm> = alarms.unwrap();
        let told = |one: super::Alarm| (one.kind.name().to_owned(), one.at);
        alarms.into_iter().map(told).collect()
    }

    fn send(&self, method: Method, path: &str, body: &str) -> Result<Outcome, ApiError> {
        let request = ApiRequest {
            path: path.to_owned(),
            body: Some(body.to_owned()),
            based_on: None,
        };
        self.client().ask(method, &request)
    }

    /// The status and the text of a refusal.
    fn refused(&self, method: Method, path: &str, body: &str) -> (u16, String) {
        match self.send(method, path, body) {
            Err(ApiError::Refused(problem)) => (problem.status, problem.detail.clone()),
            other => panic!("{path}: {other:?}"),
        }
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        if let Some(daemon) = self.daemon.take() {
            daemon.stop().unwrap();
        }
    }
}

/// Waits for what has no thread of its own, outside of a daemon's.
fn wait<T>(work: impl Future<Output = T>) -> T {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_all().build().unwrap().block_on(work)
}

/// Where nothing listens.
fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

fn text() -> String {
    format!(
        "version = 1\n# RAM\n[volume.a]\naddress = \"ram:1M\"\n\n\
         [target.\"iqn.2026-11.org.example:san\"]\nportals = [\"127.0.0.1:{}\"]\n\
         luns = {{ 0 = \"a\" }}\nallow = [\"*\"]\n",
        free_port()
    )
}

#[test]
fn rows_come_and_change_and_go() {
    let rig = Rig::new(&text());
    let put = rig
        .send(Method::PUT, "/v1/volumes/b", "{\"address\":\"null:1G\"}")
        .unwrap();
    assert_eq!((put.from, put.generation, put.worst), (1, 2, Impact::Quiet));
    let patch = "{\"limit\":{\"iops\":\"2k\"}}";
    rig.send(Method::PATCH, "/v1/volumes/b", patch).unwrap();
    assert!(
        rig.file().contains("limit = { iops = \"2k\" }"),
        "{}",
        rig.file()
    );
    rig.send(Method::PATCH, "/v1/volumes/b", "{\"limit\":null}")
        .unwrap();
    assert!(rig.file().starts_with("version = 1\n# RAM\n"));
    rig.send(Method::DELETE, "/v1/volumes/b", "").unwrap();
    assert_eq!(rig.status().generation, 5);
    let history: Vec<Generation> = rig
        .client()
        .ask(Method::GET, &ApiRequest::new("/v1/history"))
        .unwrap();
    let by: Vec<_> = history.iter().map(|one| &*one.by).collect();
    assert_eq!(by, ["start", "a test", "a test", "a test", "a test"]);
}

/// What is missing at the start is told, and does not take the rest with it.
#[test]
fn a_portal_that_is_taken_and_a_list_of_ports_that_is_spoilt_keep_no_daemon_down() {
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = other.local_addr().unwrap();
    let portal = format!("portals = [\"{taken}\", ");
    let mut rig = Rig::new(&text());
    rig.daemon.take().unwrap().stop().unwrap();
    let spoilt = rig.path("state/ports.json");
    fs::write(&spoilt, "[[").unwrap();
    let edited = rig.file().replace("portals = [", &portal);
    fs::write(rig.path("etc/lunar.toml"), edited).unwrap();
    rig.daemon = Some(Rig::start(&rig.folder).unwrap());
    let alarms = rig.status().alarms;
    let is_told = |of: &str| alarms.iter().any(|alarm| alarm.contains(of));
    assert!(
        is_told("ports.json") && is_told(&taken.to_string()),
        "{alarms:?}"
    );
    assert_eq!(fs::read_to_string(&spoilt).unwrap(), "[[");
    let put = "{\"address\":\"null:1G\"}";
    let (status, detail) = rig.refused(Method::PUT, "/v1/volumes/b", put);
    assert!(status == 409 && detail.contains("ports.json"), "{detail}");
    fs::remove_file(&spoilt).unwrap();
    rig.send(Method::PUT, "/v1/volumes/b", put).unwrap();
}

#[test]
fn a_file_that_is_not_taken_at_a_signal_is_an_alarm_until_one_is() {
    let rig = Rig::new(&text());
    let good = rig.file();
    fs::write(rig.path("etc/lunar.toml"), "version = ").unwrap();
    rig.reload();
    rig.reload();
    let status = rig.status();
    assert!(status.edited && status.alarms.len() == 1, "{status:?}");
    assert!(status.alarms[0].starts_with("the file is not applied: "));
    fs::write(rig.path("etc/lunar.toml"), format!("{good}# better\n")).unwrap();
    rig.reload();
    assert!(rig.status().alarms.is_empty());
}

#[test]
fn what_is_wrong_is_a_problem_with_a_status() {
    let rig = Rig::new(&text());
    let stories = [
        (Method::GET, "/v2", ""),
        (Method::GET, "/v1/disks", ""),
        (Method::GET, "/v1/volumes/z", ""),
        (Method::DELETE, "/v1/status", ""),
        (Method::PUT, "/v1/volumes/b", "{"),
        (Method::PUT, "/v1/volumes/b", "{\"adress\":\"null:1G\"}"),
        (
            Method::PUT,
            "/v1/volumes/b",
            "{\"address\":\"file:/no/such\"}",
        ),
        (Method::PATCH, "/v1/volumes/z", "{}"),
        (Method::DELETE, "/v1/volumes/z", ""),
        (Method::DELETE, "/v1/volumes/a", ""),
        (Method::POST, "/v1/apply?force", ""),
        (Method::POST, "/v1/apply?allow=all", ""),
        (Method::POST, "/v1/apply", "version = 1"),
        (Method::POST, "/v1/plan", "version = 7"),
        (Method::POST, "/v1/rollback/9", ""),
        (Method::POST, "/v1/rollback/x", ""),
        (
            Method::POST,
            "/v1/set",
            "{\"set\":[[\"volume.a.colour\",\"red\"]]}",
        ),
        (Method::GET, "/v1/history/7", ""),
        (Method::DELETE, "/v1/sessions/4", ""),
    ];
    let told = stories.map(|(method, path, body)| {
        let name = method.to_string();
        let text = match rig.client().text(
            method,
            &ApiRequest {
                path: path.to_owned(),
                body: Some(body.to_owned()),
                based_on: None,
            },
        ) {
            Err(ApiError::Refused(problem)) => {
                let (at, way_out) = (problem.at, problem.way_out);
                let lines = [at, Some(problem.detail), way_out].into_iter().flatten();
                let lines: Vec<_> = lines.collect();
                format!("{} {}", problem.status, lines.join("\n        "))
            }
            other => format!("{other:?}"),
        };
        format!("{name} {path} {body}\n    {text}\n")
    });
    insta::assert_snapshot!(told.concat());
    assert_eq!(rig.status().generation, 1);
}

/// A secret is kept where only the daemon reads it, and a group that names it is served.
#[test]
fn a_secret_is_kept_and_never_shown() {
    let rig = Rig::new(&text());
    let group = "{\"initiators\":[\"*\"],\"chap\":{\"user\":\"u\",\"secret\":\"state:lab\"}}";
    rig.send(Method::PUT, "/v1/groups/lab", group).unwrap_err();
    let put = |name: &str, secret: &str| {
        let request = ApiRequest {
            path: format!("/v1/secrets/{name}"),
            body: Some(secret.to_owned()),
            based_on: None,
        };
        rig.client().text(Method::PUT, &request)
    };
    assert!(put("lab", "too short").is_err());
    assert!(put("..%2Flab", "twelve bytes and more").is_err());
    put("lab", "twelve bytes and more\n").unwrap();
    let path = rig.path("state/secrets/lab");
    assert_eq!(
        fs::read_to_string(&path).unwrap(),
        "twelve bytes and more\n"
    );
    assert_eq!(
        fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o600
    );
    rig.send(Method::PUT, "/v1/groups/lab", group).unwrap();
    assert!(!rig.file().contains("twelve"));
}

#[test]
fn who_has_seen_another_generation_is_told_so() {
    let rig = Rig::new(&text());
    let request = |based_on| ApiRequest {
        path: "/v1/volumes/b".to_owned(),
        body: Some("{\"address\":\"null:1G\"}".to_owned()),
        based_on: Some(based_on),
    };
    let stale = rig.client().ask::<Outcome>(Method::PUT, &request(7));
    assert!(matches!(stale, Err(ApiError::Refused(problem)) if problem.status == 412));
    rig.client()
        .ask::<Outcome>(Method::PUT, &request(1))
        .unwrap();
}

#[test]
fn a_loss_is_refused_with_its_plan_until_it_is_allowed() {
    let rig = Rig::new(&text());
    let without = "version = 1\n";
    let refused = rig.send(Method::PUT, "/v1/config", without);
    let Err(ApiError::Refused(problem)) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!(problem.status, 409);
    assert_eq!(
        problem.way_out.as_deref(),
        Some("allow=loses=volume.a in the query")
    );
    assert_eq!(problem.outcome.unwrap().worst, Impact::Loses);
    rig.send(Method::PUT, "/v1/config?allow=loses=volume.a", without)
        .unwrap();
    assert_eq!(rig.status().volumes, 0);
}

#[test]
fn what_was_changed_is_there_after_a_restart() {
    let mut rig = Rig::new(&text());
    let set = SetRequest {
        set: vec![("volume.b.address".to_owned(), "null:1G".to_owned())],
        unset: Vec::new(),
    };
    let body = serde_json::to_string(&set).unwrap();
    rig.send(Method::POST, "/v1/set", &body).unwrap();
    let (file, status) = (rig.file(), rig.status());
    rig.restart();
    assert_eq!((rig.file(), rig.status()), (file, status));
}

#[test]
fn a_file_that_was_spoilt_does_not_take_the_server_down() {
    let mut rig = Rig::new(&text());
    fs::write(
        rig.path("etc/lunar.toml"),
        "version = 1\n[volume.a]\naddres = \"ram:1M\"\n",
    )
    .unwrap();
    rig.restart();
    let status = rig.status();
    assert_eq!((status.generation, status.volumes), (1, 1));
    assert!(
        status.alarms[0].contains("did you mean \"address\"?"),
        "{:?}",
        status.alarms
    );
    let kinds: Vec<_> = rig.alarms().into_iter().map(|(kind, _)| kind).collect();
    assert_eq!(kinds, ["configuration"]);
    // What is edited by hand is not overwritten, and can be dropped.
    let (code, _) = rig.refused(Method::PUT, "/v1/volumes/b", "{\"address\":\"null:1G\"}");
    assert_eq!(code, 409);
    rig.send(Method::POST, "/v1/rollback/1", "").unwrap();
    assert!(rig.status().alarms.is_empty() && !rig.status().edited);
    assert_eq!(
        rig.file(),
        rig.client()
            .text(Method::GET, &ApiRequest::new("/v1/config"))
            .unwrap()
    );
}

#[test]
fn a_file_that_has_gone_does_not_take_the_targets_with_it() {
    let mut rig = Rig::new(&text());
    fs::remove_file(rig.path("etc/lunar.toml")).unwrap();
    rig.restart();
    let status = rig.status();
    assert_eq!(
        (status.generation, status.volumes, status.targets),
        (1, 1, 1)
    );
    assert!(status.alarms[0].contains("missing"), "{:?}", status.alarms);
}

/// A disk whose file is missing must not come back empty, and comes back when its file does.
#[test]
fn a_volume_whose_file_is_missing_at_the_start_is_absent_until_it_is_back() {
    let mut rig = Rig::new("version = 1\n");
    let disk = rig.path("disk.img");
    let row = format!(
        "{{\"address\":\"file:{}?sparse\",\"size\":\"1M\"}}",
        disk.display()
    );
    rig.send(Method::PUT, "/v1/volumes/f", &row).unwrap();
    fs::write(&disk, vec![7; 1 << 20]).unwrap();
    fs::rename(&disk, rig.path("away")).unwrap();
    rig.restart();
    let stats = || -> Vec<crate::metrics::VolumeStats> {
        rig.client()
            .ask(Method::GET, &ApiRequest::new("/v1/stats"))
            .unwrap()
    };
    assert!(stats()[0].absent && !disk.exists());
    assert_eq!(
        rig.alarms(),
        [("absent".to_owned(), Some("volume.f".to_owned()))]
    );
    // Another change does not make it either.
    rig.send(Method::PUT, "/v1/volumes/n", "{\"address\":\"null:1G\"}")
        .unwrap();
    assert!(!disk.exists());
    fs::rename(rig.path("away"), &disk).unwrap();
    let until = Instant::now() + Duration::from_secs(30);
    while stats()[0].absent {
        assert!(Instant::now() < until);
        thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(stats()[0].capacity_bytes, 1 << 20);
    assert_eq!(rig.alarms(), []);
}

/// A file that a row has left can be that of another, in the same change or a later one.
#[test]
fn a_file_is_let_go_with_its_row() {
    let rig = Rig::new("version = 1\n");
    let row = format!(
        "{{\"address\":\"file:{}?sparse\",\"size\":\"1M\"}}",
        rig.path("disk.img").display()
    );
    rig.send(Method::PUT, "/v1/volumes/one", &row).unwrap();
    let renamed = rig.file().replace("[volume.one]", "[volume.two]");
    rig.send(Method::PUT, "/v1/config?allow=loses=one", &renamed)
        .unwrap();
    rig.send(Method::DELETE, "/v1/volumes/two", "").unwrap();
    rig.send(Method::PUT, "/v1/volumes/three", &row).unwrap();
    rig.send(Method::DELETE, "/v1/volumes/three", "").unwrap();
    rig.send(Method::POST, "/v1/rollback/5", "").unwrap();
}

#[test]
fn a_secret_that_has_gone_shuts_out_its_group_and_nobody_else() {
    let mut rig = Rig::new(&text());
    let secret = rig.path("secret");
    fs::write(&secret, "twelve bytes and more\n").unwrap();
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();
    let group = format!(
        "{{\"chap\":{{\"user\":\"u\",\"secret\":\"file:{}\"}}}}",
        secret.display()
    );
    rig.send(Method::PUT, "/v1/groups/lab", &group).unwrap();
    fs::remove_file(&secret).unwrap();
    rig.restart();
    let alarms = rig.status().alarms;
    assert!(
        alarms.len() == 1 && alarms[0].contains("cannot log in"),
        "{alarms:?}"
    );
}

#[test]
fn without_a_file_that_was_ever_valid_nothing_is_served() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("etc")).unwrap();
    fs::write(folder.path().join("etc/lunar.toml"), "version = ").unwrap();
    assert!(matches!(
        Rig::start(&folder),
        Err(DaemonError::Config { .. })
    ));
}

#[test]
fn two_daemons_do_not_share_a_socket() {
    let rig = Rig::new("version = 1\n");
    let second = Rig::start(&rig.folder);
    assert!(matches!(second, Err(DaemonError::Failed(cause)) if cause.contains("another daemon")));
    assert_eq!(rig.status().generation, 1);
}

#[test]
fn no_daemon_is_said_in_a_line() {
    let folder = tempfile::tempdir().unwrap();
    let client = ApiClient::new(&folder.path().join("socket"), "a test");
    let asked = client.text(Method::GET, &ApiRequest::new("/v1/status"));
    assert!(asked.unwrap_err().to_string().contains("lunar daemon"));
}
