[package]
name = "{{name}}"
description = "A controller of {{kind}} objects"
version = "0.1.0"
edition = "2024"
publish = false

[dependencies]
kctl = {{kctl}}
tokio = { version = "1", features = ["rt-multi-thread", "macros"] }

[dev-dependencies]
tokio = { version = "1", features = ["test-util"] }

# A project of its own, also inside another workspace.
[workspace]
