//! Failures of the function itself: its memory, its package, its settings.

use super::super::changes::KEYS;
use super::super::diagnosis::{FaultType, Severity};
use super::{Advice, CONFIGURATION, Call, NEW_ALIAS, NEW_CODE, Signature, change};

const PACKAGE_CALLS: &[Call] = &[
    NEW_CODE,
    NEW_ALIAS,
    (CONFIGURATION, &["layers", "runtime", "handler", "imageConfig", "architectures"]),
    ("DeleteLayerVersion", &[]),
];
const ENVIRONMENT_CALLS: &[Call] = &[(CONFIGURATION, &["environment"]), NEW_CODE, NEW_ALIAS];
const FILE_SYSTEM_CALLS: &[Call] = &[
    (CONFIGURATION, &["fileSystemConfigs", "vpcConfig"]),
    ("RevokeSecurityGroup", &[]),
    ("ModifySecurityGroupRules", &[]),
    ("DeleteMountTarget", &[]),
    ("ModifyMountTargetSecurityGroups", &[]),
    ("DeleteAccessPoint", &[]),
];
const LOAD_CALLS: &[Call] = &[
    (CONFIGURATION, &["memorySize"]),
    NEW_CODE,
    NEW_ALIAS,
    ("UpdateEventSourceMapping", &["batchSize", "maximumBatchingWindowInSeconds"]),
];
const RAISE_MEMORY: Advice = change(
    "Raise the function's memory",
    "Raise MemorySize (lambda:UpdateFunctionConfiguration) to where Max Memory Used leaves a margin, or \
     load less at once. If it worked before with this memory, look for what grew: the input, the batch \
     or a leak.",
);
const ROLL_BACK: Advice = change(
    "Deploy a version that starts",
    "Roll back to the last version that worked (its alias, or its package), then build the package \
     again and start it in the function's runtime and architecture before it is deployed.",
);
const SET_VARIABLE: Advice = change(
    "Set the environment variable again",
    "Set it on the function together with all others: lambda:UpdateFunctionConfiguration replaces the \
     whole environment.",
);
const REPAIR_KEY: Advice = change(
    "Make the KMS key usable again",
    "Cancel its deletion (kms:CancelKeyDeletion) and enable it (kms:EnableKey), or, if it is gone on \
     purpose, encrypt with another key.",
);

