//! One object in several versions of its kind: what is stored, and what is asked for.
//!
//! Events of both groups are one table, stored as those of the core. Custom objects are renamed, or converted by the
//! webhook of their definition (`apiextensions-apiserver/pkg/apiserver/conversion/webhook_converter.go`). Autoscalers have a
//! module of their own.

use std::{
    fmt::{self, Debug, Formatter},
    sync::Arc,
};

use http::StatusCode;
use serde_json::{Map, Value, json};

use crate::{
    admission,
    apply::{BuiltInKinds, Versions},
    autoscaling,
    cause::Cause,
    crd, go,
    kinds::{Custom, Resource},
    metadata,
    request::Call,
    schema::Schema,
    session::{Question, Reply},
    state::State,
    status::Refusal,
    store::Key,
};

/// What a conversion webhook has.
const TIMEOUT_SECONDS: u64 = 30;
const REVIEW: &str = "apiextensions.k8s.io/v1";

/// The versions of the kind of a call, for those who own fields by one of them.
pub(super) struct OfKind<'a> {
    pub(super) state: &'a State,
    pub(super) call: &'a Call,
}

impl Debug for OfKind<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OfKind").field(&self.call.resource).finish()
    }
}

impl Versions for OfKind<'_> {
    /// Where the webhook of the definition has to be asked, this fails for now, and the session is left unsettled.
    fn converted(&self, object: &Value, api_version: &str) -> Result<Value, String> {
        if self.call.resource.custom.is_none() {
            return BuiltInKinds.converted(object, api_version);
        }
        let to = in_version(self.state, &self.call.resource, Custom::version_of(api_version))
            .filter(|to| to.api_version() == api_version)
            .ok_or_else(|| format!("request to convert CR to an invalid group/version: {api_version}"))?;
        if is_asked(&to) && !is_bare(object) {
            return convert(self.state, self.call, &to, object).map_err(|refusal| refusal.message);
        }
        // What the version does not know is not dropped here, as it is when an object is read.
        let mut renamed = object.clone();
        renamed["apiVersion"] = api_version.into();
        Ok(renamed)
    }

    fn differ(&self, one: &str, other: &str) -> bool {
        if self.call.resource.custom.is_some() { one != other } else { BuiltInKinds.differ(one, other) }
    }

    fn may_have_changed(&self) -> bool {
        self.call.resource.custom.is_some()
    }

    fn schema(&self, api_version: &str, kind: &str) -> Option<Schema<'_>> {
        match &self.call.resource.custom {
            Some(custom) => custom.schema_of(Custom::version_of(api_version)),
            None => BuiltInKinds.schema(api_version, kind),
        }
    }
}

/// A custom kind in one of its versions, served or not.
fn in_version(state: &State, resource: &Resource, name: &str) -> Option<Arc<Resource>> {
    let served = state.registry.get(&resource.of.group, name, &resource.of.resource);
    served.or_else(|| resource.in_version(name).map(Arc::new))
}

/// Whether there is nothing but the kind: no webhook is asked about that.
fn is_bare(object: &Value) -> bool {
    object.as_object().is_some_and(|fields| fields.keys().all(|name| name == "apiVersion" || name == "kind"))
}

/// How an object gets into the version of a resource.
pub(super) enum Way {
    /// It is in this version.
    Same,
    /// This is it.
    Done(Value),
    /// The webhook of the definition is asked.
    Ask,
}

/// Whether objects of other versions are converted by a webhook.
pub(super) fn is_asked(to: &Resource) -> bool {
    to.custom.as_ref().is_some_and(|custom| custom.conversion["strategy"] == "Webhook")
}

pub(super) fn way(to: &Resource, object: &Value) -> Way {
    let wanted = to.api_version();
    if object["apiVersion"] == wanted.as_str() {
        return Way::Same;
    }
    if is_asked(to) {
        return Way::Ask;
    }
    if to.of.resource == "events" && to.custom.is_none() {
        return Way::Done(event(&wanted, object));
    }
    if autoscaling::is_autoscaler(to) {
        return Way::Done(autoscaling::converted(&wanted, object));
    }
    let mut renamed = object.clone();
    renamed["apiVersion"] = wanted.into();
    forget_unknown(to, &mut renamed);
    Way::Done(renamed)
}

