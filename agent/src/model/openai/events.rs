//! A parser of server-sent events, limited to the `data` lines that chat completions use.

use std::collections::VecDeque;

/// An incremental parser. The caller bounds the bytes.
#[derive(Debug, Default)]
pub(super) struct Events {
    /// The incomplete last line.
    rest: Vec<u8>,
    /// How much of `rest` has been searched for a newline.
    searched: usize,
    ready: VecDeque<Vec<u8>>,
}

impl Events {
    pub(super) fn take(&mut self, bytes: &[u8]) {
        self.rest.extend_from_slice(bytes);
        let mut begin = 0;
        while let Some(length) = self.rest[self.searched..].iter().position(|byte| *byte == b'\n') {
            let end = self.searched + length;
            let line = self.rest[begin..end].strip_suffix(b"\r").unwrap_or(&self.rest[begin..end]);
            let data = line.strip_prefix(b"data:").unwrap_or_default().trim_ascii();
            if !data.is_empty() {
                self.ready.push_back(data.to_vec());
            }
            begin = end + 1;
            self.searched = begin;
        }
        self.rest.drain(..begin);
        self.searched = self.rest.len();
    }

    pub(super) fn next(&mut self) -> Option<Vec<u8>> {
        self.ready.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_the_same_however_the_bytes_are_cut() {
        let text = b": comment\ndata: {\"a\": 1}\r\n\r\nevent: x\ndata:\ndata:2\n\ndata: [DONE]\ndata: cut";
        for size in 1..text.len() {
            let mut events = Events::default();
            text.chunks(size).for_each(|bytes| events.take(bytes));
            let data: Vec<_> = std::iter::from_fn(|| events.next()).collect();
            assert_eq!(data, [b"{\"a\": 1}".to_vec(), b"2".to_vec(), b"[DONE]".to_vec()], "{size}");
        }
    }
}
