//! Which files are told from disks.

use super::format;

#[test]
fn formats_are_known_by_their_magic_numbers() {
    let mut vdi = b"<<< Oracle VM VirtualBox Disk Image >>>\n".to_vec();
    vdi.resize(0x40, 0);
    vdi.extend([0x7f, 0x10, 0xda, 0xbe]);
    let name = |start: &[u8]| format(start).map(|(_, name)| name);
    for (start, expected) in [
        (&b"QFI\xfb\0\0\0\x03rest"[..], Some("qcow2")),
        (b"QFI\xfb\0\0\0\x01rest", Some("qcow")),
        (b"KDMV\x01\0\0\0", Some("vmdk")),
        (b"# Disk DescriptorFile\nversion=1\n", Some("vmdk")),
        (b"vhdxfile", Some("vhdx")),
        (b"conectix", Some("vpc")),
        (b"QED\0", Some("qed")),
        (&vdi, Some("vdi")),
        (&vdi[..0x43], None),
        (b"QFI", None),
        (b"", None),
        (&[0; 512], None),
    ] {
        assert_eq!(name(start), expected, "{start:?}");
    }
}