pub(super) static TABLE: &[Signature] = &[
    // Source: AWS Lambda Developer Guide, "Troubleshoot execution issues"; Node.js, Java, Python, .NET and Go runtimes.
    Signature {
        phrases: &[
            "runtime.outofmemory",
            "signal: killed",
            "javascript heap out of memory",
            "reached heap limit",
            "java.lang.outofmemoryerror",
            "outofmemoryerror",
            "outofmemoryexception",
            "memoryerror",
            "std::bad_alloc",
            "cannot allocate memory",
            "runtime: out of memory",
            "memory allocation failed",
            "allowed memory size of",
        ],
        statuses: &[],
        fault: FaultType::OutOfMemory,
        means: "it ran out of memory, which fits too little memory for its input",
        severity: Severity::High,
        step: RAISE_MEMORY,
        calls: LOAD_CALLS,
        recurs: true,
    },
    // Source: AWS Lambda Developer Guide, "Configure ephemeral storage for Lambda functions"; errno(3).
    Signature {
        phrases: &["no space left on device", "enospc", "disk quota exceeded"],
        statuses: &[],
        fault: FaultType::StorageFull,
        means: "the ephemeral storage (/tmp) is full",
        severity: Severity::High,
        step: change(
            "Empty /tmp or enlarge it",
            "Delete what an invocation writes to /tmp before it ends: the directory outlives the \
             invocation. Or raise EphemeralStorage (lambda:UpdateFunctionConfiguration).",
        ),
        calls: &[(CONFIGURATION, &["ephemeralStorage"]), NEW_CODE, NEW_ALIAS],
        recurs: true,
    },
    // Source: AWS Lambda Developer Guide, "Troubleshoot deployment issues", "Lambda instruction set architecture".
    Signature {
        phrases: &[
            "exec format error",
            "cannot execute binary file",
            "invalid elf header",
            "wrong elf class",
        ],
        statuses: &[],
        fault: FaultType::Deployment,
        means: "the binary was built for another architecture than the function has",
        severity: Severity::Critical,
        step: ROLL_BACK,
        calls: PACKAGE_CALLS,
        recurs: false,
    },
    Signature {
        phrases: &["cannot open shared object file", "glibc_2"],
        statuses: &[],
        fault: FaultType::Deployment,
        means: "the package needs a system library that the runtime lacks",
        severity: Severity::Critical,
        step: ROLL_BACK,
        calls: PACKAGE_CALLS,
        recurs: false,
    },
    Signature {
        phrases: &[
            "runtime.handlernotfound",
            "runtime.malformedhandlername",
            "missing on module",
            "is undefined or not exported",
            "could not find or load main class",
            "lambda_handler not found",
        ],
        statuses: &[],
        fault: FaultType::Deployment,
        means: "the configured handler is not in the deployment package",
        severity: Severity::Critical,
        step: ROLL_BACK,
        calls: PACKAGE_CALLS,
        recurs: false,
    },
    Signature {
        phrases: &["runtime.usercodesyntaxerror", "syntax error in module"],
        statuses: &[],
        fault: FaultType::Deployment,
        means: "the deployed code has a syntax error",
        severity: Severity::Critical,
        step: ROLL_BACK,
        calls: PACKAGE_CALLS,
        recurs: false,
    },
    Signature {
        phrases: &[
            "runtime.importmoduleerror",
            "unable to import module",
            "cannot find module",
            "cannot find package",
            "err_module_not_found",
            "modulenotfounderror",
            "no module named",
        ],
        statuses: &[],
        fault: FaultType::Deployment,
        means: "the deployment package and its layers lack a module that the code imports",
        severity: Severity::Critical,
        step: ROLL_BACK,
        calls: PACKAGE_CALLS,
        recurs: false,
    },
    Signature {
        phrases: &["classnotfoundexception", "noclassdeffounderror", "class not found"],
        statuses: &[],
        fault: FaultType::Deployment,
        means: "the deployment package lacks a class that it needs",
        severity: Severity::Critical,
        step: ROLL_BACK,
        calls: PACKAGE_CALLS,
        recurs: false,
    },
    Signature {
        phrases: &[
            "runtime.invalidentrypoint",
            "runtime.invalidworkingdir",
            "couldn't find valid bootstrap",
            "entrypoint requires the handler name",
            "fork/exec /var/task/bootstrap",
            "fork/exec /var/runtime/bootstrap",
            "fork/exec /lambda-entrypoint.sh",
        ],
        statuses: &[],
        fault: FaultType::Deployment,
        means: "the entry point of the package or image is invalid",
        severity: Severity::Critical,
        step: ROLL_BACK,
        calls: PACKAGE_CALLS,
        recurs: false,
    },
    // Source: AWS Lambda API reference, Invoke, "Errors"; AWS KMS Developer Guide, "Key states".
    Signature {
        phrases: &["kmsaccessdeniedexception"],
        statuses: &[],
        fault: FaultType::PermissionLoss,
        means: "KMS denies the use of the key that encrypts the function's environment",
        severity: Severity::Critical,
        step: change(
            "Allow the function's role the key",
            "Allow kms:Decrypt on the key in the role's policy, and the role in the key's policy.",
        ),
        calls: KEYS,
        recurs: false,
    },
    Signature {
        phrases: &[
            "kmsdisabledexception",
            "kms.disabledexception",
            "kmsinvalidstateexception",
            "kms.kmsinvalidstateexception",
            "kmsnotfoundexception",
            "kms.notfoundexception",
            "disabledexception",
            "is pending deletion",
            "pending deletion",
            "unable to decrypt the environment variables",
            "unable to decrypt your environment variables",
        ],
        statuses: &[],
        fault: FaultType::Configuration,
        means: "the KMS key cannot be used: it is disabled, pending deletion or gone",
        severity: Severity::Critical,
        step: REPAIR_KEY,
        calls: KEYS,
        recurs: false,
    },
    // Source: AWS Lambda API reference, Invoke, "Errors".
    Signature {
        phrases: &[
            "efsmountconnectivityexception",
            "efsmountfailureexception",
            "efsmounttimeoutexception",
            "efsioexception",
            "mount.nfs4",
            "mount target",
        ],
        statuses: &[],
        fault: FaultType::Configuration,
        means: "the file system of the function cannot be mounted or used",
        severity: Severity::Critical,
        step: change(
            "Repair the file system's mount",
            "Check that the access point and a mount target in each subnet exist, and that their \
             security group lets the function in on TCP 2049.",
        ),
        calls: FILE_SYSTEM_CALLS,
        recurs: false,
    },
    // Source: Python's os.environ, envconfig, and usual checks at the start of programs.
    Signature {
        phrases: &["os.environ", "environment variable", "environment variables", "env var"],
        statuses: &[],
        fault: FaultType::Configuration,
        means: "an environment variable that the code needs is not set",
        severity: Severity::Critical,
        step: SET_VARIABLE,
        calls: ENVIRONMENT_CALLS,
        recurs: false,
    },
];
