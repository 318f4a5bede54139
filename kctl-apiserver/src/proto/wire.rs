//! The wire format of protocol buffers: decodes bytes into numbered fields.

/// The value of one field as it was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WireValue<'a> {
    /// Wire type 0: integers and booleans.
    Varint(u64),
    /// Wire type 1.
    Fixed64([u8; 8]),
    /// Wire type 2: strings, byte strings and nested messages.
    Bytes(&'a [u8]),
    /// Wire type 5.
    Fixed32([u8; 4]),
}

/// Number and wire type of a field whose value comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tag {
    /// The field number. Invariant: above 0, which the format reserves.
    pub(super) number: u32,
    /// 0, 1, 2 or 5 in valid messages.
    wire_type: u8,
}

/// The error of a message that ends within a field.
const EOF: &str = "the protobuf message is cut off";

/// The bytes that are not decoded yet.
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl<'a> Reader<'a> {
    /// Decodes the next tag; `None` at the end of the message. Field number 0 is invalid.
    pub(super) fn tag(&mut self) -> Result<Option<Tag>, String> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let tag = self.varint()?;
        let wire_type = u8::try_from(tag & 7).unwrap_or_default();
        match u32::try_from(tag >> 3) {
            Ok(number) if number > 0 => Ok(Some(Tag { number, wire_type })),
            _ => Err("invalid protobuf tag".into()),
        }
    }

    /// Decodes the value after a tag. Groups are rejected: no Kubernetes message has them.
    pub(super) fn value(&mut self, tag: Tag) -> Result<WireValue<'a>, String> {
        debug_assert!(tag.number > 0, "`tag` rejects field number 0");
        match tag.wire_type {
            0 => self.varint().map(WireValue::Varint),
            1 => self.array().map(WireValue::Fixed64),
            2 => {
                let len = usize::try_from(self.varint()?).map_err(|_| EOF)?;
                self.take(len).map(WireValue::Bytes)
            }
            5 => self.array().map(WireValue::Fixed32),
            other => Err(format!("invalid protobuf wire type {other}")),
        }
    }

    /// Decodes a varint: seven bits per byte, the lowest first. The high bit marks that more bytes follow. A varint has
    /// at most ten bytes.
    pub(super) fn varint(&mut self) -> Result<u64, String> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let [byte] = self.array()?;
            let bits = u64::from(byte & 0x7f);
            if bits << shift >> shift != bits {
                break;
            }
            value |= bits << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err("protobuf integer is too large".into())
    }

    /// Takes a number of bytes. Never allocates: values borrow from the body.
    fn take(&mut self, len: usize) -> Result<&'a [u8], String> {
        let (taken, rest) = self.0.split_at_checked(len).ok_or(EOF)?;
        self.0 = rest;
        Ok(taken)
    }

    /// Takes a fixed number of bytes.
    fn array<const N: usize>(&mut self) -> Result<[u8; N], String> {
        let (taken, rest) = self.0.split_first_chunk().ok_or(EOF)?;
        self.0 = rest;
        Ok(*taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(bytes: &[u8], expected: Result<(u32, WireValue<'_>), &str>) {
        let mut reader = Reader(bytes);
        let read = reader.tag().and_then(|tag| {
            let tag = tag.unwrap();
            Ok((tag.number, reader.value(tag)?))
        });
        assert_eq!(read, expected.map_err(str::to_owned), "{bytes:x?}");
    }

    #[test]
    fn each_wire_type_is_read() {
        check(&[0x08, 0x96, 0x01], Ok((1, WireValue::Varint(150))));
        check(&[0x12, 2, b'a', b'b', b'c'], Ok((2, WireValue::Bytes(b"ab"))));
        check(&[0x19, 1, 2, 3, 4, 5, 6, 7, 8], Ok((3, WireValue::Fixed64([1, 2, 3, 4, 5, 6, 7, 8]))));
        check(&[0x25, 1, 2, 3, 4], Ok((4, WireValue::Fixed32([1, 2, 3, 4]))));
        assert_eq!(Reader(&[]).tag(), Ok(None));
    }

    #[test]
    fn largest_varint_is_read_and_larger_is_rejected() {
        let max = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
        assert_eq!(Reader(&max).varint(), Ok(u64::MAX));
        let over = [0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x02];
        assert_eq!(Reader(&over).varint(), Err("protobuf integer is too large".into()));
        assert_eq!(Reader(&[0x80; 11]).varint(), Err("protobuf integer is too large".into()));
    }

    #[test]
    fn broken_input_is_rejected() {
        check(&[0x80], Err(EOF));
        check(&[0x08], Err(EOF));
        check(&[0x12, 3, b'a', b'b'], Err(EOF));
        check(&[0x12, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01], Err(EOF));
        check(&[0x19, 1], Err(EOF));
        check(&[0x25, 1], Err(EOF));
        check(&[0x02, 0], Err("invalid protobuf tag"));
        check(&[0x0b], Err("invalid protobuf wire type 3"));
    }
}
