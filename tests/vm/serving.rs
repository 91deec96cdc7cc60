//! `lunar serve` for an initiator in a guest.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use tests::server::Server;

use crate::Scene;
use crate::damage::{Damage, SELDOM};
use crate::variations::{Auth, MUTUAL_SECRET, MUTUAL_USER, SECRET, USER, Variation, Word};

pub(crate) const TARGET: &str = "iqn.2026-11.org.lunar.test:served";
/// The guest of a cell that has one.
pub(crate) const GUEST: &str = "iqn.2026-11.org.lunar.test:guest";

pub(crate) const MIB: u64 = 1 << 20;
const SIZE_MIB: u64 = 128;

/// open-iscsi: a session, which everything is done in.
pub(crate) fn iscsi(scene: &mut Scene, variation: &Variation) -> Result<()> {
    let dir = scene.folder(variation)?;
    let disk = Disk::new(&dir)?;
    let portal = format!("{}:3260", scene.lane.host(0));
    // Discovery has to lead the guest to the damaged way, not past it.
    let listen: &[&str] = if variation.damaged {
        &["--listen", "127.0.0.1:0", "--advertise", &portal]
    } else {
        &["--listen", &portal]
    };
    let mut options = options(scene, &["--iqn", TARGET, "--allow", GUEST]);
    options.extend(listen.iter().map(|option| (*option).to_owned()));
    options.extend(proofs(&dir, variation)?);
    if !variation.fpdu_crc {
        options.extend(["--iser-crc", "off"].map(str::to_owned));
    }
    let server = start(&dir, &[&disk.address()], &options)?;
    let target = server.luns[0].portals[0].clone();
    let damage = if variation.damaged {
        Some(Damage::start(
            &portal,
            target.parse().context("no portal")?,
            SELDOM,
        )?)
    } else {
        None
    };
    let mut words = variation.words();
    words.extend(network_words(scene, 0));
    words.extend([("target", TARGET.to_owned()), ("portal", portal)]);
    words.extend(load_words(variation));
    scene
        .guest
        .run(scene.cell.script, &words, &mut |asked| disk.answer(asked))?;
    if let Some(damage) = damage
        && damage.flipped() < 3
    {
        bail!("{} bits were flipped only", damage.flipped());
    }
    ended(server, variation)
}

/// What a variation adds to a load: damage needs more of it to happen.
pub(crate) fn load_words(variation: &Variation) -> Vec<Word> {
    let mib = if variation.damaged { 4 } else { 1 };
    // Each flipped bit costs a connection, which the kernel tells of.
    let expected = if variation.damaged {
        "conn.error|recover|digest|crc|tcp_sendpage|Time2Retain"
    } else {
        ""
    };
    vec![("mib", mib.to_string()), ("expected", expected.to_owned())]
}

pub(crate) fn network_words(scene: &Scene, network: usize) -> Vec<Word> {
    vec![("own", scene.lane.guest(network))]
}

/// Two portals, one of which is cut while fio writes and compares.
pub(crate) fn multipath(scene: &mut Scene, variation: &Variation) -> Result<()> {
    let dir = scene.folder(variation)?;
    let disk = Disk::new(&dir)?;
    let portals = [0, 1].map(|network| format!("{}:3260", scene.lane.host(network)));
    let mut options = options(scene, &["--iqn", TARGET, "--allow", GUEST]);
    for portal in &portals {
        options.extend(["--listen".to_owned(), portal.clone()]);
    }
    let server = start(&dir, &[&disk.address()], &options)?;
    let mut words = network_words(scene, 0);
    words.extend([
        ("own_other", scene.lane.guest(1)),
        ("target", TARGET.to_owned()),
        ("portal", portals[0].clone()),
    ]);
    let lane = scene.lane;
    let mut answer = |asked: &str| match asked {
        "cut" => lane.cut(1, true),
        "join" => lane.cut(1, false),
        _ => disk.answer(asked),
    };
    scene.guest.run(scene.cell.script, &words, &mut answer)?;
    ended(server, variation)
}

