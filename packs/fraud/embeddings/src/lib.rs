//! Embeds texts with a BERT sentence transformer: an [`Embedding`] for `card-transactions`.
//!
//! The model is a folder in the usual layout: `config.json`, `tokenizer.json`, `model.safetensors`.
//! It runs on the CPU, and no text leaves the machine. Candle takes minutes to build, so this crate
//! is separate and only builds with the feature `embeddings` link it.

use std::fmt;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use candle_core::{DType, Device, Tensor};
use candle_nn::VarBuilder;
use candle_transformers::models::bert::{BertModel, Config};
use card_transactions::Embedding;
use tokenizers::{PaddingParams, Tokenizer, TruncationParams};

/// Largest file of a model, in bytes. The largest common model of the family takes 1.3 GB.
const FILE_BYTES_MAX: u64 = 2 * 1024 * 1024 * 1024;

/// Most tokens of a text; the rest is ignored. A payment's text has about thirty.
const TOKENS_MAX: usize = 64;

/// Texts per batch.
const AT_ONCE: usize = 16;

/// Why a model cannot be loaded.
#[derive(Debug, thiserror::Error)]
#[error("{file}: {problem}")]
pub struct Error {
    pub file: String,
    pub problem: String,
}

/// Loads the model in this folder for the server.
///
/// # Errors
/// As [`Embedder::open`].
pub fn open(folder: &Path) -> Result<Arc<dyn Embedding>, Box<dyn std::error::Error + Send + Sync>> {
    Ok(Arc::new(Embedder::open(folder)?))
}

/// A loaded model.
pub struct Embedder {
    tokenizer: Tokenizer,
    model: BertModel,
}

impl fmt::Debug for Embedder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Embedder").finish_non_exhaustive()
    }
}

impl Embedder {
    /// Loads the model in this folder. Takes about as much memory as its file.
    ///
    /// # Errors
    /// If a file cannot be read or is not part of a BERT model.
    pub fn open(folder: &Path) -> Result<Self, Error> {
        let file = |name: &str| folder.join(name);
        let config: Config = read(&file("config.json"), |bytes| {
            serde_json::from_slice(bytes).map_err(|error| error.to_string())
        })?;
        let tokenizer = read(&file("tokenizer.json"), tokenizer)?;
        let model = read(&file("model.safetensors"), |bytes| {
            VarBuilder::from_slice_safetensors(bytes, DType::F32, &Device::Cpu)
                .and_then(|weights| BertModel::load(weights, &config))
                .map_err(|error| first_line(&error))
        })?;
        Ok(Self { tokenizer, model })
    }

    /// Embeds one batch: the mean of the model's token outputs, per text.
    fn batch(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, String> {
        let encoded = self.tokenizer.encode_batch(texts.to_vec(), true);
        let encoded = encoded.map_err(|error| error.to_string())?;
        let ids: Vec<&[u32]> = encoded.iter().map(tokenizers::Encoding::get_ids).collect();
        let mask: Vec<&[u32]> =
            encoded.iter().map(tokenizers::Encoding::get_attention_mask).collect();
        self.points(&ids, &mask).map_err(|error| first_line(&error))
    }

    fn points(&self, ids: &[&[u32]], mask: &[&[u32]]) -> candle_core::Result<Vec<Vec<f32>>> {
        let matrix = |rows: &[&[u32]]| {
            let width = rows.first().map_or(0, |row| row.len());
            Tensor::from_vec(rows.concat(), (rows.len(), width), &Device::Cpu)
        };
        let (ids, mask) = (matrix(ids)?, matrix(mask)?);
        let of_tokens = self.model.forward(&ids, &ids.zeros_like()?, Some(&mask))?;
        let weights = mask.to_dtype(DType::F32)?.unsqueeze(2)?;
        let sums = of_tokens.broadcast_mul(&weights)?.sum(1)?;
        // The sum is enough: the mean has the same direction.
        let lengths = sums.sqr()?.sum_keepdim(1)?.sqrt()?;
        sums.broadcast_div(&lengths)?.to_vec2()
    }
}

impl Embedding for Embedder {
    fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, String> {
        let mut points = Vec::with_capacity(texts.len());
        for texts in texts.chunks(AT_ONCE) {
            points.extend(self.batch(texts)?);
        }
        Ok(points)
    }
}

fn read<T>(path: &Path, parse: impl Fn(&[u8]) -> Result<T, String>) -> Result<T, Error> {
    let wrong = |problem| Error { file: path.display().to_string(), problem };
    let about = fs::metadata(path).map_err(|error| wrong(format!("cannot be read: {error}")))?;
    if about.len() > FILE_BYTES_MAX {
        return Err(wrong(format!("is larger than {FILE_BYTES_MAX} bytes")));
    }
    let bytes = fs::read(path).map_err(|error| wrong(format!("cannot be read: {error}")))?;
    parse(&bytes).map_err(|problem| wrong(format!("is not part of a BERT model: {problem}")))
}

fn tokenizer(bytes: &[u8]) -> Result<Tokenizer, String> {
    let mut tokenizer = Tokenizer::from_bytes(bytes).map_err(|error| error.to_string())?;
    let truncation = TruncationParams { max_length: TOKENS_MAX, ..TruncationParams::default() };
    tokenizer.with_truncation(Some(truncation)).map_err(|error| error.to_string())?;
    tokenizer.with_padding(Some(PaddingParams::default()));
    Ok(tokenizer)
}

/// The first line of the error; the rest is a backtrace of the library.
fn first_line(error: &candle_core::Error) -> String {
    error.to_string().lines().next().unwrap_or_default().to_owned()
}
