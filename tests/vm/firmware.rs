//! Firmware that starts a machine from a LUN, as options of QEMU: iPXE behind a BIOS, and OVMF
//! (UEFI) with the initiator of its own.
//!
//! iPXE is told by a script. OVMF keeps what its setup pages would ask for in variables, in a file
//! that stands for flash memory; they are written there as its driver does it (IScsiDxe of edk2).

use std::ffi::OsString;
use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::guest::KERNEL_ARGUMENTS;
use crate::report::NotRun;

/// What either firmware has to know.
pub(crate) struct Session<'a> {
    pub(crate) mac: String,
    pub(crate) own: Ipv4Addr,
    pub(crate) portal: Ipv4Addr,
    pub(crate) initiator: &'a str,
    pub(crate) target: &'a str,
    /// A user and a secret for CHAP.
    pub(crate) proof: Option<(&'a str, &'a str)>,
}

/// The files of Debian's packages ipxe and ovmf.
const IPXE: &str = "/boot/ipxe.lkrn";
const OVMF: [&str; 2] = [
    "/usr/share/OVMF/OVMF_CODE_4M.fd",
    "/usr/share/OVMF/OVMF_VARS_4M.fd",
];

/// iPXE, which leaves the rest to what a BIOS finds in the first block. Both write to the console.
pub(crate) fn ipxe(dir: &Path, session: &Session) -> Result<Vec<OsString>> {
    present(IPXE, "ipxe")?;
    let script = dir.join("boot.ipxe");
    fs::write(&script, ipxe_script(session))?;
    Ok(vec![
        "-machine".into(),
        "pc,graphics=off".into(),
        "-kernel".into(),
        IPXE.into(),
        "-initrd".into(),
        script.into(),
    ])
}

fn present(file: &str, package: &str) -> Result<()> {
    if Path::new(file).exists() {
        Ok(())
    } else {
        bail!(NotRun(format!("no {file}, of the package {package}")))
    }
}

fn ipxe_script(session: &Session) -> String {
    let mut lines = vec![
        "#!ipxe".to_owned(),
        format!("set net0/ip {}", session.own),
        "set net0/netmask 255.255.255.0".to_owned(),
        "ifopen net0".to_owned(),
        format!("set initiator-iqn {}", session.initiator),
    ];
    if let Some((user, secret)) = session.proof {
        lines.push(format!("set username {user}"));
        lines.push(format!("set password {secret}"));
    }
    lines.push(format!(
        "sanboot iscsi:{}::::{}",
        session.portal, session.target
    ));
    lines.join("\n") + "\n"
}

/// OVMF with the session's variables, and one that boots the kernel from the LUN's first partition.
pub(crate) fn ovmf(dir: &Path, session: &Session) -> Result<Vec<OsString>> {
    let [code, template] = OVMF;
    present(code, "ovmf")?;
    let flash = dir.join("ovmf-variables");
    let mut store = fs::read(template).context("no variables of OVMF")?;
    add(&mut store, &variables(session))?;
    fs::write(&flash, store)?;
    let drive = |unit: u8, file: &Path, how: &str| {
        format!(
            "if=pflash,format=raw,unit={unit},file={}{how}",
            file.display()
        )
    };
    Ok(vec![
        "-drive".into(),
        drive(0, code.as_ref(), ",readonly=on").into(),
        "-drive".into(),
        drive(1, &flash, "").into(),
    ])
}

/// The names under which the driver, its setup pages, and UEFI itself keep variables.
const INITIATOR: [u8; 16] = guid(0x5932_4945, 0xec44, 0x4c0d, 0xb1cd_9db1_39df_070c);
const SETUP: [u8; 16] = guid(0x4b47_d616, 0xa8d6, 0x4552, 0x9d44_ccad_2e0f_4cf9);
const GLOBAL: [u8; 16] = guid(0x8be4_df61, 0x93ca, 0x11d2, 0xaa0d_00e0_9803_2b8c);

/// For firmware alone, or for an operating system, too; both are kept when the power is off.
const BOOT_SERVICES: u32 = 3;
const RUNTIME: u32 = 7;

fn variables(session: &Session) -> Vec<u8> {
    // The driver makes eight attempts of its own, unless it did so before.
    let all: Vec<u8> = (1..=8).collect();
    let name = [session.initiator.as_bytes(), &[0]].concat();
    [
        variable(&SETUP, "InitialAttemptOrder", BOOT_SERVICES, &all),
        variable(&SETUP, "AttemptOrder", BOOT_SERVICES, &[1]),
        variable(&INITIATOR, "I_NAME", BOOT_SERVICES, &name),
        variable(&INITIATOR, "Attempt 1", BOOT_SERVICES, &attempt(session)),
        variable(&GLOBAL, "Boot0000", RUNTIME, &boot_option()),
        variable(&GLOBAL, "BootOrder", RUNTIME, &[0, 0]),
    ]
    .concat()
}

