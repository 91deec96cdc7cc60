//! Conformance, interoperation, and tests of the source itself.
