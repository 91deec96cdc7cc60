use super::*;

#[test]
fn each_wrong_token_of_an_address_waits_longer_to_a_bound() {
    let (pauses, now) = (Pauses::default(), Instant::now());
    let waits = || pauses.wrong([192, 0, 2, 1].into(), now).as_millis();
    let told: Vec<_> = (0..9).map(|_| waits()).collect();
    assert_eq!(
        told,
        [250, 500, 1000, 2000, 4000, 8000, 16000, 16000, 16000]
    );
    let other = pauses.wrong([192, 0, 2, 2].into(), now);
    assert_eq!(other, FIRST);
    let later = pauses.wrong([192, 0, 2, 1].into(), now + MEMORY);
    assert_eq!(later, FIRST);
}

#[test]
fn a_network_of_ipv6_is_one_address() {
    let (pauses, now) = (Pauses::default(), Instant::now());
    for (host, pause) in [("2001:db8::1", FIRST), ("2001:db8::2", 2 * FIRST)] {
        assert_eq!(pauses.wrong(host.parse().unwrap(), now), pause);
    }
}

#[test]
fn what_is_remembered_is_bounded() {
    let (pauses, now) = (Pauses::default(), Instant::now());
    for number in 0..2 * ADDRESSES_MAX as u32 {
        pauses.wrong(IpAddr::V4(number.into()), now);
    }
    assert_eq!(pauses.wrong.lock().unwrap().len(), ADDRESSES_MAX);
}

/// However many wrong tokens come, from however many addresses.
#[test]
fn the_log_has_few_lines_a_minute_and_counts_the_others() {
    let (pauses, start) = (Pauses::default(), Instant::now());
    let told = |after: u64| pauses.may_tell(start + Duration::from_secs(after));
    let lines = (0..1000).filter(|_| told(1).is_some()).count();
    assert_eq!(lines, LINES as usize);
    assert_eq!(told(62), Some(1000 - u64::from(LINES)));
    assert_eq!(told(62), Some(0));
}
