//! PutItem and UpdateItem. The journal permits only conditional writes, and none over an immutable
//! record.

use std::collections::BTreeMap;

use journal::event::EventStatus;
use journal::item::{Item, Value};
use journal::key::attribute::{EXECUTION_ARN, STATUS};
use journal::key::{
    ERASED, EVENT_PREFIX, HALTS, LEASE, NOTICE_PREFIX, OUTBOX, RECEIPT_PREFIX, STEP_PREFIX, WAIT,
};
use journal::limits::ITEM_BYTES_MAX;
use journal::receipt;
use journal::store::{self, Key, Store, Written};
use serde_json::{Value as Json, json};

use super::capacity::{Consumed, Wanted};
use super::error::ApiError;
use super::expression::ast::{Comparator, Condition, Operand, Path};
use super::expression::placeholders::Placeholders;
use super::expression::{self};
use super::keys::{self, PK, SK, Schema, scalar_keys};
use super::request::Request;
use super::value::AttributeValue;

const CONDITION: &str = "ConditionExpression";
const UPDATE: &str = "UpdateExpression";

const UNCONDITIONAL: &str = "an unconditional write is refused: the journal is append-only";

const OF_PEOPLE: &str = "this record is refused: what people decide is written by the stack alone, and never by an agent";

pub(super) async fn put_item<S: Store>(store: &S, request: &Request) -> Result<Json, ApiError> {
    request.for_our_table()?;
    request.without_legacy(&["Expected", "ConditionalOperator"], &[CONDITION])?;
    let mut placeholders = Placeholders::read(request, &[CONDITION], &[CONDITION])?;
    let condition = condition(request, &mut placeholders)?;
    placeholders.all_used()?;
    let wants = Wants::read(request)?;
    let item = request.object("Item")?.ok_or_else(|| {
        ApiError::validation(
            "1 validation error detected: Value null at 'item' failed to satisfy constraint: \
             Member must not be null",
        )
    })?;
    let item = keys::item(item)?;
    let bytes = item.size_bytes();
    if bytes > ITEM_BYTES_MAX {
        return Err(ApiError::validation("Item size has exceeded the maximum allowed size"));
    }
    let condition = condition.ok_or_else(|| ApiError::access_denied(UNCONDITIONAL))?;
    let condition = translate(&condition, &Key::new(item.pk.as_str(), item.sk.as_str()))?;
    keep_immutable(&item, &condition)?;
    let of_people = receipt::is_due_of(&item)
        || [RECEIPT_PREFIX, HALTS, ERASED, NOTICE_PREFIX, OUTBOX]
            .iter()
            .any(|taken| item.pk.starts_with(taken));
    if of_people {
        return Err(ApiError::access_denied(OF_PEOPLE));
    }
    wants.answer(store.put(item, condition).await?, bytes)
}

pub(super) async fn update_item<S: Store>(store: &S, request: &Request) -> Result<Json, ApiError> {
    request.for_our_table()?;
    request.without_legacy(
        &["AttributeUpdates", "Expected", "ConditionalOperator"],
        &[UPDATE, CONDITION],
    )?;
    let both = [UPDATE, CONDITION];
    let mut placeholders = Placeholders::read(request, &both, &both)?;
    let assignments = request
        .text(UPDATE)?
        .map(|text| expression::assignments(text, &mut placeholders))
        .transpose()?
        .unwrap_or_default();
    let condition = condition(request, &mut placeholders)?;
    placeholders.all_used()?;
    let wants = Wants::read(request)?;
    let key = keys::key(request)?;
    let set = attributes(assignments)?;
    let bytes =
        set.iter().fold(Item::new(key.pk.as_str(), key.sk.as_str()), |item, (name, value)| {
            item.with(name, value.clone())
        });
    let bytes = bytes.size_bytes();
    if bytes > ITEM_BYTES_MAX {
        return Err(ApiError::validation(
            "Item size to update has exceeded the maximum allowed size",
        ));
    }
    let condition = condition.ok_or_else(|| ApiError::access_denied(UNCONDITIONAL))?;
    let condition = translate(&condition, &key)?;
    if !is_mutable(&key) {
        return Err(ApiError::access_denied(
            "an update is refused: of the journal's items only LEASE, WAIT, DEDUPE and ADMIT \
             change",
        ));
    }
    wants.answer(store.update(key, set, condition).await?, bytes)
}

fn condition(
    request: &Request,
    placeholders: &mut Placeholders,
) -> Result<Option<Condition>, ApiError> {
    let condition = request
        .text(CONDITION)?
        .map(|text| expression::condition(CONDITION, text, placeholders))
        .transpose()?;
    scalar_keys(condition.iter().flat_map(Condition::paths))?;
    Ok(condition)
}

fn attributes(
    assignments: Vec<(Path, AttributeValue)>,
) -> Result<BTreeMap<String, Value>, ApiError> {
    let mut set = BTreeMap::new();
    for (path, value) in assignments {
        if !path.inner.is_empty() {
            return Err(ApiError::validation(
                "The document path provided in the update expression is invalid for update",
            ));
        }
        if [PK, SK].contains(&path.name.as_str()) {
            return Err(ApiError::validation(format!(
                "One or more parameter values were invalid: Cannot update attribute {}. This \
                 attribute is part of the key",
                path.name
            )));
        }
        let value = keys::stored(&path.name, &value)?;
        set.insert(path.name, value);
    }
    Ok(set)
}

