//! The environment of `dev`, in which `kube::Client::try_default()` finds no cluster, even if the
//! terminal sets `KUBECONFIG`.
//!
//! A client that does not come from the context bypasses the role, the write permit and the
//! embedded API server. It reads its cluster from the environment at each call, and a process can't
//! change its own environment safely while it has threads. So `dev` replaces its process by the
//! same program with another environment, before it starts anything.

use std::{ffi::OsString, path::Path, process::Command};

use kctl_runtime::reconcile::{Error, Result};

use super::connection::names_a_file;

/// The variable that clients read first, like kubectl.
const KUBECONFIG: &str = "KUBECONFIG";
/// The variable that tells clients they run in a Pod.
const SERVICE_HOST: &str = "KUBERNETES_SERVICE_HOST";
/// A path that can't exist. A client's error message contains it, so its name is the advice.
#[cfg(not(windows))]
const NO_CLUSTER: &str = "/dev/null/`dev` has no cluster for other clients - send requests through `Context`";
/// The same for a system without `/dev/null`.
#[cfg(windows)]
const NO_CLUSTER: &str = r"NUL\dev has no cluster for other clients - send requests through Context";

/// Makes sure that a client that takes its cluster from the environment finds none.
///
/// Returns at once if that is already the case. Otherwise the program starts again with the same
/// arguments, and the call does not return.
///
/// # Errors
/// The program can't be started again.
pub(super) fn deny_clusters() -> Result<()> {
    if !names_a_cluster(|name| std::env::var_os(name), std::env::home_dir().as_deref()) {
        return Ok(());
    }
    let failed = |error: std::io::Error| {
        Error::from(format!(
            "failed to start again without the cluster of the environment: {error}\nhelp: `KUBECONFIG=/dev/null` before the command \
             does the same"
        ))
    };
    let mut arguments = std::env::args_os();
    let name = arguments.next();
    let mut command = Command::new(std::env::current_exe().map_err(failed)?);
    command.args(arguments).env(KUBECONFIG, NO_CLUSTER).env_remove(SERVICE_HOST);
    reexec(command, name).map_err(failed)
}

/// Replaces this process: it keeps its process id, terminal and signals.
#[cfg(unix)]
fn reexec(mut command: Command, name: Option<OsString>) -> std::io::Result<()> {
    use std::os::unix::process::CommandExt;
    if let Some(name) = name {
        command.arg0(name);
    }
    Err(command.exec())
}

/// Runs the program as a child process, where `exec` does not exist, and waits for it. Ctrl-C
/// reaches both processes.
#[cfg(not(unix))]
fn reexec(mut command: Command, _name: Option<OsString>) -> std::io::Result<()> {
    let status = command.status()?;
    std::process::exit(status.code().unwrap_or(1))
}

/// Returns `true` if a client that takes its cluster from the environment may find one.
fn names_a_cluster(variable: impl Fn(&str) -> Option<OsString>, home: Option<&Path>) -> bool {
    if variable(SERVICE_HOST).is_some() {
        return true;
    }
    match variable(KUBECONFIG).filter(|list| !list.is_empty()) {
        Some(list) => names_a_file(&list) || std::env::split_paths(&list).any(|path| is_pipe(&path)),
        None => home.is_some_and(|home| home.join(".kube/config").exists()),
    }
}

/// Returns `true` for a pipe, as shells write `KUBECONFIG=<(…)`: clients read it like a file.
#[cfg(unix)]
fn is_pipe(path: &Path) -> bool {
    use std::os::unix::fs::FileTypeExt;

    std::fs::metadata(path).is_ok_and(|metadata| metadata.file_type().is_fifo())
}

/// Returns `false`: no path leads to the pipe of another process.
#[cfg(not(unix))]
fn is_pipe(_path: &Path) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn environments_that_name_a_cluster_are_known() {
        let folder = std::env::temp_dir().join(format!("kctl-environment-{}", std::process::id()));
        std::fs::create_dir_all(folder.join(".kube")).unwrap();
        let there = folder.join(".kube/config");
        std::fs::write(&there, "").unwrap();
        let (there, nowhere) = (there.to_str().unwrap(), folder.join("none"));
        let both = format!("{}:{there}", nowhere.display());
        let cases = [
            (&[][..], false, false),
            (&[], true, true),
            (&[(KUBECONFIG, "")], true, true),
            (&[(KUBECONFIG, there)], false, true),
            (&[(KUBECONFIG, NO_CLUSTER)], true, false),
            (&[(KUBECONFIG, "/dev/null")], true, false),
            (&[(KUBECONFIG, NO_CLUSTER), (SERVICE_HOST, "10.0.0.1")], false, true),
            (&[(KUBECONFIG, &both)], false, true),
        ];
        for (variables, has_home, expected) in cases {
            let variable = |name: &str| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| value.into());
            let names = names_a_cluster(variable, has_home.then_some(folder.as_path()));
            assert_eq!(names, expected, "{variables:?}, home: {has_home}");
        }
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn kubeconfig_from_a_pipe_names_a_cluster() {
        use std::os::fd::AsRawFd;
        let (reader, _writer) = std::io::pipe().unwrap();
        let path = OsString::from(format!("/dev/fd/{}", reader.as_raw_fd()));
        assert!(names_a_cluster(|name| (name == KUBECONFIG).then(|| path.clone()), None));
    }
}
