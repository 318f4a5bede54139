//! Finds and kills the processes that a process has started, directly or through others.

use crate::process::Run;

/// A process and its parent.
struct Process {
    id: u32,
    parent: u32,
}

/// Returns the running processes of this machine. Empty on systems without `/proc`.
fn running() -> Vec<Process> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let process = |id: u32| {
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
        Some(Process { id, parent: parent_in(&stat)? })
    };
    ids.filter_map(process).collect()
}

/// Returns the parent in the text of `/proc/ID/stat`, or `None` if the text has another form.
fn parent_in(stat: &str) -> Option<u32> {
    // The program name, in parentheses, may contain spaces and parentheses. The state follows, then the parent.
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

/// Returns the descendants of a process, without the processes in `except` and their descendants.
fn below(running: &[Process], root: u32, except: &[u32]) -> Vec<u32> {
    let mut found = vec![root];
    let mut n_visited = 0;
    while let Some(&parent) = found.get(n_visited) {
        n_visited += 1;
        for child in running.iter().filter(|process| process.parent == parent && !except.contains(&process.id)) {
            // Ids that were used again while the list was read can make a circle.
            if !found.contains(&child.id) {
                found.push(child.id);
            }
        }
    }
    found.split_off(1)
}

/// Returns the descendants of a process, without the processes in `except` and their descendants. Empty on systems without
/// `/proc`.
pub(crate) fn of(process: u32, except: &[u32]) -> Vec<u32> {
    below(&running(), process, except)
}

/// Kills processes. A process that has already ended is skipped.
pub(crate) fn kill(processes: &[u32]) {
    if !processes.is_empty() {
        // The shell has `kill` on every machine, while the program of this name may be missing.
        let kill = Run::new("sh").args(["-c", "kill -9 \"$@\"", "kill"]);
        let _killed = kill.args(processes.iter().map(u32::to_string)).succeeds();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descendants_exclude_other_processes_and_exceptions() {
        let parents = [(1, 0), (10, 1), (11, 10), (12, 11), (20, 10), (21, 20), (30, 1)];
        let running = parents.map(|(id, parent)| Process { id, parent });
        assert_eq!(below(&running, 10, &[]), [11, 20, 12, 21]);
        assert_eq!(below(&running, 10, &[20]), [11, 12]);
        assert!(below(&running, 30, &[]).is_empty());
    }

    #[test]
    fn circle_of_reused_ids_ends() {
        let running = [(10, 12), (11, 10), (12, 11)].map(|(id, parent)| Process { id, parent });
        assert_eq!(below(&running, 10, &[]), [11, 12]);
    }

    #[test]
    fn parent_follows_a_program_name_with_spaces() {
        assert_eq!(parent_in("42 (a (b) c) S 7 42 42 0 -1"), Some(7));
        assert_eq!(parent_in("42"), None);
    }

    /// The shell waits for a child, so the child is a grandchild of this process.
    #[cfg(target_os = "linux")]
    #[test]
    fn killed_grandchild_ends_its_parent() {
        let folder = crate::process::scratch("descendants").unwrap();
        let mut shell = Run::new("sh").args(["-c", "sleep 600; echo ended"]).start(&folder.join("output")).unwrap();
        let grandchildren = loop {
            let found = of(shell.id(), &[]);
            if !found.is_empty() {
                break found;
            }
            std::thread::yield_now();
        };
        kill(&grandchildren);
        assert!(shell.wait().unwrap().success());
        let output = std::fs::read_to_string(folder.join("output")).unwrap();
        assert!(output.ends_with("ended\n"), "{output}");
    }
}