/// What the schema of its new version does not name is gone from an object that was converted.
fn forget_unknown(to: &Resource, object: &mut Value) {
    if let (Some(_), Some(schema)) = (&to.custom, to.schema()) {
        crd::prune(schema, object);
    }
}

/// The stored object that a call is about, in the version that it asks for.
///
/// # Errors
/// The webhook of the definition fails, or its answer is still waited for.
pub(super) fn find(state: &State, call: &Call) -> Result<Option<Arc<Value>>, Refusal> {
    find_at(state, call, &call.key())
}

pub(super) fn find_at(state: &State, call: &Call, key: &Key) -> Result<Option<Arc<Value>>, Refusal> {
    let Some(object) = state.get(&call.resource.of, key) else { return Ok(None) };
    all_shown(state, call, vec![object]).map(|mut all| all.pop())
}

/// Whoever writes an event by one group takes nothing over from those who have written it by the other.
pub(super) fn forget_other_group(resource: &Resource, object: &mut Value) {
    if resource.of.resource == "events"
        && resource.custom.is_none()
        && let Some(managed) = object["metadata"]["managedFields"].as_array_mut()
    {
        managed.retain(|entry| entry["apiVersion"] == resource.api_version().as_str());
    }
}

/// Objects in the version that a call asks for: one question for all of them.
///
/// # Errors
/// As [`find`].
pub(super) fn all_shown(state: &State, call: &Call, objects: Vec<Arc<Value>>) -> Result<Vec<Arc<Value>>, Refusal> {
    convert_all(state, call, &call.resource, objects)
}

/// A written object as it is stored, and how it is read again from there by the writer.
pub(super) struct Kept {
    pub(super) stored: Value,
    /// Nothing when it is read as it is stored.
    shown: Option<Value>,
}

impl Kept {
    /// What the writer is answered, once it is stored.
    pub(super) fn answer(self, stored: Arc<Value>) -> Arc<Value> {
        let Some(mut shown) = self.shown else { return stored };
        shown["metadata"]["resourceVersion"] = stored["metadata"]["resourceVersion"].clone();
        shown.into()
    }

    /// What the writer is answered that wants nothing stored.
    pub(super) fn unstored(self) -> Arc<Value> {
        self.shown.unwrap_or(self.stored).into()
    }
}

/// A written object in the version in which it is stored, and back: all is known before anything is written.
///
/// # Errors
/// As [`find`].
pub(super) fn stored(state: &State, call: &Call, object: Value) -> Result<Kept, Refusal> {
    let resource = &call.resource;
    let home = match &resource.custom {
        Some(custom) if custom.storage != resource.version => in_version(state, resource, &custom.storage),
        None if resource.of.resource == "events" => state.registry.get("", "v1", "events"),
        None if autoscaling::is_autoscaler(resource) => {
            state.registry.get(&resource.of.group, "v2", &resource.of.resource)
        }
        _ => None,
    };
    match home.filter(|home| home.api_version() != resource.api_version()) {
        None => Ok(Kept { stored: object, shown: None }),
        Some(home) => {
            let mut stored = convert(state, call, &home, &object)?;
            if let Some(custom) = &home.custom {
                custom.read(&mut stored);
            }
            if autoscaling::is_autoscaler(resource)
                && call.subresource.is_empty()
                && let Some(before) = state.get(&resource.of, &call.key())
            {
                // Amounts that are not there are nothing in version 1: a status that nobody wrote stays as it is.
                stored["status"] = before["status"].clone();
            }
            let shown = convert(state, call, resource, &stored)?;
            Ok(Kept { stored, shown: Some(shown) })
        }
    }
}

/// An object in the version of a resource.
///
/// # Errors
/// As [`find`].
pub(crate) fn convert(state: &State, call: &Call, to: &Resource, object: &Value) -> Result<Value, Refusal> {
    let mut all = convert_all(state, call, to, vec![Arc::new(object.clone())])?;
    Ok(all.pop().map(Arc::unwrap_or_clone).unwrap_or_default())
}

