//! Pieces of real output of iscsi-test-cu 1.19, against tgtd 1.0.85.

use super::Verdict::{Failed, Passed, Skipped};
use super::*;

/// The tests of an output are these.
#[track_caller]
fn is(output: &str, expected: &[(&str, Verdict)]) {
    let tests = parse(output);
    let verdicts = tests.iter().map(|test| (&*test.name, test.verdict));
    assert_eq!(verdicts.collect::<Vec<_>>(), expected);
}

#[test]
fn a_skipped_test_has_not_passed() {
    let output = "\
found matching LU device identifier for all (2) paths

Suite: Inquiry
  Test: EVPD ...passed
  Test: BlockLimits ...    [SKIPPED] Logical unit is fully provisioned. Skipping test
passed
  Test: MandatoryVPDSBC ...passed

Run Summary:    Type  Total    Ran Passed Failed Inactive
              suites      1      1    n/a      0        0
               tests      3      3      3      0        0
";
    let expected = [
        ("EVPD", Passed),
        ("BlockLimits", Skipped),
        ("MandatoryVPDSBC", Passed),
    ];
    is(output, &expected);
}

#[test]
fn a_failure_keeps_what_was_said() {
    let output = "\
Suite: GetLBAStatus
  Test: BeyondEol ...    [FAILED] GET_LBA_STATUS successful but should have failed
FAILED
    1. test_get_lba_status_beyond_eol.c:38  - CU_ASSERT_EQUAL(_r,0)
";
    let tests = parse(output);
    assert_eq!(tests[0].verdict, Failed);
    assert_eq!(tests[0].said.len(), 3);
}

#[test]
fn a_clean_up_after_the_verdict_does_not_change_it() {
    let output = "  Test: Residuals ...passed    [FAILED] PRIN command: failed with sense.\n";
    is(output, &[("Residuals", Passed)]);
}

#[test]
fn half_of_a_test_that_was_skipped_does_not_hide_a_failure() {
    let output = "\
Suite: ReadOnly
  Test: ReadOnlySBC ...    [SKIPPED] UNMAP is not implemented.
    [FAILED] WRITESAME10 failed with wrong sense.
FAILED
";
    is(output, &[("ReadOnlySBC", Failed)]);
}

#[test]
fn what_the_tool_refuses_to_do_is_not_the_targets_failure() {
    let output = "  Test: Dpo ...--dataloss flag is not set in. Skipping write\nFAILED\n";
    is(output, &[("Dpo", Skipped)]);
}

#[test]
fn a_tool_that_died_in_a_test_has_failed_it() {
    let output = "Suite: Sanitize\n  Test: BlockErase ...passed\n  Test: BlockEraseReserved ...";
    assert_eq!(parse(output)[1].verdict, Failed);
}
