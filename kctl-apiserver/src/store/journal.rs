//! The file of `--data`: one line of JSON per write, compacted when most lines are outdated.
//!
//! Each line ends with a checksum of itself and of all lines before it. If a line in the middle was changed, lost or
//! moved, the start fails and names the line. Complete lines that are lost at the end are not detected, because the
//! file looks as if the server had been killed earlier. Files of earlier versions without checksums are still read.
//!
//! ```text
//! {"revision":7,"group":"","resource":"pods","key":["default","a"],"object":{…},"sum":"0123456789abcdef"}
//! {"revision":8,"group":"","resource":"pods","key":["default","a"],"object":null,"sum":"89abcdef01234567"}
//! ```

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Display,
    fs::{self, File},
    io::{self, BufRead, BufReader, BufWriter, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

use kctl_webhook::private_file;
use ring::digest;
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};

use super::Key;
use crate::status::GroupResource;

/// The name of the journal in its folder.
const FILE: &str = "objects.jsonl";
/// The file with the certificates, which the first start wrote together with the first objects. An empty journal next
/// to it means lost data.
const CERTIFICATES: &str = "identity.pem";
/// The file with which the readiness check tests that the disk accepts writes.
const PROBE: &str = "probe";
/// The size of the probe: one page. A file system without free blocks often still creates an empty file, so the probe
/// has contents.
const PROBE_LEN: usize = 4096;
/// The file is compacted when it has this many outdated lines, and at least as many as there are objects: a compaction
/// reads and writes the whole file under the lock. It has more outdated lines only after a failed compaction, which is
/// tried again after this many further lines.
const DEAD_LINES_MAX: usize = 10_000;

/// The end of each line. The checksum replaces the zeros.
const END_OF_LINE: &[u8] = br#","sum":"0000000000000000"}"#;
/// The offset of the checksum in [`END_OF_LINE`].
const SUM_AT: usize = 8;
/// The length of the checksum in hexadecimal digits: the first 8 bytes of SHA-256.
const SUM_LEN: usize = 16;

/// A line of the journal as it is read.
#[derive(Deserialize)]
struct Line {
    /// The revision of the write; never lower than in the line before.
    revision: u64,
    /// The API group; empty for the core group.
    group: String,
    /// The plural. With the group it names the table.
    resource: String,
    /// Namespace and name.
    key: Key,
    /// `None` for a removed object. Parsed separately, because an object may be as deep as the parser allows, and the
    /// line adds one level.
    object: Option<Box<RawValue>>,
}

/// The objects of a journal by resource and key.
pub(super) type JournalObjects = BTreeMap<(GroupResource, Key), Value>;

/// A file to which writes are appended. The folder is locked as long as this value lives. A write changes memory first,
/// then the file. If the file rejects it, the client gets an error although reads show the change. All further changes
/// are rejected until the file has caught up.
pub(super) struct Journal {
    /// The folder of `--data`, which has the journal, the lock and the probe.
    folder: PathBuf,
    /// The open journal, at its end.
    lines: JournalFile,
    /// Objects whose last change is not in the file, because the disk rejected it. While it is not empty, the server
    /// rejects further changes, and nothing else is appended.
    missed: BTreeSet<(GroupResource, Key)>,
    /// The file is compacted at this many outdated lines. Raised after a failed compaction, so that not every write
    /// tries again. Invariant: at least [`DEAD_LINES_MAX`].
    dead_max: usize,
    /// Locked until the journal is dropped.
    _lock: File,
}

/// The checksum of the last line, which is an input of the next line's checksum. So a line is valid only at its
/// position. For the first line, the input is zero bytes.
#[derive(Clone, Copy, Default)]
struct LineChecksum([u8; SUM_LEN]);

