//! A port is a number of 16 bits.
use kctl::prelude::*;

#[resource(
    group = "example.com",
    version = "v1",
    kind = "Web",
    conversion(service = "webs-webhook", namespace = "webs", port = 44300000000)
)]
pub struct WebSpec {
    pub port: i32,
}

fn main() {}
