//! A streaming parser of lists: it returns the items one at a time. Memory holds one item and one chunk, and each byte
//! is looked at once.
//!
//! A JSON parser for the whole response would hold all bytes and all items at the same moment: the peak that client-go
//! and kube have at a start. This one knows only the outer shape of a list, `{"metadata": …, "items": […]}` in any
//! order of members. It finds the end of each item by counting brackets outside strings, and leaves the check of the
//! JSON within to the decoder of the item.
//!
//! A list that ends early is an error. Otherwise a response that a proxy cut off would look like a deletion of
//! everything after the cut. A JSON object without `items` is an error too, because it would look like an empty list.

use std::ops::Range;

use memchr::memchr2;
use serde::{Deserialize, de::IgnoredAny};

use super::lines::LINE_LEN_MAX;

/// The reason why a list cannot be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum ListError {
    /// A byte at this offset cannot follow the ones before.
    #[error("the list is not a JSON object at byte {0}")]
    Malformed(usize),
    /// A value exceeds [`LINE_LEN_MAX`]: something that is not a list of objects, or a runaway one.
    #[error("an item of the list is longer than {LINE_LEN_MAX} bytes")]
    TooLong,
    /// The response ended before the closing brace.
    #[error("truncated list response")]
    Unfinished,
    /// The object has no list of items, such as the `{}` or the error page of a proxy with status 200.
    #[error("the response is not a list: it has no `items`")]
    NoItems,
    /// `metadata` is not an object, or its `resourceVersion` or `continue` is not a string.
    #[error("the list's metadata cannot be read: {0}")]
    Metadata(#[from] serde_json::Error),
}

/// The metadata of a list.
///
/// It may come before or after the items, so it is known for certain only at the end.
#[derive(Deserialize, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ListMeta {
    /// The version of the whole list, from which a watch continues.
    pub(super) resource_version: String,
    /// The `continue` token, if the list has more pages. Some servers send an empty string on the last page.
    #[serde(rename = "continue")]
    pub(super) token: Option<String>,
    /// Is there if the API server has applied the `shardSelector` of the request.
    pub(super) shard_info: Option<IgnoredAny>,
}

/// The position of the next byte within the list.
///
/// The states describe only the outer object. Everything deeper is one [`Value`].
#[derive(Clone, Copy, PartialEq)]
enum Position {
    /// Before the opening brace of the list.
    Begin,
    /// Before the name of a member, or before the closing brace.
    Member,
    /// Before the value of a member.
    Value(Name),
    /// Between items.
    Items,
    /// After the closing brace. Bytes that follow are an error.
    End,
}

/// The members of a list that matter; `kind` and `apiVersion` are skipped.
#[derive(Clone, Copy, PartialEq)]
enum Name {
    Metadata,
    Items,
    Other,
}

/// A list that has partly arrived.
pub(super) struct Items {
    buffer: Vec<u8>,
    /// The position of the first unread byte in the buffer.
    begin: usize,
    /// Number of read bytes that are no longer in the buffer.
    n_gone: usize,
    position: Position,
    /// Progress within the value that starts at `begin`.
    value: Value,
    meta: ListMeta,
    /// Is `true` once `items` was a list or `null`.
    is_list: bool,
}

impl Items {
    /// Creates a parser that has seen no bytes.
    pub(super) fn new() -> Self {
        Self {
            buffer: Vec::new(),
            begin: 0,
            n_gone: 0,
            position: Position::Begin,
            value: Value::default(),
            meta: ListMeta::default(),
            is_list: false,
        }
    }

    /// Adds a chunk. Complete items were read before, so only an incomplete one moves in the buffer.
    pub(super) fn push(&mut self, chunk: &[u8]) {
        self.buffer.drain(..self.begin);
        self.n_gone += self.begin;
        self.begin = 0;
        self.buffer.extend_from_slice(chunk);
    }