fn convert_all(
    state: &State,
    call: &Call,
    to: &Resource,
    mut objects: Vec<Arc<Value>>,
) -> Result<Vec<Arc<Value>>, Refusal> {
    let mut open = Vec::new();
    for (index, object) in objects.iter_mut().enumerate() {
        match way(to, object) {
            Way::Same => {}
            Way::Done(converted) => *object = converted.into(),
            Way::Ask => open.push(index),
        }
    }
    if open.is_empty() {
        return Ok(objects);
    }
    let asked: Vec<&Value> = open.iter().map(|index| objects[*index].as_ref()).collect();
    let question = question(state, to, &asked)?;
    let reply = call.session.ask(question)?;
    let converted = converted(to, &asked, &reply)?;
    for (index, object) in open.into_iter().zip(converted) {
        objects[index] = object.into();
    }
    Ok(objects)
}

/// The review that asks for these objects in the version of a resource.
///
/// # Errors
/// The service of the webhook is not there.
pub(super) fn question(state: &State, to: &Resource, objects: &[&Value]) -> Result<Question, Refusal> {
    let conversion = to.custom.as_ref().map_or(&Value::Null, |custom| &custom.conversion["webhook"]);
    let unversioned = |object: &&Value| {
        let mut object = Value::clone(object);
        object["metadata"].as_object_mut().map(|meta| meta.remove("resourceVersion"));
        object
    };
    let objects_sent: Vec<Value> = objects.iter().map(unversioned).collect();
    let review = json!({
        "kind": "ConversionReview",
        "apiVersion": REVIEW,
        "request": { "desiredAPIVersion": to.api_version(), "objects": objects_sent },
        "response": { "uid": "", "convertedObjects": null, "result": { "metadata": {} } },
    });
    let address = admission::to_client_config(state, &conversion["clientConfig"], TIMEOUT_SECONDS);
    Ok(Question { review, ..address.map_err(|why| failed(objects, &why))? })
}

/// As Go writes the kind of an object.
fn kind_of(objects: &[&Value]) -> String {
    let text = |field: &str| objects.first().map_or("", |object| object[field].as_str().unwrap_or_default());
    format!("{}, Kind={}", text("apiVersion"), text("kind"))
}

fn refusal(objects: &[&Value], what: &str) -> Refusal {
    let message = format!("conversion webhook for {} {what}", kind_of(objects));
    Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "", message)
}

fn failed(objects: &[&Value], why: &str) -> Refusal {
    refusal(objects, &format!("failed: {why}"))
}

/// The objects of an answer; of their metadata only labels and annotations may be others.
///
/// # Errors
/// The webhook has failed, or has answered something else.
pub(super) fn converted(to: &Resource, asked: &[&Value], reply: &Reply) -> Result<Vec<Value>, Refusal> {
    let body = admission::body(reply, REVIEW, "ConversionReview").map_err(|why| failed(asked, &why))?;
    let response = &body["response"];
    let uid = response["uid"].as_str().unwrap_or_default();
    if uid != reply.uid {
        return Err(failed(asked, &format!("expected response.uid={:?}, got {uid:?}", reply.uid)));
    }
    let (status, message) = (&response["result"]["status"], &response["result"]["message"]);
    if status != "Success" {
        let status = status.as_str().unwrap_or_default();
        let why = match message.as_str().unwrap_or_default() {
            "" => format!("response.result.status was '{status}', not 'Success'"),
            message => message.to_owned(),
        };
        return Err(failed(asked, &why));
    }
    let objects = response["convertedObjects"].as_array().cloned().unwrap_or_default();
    if objects.len() != asked.len() {
        return Err(refusal(asked, &format!("returned {} objects, expected {}", objects.len(), asked.len())));
    }
    let checked = objects.into_iter().zip(asked).map(|(object, original)| {
        restored(to, original, object).map_err(|why| match why {
            // The real server asks about one object at a time.
            Wrong::Version(why) => refusal(asked, &format!("returned invalid object at index 0: {why}")),
            Wrong::Identity(why) => refusal(asked, &format!("returned invalid object: {why}")),
            Wrong::Metadata(why) => refusal(asked, &format!("returned invalid metadata: {why}")),
        })
    });
    checked.collect()
}

