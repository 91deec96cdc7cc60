//! Volumes over iSER by devices of pretend libraries: our own initiator against our own target's
//! machines, in one process.

mod rig;
mod target;
mod world;

use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

use ::io::ring::RingKind;
use address::RdmaProvider;
use pretend_verbs::{Count, Order};
use scsi::medium::MediumOutcome;

use self::rig::{User, bytes, pattern, settings};
use self::target::Target;
use self::world::World;
use super::RemoteError;

/// One of InfiniBand's, as `enum ibv_wc_status` has it.
const RETRY_EXCEEDED: i64 = 12;

const DEVICE: Option<RdmaProvider> = Some(RdmaProvider::Device);

/// What opening a volume comes to, in words.
fn refusal(via: Option<RdmaProvider>) -> String {
    match User::open(settings(via)) {
        Ok(_) => panic!("it is opened"),
        Err(error) => error.to_string(),
    }
}

/// After everything has been given back nothing is left at the devices.
fn check_nothing_is_left(world: &World) {
    assert_eq!(world.count(Count::Complaints), 0, "complaints, see above");
    assert_eq!(world.count(Count::Objects), 0, "objects are left");
}

fn data_comes_back_on(ring: RingKind) {
    let world = World::new();
    let target = Target::start(&world);
    let mut user = User::open_on(ring, settings(DEVICE)).unwrap();
    let lengths = [512, 4096, 8192, 8704, 65_536, 262_144];
    for (seed, len) in lengths.into_iter().enumerate() {
        let data = pattern(seed, len);
        let lba = seed as u64 * 1000;
        user.store(lba, &data);
        assert!(user.load(lba, len) == data, "{len} bytes");
    }
    // 1 MiB is four operations at once.
    let data = pattern(99, 1 << 20);
    for (at, piece) in (0..).zip(data.chunks(256 << 10)) {
        user.write(at, 8000 + at * 512, piece);
    }
    assert!(user.results(4).iter().all(Result::is_ok));
    for at in 0..4 {
        user.read(at, 8000 + at * 512, 256 << 10);
    }
    let read: Vec<u8> = user.results(4).into_iter().flat_map(bytes).collect();
    assert!(read == data);
    user.leave();
    drop(target);
    check_nothing_is_left(&world);
}

#[test]
fn data_comes_back_as_it_was_written() {
    data_comes_back_on(RingKind::Epoll);
}

/// io_uring where the kernel has it.
#[test]
fn data_comes_back_on_the_other_ring() {
    data_comes_back_on(RingKind::Auto);
}

#[test]
fn the_session_says_what_it_goes_by() {
    let world = World::new();
    let target = Target::start(&world);
    let user = User::open(settings(None)).unwrap();
    assert_eq!(user.told("provider"), ["RDMA device pretend0"]);
    assert_eq!(user.told("RDMA Reads of the target"), ["16"]);
    assert_eq!(user.told("invalidation by the target"), ["no"]);
    assert_eq!(user.told("RDMAExtensions"), ["Yes"]);
    let unexpected = user.told("MaxOutstandingUnexpectedPDUs");
    assert_eq!(unexpected, ["4 ours, 16 theirs"]);
    user.leave();
    assert_eq!(
        target.orders.can_invalidate.load(SeqCst),
        0,
        "no target may invalidate a key that is used again"
    );
    drop(target);
    check_nothing_is_left(&world);
}

#[test]
fn a_device_by_its_name_has_to_be_on_the_way() {
    let world = World::new();
    let target = Target::start(&world);
    let named = |name: &str| Some(RdmaProvider::Named(name.to_owned()));
    let user = User::open(settings(named("pretend0"))).unwrap();
    user.leave();
    let words = refusal(named("mlx5_0"));
    assert!(
        words.contains("is by the RDMA device pretend0, not by mlx5_0"),
        "{words}"
    );
    drop(target);
    check_nothing_is_left(&world);
}

/// Where little can be pinned, most commands wait until others end.
#[test]
fn commands_wait_for_memory() {
    let world = World::new();
    let target = Target::start(&world);
    let mut user = User::open(settings(DEVICE)).unwrap();
    user.store(0, &pattern(1, 4096));
    let now = world.count(Count::Pinned) as i64;
    world.order(Order::PinnedLimit, now + (3 << 20));
    let data: Vec<_> = (0..48).map(|seed| pattern(seed, 256 << 10)).collect();
    for (at, data) in data.iter().enumerate() {
        user.write(at as u64, at as u64 * 512, data);
    }
    let results = user.results(48);
    assert!(results.iter().all(Result::is_ok), "{results:?}");
    for at in 0..48 {
        user.read(at, at * 512, 256 << 10);
    }
    let read = user.results(48).into_iter().map(bytes);
    assert!(read.zip(&data).all(|(read, data)| read == *data));
    assert_eq!(target.orders.logins.load(SeqCst), 2, "no session has ended");
    user.leave();
    drop(target);
    check_nothing_is_left(&world);
}

