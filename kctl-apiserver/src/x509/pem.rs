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
pub(crate) fn blocks(text: &str) -> impl Iterator<Item = PemBlock> {
    let mut rest = text;
    std::iter::from_fn(move || {
        loop {
            rest = begin(rest)?;
            let (first, after) = line(rest);
            rest = after;
            let Some(label) = first.strip_suffix(DASHES) else { continue };
            let Some((block, after)) = read_block(label, after) else { continue };
            rest = after;
            return Some(block);
        }
    })
}

/// Returns the text after `-----BEGIN ` at the beginning of a line.
fn begin(text: &str) -> Option<&str> {
    text.strip_prefix(BEGIN).or_else(|| text.split_once(&format!("\n{BEGIN}")).map(|(_, rest)| rest))
}

/// Splits off the first line, without white space at its end.
fn line(text: &str) -> (&str, &str) {
    let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
    (first.trim_end_matches(['\r', ' ', '\t']), rest)
}

/// Reads a block after its first line. Returns it with the rest of the text.
fn read_block<'a>(label: &str, text: &'a str) -> Option<(PemBlock, &'a str)> {
    let mut body = text;
    while let (header, rest) = line(body)
        && header.contains(':')
    {
        body = rest;
    }
    let has_headers = body.len() < text.len();
    let (body, rest) = match body.strip_prefix(END) {
        Some(rest) => ("", rest),
        None => body.split_once(&format!("\n{END}"))?,
    };
    let (last, rest) = line(rest);
    if last.strip_suffix(DASHES) != Some(label) {
        return None;
    }
    let body: String = body.split_ascii_whitespace().collect();
    let der = STANDARD.decode(body).ok()?;
    Some((PemBlock { label: label.to_owned(), has_headers, der }, rest))
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
}
