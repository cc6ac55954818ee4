//! Steps: a session's decisions, numbered without gaps.

use serde::{Deserialize, Serialize};

use crate::clock::Stamp;
use crate::error_message::ErrorMessage;
use crate::event::names;
use crate::id::{Runner, SessionId};
use crate::item::{Hash, Item, ItemError};
use crate::key::{self, attribute};
use crate::payload::Payload;
use crate::principal::Principal;
use crate::request::{self, Request};

/// The schema version of records. A reader rejects newer ones.
pub const SCHEMA_VERSION: i64 = 1;

names! {
    /// What a step decides.
    pub enum StepKind {
        /// A runner takes over the session.
        Claim = "claim",
        /// A tool that may run only once is about to be called.
        Intent = "intent",
        /// The outcome of an effect.
        Outcome = "outcome",
        /// A question is open; the session waits until it is closed.
        Ask = "ask",
        /// The open question's answer, expiry or cancellation.
        Answer = "answer",
        /// Additional information, such as a reached budget.
        Note = "note",
        /// The end. No step follows it.
        End = "end",
    }
}

names! {
    /// The kind of an effect.
    pub enum EffectKind {
        Chat = "chat",
        Tools = "tools",
        Ask = "ask",
        Sleep = "sleep",
    }
}

names! {
    pub enum Ending {
        Completed = "completed",
        Failed = "failed",
        Cancelled = "cancelled",
        /// It exceeded its deadline.
        TimedOut = "timed_out",
        Rejected = "rejected",
    }
}

names! {
    /// Who replied to an agent's chats.
    pub enum AnsweredBy {
        Model = "model",
        /// The agent's rules.
        Policy = "policy",
        Both = "both",
    }
}

impl AnsweredBy {
    /// Who replied, with one more reply.
    #[must_use]
    pub fn and(earlier: Option<Self>, newest: Self) -> Self {
        match earlier {
            None => newest,
            Some(earlier) if earlier == newest => newest,
            Some(_) => Self::Both,
        }
    }
}

/// The subject of the note that the policy has replaced a failed model.
pub const NOTE_FALLBACK: &str = "fallback";

/// The effect that a step belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EffectRef {
    /// The graph node that requested it.
    pub node: String,
    pub kind: EffectKind,
    /// Digest of the request, without prompts, models and times.
    pub digest: Hash,
    /// Index among parallel tool calls, from 0.
    pub call: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens sent to a model, cached ones included.
    pub input_tokens: u32,
    pub output_tokens: u32,
    /// Tokens of calls whose outcome was lost, counted at their maximum.
    pub unsettled_tokens: u32,
    /// Millionths of a dollar.
    pub micro_usd: u32,
    /// Sent tokens that the model read from its cache.
    #[serde(default)]
    pub cache_read_tokens: u32,
    /// Sent tokens that the model wrote to its cache.
    #[serde(default)]
    pub cache_write_tokens: u32,
    /// Tokens without a known price; `micro_usd` does not include them.
    #[serde(default)]
    pub unpriced_tokens: u32,
}

/// A step's content, with payloads as stored ([`Payload`]) or as JSON.
#[derive(Clone, Debug, PartialEq)]
pub enum StepBody<P> {
    /// See [`StepKind::Claim`].
    Claim {
        /// The superseded epoch; 0 for the first claim.
        supersedes: u32,
        agent: String,
        /// Version of the agent's graph.
        graph_version: String,
        /// The trigger's input and settings; only in the first claim.
        input: Option<P>,
    },
    /// See [`StepKind::Intent`].
    Intent { effect: EffectRef, payload: P },
    /// See [`StepKind::Outcome`].
    Outcome {
        effect: EffectRef,
        started_at: Stamp,
        usage: Usage,
        /// The request to a model; `None` for other effects and where the policy answered.
        request: Option<Request>,
        payload: P,
    },
    /// See [`StepKind::Ask`].
    Ask {
        effect: EffectRef,
        expires_at: Stamp,
        /// The question, and a snapshot of the graph's state.
        payload: P,
    },
    /// See [`StepKind::Answer`].
    Answer {
        /// Number of the ask step.
        question: u32,
        /// Who closed the question; absent in records of older writers.
        principal: Option<Principal>,
        payload: P,
    },
    /// See [`StepKind::Note`].
    Note {
        /// The subject, one word.
        subject: String,
        /// Who decided; absent in notes of an agent.
        principal: Option<Principal>,
        payload: P,
    },
    /// See [`StepKind::End`].
    End {
        ending: Ending,
        error: Option<ErrorMessage>,
        category: Option<String>,
        /// Who answered, if the policy replaced a model that had failed.
        answered_by: Option<AnsweredBy>,
        /// The result, or what is known about the failure.
        payload: P,
    },
}

