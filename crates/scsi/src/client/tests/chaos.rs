//! A unit that answers anything at all: every operation ends once, and nothing panics.

use std::time::Duration;

use proptest::prelude::*;

use super::super::{Client, ClientOutput, CommandStatus, Data};
use crate::medium::{Extent, HeapLease, Lease, MediumOp, ReadMemory};

type Told = (u8, Vec<u8>, Vec<u8>);

fn told() -> impl Strategy<Value = Told> {
    let status = prop_oneof![6 => Just(0), 3 => Just(2), 1 => any::<u8>()];
    let sense = prop::collection::vec(any::<u8>(), 0..20);
    (status, sense, prop::collection::vec(any::<u8>(), 0..64))
}

fn op(kind: u8, lba: u64) -> MediumOp<HeapLease> {
    let extent = Extent::new(lba, 1 + u64::from(kind));
    match kind % 5 {
        0 => MediumOp::Read {
            extent,
            memory: ReadMemory::Lent,
        },
        1 => MediumOp::WriteSame {
            extent,
            pattern: None,
        },
        2 => MediumOp::Flush { extent },
        3 => MediumOp::Unmap {
            extent,
            anchor: false,
        },
        _ => MediumOp::Status { extent },
    }
}

proptest! {
    #[test]
    fn whatever_a_unit_answers(
        answers in prop::collection::vec(told(), 1..200),
        kinds in prop::collection::vec(any::<u8>(), 0..8),
    ) {
        let mut client: Client<HeapLease> = Client::default();
        let (mut ended, mut now) = (0, Duration::ZERO);
        let mut submitted = 0;
        client.begin();
        for (status, sense, data) in answers {
            let memory = &mut |len| Some(HeapLease::from_bytes(vec![0; len]));
            if let Some(kind) = kinds.get(submitted) {
                client.submit(submitted as u64, op(*kind, 7), memory);
                submitted += 1;
            }
            let mut requests = Vec::new();
            while let Some(output) = client.poll() {
                match output {
                    ClientOutput::Execute(request) => requests.push(request),
                    ClientOutput::Done(..) => ended += 1,
                    _ => {}
                }
            }
            for request in requests {
                let mut moved = 0;
                match request.data {
                    Data::In(mut into) => {
                        moved = data.len().min(into.len());
                        into.copy_in(0, &data[..moved]);
                    }
                    Data::Out(from) => moved = from.len() * usize::from(data.len() % 4 > 0),
                    Data::None => {}
                }
                let answer = CommandStatus { status, sense: &sense, moved };
                client.answered(now, request.id, &answer);
            }
            if let Some(at) = client.next_deadline() {
                now = at;
                client.expire(now);
            }
        }
        client.give_up();
        while let Some(output) = client.poll() {
            ended += usize::from(matches!(output, ClientOutput::Done(..)));
        }
        prop_assert_eq!(ended, submitted);
    }
}
