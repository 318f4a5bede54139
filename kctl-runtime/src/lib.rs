//! The control loop of kctl: the path of a change from the API server to a reconcile function, and of its writes back.
//!
//! Most programs use the `kctl` crate, which builds this loop from the declaration of a controller. Use this crate
//! directly to replace one stage, to test a stage alone, or to understand what a controller does between two
//! reconciles. Each stage is a public module that works without the others.
//!
//! # The path of a change
//!
//! ```text
//! API server ── list, watch ──> source ──> store ──> handler ──> queue ──> worker ──> reconcile
//!      ^                                     ^                                            │
//!      └──────────── writer (apply, patch, delete) ──── own writes ───────────────────────┘
//! ```
//!
//! 1. A [`source`] lists and watches the objects of one kind: a reflector, as in client-go's
//!    `tools/cache/reflector.go`. It sends [deltas](store::Delta): the whole state, one changed object, or a bookmark.
//! 2. A [`store`] applies the deltas to the cache, one at a time and in order. It compares `resourceVersion`s, so that
//!    an old event never undoes a newer write. Readers use a typed view of it, [`Store<K>`](store::Store).
//! 3. The [`handler`]s of a controller turn each [`Change`](store::Change) into keys: the key of the object itself, of
//!    its controller, or of the primaries that a mapper returns. Predicates drop changes that do not matter.
//! 4. The [`queue`] holds each [key](key::ObjectKey) at most once. It delays keys that failed, and never gives one key
//!    to two workers at the same time.
//! 5. A [`worker`] takes a key, reads the newest state from the store, and calls the [reconcile
//!    function](reconcile::Reconcile). [`decide`](worker::decide) chooses from the result when the key is reconciled
//!    again.
//! 6. The reconcile function reads caches and writes objects through its [`Context`](reconcile::Context). The
//!    permission types in [`reconcile`] allow the operations that the controller declares, and no others.
//! 7. The [`writer`] sends the writes. Each response goes into the store at once, so a later read sees it
//!    without waiting for the watch.
//!
//! A controller is *level-triggered*: a key carries no event. A reconcile compares the desired with the observed state.
//! So it does not matter how many changes were merged into one key, or in which order keys are taken.
//!
//! # The modules around the loop
//!
//! | Module | Purpose |
//! |---|---|
//! | [`key`] | names of objects, with and without their kind |
//! | [`object`] | objects as they are cached: metadata, JSON, decoded types, views |
//! | [`spec`] | builds the declaration of a controller as data |
//! | [`manager`] | starts all stages, elects a leader, serves metrics and health |
//! | [`watches`] | watches that are opened while the program runs |
//! | [`manifest`] | CRDs, RBAC roles and Deployments, generated from declarations |
//! | [`connection`] | clients whose connections suit many watches |
//! | [`trace`] | one trace ID for each reconcile, sent with its requests |
//!
//! # The stages by hand
//!
//! This program feeds a store with the list that a source would send, and takes the key that a handler queued for it:
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
//! use std::sync::Arc;
//! use k8s_openapi::api::core::v1::Pod;
//! use kctl_runtime::{
//!     handler,
//!     key::Key,
//!     object::{Kind, Stored},
//!     queue::{QueueConfig, WorkQueue},
//!     reconcile::Action,
//!     store::{Delta, SharedStore, Store},
//!     worker::{Attempts, Decision, Outcome, decide},
//! };
//!
//! // The store, its only writer, and a typed view of it.
//! let shared = Arc::new(SharedStore::default());
//! tokio::spawn(shared.clone().write());
//! let pods = Store::<Pod>::new(shared.clone());
//!
//! // The handler enqueues the key of each changed Pod.
//! let queue = WorkQueue::new(QueueConfig::default());
//! let handled = shared.subscribe(handler::for_object(queue.clone())).await;
//!
//! // A source would send this delta after its first list.
//! let json = r#"{"metadata":{"namespace":"default","name":"web-0","uid":"1","resourceVersion":"7"}}"#;
//! let pod = Stored::accept(&Kind::of::<Pod>(), json)?;
//! shared.push(Delta::Replace(None, vec![Arc::new(pod)], "7".into())).await;
//! handled.wait_until_delivered().await;
//!
//! // A worker takes the key, reads the newest state, decides and returns the key.
//! let item = queue.get().await.ok_or("the queue is shut down")?;
//! let key = Key::<Pod>::from(item.key);
//! let pod = pods.get(&key).ok_or("the pod is gone")?;
//! assert_eq!(pod.metadata.name.as_deref(), Some("web-0"));
//! let outcome = Outcome::Done(Action::await_change());
//! assert_eq!(decide(&outcome, Attempts::default(), None), Decision::Forget);
//! queue.done(key.object());
//! # Ok::<(), Box<dyn std::error::Error>>(()) })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Bounds
//!
//! Nothing between the API server and a reconcile function grows without a named limit. The most important ones:
//!
//! | Bound | At the bound |
//! |---|---|
//! | [`DELTAS_MAX`](store::DELTAS_MAX) deltas wait for a store | the source waits, which holds its watch back |
//! | [`CHANGES_WAITING_MAX`](handler::CHANGES_WAITING_MAX) changes wait for a handler | changes of one object are merged |
//! | one entry per key in a [`WorkQueue`](queue::WorkQueue) | adds of a waiting key are merged |
//! | [`PASSED_OVER_MAX`](queue::PASSED_OVER_MAX) keys in a row overtake the oldest one | the oldest key is next |
//! | [`INFORMERS_MAX`](watches::INFORMERS_MAX) informers in a process | opening another watch fails |
//! | [`TOMBSTONES_MAX`](store::TOMBSTONES_MAX) unconfirmed own deletes | further ones are not remembered |
//! | [`EVENTS_MAX`](writer::EVENTS_MAX) events wait to be sent | the newest ones are dropped |

#![cfg_attr(docsrs, feature(doc_cfg))]

mod clock;
pub mod connection;
mod declaration;
mod freezer;
pub mod handler;
pub mod key;
mod managed_fields;
pub mod manager;
pub mod manifest;
mod markers;
pub mod object;
mod own_writes;
mod panic;
mod polled;
pub mod queue;
pub mod reconcile;
pub mod shard;
pub mod source;
pub mod spec;
pub mod store;
mod sync;
mod text;
pub mod trace;
mod transport;
pub mod watches;
pub mod worker;
pub mod writer;

pub mod __private_0_1;
