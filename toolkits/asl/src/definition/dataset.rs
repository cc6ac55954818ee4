//! `ItemReader` and `ResultWriter` of a distributed `Map`: where items come from, and where results go.

use serde_json::Value;

use super::fields::{Fields, Result};
use super::template::accept;
use super::{Slot, Template};
use crate::expression::Language;

const COUNT: &str = "a whole number or an expression";

/// `ItemReader`. What it names is checked when it reads, not here.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Reader {
    /// `arn:aws:states:::s3:getObject` or `listObjectsV2`.
    pub(crate) resource: String,
    pub(crate) arguments: Option<Template>,
    pub(crate) max_items: Option<Slot>,
    /// `ReaderConfig` as it is written.
    pub(crate) config: Value,
}

/// `ResultWriter`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Writer {
    /// `None` if the results only take another form, in the state's output.
    pub(crate) resource: Option<String>,
    pub(crate) arguments: Option<Template>,
    /// `WriterConfig` as it is written.
    pub(crate) config: Value,
}

fn arguments(fields: &Fields<'_>) -> Result<Option<Template>> {
    fields.template(match fields.language() {
        Language::Jsonata => "Arguments",
        Language::JsonPath => "Parameters",
    })
}

pub(super) fn reader(fields: &Fields<'_>) -> Result<Option<Reader>> {
    let Some(reader) = fields.object("ItemReader")? else { return Ok(None) };
    let resource = reader.required_text("Resource")?.to_owned();
    let config = reader.take("ReaderConfig").cloned().unwrap_or_default();
    let max_items = match reader.object("ReaderConfig")? {
        Some(config) => config.slot("MaxItems", "MaxItemsPath", COUNT, accept::whole)?,
        None => None,
    };
    Ok(Some(Reader { resource, arguments: arguments(&reader)?, max_items, config }))
}

pub(super) fn writer(fields: &Fields<'_>) -> Result<Option<Writer>> {
    let Some(writer) = fields.object("ResultWriter")? else { return Ok(None) };
    let resource = writer.text("Resource")?.map(str::to_owned);
    let config = writer.take("WriterConfig").cloned().unwrap_or_default();
    Ok(Some(Writer { resource, arguments: arguments(&writer)?, config }))
}
