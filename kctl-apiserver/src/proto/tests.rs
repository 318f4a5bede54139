use super::*;

#[test]
fn empty() {}
