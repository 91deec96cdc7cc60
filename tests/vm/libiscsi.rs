//! libiscsi 1.20 at `lunar serve`: its tools, QEMU's block layer on it, and its conformance suite.
//! They are those of Debian 13, in a root directory of their own, which `debian-13.sh` makes.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Result, bail};
use tests::conformance::Conformance;
use tests::server::Server;
use tests::tool;

use crate::overheard::Overheard;
use crate::serving::{MIB, TARGET, ended_but, proofs, start};
use crate::variations::{
    Auth, CHAP, DIGESTS, MUTUAL_SECRET, MUTUAL_USER, PLAIN, SECRET, USER, Variation, mutual,
};

/// libiscsi's tools, but for iscsi-ls, offer "None,CRC32C" whatever their URL says of digests.
pub(crate) const TOOLS: &[Variation] = &[PLAIN, CHAP, mutual("mutual-chap", "MD5")];
/// QEMU has no target prove itself. Digests are of headers alone, since libiscsi 1.20 has no other.
pub(crate) const QEMU: &[Variation] = &[PLAIN, CHAP, DIGESTS];

const INITIATOR: &str = "iqn.2026-11.org.lunar.test:tools";
const SIZE: u64 = 64 * MIB;

fn root() -> PathBuf {
    tests::top().join("target/vm-debian-13/root")
}

fn inside(program: &str) -> Command {
    tool::inside(Some(&root()), program)
}

/// Whether the root is there, and may be used.
pub(crate) fn ready() -> Result<()> {
    tool::present(&["chroot"])?;
    if !root().with_file_name("recipe").exists() {
        bail!("no root of Debian 13, which tests/vm/debian-13.sh target/vm-debian-13 makes");
    }
    tool::must(&mut inside("true")).map(drop)
}

/// libiscsi's tools.
pub(crate) fn tools(dir: &Path, variation: &Variation) -> Result<()> {
    let served = Served::new(dir, variation)?;
    let listed = served.tool("iscsi-ls", &["-s"], &served.portal())?;
    has(&listed, &[&format!("Target:{TARGET} "), "Lun:0 ", "Lun:1 "])?;
    let unit = served.url(0);
    let inquiry = served.tool("iscsi-inq", &[], &unit)?;
    has(&inquiry, &["Vendor:LUNAR", "Product:VOLUME", "CmdQue:1"])?;
    for (page, says) in PAGES {
        let told = served.tool("iscsi-inq", &["-e", "1", "-c", page], &unit)?;
        has(&told, says)?;
    }
    let capacity = served.tool("iscsi-readcapacity16", &[], &unit)?;
    has(
        &capacity,
        &[
            "RETURNED LOGICAL BLOCK ADDRESS:131071",
            "LOGICAL BLOCK LENGTH IN BYTES:512",
        ],
    )?;
    served.sums_are_equal()?;
    let read = ["-m", "8", "-b", "8", "-t", "1", "-r"];
    has(&served.tool("iscsi-perf", &read, &unit)?, &["finished."])?;
    served.reserves(&unit)?;
    served.discards(&unit)?;
    if variation.auth != Auth::None {
        served.refuses()?;
    }
    served.ended()
}

/// VPD pages by their decimal numbers, and what is shown of them.
const PAGES: &[(&str, &[&str])] = &[
    ("0", &["Page:0x83", "Page:0xb2"]),
    ("128", &["Unit Serial Number:"]),
    ("131", &["Designator Type:(3) NAA", TARGET]),
    ("176", &["maximum compare and write length:255", "wsnz:1"]),
    ("178", &["lbpu:1", "lbprz:1"]),
];

/// Whether a tool has said all of that.
fn has(said: &str, wanted: &[&str]) -> Result<()> {
    match wanted.iter().find(|words| !said.contains(**words)) {
        Some(words) => bail!("{words} is missing: {said}"),
        None => Ok(()),
    }
}

/// QEMU's block layer, which is an initiator by libiscsi.
pub(crate) fn qemu(dir: &Path, variation: &Variation) -> Result<()> {
    let served = Served::new(dir, variation)?;
    has(&served.tool("iscsi-ls", &[], &served.portal())?, &[TARGET])?;
    let flags = if variation.digests { OPTIONS } else { URLS };
    let [from, to] = [0, 1].map(|lun| served.image(lun));
    let both = [from.as_str(), &to];
    let told = qemu_must("qemu-img", &["info"], flags.one, &[&from])?;
    has(&told, &["virtual size: 64 MiB (67108864 bytes)"])?;
    qemu_must("qemu-img", &["convert", "-n"], flags.convert, &both)?;
    let told = qemu_must("qemu-img", &["compare"], flags.compare, &both)?;
    has(&told, &["Images are identical."])?;
    if fs::read(served.file(0))? != fs::read(served.file(1))? {
        bail!("the files of the LUNs differ");
    }
    // Between the data that were copied.
    for (kib, byte) in [(4, 0x11), (64, 0x22), (256, 0x33)] {
        let at = 4096 + 64 * kib;
        reads_back(flags, &to, (at, kib), byte)?;
        served.holds(1, at << 10, kib << 10, byte)?;
    }
    let differs = qemu_run("qemu-img", &["compare"], flags.compare, &both)?;
    if differs.code() != Some(1) {
        bail!("qemu-img compare of what differs: {}", differs.output);
    }
    served.ended()
}

