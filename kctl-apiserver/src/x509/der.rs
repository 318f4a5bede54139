//! Reads DER, the encoding of certificates: nested values, each with a tag and a length.

/// Tags of the values in certificates.
pub(super) mod tag {
    pub(crate) const BOOLEAN: u8 = 0x01;
    pub(crate) const INTEGER: u8 = 0x02;
    pub(crate) const BIT_STRING: u8 = 0x03;
    pub(crate) const OCTET_STRING: u8 = 0x04;
    pub(crate) const OBJECT_IDENTIFIER: u8 = 0x06;
    pub(crate) const UTC_TIME: u8 = 0x17;
    pub(crate) const GENERALIZED_TIME: u8 = 0x18;
    pub(crate) const SEQUENCE: u8 = 0x30;
    pub(crate) const SET: u8 = 0x31;

    /// Returns the tag of a field with a number that has fields itself, such as `[3]`.
    pub(crate) const fn explicit(number: u8) -> u8 {
        0xa0 | number
    }
}

/// Bit of a length whose value is in the bytes after it; the other bits are their number.
const LONG: u8 = 0x80;

/// The rest of a sequence of values.
#[derive(Clone, Copy)]
pub(super) struct Reader<'a>(&'a [u8]);

/// A value.
#[derive(Clone, Copy)]
pub(super) struct Element<'a> {
    pub(super) tag: u8,
    pub(super) content: &'a [u8],
    /// The value with its tag and length, over which a signature is computed.
    pub(super) whole: &'a [u8],
}

impl<'a> Element<'a> {
    /// Returns the values within a sequence.
    pub(super) fn reader(self) -> Reader<'a> {
        Reader(self.content)
    }
}

impl<'a> Reader<'a> {
    /// Reads the only value of the bytes.
    pub(super) fn only(bytes: &'a [u8], tag: u8) -> Option<Element<'a>> {
        let mut reader = Self(bytes);
        let element = reader.expect(tag)?;
        reader.is_at_end().then_some(element)
    }

    /// Returns `true` if there is no other value.
    pub(super) fn is_at_end(&self) -> bool {
        self.0.is_empty()
    }

    /// Reads the next value. Its length has at most four bytes, and no more than it needs.
    pub(super) fn next(&mut self) -> Option<Element<'a>> {
        let (&[tag, first], rest) = self.0.split_first_chunk()?;
        let (len, content) = if first & LONG == 0 {
            (usize::from(first), rest)
        } else {
            let (len, rest) = rest.split_at_checked(usize::from(first & !LONG))?;
            let value = len.iter().fold(0_usize, |value, byte| value << 8 | usize::from(*byte));
            let is_short = len.len() <= size_of::<u32>() && value >= usize::from(LONG) && len.first() != Some(&0);
            (is_short.then_some(value)?, rest)
        };
        let (content, rest) = content.split_at_checked(len)?;
        let whole = &self.0[..self.0.len() - rest.len()];
        self.0 = rest;
        Some(Element { tag, content, whole })
    }

    /// Reads the next value, which has to have this tag.
    pub(super) fn expect(&mut self, tag: u8) -> Option<Element<'a>> {
        self.next().filter(|element| element.tag == tag)
    }

    /// Reads the next value if it has this tag.
    pub(super) fn optional(&mut self, tag: u8) -> Option<Element<'a>> {
        if self.0.first() == Some(&tag) { self.next() } else { None }
    }

    /// Reads a string of whole bytes.
    pub(super) fn bits(&mut self) -> Option<&'a [u8]> {
        self.expect(tag::BIT_STRING)?.content.strip_prefix(&[0])
    }
}

impl<'a> Iterator for Reader<'a> {
    type Item = Element<'a>;

    fn next(&mut self) -> Option<Element<'a>> {
        Reader::next(self)
    }
}
