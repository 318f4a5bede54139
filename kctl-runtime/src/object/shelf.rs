//! What objects of one store repeat is kept once: labels, owners and namespaces as they are, the rest as dictionaries.

use std::{collections::HashSet, hash::Hash, sync::Arc};

use foldhash::fast::FixedState;
use lz4_flex::block::{compress_with_dict, decompress_with_dict};
use parking_lot::Mutex;

use super::meta::{Meta, Owner};

/// Dictionaries that are tried for an object that is new; older ones stay as long as objects need them.
pub const DICTIONARIES_MAX: usize = 8;
/// Longest sample: matches reach back 64 KiB, and each object that is packed has its dictionary read first.
const SAMPLE_LEN_MAX: usize = 16 << 10;
/// What is shorter is kept as it is.
const PACKED_LEN_MIN: usize = 64;
/// A dictionary is good for an object that it makes so many times smaller.
const GOOD: usize = 3;
/// So many objects have to be packed well for each dictionary, or so many seen, so that dictionaries never take more than they
/// save: there are kinds of which no two objects are alike.
const PACKED_PER_DICTIONARY: usize = 16;
const SEEN_PER_DICTIONARY: usize = 256;

/// An object that others of its kind are likely to resemble.
pub(super) struct Dictionary(Box<[u8]>);

/// A text that was made smaller.
pub(super) struct Packed {
    bytes: Box<[u8]>,
    len: u32,
    dictionary: Arc<Dictionary>,
}

impl Packed {
    fn by(dictionary: &Arc<Dictionary>, text: &str) -> Option<Self> {
        let bytes = compress_with_dict(text.as_bytes(), &dictionary.0).into_boxed_slice();
        let len = u32::try_from(text.len()).ok().filter(|_| bytes.len() < text.len())?;
        Some(Self { bytes, len, dictionary: dictionary.clone() })
    }

    /// The text again.
    pub(super) fn text(&self) -> String {
        let bytes = decompress_with_dict(&self.bytes, self.len as usize, &self.dictionary.0);
        let text = bytes.ok().and_then(|bytes| String::from_utf8(bytes).ok());
        debug_assert!(text.is_some(), "what was packed can be unpacked");
        text.unwrap_or_default()
    }

    /// What it takes, beside its part in the dictionary.
    pub(super) fn n_bytes(&self) -> usize {
        self.bytes.len()
    }

    fn is_good(&self) -> bool {
        self.bytes.len() * GOOD <= self.len as usize
    }
}

/// What the objects of one store share.
#[derive(Default)]
pub(crate) struct Shelf(Mutex<Parts>);

#[derive(Default)]
struct Parts {
    namespaces: Pool<str>,
    labels: Pool<str>,
    owners: Pool<Vec<Owner>>,
    dictionaries: Dictionaries,
}

impl Shelf {
    /// Takes from the shelf what other objects have as well.
    pub(super) fn share(&self, meta: &mut Meta) {
        let mut parts = self.0.lock();
        if let Some(namespace) = &mut meta.key.namespace {
            parts.namespaces.share(namespace);
        }
        parts.labels.share(meta.labels.text());
        parts.owners.share(&mut meta.owner_references);
    }

    /// Makes a text smaller, where that is worth it. `known` is an older state of it.
    pub(super) fn pack(&self, text: &str, known: Option<&Packed>) -> Option<Packed> {
        if text.len() < PACKED_LEN_MIN {
            return None;
        }
        let known = known.and_then(|known| Packed::by(&known.dictionary, text)).filter(Packed::is_good);
        known.or_else(|| self.0.lock().dictionaries.pack(text))
    }
}

/// The dictionaries for objects that are new, the last that was good first.
#[derive(Default)]
struct Dictionaries {
    present: Vec<Arc<Dictionary>>,
    n_made: usize,
    n_good: usize,
    n_seen: usize,
}