    /// Returns the next complete item, or `None` if more bytes are needed.
    ///
    /// Call it until it returns `None` before the next [`push`](Self::push). The slice is the JSON of one item, and is
    /// not checked except for its brackets and strings.
    ///
    /// # Errors
    /// The bytes are not a list, or a value is too long. The parser must not be used after that.
    pub(super) fn next(&mut self) -> Result<Option<&[u8]>, ListError> {
        while let Some(byte) = self.next_byte() {
            match (self.position, byte) {
                (Position::Begin, b'{') | (Position::Items, b']') => self.skip_to(Position::Member),
                (Position::Member, b'}') => self.skip_to(Position::End),
                (Position::Value(Name::Items), b'[') => {
                    self.is_list = true;
                    self.skip_to(Position::Items);
                }
                (Position::Member | Position::Items, b',') | (Position::Value(_), b':') => self.skip_to(self.position),
                (Position::Member, b'"') | (Position::Value(_) | Position::Items, _) => {
                    let Some(value) = self.take_value()? else { return Ok(None) };
                    if self.position == Position::Items {
                        return Ok(Some(&self.buffer[value]));
                    }
                    self.read_member(value)?;
                }
                _ => return Err(ListError::Malformed(self.n_gone + self.begin)),
            }
        }
        Ok(None)
    }

    /// Skips one byte.
    fn skip_to(&mut self, position: Position) {
        self.begin += 1;
        self.position = position;
    }

    /// Returns the range of the next value once it is complete.
    ///
    /// # Errors
    /// The value is too long, or missing.
    fn take_value(&mut self) -> Result<Option<Range<usize>>, ListError> {
        let begin = self.begin;
        match self.value.end(&self.buffer[begin..]) {
            None if self.buffer.len() - begin > LINE_LEN_MAX => Err(ListError::TooLong),
            None => Ok(None),
            Some(0) => Err(ListError::Malformed(self.n_gone + begin)),
            Some(length) => {
                self.value = Value::default();
                self.begin += length;
                Ok(Some(begin..self.begin))
            }
        }
    }

    /// Records the name or the value of a member.
    fn read_member(&mut self, text: Range<usize>) -> Result<(), ListError> {
        let text = &self.buffer[text];
        self.position = match self.position {
            Position::Value(name) => {
                match name {
                    Name::Metadata => self.meta = serde_json::from_slice(text)?,
                    // A server in Go may write an empty list as `null`.
                    Name::Items => self.is_list = text == b"null",
                    Name::Other => {}
                }
                Position::Member
            }
            _ => Position::Value(match text {
                b"\"metadata\"" => Name::Metadata,
                b"\"items\"" => Name::Items,
                _ => Name::Other,
            }),
        };
        Ok(())
    }

    /// Returns the first byte that is not white space.
    fn next_byte(&mut self) -> Option<u8> {
        let rest = &self.buffer[self.begin..];
        let n_white = rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        self.begin += n_white;
        rest.get(n_white).copied()
    }

    /// Returns the metadata of the list after the last byte.
    ///
    /// # Errors
    /// [`ListError::Unfinished`] if the list is not complete, [`ListError::NoItems`] if it is another JSON object.
    pub(super) fn end(self) -> Result<ListMeta, ListError> {
        match self.position {
            Position::End if self.is_list => Ok(self.meta),
            Position::End => Err(ListError::NoItems),
            _ => Err(ListError::Unfinished),
        }
    }
}

/// A JSON value that may have arrived only in part, and how far it was scanned.
#[derive(Default)]
struct Value {
    /// Number of bytes that were scanned. The next call starts here, so that no byte is scanned twice.
    seen: usize,
    /// Number of open brackets and braces.
    depth: usize,
    /// `true` inside a string, where brackets do not count.
    in_text: bool,
}

