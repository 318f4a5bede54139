//! Sharing among the objects of one store: equal metadata once, similar JSON compressed.
//!
//! Pods of one `ReplicaSet` differ in a name, a uid and an IP address. LZ4 with one of them as dictionary
//! makes the others several times smaller; each read decompresses one object. Where objects do not
//! resemble each other, the statistics in [`Dictionaries`] stop the attempts.

use std::{cell::RefCell, collections::HashSet, hash::Hash, sync::Arc};

use foldhash::fast::FixedState;
use lz4_flex::block::{compress_into_with_dict, decompress_with_dict, get_maximum_output_size};
use parking_lot::Mutex;

use super::meta::{Meta, Owner};

/// Maximum number of dictionaries that are tried to compress a new object.
///
/// Older dictionaries live on as long as an object needs them. An earlier state of the same object adds
/// its own dictionary to the tries.
pub const DICTIONARIES_MAX: usize = 8;
/// Longest object that becomes a dictionary, in bytes. LZ4 finds matches within 64 KiB, and the
/// dictionary is read before each object that is compressed or decompressed with it.
const SAMPLE_LEN_MAX: usize = 16 << 10;
/// Shorter JSON, in bytes, is never compressed.
const COMPRESSED_LEN_MIN: usize = 64;
/// A dictionary suits an object that it makes at least this many times smaller.
const COMPRESSION_RATIO_MIN: usize = 3;
/// A new dictionary is allowed for this many well compressed objects …
const COMPRESSED_PER_DICTIONARY: usize = 16;
/// … or for this many tried ones, so that dictionaries never take more memory than they save.
const SEEN_PER_DICTIONARY: usize = 256;
/// Where compression saves less than a quarter, this many objects are skipped for each that is still tried. Later
/// objects may be more alike.
const UNLIKE_PER_TRIED: usize = 16;
/// The savings are measured over this many bytes; after twice as many, older results count half.
const JUDGED_BYTES: usize = 128 << 10;
/// Compression buffer that a thread keeps, in bytes. Results are copied out of it at their exact length.
const BUFFER_MAX: usize = 64 << 10;

