//! Objects on disk: a line of JSON for each write, put together when most lines are of the past.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{self, BufRead, BufReader, BufWriter, Write},
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Key;
use crate::status::GroupResource;

const FILE: &str = "objects.jsonl";
/// The file is rewritten when it has so many lines more than there are objects.
const DEAD_LINES_MAX: usize = 10_000;

#[derive(Serialize, Deserialize)]
struct Line {
    revision: u64,
    group: String,
    resource: String,
    key: Key,
    /// Nothing for a removed object.
    object: Option<Value>,
}

/// The objects of a folder by resource and key.
pub(super) type Kept = BTreeMap<(GroupResource, Key), Value>;

/// A file to which writes are appended. The folder is locked as long as it lives.
pub(super) struct Journal {
    folder: PathBuf,
    file: BufWriter<File>,
    n_lines: usize,
    _lock: File,
}

impl Journal {
    /// Opens a folder, which is made when it is missing. Returns what is in it, with the last revision.
    pub(super) fn open(folder: &Path) -> io::Result<(Self, Kept, u64)> {
        fs::create_dir_all(folder)?;
        let lock = File::create(folder.join("lock"))?;
        lock.try_lock().map_err(|_| io::Error::new(io::ErrorKind::AddrInUse, "another server uses this folder"))?;
        let (kept, revision) = read(&folder.join(FILE))?;
        let file = rewrite(folder, &kept, revision)?;
        Ok((Self { folder: folder.into(), file, n_lines: kept.len(), _lock: lock }, kept, revision))
    }

    /// Appends a write. It is with the operating system when this returns: a killed server loses nothing.
    pub(super) fn append(
        &mut self,
        of: &GroupResource,
        key: &Key,
        revision: u64,
        object: Option<&Value>,
    ) -> io::Result<()> {
        let line = Line {
            revision,
            group: of.group.clone(),
            resource: of.resource.clone(),
            key: key.clone(),
            object: object.cloned(),
        };
        write_line(&mut self.file, &line)?;
        self.n_lines += 1;
        self.file.flush()
    }

    /// Puts the file together when too much of it is of the past.
    pub(super) fn tidy(&mut self, n_objects: usize) -> io::Result<()> {
        if self.n_lines > n_objects + DEAD_LINES_MAX {
            let (kept, revision) = read(&self.folder.join(FILE))?;
            self.file = rewrite(&self.folder, &kept, revision)?;
            self.n_lines = kept.len();
        }
        Ok(())
    }
}

fn write_line(file: &mut impl Write, line: &Line) -> io::Result<()> {
    serde_json::to_writer(&mut *file, line)?;
    file.write_all(b"\n")
}

fn read(file: &Path) -> io::Result<(Kept, u64)> {
    let (mut kept, mut revision) = (Kept::new(), 0);
    let reader = match File::open(file) {
        Ok(opened) => BufReader::new(opened),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((kept, revision)),
        Err(error) => return Err(error),
    };
    let mut lines = reader.split(b'\n').enumerate().peekable();
    while let Some((index, line)) = lines.next() {
        let line = match serde_json::from_slice::<Line>(&line?) {
            Ok(line) => line,
            // The process was killed while it wrote the last line: that write was never answered.
            Err(_) if lines.peek().is_none() => break,
            Err(error) => {
                let why = format!("{}: line {} cannot be read: {error}", file.display(), index + 1);
                return Err(io::Error::new(io::ErrorKind::InvalidData, why));
            }
        };
        revision = revision.max(line.revision);
        let place = (GroupResource { group: line.group, resource: line.resource }, line.key);
        match line.object {
            Some(object) => kept.insert(place, object),
            None => kept.remove(&place),
        };
    }
    Ok((kept, revision))
}

fn rewrite(folder: &Path, kept: &Kept, revision: u64) -> io::Result<BufWriter<File>> {
    let beside = folder.join(format!("{FILE}.new"));
    let mut file = BufWriter::new(File::create(&beside)?);
    for ((of, key), object) in kept {
        let line = Line {
            revision,
            group: of.group.clone(),
            resource: of.resource.clone(),
            key: key.clone(),
            object: Some(object.clone()),
        };
        write_line(&mut file, &line)?;
    }
    file.flush()?;
    file.get_ref().sync_all()?;
    fs::rename(&beside, folder.join(FILE))?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("kctl-journal-{name}-{}", std::process::id()));
        let _absent = fs::remove_dir_all(&folder);
        folder
    }

    #[test]
    fn objects_and_revision_survive_a_kill_in_the_middle_of_a_line() {
        let folder = folder("kill");
        let (of, key) = (GroupResource::new("", "pods"), |name: &str| ("a".to_owned(), name.to_owned()));
        let (mut journal, kept, revision) = Journal::open(&folder).unwrap();
        assert_eq!((kept.len(), revision), (0, 0));
        journal.append(&of, &key("one"), 5, Some(&json!({ "n": 1 }))).unwrap();
        journal.append(&of, &key("two"), 6, Some(&json!({ "n": 2 }))).unwrap();
        journal.append(&of, &key("one"), 7, None).unwrap();
        assert!(Journal::open(&folder).err().unwrap().to_string().contains("another server"));
        drop(journal);
        let mut file = File::options().append(true).open(folder.join(FILE)).unwrap();
        file.write_all(b"{\"revision\":8,\"gro").unwrap();
        let (_journal, kept, revision) = Journal::open(&folder).unwrap();
        assert_eq!((kept[&(of, key("two"))].clone(), kept.len(), revision), (json!({ "n": 2 }), 1, 7));
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn broken_line_is_an_error_that_names_it() {
        let folder = folder("broken");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(FILE), "nonsense\n{}\n").unwrap();
        let error = Journal::open(&folder).err().unwrap().to_string();
        assert!(error.contains("line 1 cannot be read"), "{error}");
        fs::remove_dir_all(&folder).unwrap();
    }
}
