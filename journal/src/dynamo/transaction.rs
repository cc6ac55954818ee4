//! Writes several items at once with TransactWriteItems.

use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use aws_sdk_dynamodb::types::{
    CancellationReason, Put, ReturnValuesOnConditionCheckFailure, TransactWriteItem,
};

use super::expression::Placeholders;
use super::{DynamoStore, read_item, write_error, write_item};
use crate::item::Item;
use crate::limits::TRANSACTION_ITEMS_MAX;
use crate::store::{AllWritten, Condition, Error, Transact};

impl Transact for DynamoStore {
    async fn put_all(&self, items: Vec<(Item, Condition)>) -> Result<AllWritten, Error> {
        // DynamoDB rejects more: a caller that sends more is wrong, and must not be told to try again.
        assert!(items.len() <= TRANSACTION_ITEMS_MAX, "a transaction of {} items", items.len());
        let puts = items
            .into_iter()
            .map(|(item, condition)| self.transacted(item, &condition))
            .collect::<Result<_, _>>()?;
        let request = self.client.transact_write_items().set_transact_items(Some(puts));
        let error = match Box::pin(request.send()).await {
            Ok(_) => return Ok(AllWritten::Done),
            Err(error) => error,
        };
        if let Some(TransactWriteItemsError::TransactionCanceledException(canceled)) =
            error.as_service_error()
            && let Some(refused) = refused(canceled.cancellation_reasons())?
        {
            return Ok(refused);
        }
        Err(write_error(error))
    }
}

impl DynamoStore {
    fn transacted(&self, item: Item, condition: &Condition) -> Result<TransactWriteItem, Error> {
        let mut placeholders = Placeholders::default();
        let expression = placeholders.condition(condition);
        let put = Put::builder()
            .table_name(&*self.table)
            .set_item(Some(write_item(item)))
            .condition_expression(expression)
            .set_expression_attribute_names(placeholders.names())
            .set_expression_attribute_values(placeholders.values())
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
            .build()
            .map_err(|error| Error::Refused(error.into()))?;
        Ok(TransactWriteItem::builder().put(put).build())
    }
}

/// What cancelled a transaction. There is one reason for each item, in their order; that of an item that cancelled
/// nothing has the code `None`. `Ok(None)` if it was neither a condition nor another writer.
///
/// Source: AWS, "`TransactWriteItems`", `TransactionCanceledException`.
fn refused(reasons: &[CancellationReason]) -> Result<Option<AllWritten>, Error> {
    let has = |code: &str| {
        reasons.iter().position(|reason| reason.code().is_some_and(|given| given == code))
    };
    let Some(at) = has("ConditionalCheckFailed") else {
        if has("TransactionConflict").is_some() {
            return Ok(Some(AllWritten::Contended));
        }
        let throttled = ["ThrottlingError", "ProvisionedThroughputExceeded"];
        return match throttled.into_iter().find(|code| has(code).is_some()) {
            Some(code) => Err(Error::Unavailable(code.into())),
            None => Ok(None),
        };
    };
    let found = reasons[at].item().filter(|attributes| !attributes.is_empty());
    Ok(Some(AllWritten::Refused { at, found: found.map(read_item).transpose()? }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reasons(codes: &[&str]) -> Vec<CancellationReason> {
        codes.iter().map(|code| CancellationReason::builder().code(*code).build()).collect()
    }

    #[test]
    fn a_cancelled_transaction_says_what_to_do_next() {
        let judged = |codes: &[&str]| refused(&reasons(codes));
        let failed = AllWritten::Refused { at: 1, found: None };
        let conditions = ["None", "ConditionalCheckFailed", "ConditionalCheckFailed"];
        assert_eq!(judged(&conditions).unwrap(), Some(failed.clone()));
        let both = ["TransactionConflict", "ConditionalCheckFailed"];
        assert_eq!(judged(&both).unwrap(), Some(failed), "a condition that failed is known");
        assert_eq!(judged(&["None", "TransactionConflict"]).unwrap(), Some(AllWritten::Contended));
        let throttled = judged(&["ThrottlingError", "None"]).unwrap_err();
        assert!(matches!(throttled, Error::Unavailable(_)), "{throttled:?}");
        assert_eq!(judged(&["ValidationError"]).unwrap(), None);
    }
}
