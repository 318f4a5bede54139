//! `kctl completions` and `kctl man`, generated from the same declarations as `--help`.
//!
//! ```text
//! kctl completions bash > /etc/bash_completion.d/kctl
//! kctl man /usr/local/share/man/man1
//! ```

use std::path::PathBuf;

use clap::Command;

use crate::Failure;

/// Options of `kctl completions`.
#[derive(clap::Args)]
pub(crate) struct CompletionsOptions {
    /// The shell; its script goes to standard output
    shell: clap_complete::Shell,
}

/// Options of `kctl man`.
#[derive(clap::Args)]
pub(crate) struct ManOptions {
    /// The folder of the pages, such as /usr/local/share/man/man1; created if it does not exist
    dir: PathBuf,
}

/// Prints the completion script of a shell to standard output.
///
/// # Errors
/// Standard output can't be written, for example to a full disk.
pub(crate) fn run(options: &CompletionsOptions, mut command: Command) -> Result<(), Failure> {
    // Into memory first: the generator panics if its writer fails, and a closed pipe is not a bug.
    let mut script = Vec::new();
    clap_complete::generate(options.shell, &mut command, "kctl", &mut script);
    crate::print(&String::from_utf8(script)?)?;
    Ok(())
}

/// Writes `kctl.1` and one page per command, replacing files of these names.
///
/// # Errors
/// The path is a file, the folder can't be created, or a page can't be written.
pub(crate) fn man(options: &ManOptions, command: Command) -> Result<(), Failure> {
    if options.dir.exists() && !options.dir.is_dir() {
        return Err(format!("{}: man pages need a folder, and this is not one", options.dir.display()).into());
    }
    let failed = |error| format!("failed to write man pages to {}: {error}", options.dir.display());
    std::fs::create_dir_all(&options.dir).map_err(failed)?;
    clap_mangen::generate_to(command, &options.dir).map_err(failed)?;
    Ok(())
}
