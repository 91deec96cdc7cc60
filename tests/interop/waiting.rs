//! What waits in a filter is given up with its task, its session or its server: nothing here would
//! begin within the patience of a test.

use std::path::{Path, PathBuf};

use iscsi::wire::bhs::Itt;
use iscsi::wire::task_management::function;
use tests::cdb;
use tests::client::Client;
use tests::initiator::{Data, Reply};
use tests::server::Server;

use crate::file;

/// Functions that end what waits.
const FUNCTIONS: [u8; 3] = [
    function::ABORT_TASK,
    function::ABORT_TASK_SET,
    function::LOGICAL_UNIT_RESET,
];

#[test]
fn a_write_that_waits_ends_with_its_task_and_never_lands() {
    let (disk, server) = serve("waiting-task");
    let mut client = Client::log_in(&server.luns[0], 1).unwrap();
    client.write(0, [1; 512], false).unwrap();
    for function in FUNCTIONS {
        let write = begin_to_write(&mut client);
        let request = client.initiator.manage(function, client.lun, write);
        assert_eq!(client.reply().unwrap(), Reply::Managed(request, 0));
        client.initiator.abandon(write);
    }
    server.stop_well().unwrap();
    only_the_first_block_is_written(&disk);
}

#[test]
fn a_write_that_waits_ends_with_its_session() {
    let (disk, server) = serve("waiting-session");
    let mut client = Client::log_in(&server.luns[0], 1).unwrap();
    client.write(0, [1; 512], false).unwrap();
    begin_to_write(&mut client);
    client.initiator.ping(b"has it come");
    client.reply().unwrap();
    drop(client);
    server.stop_well().unwrap();
    only_the_first_block_is_written(&disk);
}

/// Serves a file that takes a byte a second.
fn serve(name: &str) -> (PathBuf, Server) {
    let dir = tests::scratch(name).unwrap();
    let disk = dir.join("disk");
    let volume = format!(
        "verify(stats(limit:rate=1({})))",
        file(&dir, "disk?size=1M")
    );
    let server = Server::start_in(&dir, &[&volume], &[]).unwrap();
    (disk, server)
}

fn begin_to_write(client: &mut Client) -> Itt {
    let (write, data) = (cdb::write(1, 1, false), Data::Out(vec![2; 512].into()));
    client.initiator.command(0, client.lun, &write, data)
}

fn only_the_first_block_is_written(disk: &Path) {
    let bytes = std::fs::read(disk).unwrap();
    let (first, rest) = bytes.split_at(512);
    assert_eq!(first, [1; 512]);
    assert!(rest == [0; (1 << 20) - 512], "something else was written");
}
