use super::*;

#[test]
fn the_soft_limit_of_open_files_becomes_the_hard_one() {
    let limit = raise_open_files().unwrap();
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    assert_eq!((current, limit), (maximum, maximum));
}

#[test]
fn this_machine_has_memory() {
    let available = available_memory().unwrap();
    let meminfo = fs::read_to_string("/proc/meminfo").unwrap();
    let total = meminfo.lines().next().unwrap();
    let total: u64 = total.split_whitespace().nth(1).unwrap().parse().unwrap();
    assert!((1..=total * 1024).contains(&available));
}

#[test]
fn volumes_leave_64_mib_or_a_quarter() {
    let mib = |count: u64| count << 20;
    let left = [(0, 0), (100, 75), (256, 192), (1024, 960)];
    for (available, volumes) in left {
        assert_eq!(for_volumes(mib(available)), mib(volumes));
    }
}

#[test]
fn meminfo_without_the_field_tells_nothing() {
    let meminfo = "MemTotal: 5 kB\nMemAvailable:    4 kB\nBuffers: 1 kB\n";
    assert_eq!(mem_available(meminfo), Some(4096));
    assert_eq!(mem_available("MemTotal: 5 kB\n"), None);
    assert_eq!(mem_available("MemAvailable: many kB\n"), None);
    assert_eq!(
        mem_available("MemAvailable: 99999999999999999999 kB\n"),
        None
    );
}

#[test]
fn groups_are_looked_up_to_the_root() {
    let paths = |list: &str| -> Vec<String> {
        let groups = memory_groups(list);
        groups
            .iter()
            .map(|group| group.path.display().to_string())
            .collect()
    };
    let root = "/sys/fs/cgroup/";
    assert_eq!(
        paths("0::/system.slice/lunar.service\n"),
        ["system.slice/lunar.service", "system.slice", ""].map(|path| format!("{root}{path}"))
    );
    assert_eq!(
        paths("5:cpu,memory:/box\n4:pids:/other\n1:name=systemd:/x\n"),
        ["memory/box", "memory/"].map(|path| format!("{root}{path}"))
    );
    assert_eq!(paths("garbage\n\n"), [""; 0]);
}

#[test]
fn a_group_has_left_what_is_not_used_but_for_the_cache() {
    let path = std::env::temp_dir().join(format!("io-cgroup-{}", std::process::id()));
    fs::create_dir_all(&path).unwrap();
    let write = |name: &str, text: &str| fs::write(path.join(name), text).unwrap();
    let left = || {
        memory_groups("0::/").pop().map(|group| {
            ControlGroup {
                path: path.clone(),
                ..group
            }
            .left()
        })
    };
    write("memory.max", "1000\n");
    write("memory.current", "700\n");
    write("memory.stat", "anon 500\ninactive_file 200\n");
    assert_eq!(left(), Some(Some(500)));
    write("memory.current", "1900\n");
    assert_eq!(left(), Some(Some(0)));
    write("memory.max", "max\n");
    assert_eq!(left(), Some(None));
    fs::remove_dir_all(&path).unwrap();
}

#[test]
fn a_quota_is_of_processors() {
    assert_eq!(processors("50000 100000\n"), Some(0.5));
    assert_eq!(processors("300000 100000\n"), Some(3.0));
    for none in ["max 100000\n", "-1\n 100000\n", "", " ", "50000", "50000 0"] {
        assert_eq!(processors(none), None, "{none:?}");
    }
    assert_eq!(
        groups("3:cpu,cpuacct:/a\n0::/b\n2:memory:/c\n", "cpu"),
        [
            (Version::One, PathBuf::from("a")),
            (Version::One, PathBuf::new()),
            (Version::Two, PathBuf::from("b")),
            (Version::Two, PathBuf::new()),
        ]
    );
}