/// What the writer wants returned.
struct Wants {
    what_was_there: bool,
    capacity: Wanted,
}

impl Wants {
    fn read(request: &Request) -> Result<Self, ApiError> {
        let choices = ["NONE", "ALL_OLD", "UPDATED_OLD", "ALL_NEW", "UPDATED_NEW"];
        if request.one_of("ReturnValues", &choices)? != "NONE" {
            return Err(ApiError::validation("this endpoint supports only ReturnValues NONE"));
        }
        let on_failure =
            request.one_of("ReturnValuesOnConditionCheckFailure", &["NONE", "ALL_OLD"])?;
        let what_was_there = on_failure == "ALL_OLD";
        Ok(Self { what_was_there, capacity: Wanted::read(request)? })
    }

    fn answer(&self, written: Written, bytes: usize) -> Result<Json, ApiError> {
        match written {
            Written::Done => {
                Ok(self.capacity.add_to(json!({}), Schema::Table, Consumed::Written { bytes }))
            }
            Written::Refused(there) => {
                let there = there.filter(|_| self.what_was_there);
                Err(ApiError::condition_failed(there.map(|item| item.to_json())))
            }
        }
    }
}

/// The condition in a form that the store checks atomically with the write.
fn translate(condition: &Condition, key: &Key) -> Result<store::Condition, ApiError> {
    use store::Condition as C;
    let is_key = |path: &Path| path.is_attribute(PK) || path.is_attribute(SK);
    let all = |conditions: &[Condition]| {
        conditions.iter().map(|condition| translate(condition, key)).collect::<Result<_, _>>()
    };
    match condition {
        Condition::All(conditions) => all(conditions).map(C::All),
        Condition::Any(conditions) => all(conditions).map(C::Any),
        Condition::NotExists(path) if is_key(path) => Ok(C::Absent),
        // An existing item has the key that it is found by.
        Condition::Exists(path) if is_key(path) => Ok(C::equals(PK, key.pk.as_str())),
        Condition::Compare(Operand::Attribute(path), comparator, Operand::Value(value)) => {
            comparison(path, *comparator, value)
        }
        Condition::Compare(Operand::Value(value), comparator, Operand::Attribute(path)) => {
            comparison(path, comparator.flipped(), value)
        }
        _ => Err(unsupported()),
    }
}

fn comparison(
    path: &Path,
    comparator: Comparator,
    value: &AttributeValue,
) -> Result<store::Condition, ApiError> {
    let value = value.stored().filter(|_| path.inner.is_empty()).ok_or_else(unsupported)?;
    match comparator {
        Comparator::Equal => Ok(store::Condition::Equals(path.name.clone(), value)),
        Comparator::LessOrEqual => Ok(store::Condition::AtMost(path.name.clone(), value)),
        _ => Err(unsupported()),
    }
}

fn unsupported() -> ApiError {
    ApiError::validation(
        "this endpoint supports write conditions made of attribute_not_exists(PK), \
         attribute_exists(PK), name = :value and name <= :value, joined by AND and OR",
    )
}

/// Refuses a write over an immutable record.
fn keep_immutable(item: &Item, condition: &store::Condition) -> Result<(), ApiError> {
    let immutable = item.sk.starts_with(STEP_PREFIX)
        || item.sk.starts_with(EVENT_PREFIX)
        || item.pk.starts_with("BLOB#");
    if !immutable || only_if_absent(condition, own_execution(item).as_ref()) {
        return Ok(());
    }
    Err(ApiError::access_denied(
        "this write is refused: records are immutable, so the condition must include \
         attribute_not_exists(PK)",
    ))
}

/// The execution of a SESSION_INITIATED event. It may write the event again.
fn own_execution(item: &Item) -> Option<Value> {
    let initiated = item.sk.starts_with(EVENT_PREFIX)
        && item.text_opt(STATUS) == Some(EventStatus::SessionInitiated.as_str());
    item.get(EXECUTION_ARN).filter(|_| initiated)
}

fn only_if_absent(condition: &store::Condition, own_execution: Option<&Value>) -> bool {
    use store::Condition as C;
    match condition {
        C::Absent => true,
        C::Equals(name, value) => name == EXECUTION_ARN && Some(value) == own_execution,
        C::AtMost(..) => false,
        C::All(conditions) => conditions.iter().any(|one| only_if_absent(one, own_execution)),
        C::Any(conditions) => conditions.iter().all(|one| only_if_absent(one, own_execution)),
    }
}

fn is_mutable(key: &Key) -> bool {
    let of_session = key.pk.starts_with("SESSION#") && [LEASE, WAIT].contains(&key.sk.as_str());
    of_session || key.pk.starts_with("DEDUPE#") || key.pk.starts_with("ADMIT#")
}
