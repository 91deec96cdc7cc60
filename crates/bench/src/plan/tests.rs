//! Words, and volumes that they fit or do not fit.

use std::time::Duration;

use block::null::Null;
use block::volume::Volume as _;
use scsi::medium::Traits;

use super::{BenchMisuse, BlockSizes, BlockSpan, FioOptions, Rw, UnfitForVolume};
use crate::outcome::{AccessOrder, DataDirection};

fn plain() -> FioOptions {
    FioOptions::preset(None, false).unwrap()
}

fn volume(size: u64, block_size: u32) -> Traits {
    Null::new(size, block_size).unwrap().traits()
}

#[test]
fn rw_is_read_as_fio_reads_it() {
    let read = |word: &str| word.parse::<Rw>();
    for (word, direction, order) in [
        ("randread", DataDirection::Read, AccessOrder::Random),
        ("write", DataDirection::Write, AccessOrder::Sequential),
        ("randrw", DataDirection::Mixed, AccessOrder::Random),
    ] {
        assert_eq!(read(word), Ok(Rw { direction, order }));
    }
    assert_eq!(read("readwrite"), read("rw"));
    for wrong in ["", "READ", "trim", "rand"] {
        let line = read(wrong).unwrap_err();
        assert!(line.contains("randwrite"), "{line}");
    }
}

#[test]
fn what_is_read_is_what_a_load_says() {
    for word in ["read", "write", "rw", "randread", "randwrite", "randrw"] {
        let load = plain().load(word.parse().unwrap(), 512);
        assert_eq!(load.word(), word);
    }
}

#[test]
fn block_sizes_are_a_list() {
    let read = |text: &str| text.parse::<BlockSizes>().map(|BlockSizes(sizes)| sizes);
    assert_eq!(read("4k"), Ok(vec![4096]));
    assert_eq!(read("512,4k,64k"), Ok(vec![512, 4096, 65_536]));
    for wrong in ["", "4k,", "0", "512k", "k", "4 k", "-1"] {
        assert!(read(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn presets_have_their_words() {
    let disktest = FioOptions::preset(Some("disktest"), false).unwrap();
    assert_eq!((disktest.jobs, disktest.depth), (4, 1));
    assert_eq!(disktest.block_sizes, [65_536]);
    assert_eq!(disktest.rws.len(), 2);
    let sweep = FioOptions::preset(None, true).unwrap();
    assert_eq!((sweep.rws.len(), sweep.block_sizes.len()), (3, 7));
    assert!(sweep.sweep && !disktest.sweep && !plain().sweep);
    let unknown = FioOptions::preset(Some("fast"), false).unwrap_err();
    let line = unknown.to_string();
    assert!(line.contains("disktest, iometer"), "{line}");
}

#[test]
fn no_time_and_no_size_are_misuse() {
    let mut words = plain();
    assert_eq!(words.check(), Ok(()));
    words.size = Some(0);
    assert_eq!(words.check(), Err(BenchMisuse::NoSize));
    words.runtime = Duration::ZERO;
    assert_eq!(words.check(), Err(BenchMisuse::NoTime));
}

#[test]
fn a_span_begins_at_the_offset() {
    let traits = volume(1 << 20, 4096);
    let mut words = plain();
    words.offset = 8192;
    let span = BlockSpan {
        first: 2,
        blocks: 254,
        block_size: 4096,
    };
    assert_eq!(words.fit(&traits), Ok(span));
    words.size = Some(65_536);
    assert_eq!(words.fit(&traits).unwrap().blocks, 16);
}

#[test]
fn what_does_not_fit_names_the_word() {
    let traits = volume(1 << 20, 4096);
    let refused = |change: &dyn Fn(&mut FioOptions)| {
        let mut words = plain();
        change(&mut words);
        words.fit(&traits).unwrap_err().to_string()
    };
    assert!(refused(&|words| words.block_sizes = vec![512]).contains("--bs 512"));
    assert!(refused(&|words| words.offset = 512).contains("--offset 512"));
    assert!(refused(&|words| words.size = Some(6000)).contains("--size 6000"));
    assert!(refused(&|words| words.size = Some(2 << 20)).contains("beyond"));
    assert!(refused(&|words| words.offset = 2 << 20).contains("beyond"));
    let small = refused(&|words| (words.size, words.verify, words.jobs) = (Some(8192), true, 3));
    assert!(small.contains("too few"), "{small}");
}

#[test]
fn what_cannot_be_written_is_only_read() {
    let mut traits = volume(1 << 20, 512);
    traits.read_only = true;
    let mut words = plain();
    assert!(words.fit(&traits).is_ok());
    words.rws = vec!["randwrite".parse().unwrap()];
    let refused = UnfitForVolume::ReadOnly("randwrite");
    assert_eq!(words.fit(&traits), Err(refused));
}

#[test]
fn a_sweep_leaves_out_what_a_volume_cannot_do() {
    let traits = volume(1 << 20, 4096);
    let mut words = FioOptions::preset(None, true).unwrap();
    assert!(words.fit(&traits).is_ok());
    let sizes: Vec<_> = words.block_sizes_for(4096).collect();
    assert_eq!(sizes, [4096, 8192, 16_384, 32_768]);
    words.block_sizes = vec![512];
    assert_eq!(words.fit(&traits), Err(UnfitForVolume::NoBlockSize(4096)));
}