impl Dictionaries {
    fn pack(&mut self, text: &str) -> Option<Packed> {
        self.n_seen += 1;
        let mut best: Option<Packed> = None;
        // Of unlike objects none is packed well, and it is not worth while to try all.
        let n_tried = if self.n_good * 8 + 32 < self.n_seen { 1 } else { DICTIONARIES_MAX };
        for idx in 0..self.present.len().min(n_tried) {
            let Some(packed) = Packed::by(&self.present[idx], text) else { continue };
            if packed.is_good() {
                self.n_good += 1;
                self.present[..=idx].rotate_right(1);
                return Some(packed);
            }
            if best.as_ref().is_none_or(|best| packed.n_bytes() < best.n_bytes()) {
                best = Some(packed);
            }
        }
        let allowed = 2 + self.n_good / PACKED_PER_DICTIONARY + self.n_seen / SEEN_PER_DICTIONARY;
        if self.n_made >= allowed || text.len() > SAMPLE_LEN_MAX {
            return best;
        }
        self.n_made += 1;
        self.present.truncate(DICTIONARIES_MAX - 1);
        self.present.insert(0, Arc::new(Dictionary(text.as_bytes().into())));
        // It is its own sample, so almost nothing of it is left.
        Packed::by(&self.present[0], text)
    }
}

/// Values that were seen, each once.
struct Pool<T: ?Sized> {
    values: HashSet<Arc<T>, FixedState>,
    /// At this number those that nobody else has any more are looked for.
    sweep_at: usize,
}

impl<T: ?Sized> Default for Pool<T> {
    fn default() -> Self {
        Self { values: HashSet::default(), sweep_at: 0 }
    }
}

impl<T: ?Sized + Hash + Eq> Pool<T> {
    /// Puts the value that is there in the place of an equal one.
    fn share(&mut self, value: &mut Arc<T>) {
        if let Some(known) = self.values.get(value) {
            *value = known.clone();
            return;
        }
        if self.values.len() >= self.sweep_at {
            self.values.retain(|value| Arc::strong_count(value) > 1);
            self.values.shrink_to_fit();
            self.sweep_at = 2 * self.values.len() + 8;
        }
        self.values.insert(value.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A text of 64 words that are given by the template, and one that is its own.
    fn text(template: usize, n: usize) -> String {
        let words: Vec<_> =
            (0..64).map(|word| format!("{:x}", (template + 1) * 7919 * (word + 1) * (word + 3))).collect();
        format!("{n} {}", words.join(" "))
    }

    #[test]
    fn texts_come_back_as_they_were() {
        let shelf = Shelf::default();
        let texts: Vec<_> = (0..500).map(|n| text(n % 5, n)).chain(["é".repeat(9000), "x".repeat(100_000)]).collect();
        let packed: Vec<_> = texts.iter().map(|text| shelf.pack(text, None).unwrap()).collect();
        for (text, packed) in texts.iter().zip(&packed) {
            assert_eq!(packed.text(), *text);
        }
        let kept: usize = packed.iter().map(Packed::n_bytes).sum();
        assert!(kept * 4 < texts.iter().map(String::len).sum(), "{kept} bytes");
        assert!(shelf.pack("short", None).is_none());
    }

    #[test]
    fn later_state_is_packed_by_the_dictionary_of_the_earlier_one() {
        let shelf = Shelf::default();
        let first = shelf.pack(&text(1, 1), None).unwrap();
        for other in 2..40 {
            shelf.pack(&text(other, 1), None);
        }
        let again = shelf.pack(&text(1, 2), Some(&first)).unwrap();
        assert!(Arc::ptr_eq(&again.dictionary, &first.dictionary) && again.text() == text(1, 2));
    }

    #[test]
    fn kind_of_which_no_two_objects_are_alike_gets_few_dictionaries() {
        let shelf = Shelf::default();
        let n_texts = 1_000;
        for n in 0..n_texts {
            shelf.pack(&text(n, n), None);
        }
        let parts = shelf.0.lock();
        assert!(parts.dictionaries.n_made <= 3 + n_texts / SEEN_PER_DICTIONARY, "{}", parts.dictionaries.n_made);
        assert!(parts.dictionaries.present.len() <= DICTIONARIES_MAX);
    }

    #[test]
    fn equal_values_are_one_and_go_when_nobody_has_them() {
        let mut pool = Pool::<str>::default();
        let (mut a, mut b): (Arc<str>, Arc<str>) = ("a".into(), "a".into());
        pool.share(&mut a);
        pool.share(&mut b);
        assert!(Arc::ptr_eq(&a, &b));
        for n in 0..10_000 {
            pool.share(&mut n.to_string().into());
        }
        assert!(pool.values.len() < 64 && pool.values.contains("a"), "{}", pool.values.len());
    }
}
