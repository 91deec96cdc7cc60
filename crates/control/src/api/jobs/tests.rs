use super::*;

fn told(progress: Option<f64>) -> LongOperationReport {
    LongOperationReport {
        unit: "a".to_owned(),
        kind: "format",
        progress,
    }
}

#[test]
fn a_host_that_formats_a_volume_is_a_job_with_its_progress() {
    let running = operation(&told(Some(0.25)));
    assert_eq!(
        (running.kind, running.state),
        (JobKind::Format, JobState::Running)
    );
    assert_eq!(
        (running.at.as_deref(), running.progress),
        (Some("volume.a"), Some(0.25))
    );
    let failed = operation(&told(None));
    assert_eq!((failed.state, failed.progress), (JobState::Failed, None));
    assert!(
        failed.detail.starts_with("FORMAT UNIT has failed"),
        "{}",
        failed.detail
    );
}