impl LineChecksum {
    /// Computes the checksum of the next line, which is passed without its end, and returns it.
    fn advance(&mut self, line: &[u8]) -> &[u8] {
        let mut hash = digest::Context::new(&digest::SHA256);
        hash.update(&self.0);
        hash.update(line);
        let sum = hash.finish();
        for (digits, byte) in self.0.chunks_exact_mut(2).zip(sum.as_ref()) {
            digits.copy_from_slice(&[
                b"0123456789abcdef"[usize::from(byte >> 4)],
                b"0123456789abcdef"[usize::from(byte & 15)],
            ]);
        }
        &self.0
    }
}

/// Returns a line without its checksum, and the checksum; `None` if the line has no checksum. Only the frame is checked
/// here; the reader compares the checksum with the one that it has computed.
fn split_checksum(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let (line, end) = line.split_at_checked(line.len().checked_sub(END_OF_LINE.len())?)?;
    let (before, sum) = end.split_at(SUM_AT);
    (before == &END_OF_LINE[..SUM_AT]).then_some((line, &sum[..SUM_LEN]))
}

/// An open file that is written line by line.
struct JournalFile {
    /// The journal, opened for writing; its position is at `n_bytes` unless it is torn.
    file: File,
    /// The checksum of the last complete line.
    chain: LineChecksum,
    /// The number of complete lines.
    len: usize,
    /// The length of all complete lines in bytes.
    n_bytes: u64,
    /// `true` if a failed write may have left a part of a line after `n_bytes`.
    is_torn: bool,
}

impl JournalFile {
    /// Appends a [`Line`] with the JSON of an object, completely or not at all. After an error the file is as before:
    /// the part that was written is cut off, at once or at the next append.
    fn append(&mut self, resource: &GroupResource, key: &Key, revision: u64, object: Option<&[u8]>) -> io::Result<()> {
        self.truncate_torn_line()?;
        let (chain, len) = (self.chain, self.len);
        let line = self.format_line(resource, key, revision, object);
        if let Err(error) = self.file.write_all(&line) {
            (self.chain, self.len, self.is_torn) = (chain, len, true);
            // If this fails too, the next append tries it again.
            let _later = self.truncate_torn_line();
            return Err(error);
        }
        debug_assert!(!self.is_torn, "only complete lines are counted");
        self.n_bytes += line.len() as u64;
        debug_assert!(self.n_bytes >= self.len as u64 * END_OF_LINE.len() as u64, "each line that counts is complete");
        Ok(())
    }

    /// Truncates the file to its complete lines.
    fn truncate_torn_line(&mut self) -> io::Result<()> {
        if self.is_torn {
            self.file.set_len(self.n_bytes)?;
            self.file.seek(SeekFrom::Start(self.n_bytes))?;
            self.is_torn = false;
        }
        Ok(())
    }

