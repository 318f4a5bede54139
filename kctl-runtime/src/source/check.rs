//! Whether an object fits a type that reads it: asked before it is stored, so that readers never meet one that does not.

use crate::object::{DecodeError, Readable, Stored};

/// How an object came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    /// By itself: handlers hear of it at once and read it, so it stays decoded for a while.
    Alone,
    /// In a list: those behind it would push it out before anybody reads it.
    Listed,
}

/// Checks that an object fits a type which will read it.
#[derive(Clone, Copy)]
pub struct Check(fn(&Stored, Arrival) -> Result<(), DecodeError>);

impl Check {
    /// That it can be decoded as `K`.
    pub fn fits<K: Readable>() -> Self {
        Self(|object, arrival| match arrival {
            Arrival::Alone => object.decode::<K>().map(drop),
            Arrival::Listed => object.decode_once::<K>(&K::kind(&())).map(drop),
        })
    }

    pub(super) fn of(self, object: &Stored, arrival: Arrival) -> Result<(), DecodeError> {
        self.0(object, arrival)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use k8s_openapi::api::core::v1::Pod;

    use super::*;
    use crate::object::Kind;

    #[test]
    fn what_came_in_a_list_takes_no_room_of_what_is_read_now() {
        let json = r#"{"metadata":{"name":"a"},"spec":{"containers":[]}}"#;
        let is_kept = |arrival| {
            let object = Stored::accept(&Kind::of::<Pod>(), json).unwrap();
            Check::fits::<Pod>().of(&object, arrival).unwrap();
            object.is_decoded()
        };
        assert!(is_kept(Arrival::Alone) && !is_kept(Arrival::Listed));
        for arrival in [Arrival::Alone, Arrival::Listed] {
            let object = Arc::new(Stored::accept(&Kind::of::<Pod>(), r#"{"metadata":{"name":"a"},"spec":3}"#).unwrap());
            let error = Check::fits::<Pod>().of(&object, arrival).unwrap_err();
            assert_eq!(error.to_string(), "Pod a cannot be decoded", "{arrival:?}");
        }
    }
}
