//! A control plane that fails, and goes on.

use std::cell::Cell;
use std::io;

use tokio::runtime::Runtime;
use tokio::sync::watch;

use super::{keep, listen};

#[test]
fn it_begins_again_until_it_is_stopped_or_cannot() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let (stop, stopped) = watch::channel(false);
    let times = Cell::new(0);
    let serve = |_: &Runtime, _| {
        times.set(times.get() + 1);
        match times.get() {
            1 => panic!("the control plane of the tests"),
            2 => return Err(io::Error::other("no sockets")),
            _ => stop.send(true).unwrap(),
        }
        Ok(())
    };
    keep(&path, listen(&path).unwrap(), &stopped, serve).unwrap();
    assert_eq!(times.get(), 3);
    stop.send(false).unwrap();
    let serve = |_: &Runtime, socket| {
        drop(socket);
        std::fs::remove_dir_all(folder.path()).unwrap();
        Ok(())
    };
    let cause = keep(&path, listen(&path).unwrap(), &stopped, serve).unwrap_err();
    assert!(cause.contains("cannot listen on"), "{cause}");
}
