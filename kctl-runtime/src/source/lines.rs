//! Splits the bytes of a watch into lines. Each byte is looked at once and moved at most twice, however it is cut into
//! chunks.
//!
//! A watch is idle most of the time, and a program may have hundreds. After the last complete line the buffer is
//! freed, so an idle watch holds no memory for events.

/// Maximum length of a line in bytes: several times the largest object that etcd stores. A longer one ends the watch.
pub(super) const LINE_LEN_MAX: usize = 16 << 20;

/// The bytes of a stream that were not read yet.
#[derive(Default)]
pub(super) struct Lines {
    buffer: Vec<u8>,
    /// Offset of the first unread line.
    begin: usize,
    /// The bytes from `begin` to this position contain no end of a line.
    searched: usize,
}

impl Lines {
    pub(super) fn push(&mut self, chunk: &[u8]) {
        // Complete lines were read before the next chunk arrives, so only one unfinished line moves. It moves once at
        // most, because `begin` is 0 afterwards.
        self.buffer.drain(..self.begin);
        self.searched -= self.begin;
        self.begin = 0;
        self.buffer.extend_from_slice(chunk);
    }

    /// Returns the next complete line, without its end.
    pub(super) fn next(&mut self) -> Option<&[u8]> {
        let Some(length) = self.buffer[self.searched..].iter().position(|byte| *byte == b'\n') else {
            self.searched = self.buffer.len();
            if self.begin == self.buffer.len() {
                // Frees the buffer: the last line may have been long, and the next event may be minutes away.
                *self = Self::default();
            }
            return None;
        };
        let (begin, end) = (self.begin, self.searched + length);
        (self.begin, self.searched) = (end + 1, end + 1);
        Some(&self.buffer[begin..end])
    }

    /// Returns `true` if the incomplete line is longer than an event can be.
    pub(super) fn is_too_long(&self) -> bool {
        self.buffer.len() - self.begin > LINE_LEN_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds the bytes in chunks of this length.
    fn read(bytes: &[u8], chunk_len: usize) -> Vec<String> {
        let (mut lines, mut seen) = (Lines::default(), Vec::new());
        for chunk in bytes.chunks(chunk_len) {
            lines.push(chunk);
            while let Some(line) = lines.next() {
                seen.push(String::from_utf8(line.to_vec()).unwrap());
            }
        }
        seen
    }

    #[test]
    fn lines_do_not_depend_on_chunk_boundaries() {
        let cases: [(&[u8], &[&str]); 5] = [
            (b"", &[]),
            (b"unfinished", &[]),
            (b"one\n", &["one"]),
            (b"one\n\ntwo\nunfinished", &["one", "", "two"]),
            (b"\n\n", &["", ""]),
        ];
        for (bytes, expected) in cases {
            for chunk_len in 1..=bytes.len().max(1) {
                assert_eq!(read(bytes, chunk_len), expected, "in chunks of {chunk_len}");
            }
        }
    }

    #[test]
    fn bytes_of_a_long_line_are_searched_once() {
        let mut lines = Lines::default();
        for n in 1..=64 {
            lines.push(&[b'x'; 1024]);
            assert_eq!(lines.searched, (n - 1) * 1024, "what was searched is not searched again");
            assert!(lines.next().is_none());
        }
        lines.push(b"\nshort\n");
        assert_eq!(lines.next().map(<[u8]>::len), Some(64 * 1024));
        assert_eq!(lines.next(), Some(&b"short"[..]));
    }

    #[test]
    fn line_beyond_the_bound_is_too_long() {
        let mut lines = Lines::default();
        lines.push(b"a line\n");
        lines.push(&vec![b'x'; LINE_LEN_MAX]);
        assert!(lines.next().is_some() && lines.next().is_none());
        assert!(!lines.is_too_long());
        lines.push(b"x");
        assert!(lines.next().is_none() && lines.is_too_long());
    }
}
