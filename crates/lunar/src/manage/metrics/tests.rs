//! What Ganglia is told of volumes, as a script for its gmetric did before.

use std::time::Duration;

use control::metrics::VolumeStats;

use super::commands;

fn volume(name: &str, read_bytes: u64, written_bytes: u64) -> VolumeStats {
    VolumeStats {
        volume: name.to_owned(),
        read_bytes,
        written_bytes,
        ..VolumeStats::default()
    }
}

#[test]
fn a_volume_has_four_metrics_by_the_second() {
    let before = [volume("db", 1 << 20, 4096)];
    let now = [volume("db", 3 << 20, 4096 + 8192)];
    let told = commands(&before, &now, Duration::from_secs(2));
    let expected = "gmetric -n diskio_readbytes_db -v 1024 -t uint32 -u \"Kbytes/s\"\n\
        gmetric -n diskio_writebytes_db -v 4 -t uint32 -u \"Kbytes/s\"\n\
        gmetric -n diskio_readblks_db -v 2048 -t uint32 -u \"Blocks/s\"\n\
        gmetric -n diskio_writeblks_db -v 8 -t uint32 -u \"Blocks/s\"\n";
    assert_eq!(told, expected);
}

#[test]
fn volumes_come_and_begin_anew_and_go() {
    let before = [volume("anew", 1 << 30, 0), volume("gone", 1, 1)];
    let now = [volume("anew", 0, 0), volume("new", 2048, 0)];
    let told = commands(&before, &now, Duration::from_secs(1));
    assert!(told.contains("readbytes_anew -v 0 "), "{told}");
    assert!(told.contains("readbytes_new -v 2 "), "{told}");
    assert!(!told.contains("gone"), "{told}");
}

#[test]
fn what_is_more_than_32_bits_is_the_most_of_them() {
    let now = [volume("db", u64::MAX, 0)];
    let told = commands(&[], &now, Duration::from_millis(1));
    assert!(told.contains("readblks_db -v 4294967295 "), "{told}");
}