enum Wrong {
    Version(String),
    Identity(String),
    Metadata(String),
}

/// A converted object with the metadata of the original.
fn restored(to: &Resource, original: &Value, mut object: Value) -> Result<Value, Wrong> {
    let (wanted, found) = (to.api_version(), object["apiVersion"].as_str().unwrap_or_default().to_owned());
    if found != wanted {
        return Err(Wrong::Version(format!("invalid groupVersion (expected {wanted}, received {found})")));
    }
    let (kind, given) = (to.kind(), object["kind"].as_str().unwrap_or_default());
    if kind != given {
        return Err(Wrong::Version(format!("invalid kind (expected {kind}, received {given})")));
    }
    for (field, name) in [("name", "name"), ("namespace", "namespace"), ("uid", "UID")] {
        let text = |object: &Value| object["metadata"][field].as_str().unwrap_or_default().to_owned();
        let (was, is) = (text(original), text(&object));
        if was != is {
            return Err(Wrong::Identity(format!("must have the same {name}: {was} != {is}")));
        }
    }
    let mut meta = original["metadata"].clone();
    for field in ["labels", "annotations"] {
        match object["metadata"][field].take() {
            Value::Null => drop(meta.as_object_mut().and_then(|meta| meta.remove(field))),
            given => {
                check_restored(field, &meta[field], &given).map_err(Wrong::Metadata)?;
                meta[field] = given;
            }
        }
    }
    object["metadata"] = meta;
    forget_unknown(to, &mut object);
    Ok(object)
}

/// Labels or annotations that a webhook has answered: texts, and such as an object may have unless it has them already.
fn check_restored(field: &str, known: &Value, given: &Value) -> Result<(), String> {
    let Value::Object(texts) = given else {
        return Err(format!("invalid metadata.{field} of type {} in converted object", go::type_name(given)));
    };
    if let Some((name, value)) = texts.iter().find(|(_, value)| !value.is_string()) {
        let found = go::type_name(value);
        return Err(format!("metadata.{field}[{name}] must be a string, but is {found} in converted object"));
    }
    if known == given {
        return Ok(());
    }
    let causes = metadata::validate_texts(&json!({ field: given }));
    // Upstream gives one of them this name.
    let text = |cause: &Cause| format!("{}: {}", cause.field.replace("annotations", "annotation"), cause.message);
    match causes.as_slice() {
        [] => Ok(()),
        [one] => Err(text(one)),
        all => Err(format!("[{}]", all.iter().map(text).collect::<Vec<_>>().join(", "))),
    }
}

/// Fields that events of the core and of their own group call otherwise (`pkg/apis/events/v1/conversion.go`).
const EVENT_FIELDS: [(&str, &str); 7] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("reportingComponent", "reportingController"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
];

/// Fields that events of the core have even when they are empty, and those of the group have not.
const WRITTEN_EMPTY: [&str; 2] = ["reportingComponent", "reportingInstance"];

fn event(wanted: &str, object: &Value) -> Value {
    let to_core = wanted == "v1";
    let names = |name: &str| {
        let mut known = EVENT_FIELDS.iter();
        known
            .find_map(
                |(core, own)| if to_core { (*own == name).then_some(*core) } else { (*core == name).then_some(*own) },
            )
            .unwrap_or(name)
            .to_owned()
    };
    let fields = object.as_object().into_iter().flatten().map(|(name, value)| (names(name), value.clone()));
    let mut event: Map<String, Value> = fields.collect();
    event.insert("apiVersion".into(), wanted.into());
    for name in WRITTEN_EMPTY {
        let name = if to_core { name.to_owned() } else { names(name) };
        if to_core {
            event.entry(name).or_insert_with(|| "".into());
        } else if event.get(&name).is_some_and(|value| value == "") {
            event.remove(&name);
        }
    }
    Value::Object(event)
}