    /// Formats the next line, and advances the chain. The fields are in the order of `Line`, and the object is copied
    /// as it is stored: packed JSON without line breaks.
    fn format_line(
        &mut self,
        group_resource: &GroupResource,
        key: &Key,
        revision: u64,
        object: Option<&[u8]>,
    ) -> Vec<u8> {
        let (group, resource, key) = (json!(group_resource.group), json!(group_resource.resource), json!(key));
        let head = format!(r#"{{"revision":{revision},"group":{group},"resource":{resource},"key":{key},"object":"#);
        let mut line = head.into_bytes();
        line.extend_from_slice(object.unwrap_or(b"null"));
        let sum = self.chain.advance(&line).to_vec();
        line.extend_from_slice(&END_OF_LINE[..SUM_AT]);
        line.extend_from_slice(&sum);
        line.extend_from_slice(&END_OF_LINE[SUM_AT + SUM_LEN..]);
        debug_assert!(!line.contains(&b'\n'), "a reader takes each line for one write");
        line.push(b'\n');
        self.len += 1;
        line
    }
}

impl Journal {
    /// Opens a folder, which is created if it does not exist. Returns the objects of its journal and the last revision.
    /// The file is rewritten at each start. It then has one line per object, with a checksum each, even if an earlier
    /// version wrote it.
    ///
    /// # Errors
    /// Fails with the path of a file that can't be read or written. Fails if another server has locked the folder, if a
    /// line is damaged, or if the journal is empty but there are certificates of an earlier start.
    pub(super) fn open(folder: &Path) -> io::Result<(Self, JournalObjects, u64)> {
        // `create_dir_all` would fail with "File exists".
        if folder.exists() && !folder.is_dir() {
            return Err(io::Error::new(io::ErrorKind::NotADirectory, "not a folder"));
        }
        fs::create_dir_all(folder)?;
        let lock = folder.join("lock");
        let lock = File::create(&lock).map_err(|error| with_path(&lock, &error))?;
        let in_use = "another server uses this folder; stop it, or name another folder";
        lock.try_lock().map_err(|_| io::Error::new(io::ErrorKind::AddrInUse, in_use))?;
        let file = folder.join(FILE);
        let (exists, has_certificates) = (file.exists(), folder.join(CERTIFICATES).exists());
        let (objects, revision) = read(&file)?;
        // A server that has started once has written its first objects, and never removes all of them.
        if objects.is_empty() && exists && has_certificates {
            return Err(lost_objects_error(&file));
        }
        if !exists && has_certificates {
            tracing::warn!(file = %file.display(), "file is missing: the server starts without the objects of earlier starts");
        }
        let lines = rewrite_kept(folder, &objects, revision)?;
        let (folder, missed, dead_max) = (folder.into(), BTreeSet::new(), DEAD_LINES_MAX);
        Ok((Self { folder, lines, missed, dead_max, _lock: lock }, objects, revision))
    }

    /// Returns the folder.
    #[cfg(feature = "serve")]
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Replaces the file by the objects of a new server, completely or not at all.
    pub(super) fn replace<'a>(
        &mut self,
        objects: impl Iterator<Item = (&'a GroupResource, &'a Key, &'a [u8])>,
        revision: u64,
    ) -> io::Result<()> {
        self.lines = rewrite(&self.folder, objects, revision)?;
        Ok(())
    }

    /// Appends a write. When this returns, the operating system has the data, so a killed process loses nothing. A
    /// write that the disk rejects is remembered in `missed`. The system may still lose it if the machine fails, since
    /// the file is not synced for each write.
    pub(super) fn append(&mut self, resource: &GroupResource, key: &Key, revision: u64, object: Option<&[u8]>) {
        // Only the last state of a missed object is written later, so later changes of any object have to wait
        // behind it.
        if self.missed.is_empty() {
            let Err(error) = self.lines.append(resource, key, revision, object) else { return };
            let file = self.folder.join(FILE);
            tracing::error!(%error, file = %file.display(), "failed to write the journal; writes are rejected until it works again");
        }
        self.missed.insert((resource.clone(), key.clone()));
    }

    /// Tests that the disk accepts writes, with a file of one page that is removed again.
    ///
    /// # Errors
    /// Fails if the disk rejects the probe, or if changes are missing from the file.
    pub(super) fn check(&self) -> io::Result<()> {
        if !self.missed.is_empty() {
            return Err(io::Error::other(format!("{}: changes are not kept yet", self.folder.join(FILE).display())));
        }
        let probe = self.folder.join(PROBE);
        let written = fs::write(&probe, [0; PROBE_LEN]);
        let _absent = fs::remove_file(&probe);
        written.map_err(|error| with_path(&probe, &error))
    }

    /// Returns an object whose last change is not in the file.
    pub(super) fn first_unwritten(&self) -> Option<(GroupResource, Key)> {
        self.missed.first().cloned()
    }

    /// Appends the present state of an object that was missed.
    ///
    /// # Errors
    /// Fails if the disk still rejects writes.
    pub(super) fn write_missed(
        &mut self,
        resource: &GroupResource,
        key: &Key,
        revision: u64,
        object: Option<&[u8]>,
    ) -> io::Result<()> {
        let written = self.lines.append(resource, key, revision, object);
        written.map_err(|error| with_path(&self.folder.join(FILE), &error))?;
        let was_missed = self.missed.remove(&(resource.clone(), key.clone()));
        debug_assert!(was_missed, "an object is written again only if its last change is missing");
        if self.missed.is_empty() {
            tracing::info!("the journal can be written again");
        }
        Ok(())
    }

