//! Cuts strings whose length others decide, such as error messages of webhooks and scripts.

/// Cuts a string to `max` bytes at a character boundary. A cut one ends with `…`, whose three bytes come on top.
pub(crate) fn truncate_text(text: &mut String, max: usize) {
    if text.len() > max {
        let end = (0..=max).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        text.truncate(end);
        text.push('…');
    }
}
