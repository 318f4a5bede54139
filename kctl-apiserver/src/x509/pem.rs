//! Reads and writes blocks of PEM.
//!
//! Reading finds them as Go does (`Decode` of `encoding/pem`). The crate `pem` differs: it accepts a block that begins
//! within a line, and looks for headers up to the first empty line. It fails for the whole text where Go skips a
//! damaged block.

use base64::{Engine, engine::general_purpose::STANDARD};

const BEGIN: &str = "-----BEGIN ";
const END: &str = "-----END ";
const DASHES: &str = "-----";

/// A decoded block of a PEM file.
pub(crate) struct PemBlock {
    /// The label, such as `CERTIFICATE`.
    pub(crate) label: String,
    /// `true` if lines such as `Proc-Type: 4,ENCRYPTED` precede the body.
    pub(crate) has_headers: bool,
    /// The decoded body.
    pub(crate) der: Vec<u8>,
}

/// Returns the blocks. Text between them is skipped, and so are blocks without an end and blocks whose body is not
/// base64.
///
/// Each end belongs to the last beginning before it. Searching the end of each beginning would take quadratic time.
pub(crate) fn blocks(text: &str) -> impl Iterator<Item = PemBlock> {
    let mut rest = text;
    std::iter::from_fn(move || {
        loop {
            let (before, end) = rest.split_once(&format!("\n{END}"))?;
            let (last, after) = line(end);
            rest = after;
            let block = last_begin(before).zip(last.strip_suffix(DASHES));
            if let Some(block) = block.and_then(|(block, label)| read_block(block, label)) {
                return Some(block);
            }
        }
    })
}

/// Returns the text after the last `-----BEGIN ` at the beginning of a line.
fn last_begin(text: &str) -> Option<&str> {
    text.rsplit_once(&format!("\n{BEGIN}")).map(|(_, block)| block).or_else(|| text.strip_prefix(BEGIN))
}

/// Splits off the first line, without white space at its end.
fn line(text: &str) -> (&str, &str) {
    let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
    (first.trim_end_matches(['\r', ' ', '\t']), rest)
}

/// Reads a block between `-----BEGIN ` and the line of its end, which has the label `label`.
fn read_block(block: &str, label: &str) -> Option<PemBlock> {
    let (first, content) = line(block);
    if first.strip_suffix(DASHES) != Some(label) {
        return None;
    }
    let mut body = content;
    while let (header, rest) = line(body)
        && header.contains(':')
    {
        body = rest;
    }
    let has_headers = body.len() < content.len();
    let body: String = body.split_ascii_whitespace().collect();
    let der = STANDARD.decode(body).ok()?;
    Some(PemBlock { label: label.to_owned(), has_headers, der })
}

/// Returns a block of PEM with 64 characters per line, as RFC 7468 demands.
pub(crate) fn block(label: &str, der: &[u8]) -> String {
    let text = STANDARD.encode(der);
    let mut pem = format!("{BEGIN}{label}{DASHES}\n");
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let (line, after) = rest.split_at(rest.len().min(64));
        pem.extend([line, "\n"]);
        rest = after;
    }
    pem + &format!("{END}{label}{DASHES}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[(&str, bool, &[u8])]) {
        let found: Vec<_> = blocks(text).map(|block| (block.label, block.has_headers, block.der)).collect();
        let expected: Vec<_> =
            expected.iter().map(|(label, headers, der)| ((*label).to_owned(), *headers, der.to_vec())).collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn blocks_are_found_between_other_text() {
        let whole = "-----BEGIN A B-----\nAA\r\nAA \n-----END A B-----\n";
        check(whole, &[("A B", false, &[0, 0, 0])]);
        check(&format!("x\n{whole}y\n{whole}"), &[("A B", false, &[0, 0, 0]), ("A B", false, &[0, 0, 0])]);
        check("-----BEGIN A-----\n-----END A-----", &[("A", false, &[])]);
        check("-----BEGIN A-----\nB: c\n\nAAAA\n-----END A-----", &[("A", true, &[0, 0, 0])]);
    }

    #[test]
    fn damaged_blocks_are_skipped() {
        let whole = "-----BEGIN B-----\nAAAA\n-----END B-----\n";
        for damaged in [
            "-----BEGIN A-----\nAAAA\n",
            "-----BEGIN A-----\nA*A\n-----END A-----\n",
            "-----BEGIN A\nAAAA\n-----END A-----\n",
            "x-----BEGIN A-----\nAAAA\n-----END A-----\n",
        ] {
            check(&format!("{damaged}{whole}"), &[("B", false, &[0, 0, 0])]);
        }
        check("-----BEGIN A-----\nAAAA\n-----END C-----\n", &[]);
    }

    #[test]
    fn last_of_many_beginnings_is_read() {
        let text = format!("{}AAAA\n-----END A-----\n", "-----BEGIN A-----\n".repeat(200_000));
        check(&text, &[("A", false, &[0, 0, 0])]);
    }
}
