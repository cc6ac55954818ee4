//! What is to be done about card payments.

use std::path::{Path, PathBuf};

use agent::investigation;
use serde_json::{Map, Value, json};
use tools::card_transactions::Remote;

use super::{Context, Served, model_name};
use crate::args::Target;
use crate::args::payments::Investigate;
use crate::config::StackEnvironment;
use crate::failure::Failure;
use crate::input;

/// Many payments to investigate.
#[derive(Clone, Debug)]
pub struct Batch {
    /// The events' details, each with the payment's id.
    pub orders: Vec<(String, Map<String, Value>)>,
    /// The transactions that they are of.
    pub data: String,
    /// How many are investigated at a time.
    pub parallel: usize,
    /// What a stack is to be started with if nothing listens.
    pub with_stack: Option<StackEnvironment>,
}

/// Resolves `investigate`.
///
/// # Errors
/// When the ids cannot be read.
pub fn batch(
    investigate: Investigate,
    with_stack: Option<StackEnvironment>,
) -> Result<Batch, Failure> {
    let ids = input::ids(&investigate.ids)?;
    let model = investigate.model.map(|model| model_name(model, Target::Local));
    let order = |id: String| {
        let mut input = json!({ "transaction_id": id, "data": investigate.transactions });
        input::find_data(&mut input, None);
        let mut detail = Map::new();
        detail.insert("agent".to_owned(), json!(investigation::AGENT));
        detail.insert("input".to_owned(), input);
        detail.extend(model.clone().map(|model| ("model".to_owned(), json!(model))));
        (id, detail)
    };
    let (data, parallel) = (investigate.transactions.clone(), usize::from(investigate.parallel));
    let orders = ids.into_iter().map(order).collect();
    Ok(Batch { orders, data, parallel, with_stack })
}

/// The server over the transactions that are named. A server has no journal, so what names the stack's
/// folder elsewhere names the transactions here.
///
/// # Errors
/// When they are not named.
pub fn served(
    context: &Context,
    allow_remote: bool,
    embeddings: Option<PathBuf>,
) -> Result<Served, Failure> {
    let data = context.data.as_deref().and_then(Path::to_str).ok_or_else(|| {
        Failure::usage("there are no transactions to read")
            .hint("name a CSV or Parquet file, or a service's address, with --data")
    })?;
    let remote = if allow_remote { Remote::Allowed } else { Remote::Refused };
    Ok(Served::CardTransactions { data: data.to_owned(), remote, embeddings })
}
