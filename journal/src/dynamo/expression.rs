//! Converts conditions to DynamoDB expressions.

use std::collections::{BTreeMap, HashMap};

use aws_sdk_dynamodb::types::AttributeValue;

use super::write_value;
use crate::item::Value;
use crate::key::attribute;
use crate::lease;
use crate::store::{Condition, Partition, Query};

#[derive(Debug, Default)]
pub(super) struct Placeholders {
    names: Vec<String>,
    values: Vec<Value>,
}

impl Placeholders {
    pub(super) fn condition(&mut self, condition: &Condition) -> String {
        match condition {
            Condition::Absent => format!("attribute_not_exists({})", self.name("PK")),
            Condition::Equals(name, value) => self.compare(name, "=", value.clone()),
            Condition::AtMost(name, value) => self.compare(name, "<=", value.clone()),
            Condition::All(conditions) => self.joined(conditions, " AND ", " OR "),
            Condition::Any(conditions) => self.joined(conditions, " OR ", " AND "),
        }
    }

    /// Joins conditions. The expression language has no literal for true or false, so an empty list
    /// becomes a condition that always or never holds.
    fn joined(&mut self, conditions: &[Condition], with: &str, opposite: &str) -> String {
        if conditions.is_empty() {
            let pk = self.name("PK");
            return format!("(attribute_exists({pk}){opposite}attribute_not_exists({pk}))");
        }
        if let [only] = conditions {
            // DynamoDB rejects redundant parentheses.
            return self.condition(only);
        }
        let each: Vec<_> = conditions.iter().map(|condition| self.condition(condition)).collect();
        format!("({})", each.join(with))
    }

    pub(super) fn key_condition(&mut self, query: &Query) -> String {
        let (hash, range, partition) = match &query.partition {
            Partition::Table(pk) => ("PK", "SK", pk),
            Partition::Day(day) => (attribute::DAY, attribute::TIMESTAMP, day),
            Partition::Open(shard) => (lease::OPEN, lease::HEARTBEAT_AT, shard),
        };
        let of_partition = self.compare(hash, "=", partition.as_str().into());
        let within = match (&query.from, &query.to) {
            (None, None) => return of_partition,
            (Some(from), None) => self.compare(range, ">=", from.as_str().into()),
            (None, Some(to)) => self.compare(range, "<=", to.as_str().into()),
            (Some(from), Some(to)) => {
                let name = self.name(range);
                let from = self.value(from.as_str().into());
                let to = self.value(to.as_str().into());
                format!("{name} BETWEEN {from} AND {to}")
            }
        };
        format!("{of_partition} AND {within}")
    }

    /// An update expression, or `None` if nothing is set.
    pub(super) fn update(&mut self, set: &BTreeMap<String, Value>) -> Option<String> {
        let each: Vec<_> =
            set.iter().map(|(name, value)| self.compare(name, "=", value.clone())).collect();
        (!each.is_empty()).then(|| format!("SET {}", each.join(", ")))
    }

    /// Attribute names by placeholder; `None` if empty, because DynamoDB rejects an empty map.
    pub(super) fn names(&self) -> Option<HashMap<String, String>> {
        let names = self.names.iter().enumerate();
        let names: HashMap<_, _> =
            names.map(|(place, name)| (format!("#n{place}"), name.clone())).collect();
        (!names.is_empty()).then_some(names)
    }

    /// Attribute values by placeholder.
    pub(super) fn values(&self) -> Option<HashMap<String, AttributeValue>> {
        let values = self.values.iter().enumerate();
        let values: HashMap<_, _> = values
            .map(|(place, value)| (format!(":v{place}"), write_value(value.clone())))
            .collect();
        (!values.is_empty()).then_some(values)
    }

    fn compare(&mut self, name: &str, operator: &str, value: Value) -> String {
        let name = self.name(name);
        let value = self.value(value);
        format!("{name} {operator} {value}")
    }

    fn name(&mut self, name: &str) -> String {
        let place = self.names.iter().position(|known| known == name).unwrap_or_else(|| {
            self.names.push(name.to_owned());
            self.names.len() - 1
        });
        format!("#n{place}")
    }

    fn value(&mut self, value: Value) -> String {
        self.values.push(value);
        format!(":v{}", self.values.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_uses_placeholders_only() {
        let mut placeholders = Placeholders::default();
        let condition = Condition::Any(vec![
            Condition::Absent,
            Condition::All(vec![
                Condition::equals("Status", "A"),
                Condition::at_most("Status", "B"),
            ]),
            Condition::All(Vec::new()),
        ]);
        assert_eq!(
            placeholders.condition(&condition),
            "(attribute_not_exists(#n0) OR (#n1 = :v0 AND #n1 <= :v1) \
             OR (attribute_exists(#n0) OR attribute_not_exists(#n0)))"
        );
        assert_eq!(placeholders.names().unwrap()["#n1"], "Status");
        assert_eq!(placeholders.values().unwrap()[":v1"], AttributeValue::S("B".to_owned()));
    }

    #[test]
    fn a_range_is_rendered_by_its_bounds() {
        let mut query = Query::between("p", "a", "b");
        let render = |query: &Query| Placeholders::default().key_condition(query);
        assert_eq!(render(&query), "#n0 = :v0 AND #n1 BETWEEN :v1 AND :v2");
        query.to = None;
        assert_eq!(render(&query), "#n0 = :v0 AND #n1 >= :v1");
        assert_eq!(render(&Query::all("p")), "#n0 = :v0");
    }
}
