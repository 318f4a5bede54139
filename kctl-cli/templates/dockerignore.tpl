target
deploy
.git
# The image has this version of Rust already, without clippy and rustfmt, which a build would download.
rust-toolchain.toml
