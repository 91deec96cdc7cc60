use super::*;

fn author(by: &str) -> Author {
    Author {
        who: "root".to_owned(),
        from: "socket".to_owned(),
        by: by.to_owned(),
    }
}

#[test]
fn who_cannot_wait_is_told_what_is_under_way() {
    let turns = Turns::default();
    let first = turns.take(&author("lunar set"), Duration::ZERO).unwrap();
    let Err(refused) = turns.take(&author("lunar apply"), Duration::ZERO) else {
        panic!("two changes at once");
    };
    let told = refused.to_string();
    assert!(
        told.starts_with("a change by root (lunar set) since "),
        "{told}"
    );
    let way_out = " s is not done yet, and others wait for it: try again later, GET \
                   /v1/status answers meanwhile";
    assert!(told.ends_with(way_out), "{told}");
    drop(first);
    turns.take(&author("lunar apply"), Duration::ZERO).unwrap();
}

#[test]
fn no_more_wait_than_there_are_threads_for() {
    let turns = Turns::default();
    let first = turns.take(&author("1"), Duration::ZERO).unwrap();
    std::thread::scope(|scope| {
        let wait = || {
            let turn = turns.take(&author("2"), Duration::MAX);
            assert!(turn.is_ok());
        };
        for _ in 0..MOST_WAITING {
            scope.spawn(wait);
        }
        while turns.state().waiting.len() < MOST_WAITING {
            std::thread::yield_now();
        }
        assert!(turns.take(&author("3"), Duration::MAX).is_err());
        let all: Vec<_> = turns
            .all()
            .into_iter()
            .map(|one| (one.author.by, one.is_under_way))
            .collect();
        let waits = ("2".to_owned(), false);
        assert_eq!(all[0], ("1".to_owned(), true));
        assert_eq!(all[1..], vec![waits; MOST_WAITING]);
        drop(first);
    });
}