thread_local! {
    /// The compression buffer of a thread.
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// The JSON of an object that others of its kind are likely to resemble.
pub(super) struct Dictionary(Box<[u8]>);

/// A compressed string with the dictionary that it needs.
pub(super) struct Compressed {
    bytes: Box<[u8]>,
    len: u32,
    dictionary: Arc<Dictionary>,
}

impl Compressed {
    /// Compresses with this dictionary; `None` if the result is not smaller.
    fn with_dictionary(dictionary: &Arc<Dictionary>, text: &str) -> Option<Self> {
        let len = u32::try_from(text.len()).ok()?;
        let bytes = BUFFER.with_borrow_mut(|buffer| {
            buffer.resize(get_maximum_output_size(text.len()).max(buffer.len()), 0);
            let n_bytes = compress_into_with_dict(text.as_bytes(), buffer, &dictionary.0).ok();
            let bytes = n_bytes.filter(|n| *n < text.len()).map(|n| buffer[..n].into());
            if buffer.len() > BUFFER_MAX {
                *buffer = Vec::new();
            }
            bytes
        })?;
        Some(Self { bytes, len, dictionary: dictionary.clone() })
    }

    /// Decompresses the string.
    pub(super) fn text(&self) -> String {
        let bytes = decompress_with_dict(&self.bytes, self.len as usize, &self.dictionary.0);
        let text = bytes.ok().and_then(|bytes| String::from_utf8(bytes).ok());
        debug_assert!(text.is_some(), "what was compressed can be unpacked");
        text.unwrap_or_default()
    }

    /// Returns the compressed length in bytes, without the dictionary.
    pub(super) fn n_bytes(&self) -> usize {
        self.bytes.len()
    }

    fn is_effective(&self) -> bool {
        self.bytes.len() * COMPRESSION_RATIO_MIN <= self.len as usize
    }
}

/// The shared parts of the objects of one store. `None` until the first object arrives.
#[derive(Default)]
pub(crate) struct Deduplicator(Mutex<Option<Box<Pools>>>);

/// Pools of shared values, and the dictionaries.
#[derive(Default)]
struct Pools {
    namespaces: Pool<str>,
    labels: Pool<str>,
    owners: Pool<Vec<Owner>>,
    dictionaries: Dictionaries,
}

impl Deduplicator {
    /// Replaces namespace, labels and owner references by equal values that other objects hold.
    pub(super) fn share(&self, meta: &mut Meta) {
        let mut parts = self.0.lock();
        let parts = parts.get_or_insert_default();
        if let Some(namespace) = &mut meta.key.namespace {
            parts.namespaces.share(namespace);
        }
        parts.labels.share(meta.labels.text());
        parts.owners.share(&mut meta.owner_references);
    }

    /// Compresses a string if that pays. `previous` is an earlier state, whose dictionary is tried first.
    pub(super) fn compress(&self, text: &str, previous: Option<&Compressed>) -> Option<Compressed> {
        if text.len() < COMPRESSED_LEN_MIN {
            return None;
        }
        let previous = previous
            .and_then(|previous| Compressed::with_dictionary(&previous.dictionary, text))
            .filter(Compressed::is_effective);
        previous.or_else(|| self.0.lock().get_or_insert_default().dictionaries.compress(text))
    }
}

/// Dictionaries for new objects, the one that last suited first, and statistics of their use.
#[derive(Default)]
struct Dictionaries {
    present: Vec<Arc<Dictionary>>,
    n_made: usize,
    n_good: usize,
    /// Strings that were tried.
    n_seen: usize,
    /// Strings that were skipped since the last one that was tried.
    n_left: usize,
    /// Bytes of recently tried strings, before and after compression.
    judged: (usize, usize),
}

impl Dictionaries {
    fn compress(&mut self, text: &str) -> Option<Compressed> {
        if self.compress_poorly() && self.n_left < UNLIKE_PER_TRIED {
            self.n_left += 1;
            return None;
        }
        self.n_left = 0;
        let n_made = self.n_made;
        let compressed = self.try_all(text);
        if n_made == self.n_made {
            self.record_result(text.len(), compressed.as_ref().map_or(text.len(), Compressed::n_bytes));
        }
        compressed
    }

    /// Returns `true` if compression saved less than a quarter of the recent strings.
    fn compress_poorly(&self) -> bool {
        let (before, after) = self.judged;
        before >= JUDGED_BYTES && after * 4 > before * 3
    }

    /// Adds a result to the statistics; older ones fade.
    fn record_result(&mut self, before: usize, after: usize) {
        self.judged = (self.judged.0 + before, self.judged.1 + after);
        if self.judged.0 > 2 * JUDGED_BYTES {
            self.judged = (self.judged.0 / 2, self.judged.1 / 2);
        }
    }

    /// Compresses with one dictionary after the other, and makes the string a dictionary if none of them suits.
    fn try_all(&mut self, text: &str) -> Option<Compressed> {
        self.n_seen += 1;
        let mut best: Option<Compressed> = None;
        // If less than an eighth compresses well, the objects are unlike each other, and only one dictionary is tried.
        let n_tried = if self.n_good * 8 + 32 < self.n_seen { 1 } else { DICTIONARIES_MAX };
        for idx in 0..self.present.len().min(n_tried) {
            let Some(compressed) = Compressed::with_dictionary(&self.present[idx], text) else { continue };
            if compressed.is_effective() {
                self.n_good += 1;
                self.present[..=idx].rotate_right(1);
                return Some(compressed);
            }
            if best.as_ref().is_none_or(|best| compressed.n_bytes() < best.n_bytes()) {
                best = Some(compressed);
            }
        }
        let allowed = 2 + self.n_good / COMPRESSED_PER_DICTIONARY + self.n_seen / SEEN_PER_DICTIONARY;
        if self.n_made >= allowed || text.len() > SAMPLE_LEN_MAX {
            return best;
        }
        self.n_made += 1;
        self.present.truncate(DICTIONARIES_MAX - 1);
        self.present.insert(0, Arc::new(Dictionary(text.as_bytes().into())));
        // The string is its own dictionary here, so it compresses to a few bytes.
        Compressed::with_dictionary(&self.present[0], text)
    }
}

/// A set of values, each held once.
struct Pool<T: ?Sized> {
    values: HashSet<Arc<T>, FixedState>,
    /// At this size, values that no object uses any more are removed. It doubles with the set, so a
    /// sweep costs constant time per insertion.
    sweep_at: usize,
}

impl<T: ?Sized> Default for Pool<T> {
    fn default() -> Self {
        Self { values: HashSet::default(), sweep_at: 0 }
    }
}

impl<T: ?Sized + Hash + Eq> Pool<T> {
    /// Replaces the value by an equal one from the pool, or adds it.
    fn share(&mut self, value: &mut Arc<T>) {
        if let Some(shared) = self.values.get(value) {
            *value = shared.clone();
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

    /// Returns 64 words of a template, and one of the object itself.
    fn text(template: usize, n: usize) -> String {
        let words: Vec<_> =
            (0..64).map(|word| format!("{:x}", (template + 1) * 7919 * (word + 1) * (word + 3))).collect();
        format!("{n} {}", words.join(" "))
    }

    #[test]
    fn compressed_strings_are_restored_unchanged() {
        let deduplicator = Deduplicator::default();
        let texts: Vec<_> = (0..500).map(|n| text(n % 5, n)).chain(["é".repeat(9000), "x".repeat(100_000)]).collect();
        let compressed: Vec<_> = texts.iter().map(|text| deduplicator.compress(text, None).unwrap()).collect();
        for (text, compressed) in texts.iter().zip(&compressed) {
            assert_eq!(compressed.text(), *text);
        }
        let n_compressed: usize = compressed.iter().map(Compressed::n_bytes).sum();
        assert!(n_compressed * 4 < texts.iter().map(String::len).sum(), "{n_compressed} bytes");
        assert!(deduplicator.compress("short", None).is_none());
    }

    #[test]
    fn later_state_uses_the_dictionary_of_its_predecessor() {
        let deduplicator = Deduplicator::default();
        let first = deduplicator.compress(&text(1, 1), None).unwrap();
        for other in 2..40 {
            deduplicator.compress(&text(other, 1), None);
        }
        let later = deduplicator.compress(&text(1, 2), Some(&first)).unwrap();
        assert!(Arc::ptr_eq(&later.dictionary, &first.dictionary) && later.text() == text(1, 2));
    }

    #[test]
    fn unlike_objects_get_few_dictionaries() {
        let deduplicator = Deduplicator::default();
        let n_texts = 1_000;
        for n in 0..n_texts {
            deduplicator.compress(&text(n, n), None);
        }
        let parts = deduplicator.0.lock().take().unwrap();
        assert!(parts.dictionaries.n_made <= 3 + n_texts / SEEN_PER_DICTIONARY, "{}", parts.dictionaries.n_made);
        assert!(parts.dictionaries.present.len() <= DICTIONARIES_MAX);
    }

    /// Returns a string of pseudo-random letters, which does not compress well.
    fn unlike(n: u64) -> String {
        let mut x = n.wrapping_mul(2_654_435_761) + 12345;
        let mut letter = || {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            char::from(b'a' + u8::try_from((x >> 33) % 26).unwrap())
        };
        (0..1_000).map(|_| letter()).collect()
    }

    #[test]
    fn incompressible_strings_are_rarely_tried() {
        let deduplicator = Deduplicator::default();
        let n_tried = || deduplicator.0.lock().as_ref().map_or(0, |parts| parts.dictionaries.n_seen);
        for n in 0..2_000 {
            deduplicator.compress(&unlike(n), None);
        }
        let before = n_tried();
        assert!(before < JUDGED_BYTES / 1_000 + 2_000 / UNLIKE_PER_TRIED + 16, "{before} of 2000");
        let compressed = (0..4_000).filter(|n| deduplicator.compress(&text(1, *n), None).is_some()).count();
        assert!(compressed > 1_000, "{compressed} of 4000 that are alike");
        let last = deduplicator.compress(&text(1, 4_001), None).unwrap();
        assert!(last.is_effective(), "{} bytes", last.n_bytes());
    }

    #[test]
    fn compressed_strings_have_exact_size_and_buffer_shrinks() {
        let deduplicator = Deduplicator::default();
        // The first string becomes a dictionary. The second is too long to become one.
        for text in ["x".repeat(1_000), "y".repeat(10 << 20), "z".repeat(1_000)] {
            assert_eq!(deduplicator.compress(&text, None).unwrap().text(), text);
            assert!(BUFFER.with_borrow(Vec::capacity) <= 2 * BUFFER_MAX);
        }
    }

    #[test]
    fn equal_values_are_shared_until_unused() {
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
