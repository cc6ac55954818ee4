//! A transaction service: the same rows as JSON over HTTP.
//!
//! It answers `GET URL/transactions/{id}` with a row, `GET URL/transactions?card_id=…` with its
//! card's rows, and optionally `GET URL/transactions?merchant_id=…&until=…&limit=…` with the
//! merchant's newest rows up to that time, of any card. `packs/fraud/transactions/README.md`
//! documents this for authors of a service.

use std::time::Duration;

use reqwest::Url;
use reqwest::redirect::Policy;
use serde_json::{Map, Value};

use super::case_file::{CaseFile, HISTORY_ROWS_MAX};
use super::error::{Error, RowPosition, shown};
use super::row::{COLUMNS, Column, Raw, Row, Transaction};
use super::source::Remote;
use mcp::loopback::Loopback;

/// Timeout of an answer, in all.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// Largest answer, in bytes.
const ANSWER_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Most rows in an answer.
const ROWS_MAX: usize = 5 * HISTORY_ROWS_MAX;

#[derive(Clone, Debug)]
pub struct Service {
    base: Url,
}

/// Whose rows to request: the payment's card or merchant.
enum Of<'a> {
    Card(&'a Transaction),
    Merchant(&'a Transaction),
}

impl Of<'_> {
    fn has(&self, row: &Transaction) -> bool {
        match self {
            Self::Card(target) => row.card == target.card,
            Self::Merchant(target) => row.merchant == target.merchant,
        }
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Card(_) => "card",
            Self::Merchant(_) => "merchant",
        }
    }
}

impl Service {
    /// # Errors
    /// If the address is invalid or not allowed.
    pub fn new(address: &str, remote: Remote) -> Result<Self, Error> {
        let wrong =
            |problem: &str| Error::Address { address: shown(address), problem: problem.to_owned() };
        if remote == Remote::Refused && Loopback::of(address).is_none() {
            return Err(wrong(
                "is not on this machine, and a trigger may not send an agent elsewhere; configure \
                 the server with this address and --allow-remote in the file of DAYBOOK_MCP_SERVERS",
            ));
        }
        let base = Url::parse(address).map_err(|error| wrong(&error.to_string()))?;
        let is_plain = base.query().is_none() && base.fragment().is_none();
        if !matches!(base.scheme(), "http" | "https") || base.cannot_be_a_base() || !is_plain {
            return Err(wrong("expected http:// or https:// and no query"));
        }
        Ok(Self { base })
    }

    /// The case of one transaction: its card's rows, and its merchant's if the service offers them.
    ///
    /// # Errors
    /// If the service returns no usable answer.
    pub fn case_file(&self, id: &str) -> Result<CaseFile, Error> {
        // The only caller runs on the blocking pool.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| self.failed(&self.base, &error.to_string()))?;
        runtime.block_on(async {
            let client = client().map_err(|error| self.failed(&self.base, &error.to_string()))?;
            let one = self.address(&["transactions", id]);
            let found = self.get(&client, &one).await?;
            let target = match found {
                Some(Value::Object(row)) => self.row(&one, 1, &row)?.transaction,
                Some(_) => return Err(self.failed(&one, "returned no row")),
                None => {
                    let (file, id) = (self.name(), shown(id));
                    return Err(Error::NotFound { file, id, rows: 0 });
                }
            };
            if target.id != id {
                return Err(self.failed(&one, "returned another transaction"));
            }
            let card = self.history(&client, &Of::Card(&target)).await?;
            let Some(card) = card else {
                let asked = self.list(&Of::Card(&target));
                return Err(self.failed(&asked, "returned no list of rows"));
            };
            let merchant = self.history(&client, &Of::Merchant(&target)).await?;
            Ok(CaseFile::of_histories(&self.name(), target, card, merchant))
        })
    }

    /// The rows of a list; `None` if the service does not offer it.
    async fn history(
        &self,
        client: &reqwest::Client,
        of: &Of<'_>,
    ) -> Result<Option<Vec<Row>>, Error> {
        let asked = self.list(of);
        let rows = match self.get(client, &asked).await? {
            None => return Ok(None),
            Some(Value::Array(rows)) => rows,
            Some(_) => return Err(self.failed(&asked, "returned no list of rows")),
        };
        if rows.len() > ROWS_MAX {
            return Err(self.failed(&asked, &format!("returned more than {ROWS_MAX} rows")));
        }
        self.rows(&asked, &rows, of).map(Some)
    }

