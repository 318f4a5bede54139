//! String functions that count in characters instead of bytes. Upstream: `cel-go`, `ext/strings.go`.
//!
//! `kube-cel` counts bytes for these functions. All others, such as `startsWith`, `lowerAscii` and
//! `trim`, are left to it.

use std::sync::Arc;

use kube_cel::cel::Value as Cel;

use super::EvalResult;

/// Returns the result of a string function; `None` for other functions. Indexes are in characters (Unicode scalar
/// values).
///
/// `charAt` at the end of the string is the empty string. An index beyond the end is an error.
pub(super) fn call(name: &str, text: &str, arguments: &[Cel]) -> Option<EvalResult> {
    let letters = || text.chars().collect::<Vec<char>>();
    Some(match (name, arguments) {
        ("charAt", [Cel::Int(position)]) => {
            let letters = letters();
            index(*position, letters.len())
                .map(|position| cel_string(&letters[position..letters.len().min(position + 1)]))
        }
        ("substring", [Cel::Int(from)]) => {
            let letters = letters();
            index(*from, letters.len()).map(|from| cel_string(&letters[from..]))
        }
        ("substring", [Cel::Int(from), Cel::Int(to)]) if from > to => {
            Err(format!("substring({from}, {to}): empty range").into())
        }
        ("substring", [Cel::Int(from), Cel::Int(to)]) => {
            let letters = letters();
            let bounds = index(*from, letters.len()).and_then(|from| Ok((from, index(*to, letters.len())?)));
            bounds.map(|(from, to)| cel_string(&letters[from..to]))
        }
        ("indexOf", [Cel::String(part)]) => search(&letters(), part, 0, Occurrence::First),
        ("indexOf", [Cel::String(part), Cel::Int(from)]) => search(&letters(), part, *from, Occurrence::First),
        ("lastIndexOf", [Cel::String(part)]) => match letters() {
            letters if part.is_empty() => Ok(count(letters.len())),
            letters if letters.is_empty() => Ok(Cel::Int(-1)),
            letters => search(&letters, part, i64::try_from(letters.len() - 1).unwrap_or(i64::MAX), Occurrence::Last),
        },
        ("lastIndexOf", [Cel::String(part), Cel::Int(from)]) => search(&letters(), part, *from, Occurrence::Last),
        ("replace", [Cel::String(old), Cel::String(new), Cel::Int(n)]) if *n < 0 => {
            Ok(Cel::String(Arc::new(text.replace(old.as_str(), new))))
        }
        ("split", [Cel::String(by)]) => Ok(split(text, by, -1)),
        ("split", [Cel::String(by), Cel::Int(n)]) => Ok(split(text, by, *n)),
        _ => return None,
    })
}

/// Splits a string into at most `n_max` parts, or without a limit if it is negative. An empty separator splits into
/// characters.
fn split(text: &str, by: &str, n_max: i64) -> Cel {
    let n_max = usize::try_from(n_max).unwrap_or(usize::MAX);
    let parts: Vec<&str> = if n_max == 0 {
        Vec::new()
    } else if by.is_empty() {
        let mut ends: Vec<usize> = text.char_indices().map(|(start, _)| start).take(n_max).collect();
        ends.push(text.len());
        ends.windows(2).map(|ends| &text[ends[0]..ends[1]]).collect()
    } else {
        text.splitn(n_max, by).collect()
    };
    Cel::List(Arc::new(parts.into_iter().map(|part| Cel::String(Arc::new(part.to_owned()))).collect()))
}

/// Returns a CEL string of these characters.
fn cel_string(letters: &[char]) -> Cel {
    Cel::String(Arc::new(letters.iter().collect()))
}

/// Returns a number of characters as a CEL integer.
fn count(n: usize) -> Cel {
    Cel::Int(i64::try_from(n).unwrap_or(i64::MAX))
}

/// Returns an index from 0 to `n_letters`, both included: the end is a position for empty substrings.
fn index(index: i64, n_letters: usize) -> EvalResult<usize> {
    let in_range = usize::try_from(index).ok().filter(|index| *index <= n_letters);
    in_range.ok_or_else(|| format!("index out of range: {index}").into())
}

/// The occurrence that a search returns.
#[derive(Clone, Copy)]
enum Occurrence {
    /// The first one at or after the start of the search.
    First,
    /// The last one at or before it.
    Last,
}

/// Returns the index of an occurrence of `part`, seen from `from`; -1 if there is no such occurrence. An empty `part`
/// is found at `from`.
fn search(letters: &[char], part: &str, from: i64, which: Occurrence) -> EvalResult {
    let part: Vec<char> = part.chars().collect();
    if part.is_empty() {
        return Ok(Cel::Int(from));
    }
    let Ok(from) = usize::try_from(from) else { return Err(format!("index out of range: {from}").into()) };
    let Some(last) = letters.len().checked_sub(part.len()).filter(|_| from < letters.len()) else {
        return Ok(Cel::Int(-1));
    };
    let matches_at = |position: &usize| letters[*position..].starts_with(&part);
    let position = match which {
        Occurrence::First => (from..=last).find(matches_at),
        Occurrence::Last => (0..=from.min(last)).rev().find(matches_at),
    };
    Ok(position.map_or(Cel::Int(-1), count))
}