/// A step as stored.
#[derive(Clone, Debug, PartialEq)]
pub struct Step<P = Payload> {
    pub session: SessionId,
    /// From 1, without gaps.
    pub seq: u32,
    /// Number of the claim under which it was written; 0 before the first.
    pub epoch: u32,
    /// The process that wrote it.
    pub runner: Runner,
    pub stamp: Stamp,
    /// When the session's records expire, in seconds since 1970.
    pub expires_at: i64,
    /// Hash of the previous step.
    pub prev_hash: Hash,
    /// Hash of this step's item.
    pub hash: Hash,
    pub body: StepBody<P>,
}

pub(crate) const KIND: &str = "Kind";
pub(crate) const SEQ: &str = "Seq";
const EPOCH: &str = "Epoch";
const RUNNER: &str = "Runner";
const PREV_HASH: &str = "PrevHash";
const NODE: &str = "Node";
const EFFECT: &str = "Effect";
pub(crate) const DIGEST: &str = "Digest";
const CALL: &str = "Call";
const SUPERSEDES: &str = "Supersedes";
const AGENT: &str = "Agent";
const GRAPH_VERSION: &str = "GraphVersion";
const STARTED_AT: &str = "StartedAt";
const INPUT_TOKENS: &str = "InputTokens";
const OUTPUT_TOKENS: &str = "OutputTokens";
const UNSETTLED_TOKENS: &str = "UnsettledTokens";
const MICRO_USD: &str = "MicroUsd";
const CACHE_READ_TOKENS: &str = "CacheReadTokens";
const CACHE_WRITE_TOKENS: &str = "CacheWriteTokens";
const UNPRICED_TOKENS: &str = "UnpricedTokens";
const QUESTION_EXPIRES: &str = "QuestionExpiresAt";
const QUESTION: &str = "Question";
pub(crate) const SUBJECT: &str = "Subject";
const ENDING: &str = "Ending";
const ERROR_MESSAGE: &str = "ErrorMessage";
pub(crate) const CATEGORY: &str = "ErrorCategory";
const ANSWERED_BY: &str = "AnsweredBy";

impl<P> StepBody<P> {
    pub fn kind(&self) -> StepKind {
        match self {
            Self::Claim { .. } => StepKind::Claim,
            Self::Intent { .. } => StepKind::Intent,
            Self::Outcome { .. } => StepKind::Outcome,
            Self::Ask { .. } => StepKind::Ask,
            Self::Answer { .. } => StepKind::Answer,
            Self::Note { .. } => StepKind::Note,
            Self::End { .. } => StepKind::End,
        }
    }

    /// The payload; only a claim may have none.
    pub fn payload(&self) -> Option<&P> {
        match self {
            Self::Claim { input, .. } => input.as_ref(),
            Self::Intent { payload, .. }
            | Self::Outcome { payload, .. }
            | Self::Ask { payload, .. }
            | Self::Answer { payload, .. }
            | Self::Note { payload, .. }
            | Self::End { payload, .. } => Some(payload),
        }
    }

    /// Who acted, if the step records an action of a person.
    pub fn principal(&self) -> Option<&Principal> {
        match self {
            Self::Answer { principal, .. } | Self::Note { principal, .. } => principal.as_ref(),
            _ => None,
        }
    }

    /// The effect of the step, if it has one.
    pub fn effect(&self) -> Option<&EffectRef> {
        match self {
            Self::Intent { effect, .. }
            | Self::Outcome { effect, .. }
            | Self::Ask { effect, .. } => Some(effect),
            _ => None,
        }
    }

    /// Replaces the payload, if any, by the result of `with`.
    ///
    /// # Errors
    /// The error of `with`.
    pub fn try_map<Q, E>(self, with: impl FnOnce(P) -> Result<Q, E>) -> Result<StepBody<Q>, E> {
        Ok(match self {
            Self::Claim { supersedes, agent, graph_version, input } => StepBody::Claim {
                supersedes,
                agent,
                graph_version,
                input: input.map(with).transpose()?,
            },
            Self::Intent { effect, payload } => {
                StepBody::Intent { effect, payload: with(payload)? }
            }
            Self::Outcome { effect, started_at, usage, request, payload } => {
                StepBody::Outcome { effect, started_at, usage, request, payload: with(payload)? }
            }
            Self::Ask { effect, expires_at, payload } => {
                StepBody::Ask { effect, expires_at, payload: with(payload)? }
            }
            Self::Answer { question, principal, payload } => {
                StepBody::Answer { question, principal, payload: with(payload)? }
            }
            Self::Note { subject, principal, payload } => {
                StepBody::Note { subject, principal, payload: with(payload)? }
            }
            Self::End { ending, error, category, answered_by, payload } => {
                StepBody::End { ending, error, category, answered_by, payload: with(payload)? }
            }
        })
    }
}

