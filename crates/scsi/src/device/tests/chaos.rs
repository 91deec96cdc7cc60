//! Commands, aborts, resets, losses and answers in any order: everything ends exactly once.

use proptest::prelude::*;

use super::rig::{cdb10, cdb16};
use super::world::{CORES, NEXUSES, World};
use crate::medium::MediumError;
use crate::task::{Attribute, Function};

#[derive(Clone, Debug)]
enum Event {
    Execute {
        from: (usize, u32),
        lun: u16,
        kind: usize,
        lba: u8,
        attribute: Attribute,
    },
    AbortOne((usize, u32), usize),
    Manage((usize, u32), Function),
    Lose((usize, u32)),
    LogIn((usize, u32)),
    Answer(usize, Option<MediumError>),
    SendData(usize),
    TakeData((usize, u32)),
    TellOwner(usize),
    TellCore(usize),
}

/// Commands on blocks from `lba` on, with the bytes of Data-Out that they expect.
fn command(kind: usize, lba: u8) -> (Vec<u8>, u32) {
    let at = u64::from(lba);
    let swap = |opcode: u8, action: u8, blocks: u8| {
        let mut cdb = cdb16(opcode, action, at, 0);
        cdb[13] = blocks;
        cdb.to_vec()
    };
    let ten =
        |opcode: u8, flags: u8, blocks: u16| cdb10(opcode, flags, u32::from(lba), blocks).to_vec();
    let long = |opcode: u8, blocks: u32| cdb16(opcode, 0, at, blocks).to_vec();
    match kind {
        0 => (ten(0x28, 0, 4), 0),
        1 => (ten(0x2a, 0, 4), 2048),
        2 => (long(0x88, 3000), 0),
        3 => (long(0x8a, 3000), 3000 * 512),
        4 => (swap(0x89, 0, 2), 2048),
        5 => (long(0x8b, 4), 2048),
        6 => (long(0x8b, 1500), 1500 * 512),
        7 => (ten(0x2f, 0x02, 8), 4096),
        8 => (ten(0x2e, 0x02, 8), 4096),
        9 => (ten(0x41, 0x08, 64), 512),
        10 => (ten(0x35, lba & 0x02, 0), 0),
        11 => (ten(0x34, lba & 0x02, 64), 0),
        12 => (swap(0x9e, 0x12, 64), 0),
        13 => (vec![0x04, 0, 0, 0, 0, 0], 0),
        14 => (vec![0x04, 0x10, 0, 0, 0, 0], 4),
        15 => (vec![0x16, 0, 0, 0, 0, 0], 0),
        16 => (vec![0x17, 0, 0, 0, 0, 0], 0),
        17 => (vec![0x12, 0, 0, 0, 96, 0], 0),
        18 => (ten(0x42, 0, 24), 24),
        19 => (vec![0x15, 0x10, 0, 0, 16, 0], 16),
        _ => (vec![0; 6], 0),
    }
}

fn event() -> impl Strategy<Value = Event> {
    let from = (0..CORES, 0..NEXUSES);
    let attribute = prop_oneof![
        6 => Just(Attribute::Simple),
        1 => Just(Attribute::Ordered),
        1 => Just(Attribute::HeadOfQueue),
    ];
    let function = prop_oneof![
        Just(Function::AbortTaskSet),
        Just(Function::ClearTaskSet),
        Just(Function::LogicalUnitReset),
        Just(Function::TargetReset),
        Just(Function::NexusReset),
        Just(Function::QueryTaskSet),
    ];
    let error = prop_oneof![
        9 => Just(None),
        1 => Just(Some(MediumError::Write)),
    ];
    prop_oneof![
        8 => (from.clone(), 0..2_u16, 0..21_usize, 0..16_u8, attribute).prop_map(
            |(from, lun, kind, lba, attribute)| Event::Execute { from, lun, kind, lba, attribute }
        ),
        1 => (from.clone(), any::<usize>()).prop_map(|(from, which)| Event::AbortOne(from, which)),
        1 => (from.clone(), function).prop_map(|(from, function)| Event::Manage(from, function)),
        2 => from.clone().prop_map(Event::TakeData),
        1 => from.clone().prop_map(Event::Lose),
        2 => from.prop_map(Event::LogIn),
        8 => (any::<usize>(), error).prop_map(|(which, error)| Event::Answer(which, error)),
        4 => any::<usize>().prop_map(Event::SendData),
        6 => (0..CORES).prop_map(Event::TellOwner),
        6 => (0..CORES).prop_map(Event::TellCore),
    ]
}

/// One nexus a core, which comes and goes, and commands on few blocks of which most lock them.
fn visit() -> impl Strategy<Value = Event> {
    let from = (0..CORES, Just(0));
    let kind = prop_oneof![2 => Just(4_usize), 1 => Just(5), 1 => Just(0), 1 => Just(1)];
    prop_oneof![
        6 => (from.clone(), kind, 0..3_u8).prop_map(|(from, kind, lba)| Event::Execute {
            from,
            lun: 0,
            kind,
            lba,
            attribute: Attribute::Simple,
        }),
        2 => from.clone().prop_map(Event::Lose),
        4 => from.prop_map(Event::LogIn),
        8 => any::<usize>().prop_map(|which| Event::Answer(which, None)),
        6 => any::<usize>().prop_map(Event::SendData),
        12 => (0..CORES).prop_map(Event::TellOwner),
        12 => (0..CORES).prop_map(Event::TellCore),
    ]
}

fn happen(world: &mut World, event: &Event) {
    match *event {
        Event::Execute {
            from,
            lun,
            kind,
            lba,
            attribute,
        } => {
            let (cdb, out) = command(kind, lba);
            world.execute(from, lun, &cdb, attribute, out);
        }
        Event::AbortOne(from, which) => world.abort_one(from, which),
        Event::Manage(from, function) => world.manage(from, function),
        Event::Lose(from) => world.lose(from),
        Event::LogIn(from) => world.log_in(from),
        Event::Answer(which, error) => world.answer(which, error),
        Event::TakeData(from) => world.take_data(from),
        Event::SendData(which) => world.send_data(which),
        Event::TellOwner(core) => world.tell_owner(core),
        Event::TellCore(core) => world.tell_core(core),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn what_is_locked_stays_so_where_nexuses_come_and_go(
        events in prop::collection::vec(visit(), 100..600),
    ) {
        let mut world = World::new();
        for event in events {
            happen(&mut world, &event);
        }
        world.come_to_rest();
        world.check_nothing_is_left();
    }

    #[test]
    fn everything_ends_exactly_once(events in prop::collection::vec(event(), 1..200)) {
        let mut world = World::new();
        for event in events {
            happen(&mut world, &event);
        }
        world.come_to_rest();
        world.check_nothing_is_left();
    }
}
