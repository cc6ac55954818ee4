//! The conformance suite, case by case, on both stores.

use journal::store::Store;

on_both_stores!(all_cases_share_one_store);

async fn all_cases_share_one_store<S: Store>(store: S) {
    journal::conformance::all(store).await;
}

macro_rules! cases {
    ($module:ident in $path:path: $($name:ident),+ $(,)?) => {
        mod $module {
            use journal::store::Store;
            use $path as cases;

            $(async fn $name<S: Store>(store: S) {
                cases::$name(&store).await;
            })+
            on_both_stores!($($name),+);
        }
    };
}

cases!(
    items in journal::conformance:
    only_the_first_put_of_a_key_lands,
    a_second_delivery_is_distinguished_from_a_retry,
    at_most_compares_numbers_as_numbers_and_text_as_bytes,
    conditions_combine,
    an_update_keeps_what_it_does_not_set,
    an_update_creates_only_where_its_condition_allows,
    every_kind_of_value_survives,
    a_part_of_full_size_survives,
    an_item_over_the_limit_is_rejected,
    a_query_reads_its_range_in_order,
    sort_keys_are_ordered_by_bytes,
    pages_join_without_gap_or_repetition,
    a_write_is_seen_by_the_next_read,
    partitions_are_apart,
    one_of_two_concurrent_writers_wins,
    the_index_lists_a_day_by_time,
    waiting_for_a_change_ends,
);

cases!(
    records in journal::conformance::records:
    concurrent_runners_leave_a_dense_chain,
    a_session_ends_once,
    announcements_at_one_nanosecond_are_all_kept,
    an_announcement_is_written_once,
    a_large_payload_is_read_back,
);