/// The kernel's fcoe, over a cable. The server comes when the guest asks for it: a frame of FIP
/// that arrives while its port is created can be the end of Linux 6.1's libfcoe.
pub(crate) fn fcoe(scene: &mut Scene, variation: &Variation) -> Result<()> {
    let dir = scene.folder(variation)?;
    let disk = Disk::new(&dir)?;
    let cable = format!("cable:{}", scene.lane.cable().display());
    let wwpn = format!("20:00:{}", scene.lane.mac(0));
    let options = options(scene, &["--fcoe", &cable, "--allow", &wwpn]);
    let words = [("mtu", variation.mtu.to_string())];
    let mut server = None;
    let mut answer = |asked: &str| {
        if asked != "serve" {
            return disk.answer(asked);
        }
        server = Some(start(&dir, &[&disk.address()], &options)?);
        Ok(())
    };
    scene.guest.run(scene.cell.script, &words, &mut answer)?;
    ended(server.context("no server was asked for")?, variation)
}

/// A file of our own that is served, and grows when the guest asks for it.
pub(crate) struct Disk(PathBuf);

impl Disk {
    pub(crate) fn new(dir: &Path) -> Result<Self> {
        let path = dir.join("disk");
        File::create(&path)?.set_len(SIZE_MIB * MIB)?;
        Ok(Self(path))
    }

    pub(crate) fn address(&self) -> String {
        format!("file:{}", self.0.display())
    }

    /// All that is on it.
    pub(crate) fn bytes(&self) -> Result<Vec<u8>> {
        Ok(fs::read(&self.0)?)
    }

    pub(crate) fn answer(&self, asked: &str) -> Result<()> {
        match asked {
            "grow" => {
                let file = File::options().write(true).open(&self.0)?;
                Ok(file.set_len(2 * SIZE_MIB * MIB)?)
            }
            _ => bail!("it is not known"),
        }
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // Logs and captures are kept of what failed, not disks.
        let _ = fs::remove_file(&self.0);
    }
}

pub(crate) fn options(scene: &Scene, more: &[&str]) -> Vec<String> {
    let all = scene.cell.options.iter().chain(more);
    all.map(|option| (*option).to_owned()).collect()
}

/// The options by which the server wants proof.
pub(crate) fn proofs(dir: &Path, variation: &Variation) -> Result<Vec<String>> {
    let mut options = Vec::new();
    if variation.auth != Auth::None {
        options.extend(["--chap".to_owned(), USER.to_owned()]);
        options.extend(["--secret-file".to_owned(), secret(dir, "secret", SECRET)?]);
        options.extend(["--chap-min".to_owned(), variation.hash.to_lowercase()]);
    }
    if variation.auth == Auth::Mutual {
        let file = secret(dir, "mutual-secret", MUTUAL_SECRET)?;
        options.extend(["--mutual-user".to_owned(), MUTUAL_USER.to_owned()]);
        options.extend(["--mutual-secret-file".to_owned(), file]);
    }
    Ok(options)
}

/// A file that only its owner can read.
pub(crate) fn secret(dir: &Path, name: &str, secret: &str) -> Result<String> {
    let path = dir.join(name);
    fs::write(&path, secret)?;
    fs::set_permissions(&path, Permissions::from_mode(0o600))?;
    Ok(path.to_string_lossy().into_owned())
}

pub(crate) fn start(dir: &Path, volumes: &[&str], options: &[String]) -> Result<Server> {
    let options: Vec<_> = options.iter().map(String::as_str).collect();
    Server::start_in(dir, volumes, &options)
}

/// Stops the server. It has warned of nothing, unless its peer's bytes were damaged.
pub(crate) fn ended(server: Server, variation: &Variation) -> Result<()> {
    let expected: &[&str] = if variation.damaged { &[""] } else { &[] };
    ended_but(server, expected)
}

/// Stops the server. It has warned of nothing but what has these words.
pub(crate) fn ended_but(server: Server, expected: &[&str]) -> Result<()> {
    let log = server.log_path().to_owned();
    let status = server.stop()?;
    if !status.success() {
        bail!("the server ended with {status}");
    }
    let log = fs::read_to_string(log)?;
    let named = |line: &str| expected.iter().any(|words| line.contains(words));
    let warned = |line: &&str| {
        let bad = line.contains("WARN") || line.contains("ERROR");
        bad && !line.contains("CHAP with MD5 (--chap-min)") && !named(line)
    };
    match log.lines().find(warned) {
        Some(line) => bail!("the server's log: {line}"),
        None => Ok(()),
    }
}
