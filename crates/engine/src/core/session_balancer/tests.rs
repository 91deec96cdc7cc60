use super::*;

/// Packets of sessions 0, 1, 2 ... come in near these cores.
fn placed(cores: u16, near: impl IntoIterator<Item = Option<u16>>) -> SessionBalancer {
    let mut balancer = SessionBalancer::new(cores);
    for (tsih, near) in (0..).zip(near) {
        balancer.assign(tsih, near.map(CoreId));
    }
    balancer
}

fn core_of(balancer: &SessionBalancer, tsih: u16) -> u16 {
    balancer.core_of(tsih).unwrap().0
}

#[test]
fn without_a_cpu_the_core_with_the_fewest_sessions_has_the_next_one() {
    let mut balancer = placed(3, [None; 5]);
    assert_eq!(balancer.loads, [2, 2, 1]);
    balancer.leave(1);
    balancer.leave(4);
    balancer.assign(9, None);
    assert_eq!(core_of(&balancer, 9), 1);
}

#[test]
fn a_session_lives_where_its_packets_come_in() {
    let balancer = placed(4, [Some(2), Some(0), Some(3), Some(1)]);
    assert_eq!(
        (0..4)
            .map(|tsih| core_of(&balancer, tsih))
            .collect::<Vec<_>>(),
        [2, 0, 3, 1]
    );
}

#[test]
fn a_core_that_has_one_while_another_has_none_gets_no_second_one() {
    let balancer = placed(2, [Some(1), Some(1)]);
    assert_eq!(balancer.loads, [1, 1]);
}

#[test]
fn with_many_sessions_a_fifth_more_is_not_clearly_more() {
    let mut balancer = placed(2, [None; 20]);
    assert_eq!(balancer.loads, [10, 10]);
    for tsih in 20..40 {
        balancer.assign(tsih, Some(CoreId(1)));
    }
    let [one, other] = balancer.loads[..] else {
        panic!("two cores");
    };
    assert_eq!(one + other, 40);
    assert!(other > one && other * 5 <= (one + 1) * 6, "{one} {other}");
}

#[test]
fn a_core_that_is_not_there_is_near_to_nothing() {
    assert_eq!(placed(2, [Some(7), Some(2)]).loads, [1, 1]);
    assert_eq!(placed(1, [Some(0), Some(1), None]).loads, [3]);
}

#[test]
fn a_session_that_is_reinstated_by_another_way_moves_there() {
    let mut balancer = placed(2, [Some(0), Some(1)]);
    balancer.leave(0);
    balancer.leave(1);
    balancer.assign(1, Some(CoreId(0)));
    balancer.assign(0, Some(CoreId(1)));
    assert_eq!([core_of(&balancer, 0), core_of(&balancer, 1)], [1, 0]);
    assert_eq!(balancer.loads, [1, 1]);
}

/// A card whose only interrupt is at one CPU has all packets come in there.
#[test]
fn sessions_that_all_come_in_at_one_cpu_are_spread_all_the_same() {
    for cores in [2, 3, 8, 64] {
        let balancer = placed(cores, std::iter::repeat_n(Some(0), 1000));
        is_fair(&balancer.loads);
        let most = balancer.loads.iter().max();
        assert_eq!(
            most,
            Some(&balancer.loads[0]),
            "the one near them has the most"
        );
    }
}

/// Cards spread connections over their queues by a hash of their addresses and ports. Sessions come
/// and go meanwhile.
#[test]
fn most_sessions_live_where_their_packets_come_in_and_of_many_nearly_all() {
    let mut random = Lcg(1);
    // Cores, sessions, and how many percent of these are near at the least.
    for (cores, sessions, percent) in [
        (2, 2, 70),
        (8, 8, 45),
        (8, 64, 60),
        (8, 512, 90),
        (64, 4096, 85),
    ] {
        let mut balancer = SessionBalancer::new(cores);
        let (mut near, mut all) = (0, 0);
        for round in 0..20_000_u32 {
            let tsih = (round % sessions) as u16;
            balancer.leave(random.below(sessions) as u16);
            balancer.leave(tsih);
            let arrival = random.below(cores.into()) as u16;
            balancer.assign(tsih, Some(CoreId(arrival)));
            near += u32::from(core_of(&balancer, tsih) == arrival);
            all += 1;
        }
        let counted: u32 = balancer.loads.iter().sum();
        assert_eq!(counted as usize, balancer.sessions());
        assert!(
            near * 100 >= all * percent,
            "{cores} {sessions}: {near} of {all}"
        );
    }
}

/// The rule holds for the last session of each core that came to one near it.
fn is_fair(loads: &[u32]) {
    let (part, whole) = NEAR;
    let (least, most) = (loads.iter().min().unwrap(), loads.iter().max().unwrap());
    assert!(most * part <= (least + 1) * whole, "{loads:?}");
}

/// Numbers that are the same in each run.
struct Lcg(u64);

impl Lcg {
    fn below(&mut self, end: u32) -> u32 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        ((self.0 >> 33) % u64::from(end)) as u32
    }
}