impl Value {
    /// Returns the length of the value at the beginning of `bytes` if it ends in them. `bytes` must be the bytes of the
    /// last call, and possibly more.
    ///
    /// Strings are skipped with `memchr2`, because most bytes of an object are in strings. A number or a literal has no
    /// end mark, so it ends at the byte after it.
    fn end(&mut self, bytes: &[u8]) -> Option<usize> {
        while self.seen < bytes.len() {
            if self.in_text {
                self.seen += memchr2(b'"', b'\\', &bytes[self.seen..]).unwrap_or(bytes.len() - self.seen);
                match bytes.get(self.seen)? {
                    // The byte after the backslash has not arrived.
                    b'\\' if self.seen + 1 == bytes.len() => return None,
                    b'\\' => self.seen += 2,
                    _ => {
                        self.seen += 1;
                        self.in_text = false;
                        if self.depth == 0 {
                            return Some(self.seen);
                        }
                    }
                }
                continue;
            }
            match bytes[self.seen] {
                b'"' => self.in_text = true,
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' | b',' | b':' | b' ' | b'\t' | b'\r' | b'\n' if self.depth == 0 => return Some(self.seen),
                b'}' | b']' => {
                    self.depth -= 1;
                    if self.depth == 0 {
                        return Some(self.seen + 1);
                    }
                }
                _ => {}
            }
            self.seen += 1;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds the bytes in chunks of this length.
    fn read(list: &[u8], chunk_len: usize) -> Result<(Vec<String>, ListMeta), ListError> {
        let (mut items, mut seen) = (Items::new(), Vec::new());
        for chunk in list.chunks(chunk_len) {
            items.push(chunk);
            while let Some(item) = items.next()? {
                seen.push(String::from_utf8(item.to_vec()).unwrap());
            }
        }
        Ok((seen, items.end()?))
    }

    #[test]
    fn items_do_not_depend_on_chunk_boundaries() {
        let cases: [(&str, &[&str], &str); 6] = [
            (r#"{"metadata":{"resourceVersion":"7"},"items":[]}"#, &[], "7"),
            (r#"{"metadata":{"resourceVersion":"7"},"items":null}"#, &[], "7"),
            (
                r#"{"kind":"PodList","metadata":{"resourceVersion":"7"},"items":[{"a":"]}"},{"b":[{}]}]}"#,
                &[r#"{"a":"]}"}"#, r#"{"b":[{}]}"#],
                "7",
            ),
            (
                " { \"items\" : [ { \"a\" : \"\\\"}\\\\\" } , { } ] , \"metadata\" : {\"resourceVersion\": \"8\"} } \n",
                &["{ \"a\" : \"\\\"}\\\\\" }", "{ }"],
                "8",
            ),
            (
                r#"{"x":[1,{"items":[2]}],"items":[1,true,"three"],"y":4,"metadata":{}}"#,
                &["1", "true", "\"three\""],
                "",
            ),
            ("{\"items\":[{\"é\":\"ö\"}],\"metadata\":{}}", &["{\"é\":\"ö\"}"], ""),
        ];
        for (list, expected, version) in cases {
            for chunk_len in 1..=list.len() {
                let (seen, meta) = read(list.as_bytes(), chunk_len).unwrap();
                assert_eq!(seen, expected, "{list} in chunks of {chunk_len}");
                assert_eq!(meta.resource_version, version, "{list}");
            }
        }
    }

    #[test]
    fn malformed_list_is_an_error() {
        let cases = [
            ("", "truncated list response"),
            (r#"{"items":[{"a":1},"#, "truncated list response"),
            (r#"{"items":[{"a":1}]"#, "truncated list response"),
            ("[]", "the list is not a JSON object at byte 0"),
            ("not found", "the list is not a JSON object at byte 0"),
            (r"{items:[]}", "the list is not a JSON object at byte 1"),
            (r#"{"items":[}"#, "the list is not a JSON object at byte 10"),
            (r#"{"items":[]} {"#, "the list is not a JSON object at byte 13"),
            (r#"{"items":}"#, "the list is not a JSON object at byte 9"),
            ("{}", "the response is not a list: it has no `items`"),
            (r#"{"kind":"Status","metadata":{},"status":"Success"}"#, "the response is not a list: it has no `items`"),
            (
                r#"{"metadata":{"resourceVersion":"7"},"items":{"a":1}}"#,
                "the response is not a list: it has no `items`",
            ),
        ];
        for (list, expected) in cases {
            for chunk_len in 1..=list.len().max(1) {
                assert_eq!(read(list.as_bytes(), chunk_len).unwrap_err().to_string(), expected, "{list}");
            }
        }
        let metadata = read(br#"{"metadata":3,"items":[]}"#, 5).unwrap_err();
        assert!(matches!(metadata, ListError::Metadata(_)), "{metadata}");
    }

    #[test]
    fn buffer_holds_one_item_and_one_chunk() {
        let item = format!(r#"{{"a":"{}"}}"#, "b".repeat(1_000));
        let list = format!(r#"{{"metadata":{{}},"items":[{}]}}"#, vec![item.as_str(); 1_000].join(","));
        let (mut items, mut n_items) = (Items::new(), 0);
        for chunk in list.as_bytes().chunks(700) {
            items.push(chunk);
            while items.next().unwrap().is_some() {
                n_items += 1;
            }
            assert!(items.buffer.len() <= item.len() + 1_400, "{} bytes", items.buffer.len());
        }
        assert_eq!(n_items, 1_000);
        let mut items = Items::new();
        items.push(br#"{"items":[""#);
        items.push(&vec![b'x'; LINE_LEN_MAX + 1]);
        assert!(matches!(items.next(), Err(ListError::TooLong)));
    }
}
