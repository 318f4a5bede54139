//! Lists the functions that run, also those whose requests have ended.

use std::{collections::BTreeMap, sync::Arc};

use parking_lot::Mutex;

/// The description of a function and its object. It is `None` before the function is called, and a conversion changes it with
/// each object.
pub type Description = Arc<Mutex<Option<String>>>;

/// The functions that run. Clones share them.
///
/// The number of entries is bounded by the number of functions that may run at a time.
#[derive(Clone, Debug, Default)]
pub struct RunningFunctions(Arc<Mutex<Entries>>);

#[derive(Debug, Default)]
struct Entries {
    n_started: u64,
    by_start: BTreeMap<u64, Description>,
}

impl RunningFunctions {
    /// Adds a function. It counts as running until the result is dropped.
    pub fn start(&self, description: Description) -> RunningFunction {
        let mut entries = self.0.lock();
        entries.n_started += 1;
        let number = entries.n_started;
        entries.by_start.insert(number, description);
        RunningFunction { functions: self.clone(), number }
    }

    /// Returns the number of functions.
    pub fn count(&self) -> usize {
        self.0.lock().by_start.len()
    }

    /// Returns the descriptions, those that started first at the front.
    pub fn descriptions(&self) -> Vec<String> {
        let running: Vec<_> = self.0.lock().by_start.values().cloned().collect();
        let text = |description: &Description| description.lock().clone().unwrap_or_else(|| "a function".into());
        running.iter().map(text).collect()
    }
}

/// A function that runs. Dropping this ends it.
#[derive(Debug)]
pub struct RunningFunction {
    functions: RunningFunctions,
    number: u64,
}

impl Drop for RunningFunction {
    fn drop(&mut self) {
        self.functions.0.lock().by_start.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dropped_function_is_not_listed() {
        let (functions, description) = (RunningFunctions::default(), Description::default());
        let first = functions.start(description.clone());
        let _second = functions.start(Description::new(Mutex::new(Some("`b`".into()))));
        assert_eq!(functions.descriptions(), ["a function", "`b`"]);
        *description.lock() = Some("`a`".into());
        assert_eq!((functions.descriptions(), functions.count()), (vec!["`a`".to_owned(), "`b`".to_owned()], 2));
        drop(first);
        assert_eq!((functions.descriptions(), functions.count()), (vec!["`b`".to_owned()], 1));
    }
}
