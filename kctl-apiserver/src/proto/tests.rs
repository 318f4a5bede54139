//! Bodies as kubectl sends them.

use super::*;

#[test]
fn body_without_the_magic_is_refused() {
    assert!(decode(b"").is_err());
}
