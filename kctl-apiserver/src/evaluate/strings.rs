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
        ("indexOf", [Cel::String(part)]) => search(text, part, 0, Occurrence::First),
        ("indexOf", [Cel::String(part), Cel::Int(from)]) => search(text, part, *from, Occurrence::First),
        ("lastIndexOf", [Cel::String(part)]) => match text.chars().count() {
            n_letters if part.is_empty() => Ok(count(n_letters)),
            0 => Ok(Cel::Int(-1)),
            n_letters => search(text, part, i64::try_from(n_letters - 1).unwrap_or(i64::MAX), Occurrence::Last),
        },
        ("lastIndexOf", [Cel::String(part), Cel::Int(from)]) => search(text, part, *from, Occurrence::Last),
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
/// is found at `from`. Searches in the bytes, which takes linear time; a comparison at each character would take
/// quadratic time under the lock of the server.
fn search(text: &str, part: &str, from: i64, which: Occurrence) -> EvalResult {
    if part.is_empty() {
        return Ok(Cel::Int(from));
    }
    let Ok(from) = usize::try_from(from) else { return Err(format!("index out of range: {from}").into()) };
    let (n_letters, n_part) = (text.chars().count(), part.chars().count());
    let Some(last) = n_letters.checked_sub(n_part).filter(|_| from < n_letters) else {
        return Ok(Cel::Int(-1));
    };
    let offset = |position: usize| text.char_indices().nth(position).map_or(text.len(), |(offset, _)| offset);
    let found = match which {
        Occurrence::First => {
            let start = offset(from);
            text[start..].find(part).map(|found| start + found)
        }
        Occurrence::Last => text[..offset(from.min(last) + n_part)].rfind(part),
    };
    Ok(found.map_or(Cel::Int(-1), |found| count(text[..found].chars().count())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn searches_count_in_characters() {
        for (text, part, from, which, expected) in [
            ("äöäö", "ö", 0, Occurrence::First, 1),
            ("äöäö", "ö", 2, Occurrence::First, 3),
            ("äöäö", "ä", 3, Occurrence::First, -1),
            ("äöäö", "äö", 3, Occurrence::Last, 2),
            ("äöäö", "äö", 1, Occurrence::Last, 0),
            ("äöäö", "öä", 0, Occurrence::Last, -1),
            ("aaa", "aa", 2, Occurrence::Last, 1),
            ("aa", "aaa", 0, Occurrence::First, -1),
            ("aa", "", 7, Occurrence::First, 7),
            ("aa", "a", 2, Occurrence::Last, -1),
        ] {
            assert_eq!(search(text, part, from, which), Ok(Cel::Int(expected)), "{part} in {text} from {from}");
        }
    }

    /// Takes minutes if the part is compared at each position.
    #[test]
    fn long_parts_are_found_in_linear_time() {
        let (text, part) = ("a".repeat(1_000_000), "a".repeat(500_000) + "b");
        assert_eq!(search(&text, &part, 0, Occurrence::First), Ok(Cel::Int(-1)));
        assert_eq!(search(&text, &part, 999_999, Occurrence::Last), Ok(Cel::Int(-1)));
    }
}
