# The version of Rust on this machine and in CI. A newer one has new lints, and CI fails on a warning. To move, set the version here and in
# the Dockerfile, and run `cargo clippy --all-targets -- -D warnings`.
[toolchain]
channel = "1.95.0"
components = ["clippy", "rustfmt"]
