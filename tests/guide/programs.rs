//! The book is true: its programs compile and pass their tests as rendered, its links lead somewhere, its words are plain.

mod filters;
mod format;
mod links;
mod prose;
mod public_api;

/// One module for each program of the book, collected by `build.rs`.
#[expect(dead_code, unreachable_pub, reason = "each module is a program of the book, which has a `main`")]
#[expect(
    clippy::pedantic,
    clippy::print_stdout,
    clippy::unit_arg,
    reason = "the book shows what a user writes, without this repository's lints"
)]
mod programs {
    include!(concat!(env!("OUT_DIR"), "/programs.rs"));
}
