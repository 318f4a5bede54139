//! The step `new-project`: checks that the commands of a project from `kctl new` work, and that its lints forbid
//! clients outside of the context.
//!
//! The project uses this repository's `Cargo.lock`, profiles and features of third-party crates, so that what the workspace
//! has compiled is not compiled again.

use std::path::Path;

use crate::{
    Result, features,
    gate::Gate,
    process::{Run, cargo, find, root, scratch, target},
    steps::{cargo_test, path_with_helm},
    third_party, tools,
};

/// Functions that create or take a client: the lines of `src/own.rs`. A project's `clippy.toml` has to reject each of
/// them, because such a client bypasses the declared permissions.
const CLIENTS: [&str; 2] = [
    "pub fn take_client(_: kctl::kube::Client) {}",
    "pub fn create_client(config: kctl::kube::Config) { let _ = kctl::client(config); }",
];

/// Cargo's configuration with the profiles. A target folder elsewhere has no parent with it.
const CONFIG: &str = ".cargo/config.toml";

/// The environment variable with the target folder for clippy and `cargo check` in the project.
const LINTS_TARGET: &str = "KCTL_LINTS_TARGET";

/// Returns tables for the end of the project's manifest, after which it shares what the workspace has compiled.
///
/// # Errors
/// The dependencies of the workspace cannot be read, or the crate with them cannot be written.
pub(crate) fn tables() -> Result<String> {
    Ok(third_party::Dependencies::read()?.write(None)? + &features::assertions())
}

/// Writes a file. The error names the file.
fn write(path: &Path, text: &str) -> Result {
    std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

/// Returns `true` if clippy's output has a message about a disallowed client for a line of `src/own.rs`. The position
/// follows the message on the next line.
fn is_rejected(output: &str, line: usize) -> bool {
    let is_disallowed = |message: &str| message.contains("disallowed") && message.to_lowercase().contains("client`");
    let position = format!("own.rs:{line}:");
    let mut pairs = output.lines().zip(output.lines().skip(1));
    pairs.any(|(message, next)| is_disallowed(message) && next.contains(&position))
}

/// Runs the test of a new project's commands, lints its workflow, then runs clippy over a project with forbidden code.
///
/// # Errors
/// A command of the project fails, or clippy accepts the forbidden code.
pub(crate) fn run(gate: &mut Gate) -> Result {
    // Clippy has checked the dependencies there, if it ran. Programs are built in the folder of the tests, which shares the
    // compiled crates with the project of the step `deployed`.
    let idle_target = target().join("beside");
    let lints_target = if idle_target.exists() { idle_target } else { target() };
    let tables = tables()?;
    let test = cargo_test(&["--test", "deploy", "every_command_of_a_new_project_works", "--", "--ignored"]);
    let test = test.env(LINTS_TARGET, &lints_target).env(third_party::VARIABLE, &tables);
    // Without Helm, the test skips the commands that check the chart.
    let test = match path_with_helm(gate) {
        Some(path) => test.env("PATH", path),
        None => test,
    };
    if find("kubectl").is_none() {
        gate.leave_out("kubectl is not installed: commands of a new project's README that call it are not run", &[]);
    }
    test.tests(&mut gate.ledger, 1)?;
    let folder = scratch("new-project")?;
    let project = folder.join("web-site");
    if project.exists() {
        std::fs::remove_dir_all(&project).map_err(|error| format!("{}: {error}", project.display()))?;
    }
    let kctl = target().join("debug").join(format!("kctl{}", std::env::consts::EXE_SUFFIX));
    // Within this repository a project has no workflow, unless it is a separate repository.
    Run::new(kctl).args(["new", "web-site", "--vcs", "git"]).folder(&folder).run()?;
    std::fs::create_dir_all(folder.join(".cargo")).map_err(|error| format!("{}: {error}", folder.display()))?;
    for (from, to) in [("Cargo.lock", project.join("Cargo.lock")), (CONFIG, folder.join(CONFIG))] {
        std::fs::copy(root().join(from), &to).map_err(|error| format!("{}: {error}", to.display()))?;
    }
    match tools::actionlint() {
        Some(actionlint) => Run::new(actionlint).arg(project.join(".github/workflows/ci.yml")).run()?,
        None => gate.leave_out("actionlint is not available (Go builds it): workflows are not checked", &[]),
    }
    let manifest = project.join("Cargo.toml");
    let text = std::fs::read_to_string(&manifest).map_err(|error| format!("{}: {error}", manifest.display()))?;
    write(&manifest, &(text + &tables))?;
    let main = project.join("src/main.rs");
    let text = std::fs::read_to_string(&main).map_err(|error| format!("{}: {error}", main.display()))?;
    let (first, rest) = text.split_once('\n').ok_or("src/main.rs of the new project has one line")?;
    write(&main, &format!("{first}\npub mod own;\n{rest}"))?;
    write(&project.join("src/own.rs"), &format!("{}\n", CLIENTS.join("\n")))?;
    let clippy =
        cargo("clippy").env("CARGO_TARGET_DIR", &lints_target).env("CARGO_TERM_COLOR", "never").folder(&project);
    let (_succeeded, output) = clippy.output()?;
    for (client, line) in CLIENTS.iter().zip(1..) {
        if !is_rejected(&output, line) {
            return Err(format!("the lints of a new project accept `{client}`"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Returns the actions of a workflow with their major versions, such as `actions/checkout@v7`. An action that is named by
    /// commit has its version in a comment.
    fn actions(workflow: &Path) -> BTreeSet<String> {
        let text = std::fs::read_to_string(workflow).unwrap();
        let used = text.lines().filter_map(|line| line.trim().trim_start_matches("- ").strip_prefix("uses: "));
        let major = |used: &str| {
            let (name, reference) = used.split_once('@').unwrap();
            let version = reference.split_once(" # ").map_or(reference, |(_commit, version)| version);
            format!("{name}@{}", version.split('.').next().unwrap())
        };
        used.map(major).collect()
    }

    /// Dependabot proposes new versions for the workflows, but doesn't read the template.
    #[test]
    fn template_uses_actions_of_own_workflows() {
        let folder = std::fs::read_dir(root().join(".github/workflows")).unwrap();
        let own: BTreeSet<String> = folder.flat_map(|entry| actions(&entry.unwrap().path())).collect();
        let names: BTreeSet<&str> = own.iter().map(|action| action.split('@').next().unwrap()).collect();
        assert_eq!(own.len(), names.len(), "the workflows use two major versions of an action: {own:?}");
        let used = actions(&root().join("kctl-cli/templates/ci.yml.tpl"));
        assert!(used.len() > 3, "{used:?}");
        let other: Vec<&String> = used.difference(&own).collect();
        assert!(other.is_empty(), "kctl-cli/templates/ci.yml.tpl uses {other:?}, the workflows {own:?}");
    }

    #[test]
    fn rejected_client_is_found_by_its_line() {
        let output = "error: use of a disallowed type `kctl::kube::Client`\n --> src/own.rs:1:23\n  |\n\
            warning: function `create_client` is never used\n --> src/own.rs:2:8\n";
        assert!(is_rejected(output, 1));
        assert!(!is_rejected(output, 2));
    }
}
