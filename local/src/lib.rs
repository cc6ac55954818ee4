//! One machine's cloud.
