//! Choices made from an input's bytes, so that a small change of the input is a small change of what
//! is generated from it.

/// An input that is being read; after its end it reads as zeros.
#[derive(Debug)]
pub struct Cursor<'a> {
    bytes: &'a [u8],
}

/// Characters that mean something somewhere: in canonical bytes, in expressions, in UTF-8.
const ALPHABET: [char; 24] = [
    'a', 'b', 'S', 'N', 'B', 'P', 'K', 'H', ':', '#', '0', '1', '2', '3', '9', ' ', '.', '"', '\\',
    '\0', '\n', 'é', '€', '𝄞',
];

impl<'a> Cursor<'a> {
    /// A cursor at the beginning of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    /// Whether everything has been read.
    pub fn is_at_end(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The next byte.
    pub fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.bytes.split_first() else { return 0 };
        self.bytes = rest;
        *first
    }

    /// A number from 0 up to and without `bound`, which is at least 1.
    pub fn below(&mut self, bound: usize) -> usize {
        usize::from(self.byte()) % bound
    }

    /// One of these.
    pub fn one_of<'b, T: ?Sized>(&mut self, choices: &[&'b T]) -> &'b T {
        choices[self.below(choices.len())]
    }

    /// At most `max` bytes.
    pub fn bytes(&mut self, max: usize) -> Vec<u8> {
        let length = self.below(max + 1);
        (0..length).map(|_| self.byte()).collect()
    }

    /// A text of at most `max` characters.
    pub fn text(&mut self, max: usize) -> String {
        let length = self.below(max + 1);
        (0..length).map(|_| ALPHABET[self.below(ALPHABET.len())]).collect()
    }

    /// A whole number.
    pub fn whole(&mut self) -> i64 {
        let small = i64::from(self.byte());
        match self.below(4) {
            0 => small,
            1 => -small,
            2 => i64::MAX - small,
            _ => i64::from_le_bytes(std::array::from_fn(|_| self.byte())),
        }
    }
}
