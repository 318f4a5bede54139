//! Building blocks of a test case: an external system, an app with one controller, and invariants.

use std::{
    any::{Any, TypeId},
    cell::RefCell,
    collections::HashMap,
    marker::PhantomData,
};

use kctl::{prelude::*, testing::Snapshot};

use crate::site::Site;

thread_local! {
    /// Each run has a separate thread, so this state survives crashes of the app and ends with the run.
    static OUTSIDE: RefCell<HashMap<TypeId, Box<dyn Any>>> = RefCell::default();
}

/// An external system that is created again for every run.
pub(crate) struct External<T>(PhantomData<fn() -> T>);

impl<T> Clone for External<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for External<T> {}

impl<T> Default for External<T> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<T: Default + 'static> External<T> {
    /// Runs a function on the external system.
    pub(crate) fn with<R>(self, f: impl FnOnce(&mut T) -> R) -> R {
        OUTSIDE.with_borrow_mut(|systems| {
            let system = systems.entry(TypeId::of::<T>()).or_insert_with(|| Box::new(T::default()));
            f(system.downcast_mut().unwrap())
        })
    }
}

/// The objects that invariants check.
pub(crate) struct State {
    pub(crate) sites: Vec<Site>,
    pub(crate) secrets: Vec<Secret>,
    pub(crate) pods: Vec<Pod>,
}

impl State {
    pub(crate) fn read(snapshot: &Snapshot) -> Self {
        Self { sites: snapshot.all(), secrets: snapshot.all(), pods: snapshot.all() }
    }
}

/// Returns an app with one controller that uses an external system.
pub(crate) fn program<T, C>(make: fn(External<T>) -> C) -> App
where
    T: Default + 'static,
    C: Reconcile,
{
    App::new("planted").controller_with(move |_env| std::future::ready(Ok(make(External::default()))))
}

/// Returns an app with one controller without an external system.
pub(crate) fn simple<C: Reconcile>(make: fn() -> C) -> App {
    App::new("planted").controller_with(move |_env| std::future::ready(Ok(make())))
}

/// Returns an invariant of a snapshot's objects.
pub(crate) fn rule(
    holds: impl Fn(&State) -> Result<(), String> + Send + Sync + 'static,
) -> impl Fn(&Snapshot) -> Result<(), String> + Send + Sync + 'static {
    move |snapshot| holds(&State::read(snapshot))
}