impl<P> Step<P> {
    /// Replaces the payload, if any, by the result of `with`.
    ///
    /// # Errors
    /// The error of `with`.
    pub fn try_map<Q, E>(self, with: impl FnOnce(P) -> Result<Q, E>) -> Result<Step<Q>, E> {
        Ok(Step {
            session: self.session,
            seq: self.seq,
            epoch: self.epoch,
            runner: self.runner,
            stamp: self.stamp,
            expires_at: self.expires_at,
            prev_hash: self.prev_hash,
            hash: self.hash,
            body: self.body.try_map(with)?,
        })
    }
}

impl Step {
    pub fn to_item(&self) -> Item {
        let item = Item::new(key::session(&self.session), key::step(self.seq))
            .with(attribute::VERSION, SCHEMA_VERSION)
            .with(attribute::EXPIRES_AT, self.expires_at)
            .with(attribute::TIMESTAMP, self.stamp.to_string())
            .with(KIND, self.body.kind().as_str())
            .with(SEQ, self.seq)
            .with(EPOCH, self.epoch)
            .with(RUNNER, self.runner.as_str())
            .with(PREV_HASH, self.prev_hash.as_str());
        let item = match self.body.effect() {
            Some(effect) => item
                .with(NODE, effect.node.as_str())
                .with(EFFECT, effect.kind.as_str())
                .with(DIGEST, effect.digest.as_str())
                .with(CALL, effect.call),
            None => item,
        };
        let item = write_body(item, &self.body);
        match self.body.payload() {
            Some(payload) => payload.write_to(item),
            None => item,
        }
        .hashed()
    }

    /// Parses a step.
    ///
    /// # Errors
    /// The item is not a step, or has an unknown schema version.
    pub fn from_item(item: &Item) -> Result<Self, ItemError> {
        if item.number(attribute::VERSION)? > SCHEMA_VERSION {
            return Err(item.malformed(attribute::VERSION, "a supported schema version"));
        }
        let seq: u32 = item.small(SEQ)?;
        if item.sk != key::step(seq) {
            return Err(item.malformed(SEQ, "the number in the sort key"));
        }
        Ok(Self {
            session: key::session_of(&item.pk)
                .ok_or_else(|| item.malformed("PK", "a session's partition"))?,
            seq,
            epoch: item.small(EPOCH)?,
            runner: Runner::named(item.text(RUNNER)?),
            stamp: read_stamp(item, attribute::TIMESTAMP)?,
            expires_at: item.number(attribute::EXPIRES_AT)?,
            prev_hash: Hash::from_record(item.text(PREV_HASH)?),
            hash: item.hash(),
            body: read_body(item)?,
        })
    }
}

fn write_body(item: Item, body: &StepBody<Payload>) -> Item {
    match body {
        StepBody::Claim { supersedes, agent, graph_version, .. } => item
            .with(SUPERSEDES, *supersedes)
            .with(AGENT, agent.as_str())
            .with(GRAPH_VERSION, graph_version.as_str()),
        StepBody::Intent { .. } => item,
        StepBody::Outcome { started_at, usage, request, .. } => {
            let count =
                |item: Item, name: &str, n: u32| if n == 0 { item } else { item.with(name, n) };
            let item = item.with(STARTED_AT, started_at.to_string());
            let item = count(item, INPUT_TOKENS, usage.input_tokens);
            let item = count(item, OUTPUT_TOKENS, usage.output_tokens);
            let item = count(item, UNSETTLED_TOKENS, usage.unsettled_tokens);
            let item = count(item, MICRO_USD, usage.micro_usd);
            let item = count(item, CACHE_READ_TOKENS, usage.cache_read_tokens);
            let item = count(item, CACHE_WRITE_TOKENS, usage.cache_write_tokens);
            let item = count(item, UNPRICED_TOKENS, usage.unpriced_tokens);
            match request {
                Some(request) => item
                    .with(request::REQUEST, request.frame_bytes())
                    .with(request::MESSAGES, request.messages.as_str()),
                None => item,
            }
        }
        StepBody::Ask { expires_at, .. } => item.with(QUESTION_EXPIRES, expires_at.to_string()),
        StepBody::Answer { question, principal, .. } => item
            .with(QUESTION, *question)
            .with_some(attribute::PRINCIPAL, principal.as_ref().map(ToString::to_string)),
        StepBody::Note { subject, principal, .. } => item
            .with(SUBJECT, subject.as_str())
            .with_some(attribute::PRINCIPAL, principal.as_ref().map(ToString::to_string)),
        StepBody::End { ending, error, category, answered_by, .. } => item
            .with(ENDING, ending.as_str())
            .with_some(ERROR_MESSAGE, error.as_ref().map(ErrorMessage::as_str))
            .with_some(CATEGORY, category.as_deref())
            .with_some(ANSWERED_BY, answered_by.map(AnsweredBy::as_str)),
    }
}

