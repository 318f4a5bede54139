//! quickstart
fn main() {}
