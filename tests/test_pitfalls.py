"""Faults found in other systems, and the tests here that would catch each of them.

docs/deviations.md says more of those that change results. A test that is renamed or lost is missed here.
"""

import ast
from pathlib import Path

import pytest

TESTS = Path(__file__).parent

PITFALLS: dict[str, tuple[str, ...]] = {
    "B1: the softmax is applied twice": (
        "test_linear_head.py::test_softmax_is_applied_once",
        "types/test_signals.py::test_residuals_are_the_gradient_of_the_loss_in_the_logits",
        "test_extract.py::test_residuals_and_head_gradients_are_autograd_s",
    ),
    "B2: gradients cut from a batch's mean grow with how small the batch is": (
        "test_linear_head.py::test_factors_of_a_part_are_the_part_of_the_factors",
        "selection/test_by_score.py::test_the_batch_size_of_the_extraction_picks_nothing",
    ),
    "B3: signals are taken in training mode, and the network is changed by it": (
        "test_extract.py::test_the_batch_size_does_not_matter_and_the_model_is_untouched",
    ),
    "B4: without balancing of the classes another method runs": (
        "selection/test_select.py::test_none_takes_the_whole_data_as_one_group",
        "selection/test_by_score.py::test_the_direction_is_the_same_per_class_and_over_all",
    ),
    "B5: a misspelt option is swallowed, and glister never updates": (
        "selection/test_select.py::test_bad_input",
        "test_registry.py::test_unknown_options_are_answered_with_the_valid_ones",
        "selection/test_by_validation.py::test_every_pick_is_the_best_one_after_the_steps_before_it",
    ),
    "B6: the most confident samples are kept over all, the least confident per class": (
        "selection/test_by_score.py::test_the_direction_is_the_same_per_class_and_over_all",
    ),
    "B7: herding takes the farthest": (
        "selection/test_by_geometry.py::test_herding_is_nearer_the_mean_than_each_of_50_random_draws",
    ),
    "B8: the log-determinant gains by copies": (
        "selection/test_by_submodular.py::test_log_determinant_is_greedy_on_its_set_function",
        "selection/test_by_submodular.py::test_a_copy_gains_least_and_orthogonal_samples_most",
    ),
    "B9: weights sum to more than n": (
        "selection/test_contract.py::test_exact_count_distinct_in_range_weights",
        "selection/test_by_gradient.py::test_weights_are_cluster_sizes_and_sum_to_n",
    ),
    "B10: similarity is a constant less the distance": (
        "selection/test_by_gradient.py::test_craig_does_not_depend_on_the_scale_of_the_gradients",
    ),
    "B11: zeros in the features make all Newton steps alike": (
        "selection/test_by_gradient.py::test_adacore_tells_samples_apart_whose_features_hold_zeros",
        "selection/test_by_gradient.py::test_adacore_is_calm_where_the_softmax_saturates",
        "types/test_signals.py::test_impossible_signals_cannot_be_made",
    ),
    "B12: a sample has a distance to itself": (
        "selection/test_distances.py::test_duplicates_and_self_are_at_exactly_zero",
    ),
    "B13: curvature is spread out over pairs and coordinates": (
        "selection/test_distances.py::test_curvature_is_never_spread_out_over_pairs_and_coordinates",
        "selection/test_distances.py::test_differences_taken_at_once_stay_within_their_block",
    ),
    "B14: the first batch is dropped by an unnamed except": (
        "test_linear_head.py::test_no_block_of_rows_is_left_out_of_the_variance",
        "test_architecture.py::test_no_error_is_swallowed_unnamed",
    ),
    "B15: a proxy is found again by a part of its settings": (
        "study/test_cells.py::test_whatever_decides_a_result_is_in_its_key",
        "evaluation/test_protocol.py::test_another_setting_is_another_training",
    ),
    "B16: a command fails with its defaults": (
        "cli/test_defaults.py::test_no_command_is_forgotten",
        "cli/test_defaults.py::test_from_select_to_report",
        "cli/test_select_command.py::test_defaults_make_a_run_of_one_per_cent",
    ),
    "B17: a parameter's default is the import of its name": (
        "test_architecture.py::test_no_default_is_the_import_of_the_same_name",
    ),
    "B18: the best epoch on the test set is reported": (
        "evaluation/test_protocol.py::test_the_number_is_the_last_epochs_accuracy_of_a_fresh_network",
    ),
    "B19: seeds come from the clock, and global generators are seeded anew": (
        "test_architecture.py::test_seeds_never_come_from_the_clock_and_the_global_generators_are_left_alone",
        "selection/test_contract.py::test_the_same_seed_gives_the_same_and_leaves_the_global_generators_alone",
        "evaluation/test_protocol.py::test_the_global_generators_are_left_alone",
    ),
    "B20: data are split before anything is seeded": (
        "data/test_assemble.py::test_the_split_depends_on_the_seed_alone",
    ),
    "B21: the random draw takes the first samples": (
        "selection/test_by_chance.py::test_every_sample_is_as_likely_as_any_other",
    ),
    "B22: every class gets the last one's count": (
        "selection/test_budget.py::test_every_class_has_its_own_count",
        "selection/test_by_coverage.py::test_every_class_has_its_own_budget_and_the_cut_leaves_enough",
    ),
    "B23: the order of the picks is lost": (
        "selection/test_contract.py::test_a_prefix_of_a_longer_run_is_the_shorter_run",
        "selection/test_by_score.py::test_keep_highest_returns_scores_in_pick_order",
    ),
    "B24: k-center keeps picks × samples": (
        "selection/test_by_geometry.py::test_farthest_first_computes_one_row_for_each_pick",
    ),
    "B25: a method fails with its own defaults": (
        "selection/test_contract.py::test_exact_count_distinct_in_range_weights",
        "study/test_settings.py::test_every_method_accepts_its_own_defaults",
    ),
}


@pytest.mark.parametrize("pitfall", PITFALLS)
def test_there_is_a_test_for_it(pitfall: str) -> None:
    assert PITFALLS[pitfall]
    for test in PITFALLS[pitfall]:
        path, _, wanted = test.partition("::")
        tree = ast.parse((TESTS / path).read_text(encoding="utf-8"))
        assert wanted in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}, test


def test_none_of_the_list_is_left_out() -> None:
    assert [name.partition(":")[0] for name in PITFALLS] == [f"B{number}" for number in range(1, 26)]
