//! `kctl add`: a controller, webhooks or a version of a kind for a project that is there.
//!
//! New code goes into a new module, and existing files are never overwritten. The only lines that change in files of the
//! user are a `mod` declaration, a call on `App::new(…)`, and a feature in `Cargo.toml`. They are inserted at places that
//! the syntax of the file names ([`source`]), so that everything else is unchanged. Where no such place is found, the
//! lines to add are printed.

mod apply;
mod controller;
mod error;
mod files;
mod project;
mod sample;
mod source;
mod test_code;
#[cfg(test)]
mod tests;
mod version;
mod webhook;

use std::path::PathBuf;

use clap::{Args, Subcommand};

use self::project::Project;
use crate::{Failure, new::FIRST_VERSION};

/// Options of `kctl add`.
#[derive(Args)]
pub(crate) struct Options {
    #[command(subcommand)]
    addition: Addition,
    /// The folder of the project, with its Cargo.toml
    #[arg(long, value_name = "DIR", default_value = ".", global = true)]
    project: PathBuf,
}

#[derive(Subcommand)]
enum Addition {
    /// Add a kind with its controller, tests and a sample: `kctl add controller tea-room`
    Controller {
        /// The name of the controller and of its module: lower case letters, digits and dashes
        name: String,
        /// The API group of the kind; by default the group of the project's first kind
        #[arg(long)]
        group: Option<String>,
        /// The kind; by default derived from the name: `TeaRoom`
        #[arg(long)]
        kind: Option<String>,
        /// The version of the kind, such as `v1`
        #[arg(long, value_name = "VERSION", default_value = FIRST_VERSION)]
        api_version: String,
    },
    /// Add defaulting and validation of a kind of the project: `kctl add webhook TeaRoom`
    Webhook {
        /// The kind, as in `#[resource(kind = "…")]`
        kind: String,
    },
    /// Add a version of a kind, with conversions in both directions: `kctl add version v1 --kind TeaRoom`
    Version {
        /// The version, such as `v1` or `v1beta1`
        version: String,
        /// The kind, as in `#[resource(kind = "…")]`; by default the only one of the project
        #[arg(long)]
        kind: Option<String>,
    },
}

/// Runs `kctl add`: reads the project, generates the code in memory, then writes it.
///
/// # Errors
/// The folder is not a kctl project, an argument is invalid, a file exists already or can't be written, or lines must be
/// added by hand. New files are kept only in the last case.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let project = Project::open(&options.project)?;
    let added = match &options.addition {
        Addition::Controller { name, group, kind, api_version } => {
            project.controller(name, group.as_deref(), kind.as_deref(), api_version)?
        }
        Addition::Webhook { kind } => project.webhook(kind)?,
        Addition::Version { version, kind } => project.version(version, kind.as_deref())?,
    };
    project.apply(&added)?;
    Ok(())
}

/// The new files, and the changes to existing files.
struct Added {
    /// Paths relative to the project, with the content of each file.
    files: Vec<(PathBuf, String)>,
    /// The module to declare next to `App::new(…)`.
    module: String,
    /// The call on the app, such as `.controller::<tea_room::reconcile_tea_room>()`.
    call: String,
    /// Features of kctl that the code needs.
    features: &'static [&'static str],
    /// The command that a user runs next.
    next: String,
}
