//! Attributes within `macro_rules!`: values, kinds and types are fragments.
use kctl::prelude::*;

macro_rules! define_controller {
    ($name:ident, $object:ty, $context:ty, $result:ty, $owned:ty, $wait:literal, $n:expr, $label:literal) => {
        #[controller(owns = $owned(selector = $label), resync = $wait, backoff($wait, max = $wait), retries = $n)]
        pub(crate) async fn $name(_object: $object, _cx: $context) -> $result {
            Ok(Action::await_change())
        }
    };
}

define_controller!(fragments, Arc<ConfigMap>, Context<fragments>, Result<Action>, Secret, "1m", 1 + 2, "web");

macro_rules! define_rules {
    ($name:ident, $kind:ty, $result:ty, $seconds:literal, $selector:literal) => {
        #[admission(validate, timeout = $seconds, namespace_selector = $selector)]
        pub(crate) fn $name(_object: &$kind) -> $result {
            Ok(())
        }
    };
}

define_rules!(rules, ConfigMap, Result<()>, 5, "fleet in (north, south)");

pub(crate) fn app() -> App {
    App::new("fragments").controller::<fragments>().admission::<rules>()
}