    /// Compacts the file if too many of its lines are outdated. If compaction fails, the file is unchanged. It is
    /// called after each write and costs nothing until there are enough outdated lines. The objects come from the file
    /// and not from the tables, so that the written form is kept, not the form that reads see.
    pub(super) fn compact_if_needed(&mut self, n_objects: usize) {
        let n_dead = self.lines.len.saturating_sub(n_objects);
        if n_dead <= self.dead_max.max(n_objects) || !self.missed.is_empty() {
            return;
        }
        debug_assert!(self.dead_max >= DEAD_LINES_MAX, "only a failed compaction changes the bound");
        let compacted = read(&self.folder.join(FILE))
            .and_then(|(objects, revision)| rewrite_kept(&self.folder, &objects, revision));
        self.dead_max = match compacted {
            Ok(lines) => {
                self.lines = lines;
                DEAD_LINES_MAX
            }
            Err(error) => {
                tracing::warn!(%error, folder = %self.folder.display(), "failed to compact the journal; trying again later");
                n_dead + DEAD_LINES_MAX
            }
        };
    }
}

#[cfg(test)]
impl Journal {
    /// Makes all further writes fail, as a full disk does.
    pub(super) fn fail_writes(&mut self) {
        self.lines.file = File::open(self.folder.join(FILE)).unwrap();
    }

