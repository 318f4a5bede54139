//! Reads the reconciles of all replicas from the files that they append to.
//!
//! A line is `S TIME KEY CHANGE` for the start of a reconcile. Its end has `E` instead of `S` if it succeeded, and `F`
//! if it failed or was cancelled. Times are nanoseconds since 1970. All processes run on one machine, so they share one
//! clock.

use std::{
    collections::{BTreeMap, HashMap},
    fs::File,
    io::{Read, Seek, SeekFrom},
    path::PathBuf,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use crate::Failure;

/// A reconcile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Run {
    /// `spec.change` of the object.
    pub(crate) change: i64,
    /// Nanoseconds since 1970.
    pub(crate) start: u64,
    /// `None` while it runs.
    pub(crate) end: Option<u64>,
    /// `false` if it failed or was cancelled.
    pub(crate) is_done: bool,
    /// The replica, as an index into [`Journals::users`].
    pub(crate) replica: usize,
}

/// The journals of all replicas.
#[derive(Default)]
pub(crate) struct Journals {
    /// The journal files, in the order of `users`.
    files: Vec<Journal>,
    /// All replicas since the start of the run, including ended ones.
    pub(crate) users: Vec<String>,
    /// The reconciles of each key, in the order in which they were read.
    pub(crate) runs: HashMap<String, Vec<Run>>,
}

/// The journal file of a replica.
struct Journal {
    path: PathBuf,
    /// Number of bytes read so far. It is always at the end of a line.
    offset: u64,
}

/// Returns the system time in nanoseconds since 1970, which all processes of this machine share.
pub(crate) fn now() -> u64 {
    let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Returns the time between two moments, or zero if `to` is before `from`.
pub(crate) fn between(from: u64, to: u64) -> Duration {
    Duration::from_nanos(to.saturating_sub(from))
}

impl Journals {
    /// Adds a replica with its journal file.
    pub(crate) fn follow(&mut self, user: &str, path: PathBuf) {
        self.users.push(user.into());
        self.files.push(Journal { path, offset: 0 });
    }

    /// Reads what was appended since the last call.
    ///
    /// # Errors
    /// A file can't be read, or a line is malformed.
    pub(crate) fn refresh(&mut self) -> Result<(), Failure> {
        for (replica, journal) in self.files.iter_mut().enumerate() {
            // A replica creates its journal at its first reconcile.
            let Ok(mut file) = File::open(&journal.path) else { continue };
            file.seek(SeekFrom::Start(journal.offset))?;
            let mut text = String::new();
            file.read_to_string(&mut text)?;
            let complete = text.rfind('\n').map_or(0, |end| end + 1);
            journal.offset += complete as u64;
            for line in text[..complete].lines() {
                take(&mut self.runs, replica, line)?;
            }
        }
        Ok(())
    }

    /// Records that a replica has been killed, which ends its running reconciles.
    pub(crate) fn record_kill(&mut self, user: &str, at: u64) -> Result<(), Failure> {
        self.refresh()?;
        let Some(replica) = self.users.iter().position(|known| known == user) else { return Ok(()) };
        let running = self.runs.values_mut().flatten().filter(|run| run.replica == replica && run.end.is_none());
        for run in running {
            run.end = Some(at);
        }
        Ok(())
    }

    /// Returns the number of keys with a successful reconcile that started at or after this time.
    pub(crate) fn n_done_since(&self, time: u64) -> usize {
        let is_done = |runs: &&Vec<Run>| runs.iter().rev().any(|run| run.is_done && run.start >= time);
        self.runs.values().filter(is_done).count()
    }

    /// Returns a message for each pair of overlapping reconciles of one key.
    ///
    /// A reconcile that ends in the same nanosecond in which the next one starts does not overlap with it.
    pub(crate) fn overlaps(&self) -> Vec<String> {
        let mut found = Vec::new();
        for (key, runs) in self.runs.iter().collect::<BTreeMap<_, _>>() {
            let mut runs = runs.clone();
            runs.sort_by_key(|run| run.start);
            for pair in runs.windows(2) {
                if pair[0].end.is_none_or(|end| end > pair[1].start) {
                    let (first, second) = (&self.users[pair[0].replica], &self.users[pair[1].replica]);
                    found.push(format!("{key} ran in {first} and {second} at once: {pair:?}"));
                }
            }
        }
        found
    }
}

/// Parses a line, and adds it to the reconciles of its key.
fn take(runs: &mut HashMap<String, Vec<Run>>, replica: usize, line: &str) -> Result<(), Failure> {
    let mut words = line.split(' ');
    let (Some(event), Some(time), Some(key), Some(change)) = (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(format!("not a line of a journal: {line}").into());
    };
    let (time, change) = (time.parse()?, change.parse()?);
    let key_runs = runs.entry(key.into()).or_default();
    if event == "S" {
        key_runs.push(Run { change, start: time, end: None, is_done: false, replica });
        return Ok(());
    }
    let running = key_runs.iter_mut().rev().find(|run| run.replica == replica && run.end.is_none());
    let run = running.ok_or(format!("{key} ended without a start"))?;
    (run.end, run.is_done) = (Some(time), event == "E");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn journals(lines: &[(usize, &str)]) -> Journals {
        let mut journals = Journals { users: vec!["a".into(), "b".into()], ..Journals::default() };
        for (replica, line) in lines {
            take(&mut journals.runs, *replica, line).unwrap();
        }
        journals
    }

    #[test]
    fn reconciles_of_one_key_at_once_are_found() {
        let after = journals(&[(0, "S 1 web 0"), (0, "E 3 web 0"), (1, "S 3 web 0"), (1, "E 5 web 0")]);
        assert_eq!(after.overlaps(), [""; 0]);
        let at_once = journals(&[(0, "S 1 web 0"), (1, "S 3 web 0"), (0, "E 4 web 0"), (1, "E 5 web 0")]);
        assert_eq!(at_once.overlaps().len(), 1);
        let other_key = journals(&[(0, "S 1 web 0"), (1, "S 2 api 0"), (0, "E 4 web 0")]);
        assert_eq!(other_key.overlaps(), [""; 0]);
    }

    #[test]
    fn reconcile_of_a_killed_replica_ends_with_it() {
        let mut journals = journals(&[(0, "S 1 web 0")]);
        journals.record_kill("a", 7).unwrap();
        take(&mut journals.runs, 1, "S 8 web 0").unwrap();
        take(&mut journals.runs, 1, "E 9 web 0").unwrap();
        assert_eq!((journals.overlaps(), journals.n_done_since(8)), (vec![], 1));
    }
}
