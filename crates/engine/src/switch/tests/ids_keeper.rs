//! A disk that does not answer holds nothing up, and takes no memory.

use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use fc::wire::names::{FcId, Wwn};

use super::super::ids::{IdList, IdsError};
use super::super::ids_keeper::{IdsDisk, IdsKeeper, WritePace};

const PATIENCE: Duration = Duration::from_secs(60);

/// A disk that tells what it is asked, and then waits for the answer.
struct SlowDisk {
    asked: Sender<Asked>,
    answers: Receiver<Result<IdList, IdsError>>,
}

#[derive(Debug, PartialEq, Eq)]
enum Asked {
    Read,
    Write(IdList),
}

impl IdsDisk for SlowDisk {
    fn read(&mut self) -> Result<IdList, IdsError> {
        self.asked.send(Asked::Read).unwrap();
        self.answers.recv().unwrap()
    }

    fn write(&mut self, ids: &[(Wwn, FcId)]) -> Result<(), IdsError> {
        self.asked.send(Asked::Write(ids.to_vec())).unwrap();
        self.answers.recv().unwrap().map(drop)
    }
}

/// A keeper with such a disk, and what the switch is told.
struct Rig {
    keeper: IdsKeeper,
    asked: Receiver<Asked>,
    answers: Sender<Result<IdList, IdsError>>,
    told: Receiver<IdList>,
}

fn rig() -> Rig {
    let ((tell_asked, asked), (answers, get_answer)) = (channel(), channel());
    let (tell, told) = channel();
    let disk = SlowDisk {
        asked: tell_asked,
        answers: get_answer,
    };
    let keeper = IdsKeeper::start(disk, move |ids| tell.send(ids).unwrap()).unwrap();
    Rig {
        keeper,
        asked,
        answers,
        told,
    }
}

impl Rig {
    fn asks(&self) -> Asked {
        self.asked.recv_timeout(PATIENCE).unwrap()
    }

    fn answer(&self, answer: Result<IdList, IdsError>) {
        self.answers.send(answer).unwrap();
    }
}

fn ids(count: u64) -> IdList {
    let ids = (0..count).map(|n| (Wwn(0x2000 << 48 | n), FcId(0x01_0100 + n as u32)));
    ids.collect()
}

#[test]
fn of_lists_that_wait_the_last_one_is_written() {
    let rig = rig();
    rig.keeper.write(ids(1));
    assert_eq!(rig.asks(), Asked::Write(ids(1)));
    for count in 2..100 {
        rig.keeper.write(ids(count));
    }
    assert!(!rig.keeper.end(Duration::ZERO), "nothing waits for it");
    rig.answer(Ok(Vec::new()));
    assert_eq!(rig.asks(), Asked::Write(ids(99)));
    rig.answer(Ok(Vec::new()));
    assert!(rig.keeper.end(PATIENCE));
}

/// What the other switch has written is not overwritten before it is known.
#[test]
fn a_list_is_read_before_one_is_written() {
    let rig = rig();
    rig.keeper.write(ids(1));
    assert_eq!(rig.asks(), Asked::Write(ids(1)));
    rig.keeper.write(ids(2));
    rig.keeper.read();
    rig.answer(Ok(Vec::new()));
    assert_eq!(rig.asks(), Asked::Read);
    rig.answer(Ok(ids(3)));
    assert_eq!(rig.told.recv_timeout(PATIENCE), Ok(ids(3)));
    assert_eq!(rig.asks(), Asked::Write(ids(2)));
    rig.answer(Ok(Vec::new()));
    assert!(rig.keeper.end(PATIENCE));
}

#[test]
fn a_list_that_is_empty_or_spoilt_is_told_to_nobody() {
    let rig = rig();
    let spoilt = IdsError::Io {
        path: PathBuf::from("state"),
        cause: io::ErrorKind::StaleNetworkFileHandle.into(),
    };
    for answer in [Ok(ids(2)), Ok(Vec::new()), Err(spoilt), Ok(ids(2))] {
        rig.keeper.read();
        assert_eq!(rig.asks(), Asked::Read);
        rig.answer(answer);
    }
    assert!(rig.keeper.end(PATIENCE));
    let told: Vec<_> = rig.told.try_iter().collect();
    assert_eq!(told, [ids(2)], "once");
}

/// A flood of logins changes it in each turn.
#[test]
fn the_list_is_written_at_once_and_then_less_often_the_longer_it_is() {
    let ms = Duration::from_millis;
    let flood = |entries| {
        let mut pace = WritePace::default();
        let mut written = Vec::new();
        for now in (5000..8000).map(ms) {
            if now < ms(5250) {
                pace.changed(now);
            }
            if pace.take_due(now) {
                pace.written(now, entries);
                written.push(now);
            }
        }
        written
    };
    assert_eq!(flood(0), [5000, 5100, 5200, 5300].map(ms));
    assert_eq!(flood(1000), [5000, 5150, 5300].map(ms));
    assert_eq!(flood(16_384), [5000, 5920].map(ms));
}

#[test]
fn what_is_hurried_is_written_at_once_and_what_is_cancelled_is_not() {
    let mut pace = WritePace::default();
    let now = Duration::from_secs(5);
    pace.hurry();
    assert!(!pace.take_due(now), "nothing has changed");
    pace.changed(now);
    assert!(pace.take_due(now));
    pace.written(now, 1);
    pace.changed(now);
    assert!(!pace.take_due(now));
    pace.hurry();
    assert!(pace.take_due(now));
    pace.changed(now);
    pace.cancel();
    assert!(!pace.take_due(2 * now));
}
