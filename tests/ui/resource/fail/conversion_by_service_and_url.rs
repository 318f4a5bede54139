//! A conversion webhook is a Service or a URL.
use kctl::prelude::*;

#[resource(
    group = "example.com",
    version = "v1",
    kind = "Web",
    conversion(service = "webs-webhook", namespace = "webs", url = "https://example.com/convert")
)]
pub struct WebSpec {
    pub port: i32,
}

fn main() {}