fn read_body(item: &Item) -> Result<StepBody<Payload>, ItemError> {
    let kind =
        StepKind::parse(item.text(KIND)?).ok_or_else(|| item.malformed(KIND, "a step's kind"))?;
    let payload = || {
        Payload::read_from(item)?.ok_or_else(|| item.malformed("Payload", "text, bytes or parts"))
    };
    Ok(match kind {
        StepKind::Claim => StepBody::Claim {
            supersedes: item.small(SUPERSEDES)?,
            agent: item.text(AGENT)?.to_owned(),
            graph_version: item.text(GRAPH_VERSION)?.to_owned(),
            input: Payload::read_from(item)?,
        },
        StepKind::Intent => StepBody::Intent { effect: read_effect(item)?, payload: payload()? },
        StepKind::Outcome => StepBody::Outcome {
            effect: read_effect(item)?,
            started_at: read_stamp(item, STARTED_AT)?,
            usage: read_usage(item)?,
            request: Request::read_from(item)?,
            payload: payload()?,
        },
        StepKind::Ask => StepBody::Ask {
            effect: read_effect(item)?,
            expires_at: read_stamp(item, QUESTION_EXPIRES)?,
            payload: payload()?,
        },
        StepKind::Answer => {
            let principal = Principal::read_from(item)?;
            StepBody::Answer { question: item.small(QUESTION)?, principal, payload: payload()? }
        }
        StepKind::Note => {
            let (subject, principal) =
                (item.text(SUBJECT)?.to_owned(), Principal::read_from(item)?);
            StepBody::Note { subject, principal, payload: payload()? }
        }
        StepKind::End => {
            StepBody::End {
                ending: Ending::parse(item.text(ENDING)?)
                    .ok_or_else(|| item.malformed(ENDING, "a known ending"))?,
                error: item.text_opt(ERROR_MESSAGE).map(ErrorMessage::from_text),
                category: item.text_opt(CATEGORY).map(str::to_owned),
                answered_by: match item.text_opt(ANSWERED_BY) {
                    None => None,
                    Some(by) => Some(AnsweredBy::parse(by).ok_or_else(|| {
                        item.malformed(ANSWERED_BY, "`model`, `policy` or `both`")
                    })?),
                },
                payload: payload()?,
            }
        }
    })
}

fn read_effect(item: &Item) -> Result<EffectRef, ItemError> {
    Ok(EffectRef {
        node: item.text(NODE)?.to_owned(),
        kind: EffectKind::parse(item.text(EFFECT)?)
            .ok_or_else(|| item.malformed(EFFECT, "an effect's kind"))?,
        digest: Hash::from_record(item.text(DIGEST)?),
        call: item.small(CALL)?,
    })
}

fn read_usage(item: &Item) -> Result<Usage, ItemError> {
    let count =
        |name: &str| if item.attributes.contains_key(name) { item.small(name) } else { Ok(0) };
    Ok(Usage {
        input_tokens: count(INPUT_TOKENS)?,
        output_tokens: count(OUTPUT_TOKENS)?,
        unsettled_tokens: count(UNSETTLED_TOKENS)?,
        micro_usd: count(MICRO_USD)?,
        cache_read_tokens: count(CACHE_READ_TOKENS)?,
        cache_write_tokens: count(CACHE_WRITE_TOKENS)?,
        unpriced_tokens: count(UNPRICED_TOKENS)?,
    })
}

fn read_stamp(item: &Item, name: &str) -> Result<Stamp, ItemError> {
    Stamp::parse(item.text(name)?).map_err(|_| item.malformed(name, "a time"))
}
