use rustix::thread::MembarrierCommand::{Global, PrivateExpedited};

#[test]
fn a_barrier_that_lacks_memory_is_passed_in_another_way_or_later() {
    let mut tried = Vec::new();
    super::kernel::pass_by(|command| {
        tried.push(command);
        tried.len() == 3
    });
    assert_eq!(tried, [PrivateExpedited, Global, PrivateExpedited]);
}