/// What QEMU's programs are told of their images: of one, of two to compare, of two to copy.
#[derive(Clone, Copy)]
struct Flags {
    one: &'static [&'static str],
    compare: &'static [&'static str],
    convert: &'static [&'static str],
}

const URLS: Flags = Flags {
    one: &["-f", "raw"],
    compare: &["-f", "raw", "-F", "raw"],
    convert: &["-f", "raw", "-O", "raw"],
};

const OPTIONS: Flags = Flags {
    one: &["--image-opts"],
    compare: &["--image-opts"],
    convert: &["--image-opts", "--target-image-opts"],
};

/// Writes this number of KiB at this KiB, and reads them and what is behind them.
fn reads_back(flags: Flags, image: &str, (at, kib): (u64, u64), byte: u8) -> Result<()> {
    let write = format!("write -P {byte} {at}k {kib}k");
    let read = format!("read -P {byte} {at}k {kib}k");
    let behind = format!("read -P 0 {}k 4k", at + kib);
    let commands = [
        "-c", &write, "-c", "flush", "-c", &read, "-c", &behind, image,
    ];
    let said = qemu_must("qemu-io", flags.one, &commands, &[])?;
    // It tells what differs, and may end well.
    if said.contains("failed") || said.contains("rror") {
        bail!("{commands:?}: {said}");
    }
    Ok(())
}

fn qemu_run(program: &str, first: &[&str], then: &[&str], images: &[&str]) -> Result<tool::Ran> {
    let mut command = inside(program);
    command.args([first, then, images].concat());
    tool::run(&mut command, Duration::from_secs(60))
}

fn qemu_must(program: &str, first: &[&str], then: &[&str], images: &[&str]) -> Result<String> {
    let ran = qemu_run(program, first, then, images)?;
    if !ran.good() {
        bail!("{program} {first:?}: {:?}, {}", ran.status, ran.output);
    }
    Ok(ran.output)
}

/// The conformance suite, on all LUNs that there are for it.
pub(crate) fn conformance(dir: &Path, _: &Variation) -> Result<()> {
    let report = Conformance::new(Some(&root()))?.on_ring("auto")?;
    fs::write(dir.join("report"), format!("{report}\n"))?;
    if !report.good() {
        bail!("{}", report.wrong().join("\n"));
    }
    Ok(())
}

/// Two files as LUNs, and what was agreed on at their logins.
struct Served<'a> {
    dir: &'a Path,
    server: Server,
    logins: Overheard,
    variation: &'a Variation,
}

impl<'a> Served<'a> {
    /// The first has data and holes, the second is empty.
    fn new(dir: &'a Path, variation: &'a Variation) -> Result<Self> {
        let volumes = [0, 1].map(|lun| dir.join(format!("disk-{lun}")));
        for path in &volumes {
            File::create(path)?.set_len(SIZE)?;
        }
        let data = File::options().write(true).open(&volumes[0])?;
        for at in (0..SIZE).step_by(3 << 20) {
            let byte = |offset: u64| (offset.wrapping_mul(at + 7) >> 5) as u8;
            data.write_all_at(&(0..300_000).map(byte).collect::<Vec<_>>(), at)?;
        }
        let volumes = volumes.map(|path| format!("file:{}", path.display()));
        let volumes = volumes.each_ref().map(String::as_str);
        let mut options = vec!["--iqn".to_owned(), TARGET.to_owned()];
        options.extend(proofs(dir, variation)?);
        let server = start(dir, &volumes, &options)?;
        let logins = Overheard::start(server.luns[0].portals[0].parse()?)?;
        Ok(Self {
            dir,
            server,
            logins,
            variation,
        })
    }

    fn file(&self, lun: u32) -> PathBuf {
        self.dir.join(format!("disk-{lun}"))
    }

    fn portal(&self) -> String {
        self.at("")
    }

    fn url(&self, lun: u32) -> String {
        self.at(&format!("{TARGET}/{lun}"))
    }

    fn at(&self, path: &str) -> String {
        let digest = if self.variation.digests {
            "?header_digest=crc32c"
        } else {
            ""
        };
        let user = match self.variation.auth {
            Auth::None => String::new(),
            _ => format!("{USER}%{SECRET}@"),
        };
        format!("iscsi://{user}{}/{path}{digest}", self.logins.portal())
    }

