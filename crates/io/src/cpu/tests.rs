use super::*;

#[test]
fn the_time_of_a_thread_that_has_ended_counts() {
    let own = std::process::id();
    let goal = time_of(own).unwrap() + Duration::from_millis(2);
    let work = move || while time_of(own).unwrap() < goal {};
    std::thread::spawn(work).join().unwrap();
    assert!(time_of(own).unwrap() >= goal);
}

#[test]
fn another_process_has_time_until_it_ends() {
    let mut shell = std::process::Command::new("sh");
    let shell = shell.args(["-c", "read x"]);
    let mut child = shell.stdin(std::process::Stdio::piped()).spawn().unwrap();
    while time_of(child.id()).unwrap().is_zero() {
        std::thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(
        time_of(child.id()).unwrap_err().raw_os_error(),
        Some(libc::ESRCH)
    );
}

#[test]
fn who_is_not_there_has_no_time() {
    assert!(time_of(0).is_err());
    assert!(time_of(u32::MAX).is_err());
    assert!(time_of(i32::MAX as u32).is_err());
}

#[test]
fn a_thread_gives_way_once_and_so_does_what_it_starts() {
    let own = || getpriority_process(None).unwrap();
    let before = own();
    let given = std::thread::spawn(move || {
        give_way(10).unwrap();
        let child = std::thread::spawn(move || {
            give_way(10).unwrap();
            own()
        });
        [own(), child.join().unwrap()]
    });
    assert_eq!(given.join().unwrap(), [before.max(10); 2]);
    assert_eq!(own(), before, "others do not");
}

#[test]
fn a_thread_stays_on_its_processor_and_its_helpers_need_not() {
    let everywhere = allowed().unwrap();
    for cpu in everywhere.clone() {
        let found = std::thread::spawn(move || {
            pin(cpu).unwrap();
            let child = std::thread::spawn(|| allowed().unwrap());
            let helper = spawn_helper("helper", || {
                let name = std::thread::current().name().map(str::to_owned);
                (name.unwrap(), allowed().unwrap())
            });
            let helper = helper.unwrap().join().unwrap();
            (allowed().unwrap(), child.join().unwrap(), helper)
        });
        let here = vec![cpu];
        let helper = ("helper".to_owned(), everywhere.clone());
        assert_eq!(found.join().unwrap(), (here.clone(), here, helper));
    }
}

#[test]
fn nothing_is_pinned_to_a_processor_that_is_not_there() {
    let highest = allowed().unwrap().into_iter().max().unwrap();
    for cpu in [highest + 1, CpuSet::MAX_CPU, usize::MAX] {
        assert!(highest + 1 == CpuSet::MAX_CPU || pin(cpu).is_err(), "{cpu}");
    }
}
