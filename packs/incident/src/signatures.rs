//! Known failures: the words that a log line has, what they mean, and what to do.
//!
//! The first signature that a failed invocation's lines fit explains it. So the specific ones precede
//! the general ones: a timeout is last, because what the function waited for is the cause.

mod calls;
mod start;

use super::diagnosis::{FaultType, RiskLevel, Severity};

/// The start of a CloudTrail event's name, and request parameters. The event must have one of them.
pub(super) type Call = (&'static str, &'static [&'static str]);

#[derive(Debug)]
pub(super) struct Signature {
    /// One of these is in the line, in lower case and as whole words.
    pub phrases: &'static [&'static str],
    /// Or it tells one of these HTTP statuses.
    pub statuses: &'static [u16],
    pub fault: FaultType,
    /// The end of a sentence.
    pub means: &'static str,
    pub severity: Severity,
    pub step: Advice,
    /// The changes that can cause it.
    pub calls: &'static [Call],
    /// Whether it counts although later invocations succeed: it depends on the input or the load.
    pub recurs: bool,
}

/// A step of the plan. A step that changes something needs approval.
#[derive(Debug)]
pub(super) struct Advice {
    pub action: &'static str,
    pub details: &'static str,
    pub risk: RiskLevel,
}

const fn change(action: &'static str, details: &'static str) -> Advice {
    Advice { action, details, risk: RiskLevel::Medium }
}

const fn look(action: &'static str, details: &'static str) -> Advice {
    Advice { action, details, risk: RiskLevel::Low }
}

const CONFIGURATION: &str = "UpdateFunctionConfiguration";
const NEW_CODE: Call = ("UpdateFunctionCode", &[]);
const NEW_ALIAS: Call = ("UpdateAlias", &[]);

const CODE_CALLS: &[Call] =
    &[NEW_CODE, NEW_ALIAS, (CONFIGURATION, &["layers", "runtime", "handler", "environment"])];
const TIMEOUT_CALLS: &[Call] = &[
    (CONFIGURATION, &["timeout", "memorySize"]),
    ("UpdateEventSourceMapping", &["batchSize", "maximumBatchingWindowInSeconds"]),
    NEW_CODE,
    NEW_ALIAS,
];

/// All of the tables, in the order of their precedence.
pub(super) fn all() -> impl Iterator<Item = &'static Signature> {
    start::TABLE.iter().chain(calls::TABLE)
}

/// Whether it is about a variable of the environment.
pub(super) fn is_of_environment(signature: &Signature) -> bool {
    signature.phrases.contains(&"os.environ")
}

/// What a log line without a signature, but with a crash of the function's own code, means.
pub(super) static CODE: Signature = Signature {
    phrases: &[
        "keyerror",
        "typeerror",
        "valueerror",
        "attributeerror",
        "indexerror",
        "nameerror",
        "unboundlocalerror",
        "zerodivisionerror",
        "recursionerror",
        "assertionerror",
        "notimplementederror",
        "unicodedecodeerror",
        "decimal.invalidoperation",
        "referenceerror",
        "rangeerror",
        "java.lang.nullpointerexception",
        "java.lang.illegalargumentexception",
        "java.lang.illegalstateexception",
        "java.lang.classcastexception",
        "java.lang.arithmeticexception",
        "java.lang.numberformatexception",
        "java.lang.stackoverflowerror",
        "system.nullreferenceexception",
        "system.argumentexception",
        "panic: runtime error",
        "panicked at",
        "nil pointer dereference",
        "index out of range",
        "nomethoderror",
    ],
    statuses: &[],
    fault: FaultType::CodeError,
    means: "its own code raises it",
    severity: Severity::High,
    step: Advice {
        action: "Repair the code, or roll it back",
        details: "Start at the place that the error names: reproduce one failing invocation with its \
                  input. If a deployment precedes the first failure, roll it back first.",
        risk: RiskLevel::Medium,
    },
    calls: CODE_CALLS,
    recurs: true,
};

/// A timeout of the invocation. What it waited for is unknown, or only its last line tells.
pub(super) static TIMEOUT: Signature = Signature {
    phrases: &[],
    statuses: &[],
    fault: FaultType::Timeout,
    means: "the invocation took longer than the configured timeout",
    severity: Severity::High,
    step: change(
        "Find what takes the time",
        "Compare the duration with earlier invocations: if the timeout was lowered, raise it again; if \
         the input or the batch grew, make it smaller; if it waits for a call, set a timeout of that \
         call below the function's.",
    ),
    calls: TIMEOUT_CALLS,
    recurs: true,
};

/// An initialization that took too long. Source: AWS Lambda Developer Guide, "Understanding the Lambda execution environment lifecycle".
pub(super) static SLOW_START: Signature = Signature {
    phrases: &[],
    statuses: &[],
    fault: FaultType::Timeout,
    means: "the initialization took longer than the 10 seconds that Lambda allows",
    severity: Severity::High,
    step: change(
        "Make the initialization shorter",
        "Load less before the handler: large models and connections on first use. More memory gives \
         more CPU, and provisioned concurrency allows a longer initialization.",
    ),
    calls: &[(CONFIGURATION, &["memorySize", "layers"]), NEW_CODE, NEW_ALIAS],
    recurs: true,
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phrases_are_in_lower_case_and_in_one_signature() {
        let mut seen: Vec<&str> = Vec::new();
        for phrase in all().chain([&CODE]).flat_map(|signature| signature.phrases) {
            assert_eq!(*phrase, phrase.to_ascii_lowercase());
            assert!(!seen.contains(phrase), "{phrase}");
            seen.push(phrase);
        }
    }
}