    fn list(&self, of: &Of<'_>) -> Url {
        let mut list = self.address(&["transactions"]);
        let mut query = list.query_pairs_mut();
        match of {
            Of::Card(target) => query.append_pair("card_id", &target.card),
            // A merchant has more payments than a card, so it requests only the newest.
            Of::Merchant(target) => query
                .append_pair("merchant_id", &target.merchant)
                .append_pair("until", &target.at())
                .append_pair("limit", &HISTORY_ROWS_MAX.to_string()),
        };
        drop(query);
        list
    }

    fn rows(&self, asked: &Url, rows: &[Value], of: &Of<'_>) -> Result<Vec<Row>, Error> {
        let mut ids = std::collections::BTreeSet::new();
        let mut checked = Vec::with_capacity(rows.len());
        for (index, row) in rows.iter().enumerate() {
            let number = index as u64 + 1;
            let Value::Object(fields) = row else {
                return Err(
                    self.failed(asked, &format!("returned row {number}, which is not an object"))
                );
            };
            let row = self.row(asked, number, fields)?;
            if !of.has(&row.transaction) {
                let problem = format!("returned row {number} of another {}", of.name());
                return Err(self.failed(asked, &problem));
            }
            if !ids.insert(row.transaction.id.clone()) {
                let id = shown(&row.transaction.id);
                return Err(self.failed(asked, &format!("returned {id} twice")));
            }
            checked.push(row);
        }
        Ok(checked)
    }

    fn row(&self, asked: &Url, number: u64, fields: &Map<String, Value>) -> Result<Row, Error> {
        let place = RowPosition { row: number, line: None };
        let mut texts: [String; COLUMNS] = Default::default();
        for column in Column::ALL {
            texts[column as usize] = match fields.get(column.name()) {
                None | Some(Value::Null) => String::new(),
                Some(Value::String(text)) => text.clone(),
                Some(Value::Number(number)) => number.to_string(),
                Some(Value::Bool(flag)) => flag.to_string(),
                Some(_) => {
                    let problem = "is a list or an object, expected a plain value".to_owned();
                    return Err(Error::of_field(asked.as_str(), place, column, problem));
                }
            };
        }
        Row::parse(&Raw(texts.each_ref().map(String::as_str)))
            .map_err(|error| Error::of_field(asked.as_str(), place, error.column, error.problem))
    }

    /// Sends one request. Follows no redirects, and limits the bytes read.
    async fn get(&self, client: &reqwest::Client, url: &Url) -> Result<Option<Value>, Error> {
        let failed = |error: reqwest::Error| self.failed(url, &said(&error));
        let mut answer = client.get(url.clone()).send().await.map_err(failed)?;
        if answer.status() == reqwest::StatusCode::NOT_FOUND {
            return Ok(None);
        }
        if !answer.status().is_success() {
            return Err(self.failed(url, &format!("returned {}", answer.status())));
        }
        let mut body = Vec::new();
        while let Some(chunk) = answer.chunk().await.map_err(failed)? {
            body.extend_from_slice(&chunk);
            if body.len() > ANSWER_BYTES_MAX {
                let problem = format!("returned more than {ANSWER_BYTES_MAX} bytes");
                return Err(self.failed(url, &problem));
            }
        }
        serde_json::from_slice(&body)
            .map(Some)
            .map_err(|error| self.failed(url, &format!("returned invalid JSON: {error}")))
    }

    fn address(&self, segments: &[&str]) -> Url {
        let mut url = self.base.clone();
        // The constructor has refused such addresses.
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(segments);
        }
        url
    }

    /// Removes the user info before the host: it may contain a password.
    fn name(&self) -> String {
        let host = self.base.host_str().unwrap_or_default();
        let port = self.base.port().map(|port| format!(":{port}")).unwrap_or_default();
        format!("{}://{host}{port}{}", self.base.scheme(), self.base.path().trim_end_matches('/'))
    }

    fn failed(&self, asked: &Url, problem: &str) -> Error {
        let query = asked.query().map(|query| format!("?{query}")).unwrap_or_default();
        let path = asked.path().strip_prefix(self.base.path()).unwrap_or(asked.path());
        let address = format!("{}/{}{query}", self.name(), path.trim_start_matches('/'));
        Error::Service { address, problem: problem.to_owned() }
    }
}

fn client() -> reqwest::Result<reqwest::Client> {
    reqwest::Client::builder().timeout(ANSWER_WITHIN).redirect(Policy::none()).no_proxy().build()
}

/// The error without the address, which may contain a password.
fn said(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return format!("did not answer within {} s", ANSWER_WITHIN.as_secs());
    }
    if error.is_connect() {
        return "is unreachable".to_owned();
    }
    "closed the connection before the end of its answer".to_owned()
}