#[test]
fn without_memory_the_way_out_is_told() {
    let world = World::new();
    let target = Target::start(&world);
    world.order(Order::PinnedLimit, 100_000);
    let words = refusal(DEVICE);
    assert!(
        words.starts_with("cannot connect by RDMA device pretend0: no memory can be pinned")
            && words.contains("LimitMEMLOCK"),
        "{words}"
    );
    drop(target);
    check_nothing_is_left(&world);
}

#[test]
fn a_target_that_refuses_is_named() {
    let world = World::new();
    let target = Target::start(&world);
    target.orders.refuses.store(true, SeqCst);
    let words = refusal(DEVICE);
    assert!(
        words.starts_with("cannot connect by RDMA device pretend0: ")
            && words.contains("127.0.0.1:3260: the peer refuses it"),
        "{words}"
    );
    drop(target);
    check_nothing_is_left(&world);
}

/// A port of this host where nothing listens, by TCP nor by a device.
#[test]
fn software_takes_over_where_no_device_answers() {
    let world = World::new();
    let target = Target::start(&world);
    target.orders.is_silent.store(true, SeqCst);
    let asked = Instant::now();
    let outcome = User::open(settings(None)).map(|_| ());
    let waited = asked.elapsed();
    assert!(waited >= Duration::from_secs(2) && waited < Duration::from_secs(4));
    // By TCP nothing listens on that port of this host.
    match outcome {
        Err(RemoteError::Connect(cause)) => {
            assert_eq!(cause.kind(), std::io::ErrorKind::ConnectionRefused);
        }
        other => panic!("{other:?}"),
    }
    drop(target);
    check_nothing_is_left(&world);
}

#[test]
fn a_device_alone_is_waited_for_longer() {
    let world = World::new();
    let target = Target::start(&world);
    target.orders.is_silent.store(true, SeqCst);
    let words = refusal(DEVICE);
    assert!(
        words.contains("127.0.0.1:3260 does not answer by RDMA within 5 s; check that it is up"),
        "{words}"
    );
    drop(target);
    check_nothing_is_left(&world);
}

/// One that was silent is not waited for again by the other sessions of the address.
#[test]
fn a_device_in_vain_is_remembered() {
    let world = World::new();
    let target = Target::start(&world);
    target.orders.is_silent.store(true, SeqCst);
    let settings = settings(None);
    for most in [4, 1] {
        let asked = Instant::now();
        assert!(User::open(settings.clone()).is_err());
        assert!(asked.elapsed() < Duration::from_secs(most));
    }
    drop(target);
    check_nothing_is_left(&world);
}

/// What was under way when the session ended is done again by the next one.
fn goes_on_after(end: impl FnOnce(&World, &Target)) {
    let world = World::new();
    let target = Target::start(&world);
    let mut user = User::open(settings(DEVICE)).unwrap();
    user.store(0, &pattern(1, 65_536));
    let logins = target.orders.logins.load(SeqCst);
    end(&world, &target);
    for at in 0..8 {
        user.write(at, 200 + at * 128, &pattern(at as usize, 65_536));
    }
    let results = user.results(8);
    let is_done = |result: &_| matches!(result, Ok(MediumOutcome::Done));
    assert!(results.iter().all(is_done), "{results:?}");
    for at in 0..8 {
        let data = user.load(200 + at * 128, 65_536);
        assert!(data == pattern(at as usize, 65_536), "{at}");
    }
    assert!(user.load(0, 65_536) == pattern(1, 65_536));
    assert!(target.orders.logins.load(SeqCst) > logins, "it came back");
    user.leave();
    drop(target);
    check_nothing_is_left(&world);
}

#[test]
fn a_failed_completion_is_followed_by_a_new_session() {
    goes_on_after(|world, _| {
        world.order(Order::FailStatus, RETRY_EXCEEDED);
        world.order(Order::FailAfter, 5);
    });
}

/// In the login, too: with the device, and what it says.
#[test]
fn a_failed_completion_is_told_with_the_device() {
    let world = World::new();
    let target = Target::start(&world);
    world.order(Order::FailStatus, RETRY_EXCEEDED);
    // The first request of the login.
    world.order(Order::FailAfter, 0);
    assert_eq!(
        refusal(DEVICE),
        "RDMA device pretend0: the peer acknowledges nothing any more (IBV_WC_RETRY_EXC_ERR); \
         check the target and the device's link (rdma link)"
    );
    drop(target);
    check_nothing_is_left(&world);
}

#[test]
fn a_disconnect_is_followed_by_a_new_session() {
    goes_on_after(|_, target| target.orders.drops.store(true, SeqCst));
}

#[test]
fn a_device_that_was_taken_away_fails_what_waits() {
    let world = World::new();
    let target = Target::start(&world);
    let mut settings = settings(DEVICE);
    settings.replacement = Duration::from_secs(1);
    let mut user = User::open(settings).unwrap();
    user.store(0, &pattern(1, 4096));
    world.order(Order::Remove, 0);
    user.read(1, 0, 4096);
    let result = user.results(1).pop().unwrap();
    assert!(result.is_err(), "{result:?}");
    user.leave();
    drop(target);
}