/// How the driver keeps the settings of a session (`ISCSI_ATTEMPT_CONFIG_NVDATA`): fields at
/// offsets, and zeros. Those of debug builds and of other releases may lie elsewhere.
fn attempt(session: &Session) -> Vec<u8> {
    const MILLISECONDS: u16 = 20_000;
    let mut data = vec![0; 1049];
    let mut put = |at: usize, bytes: &[u8]| data[at..at + bytes.len()].copy_from_slice(bytes);
    put(17, &[1]); // the attempt's number
    put(26, b"Attempt 1");
    put(38, session.mac.to_uppercase().as_bytes());
    put(182, &3260_u16.to_le_bytes());
    put(184, &[1, 0]); // enabled, by IPv4
    put(186, &session.own.octets());
    put(202, &[255, 255, 255, 0]);
    put(224, session.target.as_bytes());
    put(448, &session.portal.octets());
    put(473, &MILLISECONDS.to_le_bytes());
    put(475, &[3]); // times to try
    put(476, &[0x80, 0, 0, 0, 0, 1]); // the ISID
    if let Some((user, secret)) = session.proof {
        put(757, &[1, 0]); // CHAP, of the initiator alone
        put(759, user.as_bytes());
        put(886, secret.as_bytes());
    }
    put(1048, &[1]); // in use
    data
}

/// Where the partition is that firmware reads, as `guest/install.sh` makes it.
const FIRST_BLOCK: u64 = 2048;
const BLOCKS: u64 = 64 << 11;

/// The disk's signature in its table of partitions, by which UEFI finds it.
pub(crate) const SIGNATURE: u32 = 0x4c55_4e52;

/// A load option (UEFI 2.9, 3.1.3): the kernel as a program, and the words it is started with.
fn boot_option() -> Vec<u8> {
    let file = utf16("\\vmlinuz");
    let path = [
        // A partition by its number, place and disk: one of a table with four entries.
        &[4, 1, 42, 0][..],
        &1_u32.to_le_bytes(),
        &FIRST_BLOCK.to_le_bytes(),
        &BLOCKS.to_le_bytes(),
        &SIGNATURE.to_le_bytes(),
        &[0; 12],
        &[1, 1],
        // A file there, and the end.
        &[4, 4],
        &(4 + file.len() as u16).to_le_bytes(),
        &file,
        &[0x7f, 0xff, 4, 0],
    ]
    .concat();
    let words = format!("initrd=\\initrd root=LABEL=root ro iscsi_auto {KERNEL_ARGUMENTS}");
    [
        &1_u32.to_le_bytes()[..], // it is active
        &(path.len() as u16).to_le_bytes(),
        &utf16("Debian"),
        &path,
        &utf16(&words),
    ]
    .concat()
}

fn utf16(text: &str) -> Vec<u8> {
    let units = text.encode_utf16().chain([0]);
    units.flat_map(u16::to_le_bytes).collect()
}

/// How edk2 stores a variable (`AUTHENTICATED_VARIABLE_HEADER`).
fn variable(guid: &[u8; 16], name: &str, attributes: u32, data: &[u8]) -> Vec<u8> {
    let name = utf16(name);
    let mut record = [
        &[0xaa, 0x55, 0x3f, 0][..], // the mark of a header; written and not deleted
        &attributes.to_le_bytes(),
        &[0; 28], // a count, a time and a key for what is signed
        &(name.len() as u32).to_le_bytes(),
        &(data.len() as u32).to_le_bytes(),
        guid,
        &name,
        data,
    ]
    .concat();
    record.resize(record.len().next_multiple_of(4), ERASED);
    record
}

const ERASED: u8 = 0xff;

/// Puts variables into an empty store, behind the headers of its volume and of itself.
fn add(store: &mut [u8], records: &[u8]) -> Result<()> {
    const BEGIN: usize = 72 + 28;
    match store.get_mut(BEGIN..BEGIN + records.len()) {
        Some(place) if place.iter().all(|byte| *byte == ERASED) => place.copy_from_slice(records),
        _ => bail!("OVMF's variables are not empty"),
    }
    Ok(())
}

/// A GUID in the order of UEFI: three numbers, and eight bytes.
const fn guid(first: u32, second: u16, third: u16, rest: u64) -> [u8; 16] {
    let ([a, b, c, d], [e, f]) = (first.to_le_bytes(), second.to_le_bytes());
    let ([g, h], [i, j, k, l, m, n, o, p]) = (third.to_le_bytes(), rest.to_be_bytes());
    [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p]
}