    /// How QEMU is told of a LUN. With a digest in a URL it would die: it has libiscsi parse that
    /// without a context, which 1.20 writes to (lib/init.c).
    fn image(&self, lun: u32) -> String {
        if !self.variation.digests {
            return self.url(lun);
        }
        let portal = self.logins.portal();
        format!(
            "driver=raw,file.driver=iscsi,file.transport=tcp,file.portal={portal},\
             file.target={TARGET},file.lun={lun},file.header-digest=crc32c"
        )
    }

    fn command(&self, tool: &str, args: &[&str], url: &str) -> Command {
        let mut command = inside(tool);
        if self.variation.auth == Auth::Mutual {
            command.env("LIBISCSI_CHAP_TARGET_USERNAME", MUTUAL_USER);
            command.env("LIBISCSI_CHAP_TARGET_PASSWORD", MUTUAL_SECRET);
        }
        command.args(args).arg(url);
        command
    }

    fn tool(&self, tool: &str, args: &[&str], url: &str) -> Result<String> {
        tool::must(&mut self.command(tool, args, url))
    }

    /// What iscsi-md5sum reads is what is in the files.
    fn sums_are_equal(&self) -> Result<()> {
        let mut sums = Vec::new();
        for lun in [0, 1] {
            let own = tool::must(Command::new("md5sum").arg(self.file(lun)))?;
            let told = self.tool("iscsi-md5sum", &[], &self.url(lun))?;
            let own = own.split_whitespace().next().unwrap_or_default().to_owned();
            has(&told, &[&own])?;
            sums.push(own);
        }
        if sums[0] == sums[1] {
            bail!("both LUNs have the sum {}", sums[0]);
        }
        Ok(())
    }

    /// A persistent reservation comes and goes.
    fn reserves(&self, unit: &str) -> Result<()> {
        let pr = |args: &[&str]| self.tool("iscsi-pr", &[&["-i", INITIATOR], args].concat(), unit);
        pr(&["--register", "-S", "abc123"])?;
        has(&pr(&["--read-keys"])?, &["abc123"])?;
        pr(&["--clear", "-S", "abc123"])?;
        if pr(&["--read-keys"])?.contains("abc123") {
            bail!("the key is there after CLEAR");
        }
        Ok(())
    }

    /// What iscsi-discard has unmapped reads as zeros, and nothing else does.
    fn discards(&self, unit: &str) -> Result<()> {
        let before = fs::read(self.file(0))?;
        self.tool("iscsi-discard", &["-o", "3145728", "-l", "65536"], unit)?;
        self.holds(0, 3 << 20, 64 << 10, 0)?;
        let after = fs::read(self.file(0))?;
        let (begin, end) = (3 << 20, (3 << 20) + (64 << 10));
        if before[begin..end] == after[begin..end] || before[end..] != after[end..] {
            bail!("iscsi-discard has not unmapped what it was to unmap");
        }
        Ok(())
    }

    fn holds(&self, lun: u32, at: u64, len: u64, byte: u8) -> Result<()> {
        let mut bytes = vec![0; len as usize];
        File::open(self.file(lun))?.read_exact_at(&mut bytes, at)?;
        if bytes.iter().any(|found| *found != byte) {
            bail!("{len} bytes of LUN {lun} at {at} are not all {byte}");
        }
        Ok(())
    }

    /// A wrong secret is of no use. It goes past the relay, as that login comes to no agreement.
    fn refuses(&self) -> Result<()> {
        let relayed = self.logins.portal().to_string();
        let url = self
            .url(0)
            .replace(&relayed, &self.server.luns[0].portals[0]);
        let url = url.replace(SECRET, "another-secret");
        let ran = tool::run(
            &mut self.command("iscsi-inq", &[], &url),
            Duration::from_secs(60),
        )?;
        if ran.good() || ran.output.contains("Vendor") {
            bail!("a wrong secret: {:?}, {}", ran.status, ran.output);
        }
        Ok(())
    }

    /// Every session had the digests and proofs that it was to have.
    fn ended(self) -> Result<()> {
        let digest = if self.variation.digests {
            "CRC32C"
        } else {
            "None"
        };
        let mut wanted = vec![format!("HeaderDigest={digest}")];
        if self.variation.auth != Auth::None {
            wanted.push("AuthMethod=CHAP".to_owned());
        }
        if self.variation.auth == Auth::Mutual {
            wanted.push(format!("CHAP_N={MUTUAL_USER}"));
        }
        for words in wanted {
            self.logins.have(&words)?;
        }
        // By a wrong secret.
        ended_but(self.server, &["CHAP authentication failed"])?;
        for lun in [0, 1] {
            fs::remove_file(self.dir.join(format!("disk-{lun}")))?;
        }
        Ok(())
    }
}