    /// Makes writes succeed again.
    pub(super) fn accept_writes(&mut self) {
        self.lines.file = File::options().write(true).open(self.folder.join(FILE)).unwrap();
    }
}

/// Reads the objects of a file and the highest revision. An incomplete last line is ignored.
fn read(file: &Path) -> io::Result<(JournalObjects, u64)> {
    let (mut objects, mut revision) = (JournalObjects::new(), 0);
    let mut reader = match File::open(file) {
        Ok(opened) => BufReader::new(opened),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((objects, revision)),
        Err(error) => return Err(with_path(file, &error)),
    };
    let (mut text, mut chain, mut has_sums) = (Vec::new(), LineChecksum::default(), None);
    for number in 1.. {
        text.clear();
        let len = reader.read_until(b'\n', &mut text).map_err(|error| with_path(file, &error))?;
        // The process was killed while it wrote this line: the write was never confirmed to a client.
        if len == 0 || !text.ends_with(b"\n") {
            break;
        }
        let parts = split_checksum(text.trim_ascii_end());
        let line: Line = serde_json::from_slice(&text).map_err(|error| damaged_line_error(file, number, &error))?;
        let is_right = match parts {
            Some((line, sum)) => chain.advance(line) == sum,
            None => true,
        };
        if !is_right || *has_sums.get_or_insert(parts.is_some()) != parts.is_some() {
            let why = "its checksum is wrong: the line was changed, or a line before it was lost or moved";
            return Err(damaged_line_error(file, number, &why));
        }
        revision = revision.max(line.revision);
        let object_ref = (GroupResource { group: line.group, resource: line.resource }, line.key);
        match line.object {
            Some(object) => {
                let object =
                    serde_json::from_str(object.get()).map_err(|error| damaged_line_error(file, number, &error))?;
                objects.insert(object_ref, object)
            }
            None => objects.remove(&object_ref),
        };
    }
    Ok((objects, revision))
}

/// Puts the path of the file in front of an error of the operating system.
fn with_path(file: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", file.display()))
}

/// Returns the error for a journal without objects in a folder with certificates.
fn lost_objects_error(file: &Path) -> io::Error {
    let why = format!(
        "{}: the file has no objects, but {CERTIFICATES} next to it is from an earlier start: the objects are lost; \
         restore a copy of the folder, or remove the file to start without objects",
        file.display()
    );
    io::Error::new(io::ErrorKind::InvalidData, why)
}

/// Returns the error of a damaged line. A complete line is never skipped, because a client received a response that
/// confirms its write.
fn damaged_line_error(file: &Path, line: usize, error: &dyn Display) -> io::Error {
    let why = format!(
        "{}: line {line} cannot be read: {error}; restore a copy of the folder, or cut off the file before this line, \
         which loses this write and all later ones",
        file.display()
    );
    io::Error::new(io::ErrorKind::InvalidData, why)
}

/// Writes a new file with these objects.
fn rewrite_kept(folder: &Path, objects: &JournalObjects, revision: u64) -> io::Result<JournalFile> {
    let texts = objects.iter().map(|((resource, key), object)| Ok((resource, key, serde_json::to_vec(object)?)));
    let texts: Vec<_> = texts.collect::<io::Result<_>>()?;
    rewrite(folder, texts.iter().map(|(resource, key, text)| (*resource, *key, text.as_slice())), revision)
}

/// Writes a new file next to the old one, and renames it over the old one when it is complete.
fn rewrite<'a>(
    folder: &Path,
    objects: impl Iterator<Item = (&'a GroupResource, &'a Key, &'a [u8])>,
    revision: u64,
) -> io::Result<JournalFile> {
    let (file, new_file) = (folder.join(FILE), folder.join(format!("{FILE}.new")));
    let written = write_all(&new_file, objects, revision).map_err(|error| with_path(&new_file, &error));
    let written = written.and_then(|lines| {
        fs::rename(&new_file, &file).map_err(|error| with_path(&file, &error))?;
        Ok(lines)
    });
    written.inspect_err(|_error| {
        // The incomplete file may occupy the space that the disk lacks.
        let _absent = fs::remove_file(&new_file);
    })
}

/// Writes a file with these objects, and syncs it to disk. It is private, because it contains Secrets.
fn write_all<'a>(
    file: &Path,
    objects: impl Iterator<Item = (&'a GroupResource, &'a Key, &'a [u8])>,
    revision: u64,
) -> io::Result<JournalFile> {
    let file = private_file::create(file)?;
    let mut lines = JournalFile { file, chain: LineChecksum::default(), len: 0, n_bytes: 0, is_torn: false };
    let mut buffered = BufWriter::new(lines.file.try_clone()?);
    for (resource, key, object) in objects {
        let line = lines.format_line(resource, key, revision, Some(object));
        lines.n_bytes += line.len() as u64;
        buffered.write_all(&line)?;
    }
    buffered.flush()?;
    lines.file.sync_all()?;
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_folder::TestFolder;

    #[test]
    fn objects_survive_a_kill_within_a_line() {
        let folder = TestFolder::new("journal-kill");
        let (resource, key) = (GroupResource::new("", "pods"), |name: &str| ("a".to_owned(), name.to_owned()));
        let (mut journal, objects, revision) = Journal::open(&folder).unwrap();
        assert_eq!((objects.len(), revision), (0, 0));
        journal.append(&resource, &key("one"), 5, Some(br#"{"n":1}"#));
        journal.append(&resource, &key("two"), 6, Some(br#"{"n":2}"#));
        journal.append(&resource, &key("one"), 7, None);
        assert!(Journal::open(&folder).err().unwrap().to_string().contains("another server"));
        drop(journal);
        let mut file = File::options().append(true).open(folder.join(FILE)).unwrap();
        file.write_all(b"{\"revision\":8,\"gro").unwrap();
        let (_journal, objects, revision) = Journal::open(&folder).unwrap();
        assert_eq!((objects[&(resource, key("two"))].clone(), objects.len(), revision), (json!({ "n": 2 }), 1, 7));
    }

    #[test]
    fn missed_changes_are_written_in_their_last_state() {
        let folder = TestFolder::new("journal-full");
        let (resource, key) = (GroupResource::new("", "pods"), |name: &str| ("a".to_owned(), name.to_owned()));
        let (mut journal, _, _) = Journal::open(&folder).unwrap();
        journal.append(&resource, &key("one"), 1, Some(br#"{"n":1}"#));
        journal.append(&resource, &key("two"), 2, Some(br#"{"n":2}"#));
        assert_eq!(journal.first_unwritten(), None);
        journal.fail_writes();
        journal.append(&resource, &key("one"), 3, None);
        journal.append(&resource, &key("three"), 4, Some(br#"{"n":3}"#));
        journal.compact_if_needed(0);
        let missed = journal.first_unwritten().unwrap();
        assert_eq!(missed.1, key("one"));
        let error = journal.write_missed(&missed.0, &missed.1, 4, None).unwrap_err().to_string();
        assert!(error.contains(FILE), "{error}");
        // The disk has only the beginning of the line that it rejected.
        File::options().append(true).open(folder.join(FILE)).unwrap().write_all(b"{\"revision\":3,\"gro").unwrap();
        journal.accept_writes();
        journal.append(&resource, &key("two"), 5, None);
        for (name, object) in [("one", None), ("three", Some(&br#"{"n":5}"#[..])), ("two", None)] {
            assert_eq!(journal.first_unwritten(), Some((resource.clone(), key(name))), "in an order");
            journal.write_missed(&resource, &key(name), 5, object).unwrap();
        }
        assert_eq!(journal.first_unwritten(), None);
        drop(journal);
        let (_journal, objects, revision) = Journal::open(&folder).unwrap();
        assert_eq!((objects, revision), (JournalObjects::from([((resource, key("three")), json!({ "n": 5 }))]), 5));
    }

    #[test]
    fn file_is_compacted_when_half_is_outdated() {
        let folder = TestFolder::new("journal-compact");
        let (resource, key) = (GroupResource::new("", "pods"), ("a".to_owned(), "one".to_owned()));
        let (mut journal, _, _) = Journal::open(&folder).unwrap();
        for (n_objects, n_lines) in [(1, DEAD_LINES_MAX + 1), (2 * DEAD_LINES_MAX, 4 * DEAD_LINES_MAX)] {
            while journal.lines.len < n_lines {
                journal.append(&resource, &key, 1, Some(b"{}"));
            }
            journal.compact_if_needed(n_objects);
            assert_eq!(journal.lines.len, n_lines);
            journal.append(&resource, &key, 1, Some(b"{}"));
            journal.compact_if_needed(n_objects);
            assert_eq!(journal.lines.len, 1);
        }
    }

    #[test]
    fn broken_line_is_an_error_that_names_it() {
        let folder = TestFolder::new("journal-broken");
        let whole = r#"{"revision":5,"group":"","resource":"pods","key":["a","one"],"object":{"n":1}}"#;
        for (text, line) in
            [("nonsense\n{}\n".to_owned(), 1), (format!("{whole}\n{{}}\n"), 2), (format!("{whole}\nx\n{whole}\n"), 2)]
        {
            fs::write(folder.join(FILE), &text).unwrap();
            let error = Journal::open(&folder).err().unwrap().to_string();
            assert!(error.contains(&format!("line {line} cannot be read")), "{error}");
            assert_eq!(fs::read_to_string(folder.join(FILE)).unwrap(), text);
        }
    }

    /// Returns the lines of a journal after these Pods were written, one at a time.
    fn journal_lines(folder: &Path, names: &[&str]) -> Vec<String> {
        let (mut journal, _, _) = Journal::open(folder).unwrap();
        for (index, name) in names.iter().enumerate() {
            let (resource, key) = (GroupResource::new("", "pods"), ("a".to_owned(), (*name).to_owned()));
            journal.append(&resource, &key, index as u64 + 1, Some(br#"{"data":"bbbb"}"#));
        }
        let text = fs::read_to_string(folder.join(FILE)).unwrap();
        text.split_inclusive('\n').map(str::to_owned).collect()
    }

    #[test]
    fn damaged_lines_are_rejected_by_number() {
        let folder = TestFolder::new("journal-sums");
        let whole = journal_lines(&folder, &["one", "two", "three", "four"]);
        let changed = |change: &dyn Fn(&mut Vec<String>)| {
            let mut lines = whole.clone();
            change(&mut lines);
            lines.concat()
        };
        let without_sum = |line: &str| format!("{}}}\n", &line[..line.find(",\"sum\"").unwrap()]);
        for (what, text, line) in [
            ("a value changed", changed(&|lines| lines[1] = lines[1].replace("bbbb", "cbbb")), 2),
            ("the last value changed", changed(&|lines| lines[3] = lines[3].replace("bbbb", "cbbb")), 4),
            ("a checksum made longer", changed(&|lines| lines[0] = lines[0].replace("sum\":\"", "sum\":\"0")), 2),
            ("the first line lost", changed(&|lines| drop(lines.remove(0))), 1),
            ("a line lost", changed(&|lines| drop(lines.remove(2))), 3),
            ("two lines swapped", changed(&|lines| lines.swap(1, 2)), 2),
            ("a line twice", changed(&|lines| lines.insert(2, lines[1].clone())), 3),
            ("a checksum lost", changed(&|lines| lines[2] = without_sum(&lines[2])), 3),
            ("the first checksum lost", changed(&|lines| lines[0] = without_sum(&lines[0])), 2),
        ] {
            fs::write(folder.join(FILE), &text).unwrap();
            let error = Journal::open(&folder).err().unwrap_or_else(|| panic!("{what}: is served")).to_string();
            assert!(error.contains(&format!("line {line} cannot be read: its checksum")), "{what}: {error}");
            assert_eq!(fs::read_to_string(folder.join(FILE)).unwrap(), text, "{what}: the file is left alone");
        }
    }

    #[test]
    fn truncated_last_line_and_old_files_are_read() {
        let folder = TestFolder::new("journal-cut");
        let whole = journal_lines(&folder, &["one", "two"]);
        let last = whole[1].len();
        let old = r#"{"revision":5,"group":"","resource":"pods","key":["a","one"],"object":{"n":1}}"#;
        let cuts = (0..=last).map(|len| (whole[0].clone() + &whole[1][..len], if len == last { 2 } else { 1 }));
        for (text, n_kept) in cuts.chain([(format!("{old}\n{old}\n"), 1)]) {
            fs::write(folder.join(FILE), &text).unwrap();
            let (_, objects, _) = Journal::open(&folder).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(objects.len(), n_kept, "{text}");
        }
    }

    #[test]
    fn errors_of_the_system_name_the_file() {
        for (name, expected) in [("lock", "lock: "), (FILE, "objects.jsonl: "), ("objects.jsonl.new", "jsonl.new: ")] {
            let folder = TestFolder::new(&format!("journal-path-{name}"));
            fs::create_dir_all(folder.join(name)).unwrap();
            let error = Journal::open(&folder).err().unwrap().to_string();
            assert!(error.contains(expected), "{name}: {error}");
        }
        let folder = TestFolder::new("journal-no-folder");
        fs::write(folder.join("file"), "").unwrap();
        assert_eq!(Journal::open(&folder.join("file")).err().unwrap().to_string(), "not a folder");
    }

    #[cfg(unix)]
    #[test]
    fn journal_is_readable_by_owner_only() {
        use std::os::unix::fs::PermissionsExt;
        let folder = TestFolder::new("journal-mode");
        for name in [FILE, "objects.jsonl.new"] {
            fs::write(folder.join(name), "").unwrap();
            fs::set_permissions(folder.join(name), fs::Permissions::from_mode(0o644)).unwrap();
        }
        let (_journal, _, _) = Journal::open(&folder).unwrap();
        assert_eq!(fs::metadata(folder.join(FILE)).unwrap().permissions().mode() & 0o777, 0o600);
    }
}
