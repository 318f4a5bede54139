//! Finds `request.uid` in a review without keeping the review in memory.

/// Bytes of a string that are kept. A UUID has 36; a longer string is neither a key nor a uid that the scanner looks for.
const TEXT_LEN_MAX: usize = 256;
/// Depth of the members of `request`: the review itself is depth 1.
const REQUEST_DEPTH: u32 = 2;

/// Scans JSON piece by piece for the string at `request.uid`, in any position among the fields.
///
/// Servers that call webhooks drop an answer without the uid of their request, and report the missing uid instead of
/// the reason. See `VerifyAdmissionResponse` in
/// `k8s.io/apiserver/pkg/admission/plugin/webhook/request/admissionreview.go`, and `getConvertedObjectsFromResponse` in
/// `k8s.io/apiextensions-apiserver/pkg/apiserver/conversion/webhook_converter.go`. A review that is too large to be
/// read is therefore still scanned for it. The scanner holds at most [`TEXT_LEN_MAX`] bytes, and a document that is not
/// JSON, or breaks off, yields what was found so far.
#[derive(Default)]
pub(crate) struct UidScanner {
    /// The number of open objects and lists.
    depth: u32,
    /// The position is in the object at `request`.
    in_request: bool,
    in_string: bool,
    /// The next byte belongs to an escape. Only in a string.
    is_escaped: bool,
    /// The last string, with its escapes, at most one byte longer than [`TEXT_LEN_MAX`].
    text: Vec<u8>,
    /// The key whose value comes next; empty elsewhere.
    key: Vec<u8>,
    found: Option<String>,
}

impl UidScanner {
    /// Reads the next bytes of the document.
    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            if self.found.is_some() {
                return;
            }
            if self.in_string { self.read_text(byte) } else { self.read_structure(byte) }
        }
    }

    /// Returns the uid; an empty string if the document has no `request.uid`.
    pub(crate) fn into_uid(self) -> String {
        self.found.unwrap_or_default()
    }

    fn read_text(&mut self, byte: u8) {
        match byte {
            b'"' if !self.is_escaped => {
                self.in_string = false;
                if self.in_request && self.depth == REQUEST_DEPTH && self.key == b"uid" {
                    let text = [b"\"", self.text.as_slice(), b"\""].concat();
                    self.found = serde_json::from_slice(&text).ok();
                }
                return;
            }
            b'\\' => self.is_escaped = !self.is_escaped,
            _ => self.is_escaped = false,
        }
        // One byte over the bound marks a string that was cut: no key has that length.
        if self.text.len() <= TEXT_LEN_MAX {
            self.text.push(byte);
        }
    }

    fn read_structure(&mut self, byte: u8) {
        debug_assert!(!self.is_escaped, "a string does not end within an escape");
        debug_assert!(!self.in_request || self.depth >= REQUEST_DEPTH, "the request ends with its object");
        debug_assert!(self.text.len() <= TEXT_LEN_MAX + 1, "{} bytes of a string are kept", self.text.len());
        match byte {
            b'"' => {
                self.in_string = true;
                self.text.clear();
            }
            b':' => self.key.clone_from(&self.text),
            b',' => self.key.clear(),
            b'{' | b'[' => {
                self.depth = self.depth.saturating_add(1);
                if self.depth == REQUEST_DEPTH {
                    self.in_request = byte == b'{' && self.key == b"request";
                }
                self.key.clear();
            }
            b'}' | b']' => {
                self.in_request &= self.depth > REQUEST_DEPTH;
                self.depth = self.depth.saturating_sub(1);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(json: &str, expected: &str) {
        for len in [1, 3, json.len()] {
            let mut scanner = UidScanner::default();
            json.as_bytes().chunks(len).for_each(|piece| scanner.feed(piece));
            assert_eq!(scanner.into_uid(), expected, "{json} in pieces of {len}");
        }
    }

    #[test]
    fn only_the_uid_of_the_request_is_found() {
        check(r#"{"request":{"uid":"a"}}"#, "a");
        check(r#"{ "kind" : "K", "request" : { "uid" : "a", "object" : "#, "a");
        check(r#"{"request":{"object":{"metadata":{"uid":"b"}},"uid":"a"}}"#, "a");
        check(r#"{"uid":"b","object":{"uid":"c"},"request":{"kind":["uid","d"],"uid":"a"#, "");
        check(r#"{"other":{"request":{"uid":"b"}},"request":{"x":"request","uid":"a"}}"#, "a");
        check(r#"{"request":[{"uid":"b"}]}"#, "");
        check(r#"{"request":{"x":"\",\"uid\":\"b","uid":"a\"\u0062"}}"#, "a\"b");
        check(r#"{"request":{"uid":7}}"#, "");
        check("[[[}}}}", "");
        check(&format!(r#"{{"request":{{"long":"{}","uid":"a"}}}}"#, "x".repeat(1000)), "a");
        check("request: {uid: a}", "");
    }
}
