[package]
name = "{{name}}"
description = "A controller of {{kind}} objects"
version = "0.1.0"
edition = "2024"
publish = false

[features]
default = ["dev"]
# The embedded API server and the simulator, for `dev` and tests. Release builds leave them out.
# Here and not in dev-dependencies, so that `cargo run` and `cargo test` share one build of kctl.
dev = ["kctl/sim"]

[dependencies]
kctl = { {{kctl}}, default-features = false, features = ["v1_37"] }
# `main` uses one thread; `rt-multi-thread` is for `#[tokio::main]` without `flavor`.
tokio = { version = "1", features = ["rt", "macros"] }

[dev-dependencies]
tokio = { version = "1", features = ["test-util"] }
