"""The planted bugs: what is changed in the package, and the test that must notice.

Data only, so that a script can check in a second that each still fits (`tools/mutants_fit.py`).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Mutant:
    """A file, a text in it, what stands there instead, and the test that must notice."""

    file: str
    text: str
    instead: str
    test: str


NOISE = "private/test_noise.py::"
INERT = "test_files.py::"
UNNOISED = "released/test_noise_tests.py::test_a_release_without_noise_is_refused_though_all_its_files_agree"
PERSONS = "private/test_contribution_bounding.py::"
PARTIES = "private/test_parties.py::"
EXTRACTOR = "private/dpsgd/test_encoder.py::"
TRAINING = "private/dpsgd/test_classifier.py::"
UNITS = "private/test_ledger_units.py::"
UNPAID = "test_a_machine_whose_gradients_hang_on_the_block_is_refused_before_anything_is_paid"
LOCAL = "private/engines/test_local.py::"
SPENDING = "private/test_spending.py::"
RELEASE = "private/test_release.py::"
PRODUCTS = "private/test_product_sums.py::"
HERMITE = "features/test_hermite.py::"
TABLES = "features/test_tables.py::"
ATTACK = "private/test_attack.py::"
CELLS = "readers/test_cells.py::"
ENCODE = "schema/test_encode.py::"
AUDIT = "private/test_audit_releases.py::test_no_run_contradicts_what_is_claimed"
REACH = "contracts/test_sensitivities.py::test_no_row_reaches_further_than_is_charged"
LAPLACE = "accounting/test_laplace.py::"
LAPLACE_NOISE = "private/test_laplace_noise.py::"
LARGEST = "features/test_embedding.py::test_the_sensitivity_is_exactly_the_largest_change_over_all_rows"
L1_BALL = "contracts/test_feature_maps.py::test_no_row_of_any_codes_leaves_its_l1_ball"
PICTURES = "readers/test_pictures.py::"
DESCENT = "private/dpsgd/"
LANDMARKS = "features/test_landmarks.py::"
BALL = "contracts/test_feature_maps.py::test_no_row_of_any_codes_leaves_its_integer_ball"
PERCEPTUAL = "features/test_perceptual.py::"
SETTLED = "plan/test_plan.py::test_a_rule_that_changes_how_far_a_row_reaches_is_refused"
MUTANTS = {
    "images in blocks of their own number": Mutant(
        "networks/activations.py",
        "padded = np.zeros((BLOCK, shape.num_pixels), dtype=np.float32)",
        "padded = np.zeros((len(pixels), shape.num_pixels), dtype=np.float32)",
        PERCEPTUAL + "test_images_go_through_a_network_in_blocks_of_one_shape",
    ),
    "threads that hear each other": Mutant(
        "networks/activations.py",
        "with _ONE_AT_A_TIME, one_thread() as torch, torch.no_grad():",
        "with one_thread() as torch, torch.no_grad():",
        PERCEPTUAL + "test_threads_do_not_hear_each_others_rows",
    ),
    "companions not tested": Mutant(
        "networks/activations.py",
        "if not all(bool((a == b).all()) for a, b in zip(found, wanted, strict=True)):",
        "if not all(np.allclose(a, b, atol=0.1) for a, b in zip(found, wanted, strict=True)):",
        PERCEPTUAL + "test_a_network_whose_rows_see_each_other_is_refused",
    ),
    "weights left out of a network's hash": Mutant(
        "networks/public.py",
        "digest.update(tensor.tobytes())",
        "tensor.tobytes()",
        PERCEPTUAL + "test_a_map_is_told_apart_by_its_weights_and_needs_them_only_to_be_evaluated",
    ),
    "signed features said to be nonnegative": Mutant(
        "features/perceptual.py",
        "return Sign.NONNEGATIVE if self.moment == 2 or self.rectified else Sign.SIGNED",
        "return Sign.NONNEGATIVE",
        PERCEPTUAL + "test_signs_say_where_features_cannot_be_negative",
    ),
    "early stopping outside the budget": Mutant(
        "methods/mepf.py",
        "stages.append(Stage(STOPPING, embedding, stopping))",
        "stages.append(Stage(STOPPING, embedding, 1.0))",
        "fits/test_perceptual.py::test_early_stopping_has_noise_of_its_own_in_the_plan",
    ),
    "products in single precision": Mutant(
        "private/sums.py",
        "{j: np.asarray(f, dtype=np.float64) for j, f in map_.single(cells).items()}",
        "map_.single(cells)",
        "private/test_product_sums.py::test_a_norm_that_is_too_long_by_the_last_digit_is_caught[float32]",
    ),
    "noise times 0.8": Mutant(
        "private/noise.py",
        "scale=float(noise_std)",
        "scale=0.8 * noise_std",
        NOISE + "test_noise_has_the_exact_discrete_gaussian_mass_function[10-OpenDP]",
    ),
    "long noise accepted too often": Mutant(
        "private/noise.py",
        "((sizes - deviation) / deviation) ** 2 / 2,",
        "((sizes - deviation) / deviation) ** 2 / 3,",
        NOISE + "test_noise_has_the_exact_discrete_gaussian_mass_function[1000-long]",
    ),
    "long noise with two zeros": Mutant(
        "private/noise.py",
        "once = (sizes > 0) | ~is_negative",
        "once = sizes >= 0",
        NOISE + "test_noise_has_the_exact_discrete_gaussian_mass_function[2-long]",
    ),
    "an open choice settled by a rounding": Mutant(
        "private/noise.py",
        "below[i] = _exact_bernoulli_exp(int(drawn[i]), exact(int(i)))",
        "below[i] = drawn[i] < 2**51",
        NOISE + "test_choices_made_in_many_digits_have_the_same_mass_function[1000]",
    ),
    "many digits of another exponent": Mutant(
        "private/noise.py",
        "2 * deviation**2)",
        "1 * deviation**2)",
        NOISE + "test_choices_made_in_many_digits_have_the_same_mass_function[1000]",
    ),
    "seeded noise": Mutant(
        "private/noise.py",
        'return _opendp_noise("gaussian", sums, scale=float(noise_std))',
        "return sums + np.rint(np.random.default_rng(0).normal(0.0, noise_std, len(sums))).astype(np.int64)",
        NOISE + "test_two_calls_give_different_noise[OpenDP]",
    ),
    "no noise": Mutant(
        "private/release.py",
        "(noisy(first, plan, 0, source, receipt),)",
        "(first,)",
        RELEASE + "test_two_releases_of_one_table_differ_in_every_number",
    ),
    "noise of another stage": Mutant(
        "private/release.py",
        "plan.noise_scales[stage]",
        "plan.noise_scales[0]",
        RELEASE + "test_every_stage_meets_its_own_noise",
    ),
    "settled maps not probed": Mutant(
        "private/release.py",
        "    check_row_independence(work.layout, work.embedding, work.lattice)\n    return sum_table",
        "    return sum_table",
        RELEASE + "test_maps_that_noise_has_settled_are_probed_as_well[1e-05]",
    ),
    "given points not told of": Mutant(
        "released/assumptions.py",
        "            bool(points),",
        "            False,",
        "released/test_certificate.py::test_rows_that_were_given_as_public_points_are_called_unprotected[False]",
    ),
    "rows not clipped": Mutant(
        "private/lattice.py",
        "if broken.any():",
        "if False:",
        "private/test_lattice.py::test_a_map_that_breaks_its_promise_is_clipped_to_it",
    ),
    "signs not clipped": Mutant(
        "private/lattice.py",
        "-1.0 if sign is Sign.SIGNED else 0.0",
        "-1.0",
        "private/test_lattice.py::test_a_map_that_breaks_its_promise_is_clipped_to_it",
    ),
    "more rows of a person than count": Mutant(
        "private/contribution_bounding.py",
        "< max_rows]",
        "<= max_rows]",
        PERSONS + "test_rows_that_are_all_alike_reach_what_is_stated",
    ),
    "rows of a person chosen by their order": Mutant(
        "private/contribution_bounding.py",
        "np.lexsort((_mixed(hashes[order] + earlier * np.uint64(_GOLDEN)), owners))",
        "np.argsort(persons[order], kind='stable')[np.argsort(order)].argsort(kind='stable')",
        PERSONS + "test_which_rows_count_does_not_depend_on_their_order",
    ),
    "rows without an id as one person": Mutant(
        "private/contribution_bounding.py",
        "known = np.flatnonzero(ids.is_valid().to_numpy(zero_copy_only=False))",
        "ids = ids.fill_null(b'')\n    known = np.arange(len(ids))",
        PERSONS + "test_rows_without_an_id_never_count",
    ),
    "a word for null is a person": Mutant(
        "schema/encode.py",
        "named = pc.invert(pc.match_substring_regex(text, _NO_BYTES if is_fixed else _NOBODY))",
        "named = pc.not_equal(text, '')",
        PERSONS + "test_people_whose_missing_ids_are_a_word_do_not_displace_each_other_s_rows[NULL]",
    ),
    "bytes of numbers trimmed": Mutant(
        "schema/encode.py",
        "own = cells if is_fixed else",
        "own = text if is_fixed else",
        PERSONS + "test_bytes_of_a_fixed_width_are_ids_as_they_are",
    ),
    "one person in two groups": Mutant(
        "private/contribution_bounding.py",
        "held.append(people.only(residue, modulus))",
        "held.append(people.only(residue, 1))",
        PERSONS + "test_people_whose_rows_lie_in_several_files_and_passes_count_the_same",
    ),
    "noise for one row of a person": Mutant(
        "plan/plan.py",
        "factor = moved if self.budget.is_pure else moved**2",
        "factor = moved",
        "plan/test_plan.py::test_as_many_rows_as_count_move_a_sum_and_noise_grows_with_them[2]",
    ),
    "a zero that keeps its sign": Mutant(
        "schema/encode.py",
        "return found + 0.0  # -0.0",
        "return found  # -0.0",
        "readers/test_cells.py::test_a_zero_with_a_sign_is_zero_in_every_type",
    ),
    "a released column of ids": Mutant(
        "plan/plan.py",
        "if unit.unit in {*self.schema.file_names, *(column.name for column in self.schema.used)}:",
        "if False:",
        "plan/test_plan.py::test_the_column_of_ids_is_never_released",
    ),
    "a ledger of two units": Mutant(
        "private/ledger.py",
        "    if others:",
        "    if False:",
        PERSONS + "test_the_certificate_and_the_ledger_name_whose_privacy_it_is",
    ),
    "a part added before its last batch": Mutant(
        "private/passes.py",
        "summed = self._ended and self._taken == 0 and not self._told",
        "summed = self._taken == 0",
        LOCAL + "test_any_split_order_and_number_of_threads_gives_the_same_integers[dp-merf]",
    ),
    "appended rows that nobody paid for": Mutant(
        "private/release.py",
        "account = Account(ledger, key, directory)",
        "account = Account(None, key, directory)",
        "private/test_append.py::test_the_ledger_is_charged_for_the_new_rows_before_noise_is_drawn",
    ),
    "Fourier features not checked": Mutant(
        "private/sums.py",
        "inside(map_.whole(rows.cells[some], target), radius, Norm.L2)",
        "map_.whole(rows.cells[some], 2 * target)",
        "private/test_sums.py::test_one_row_more_moves_the_sum_by_that_row_and_within_the_sensitivity",
    ),
    "a party counted twice": Mutant(
        "private/parties.py",
        "        for name in (f\"party {header['party']}\", f\"id {header['id']}\"):",
        "        for name in ():",
        PARTIES + "test_the_same_file_or_party_twice_is_refused",
    ),
    "sums of another plan added": Mutant(
        "private/parties.py",
        'if header["request"] != request.fingerprint or len(answer.vector) != size:',
        "if len(answer.vector) != size:",
        PARTIES + "test_a_file_of_another_plan_or_round_is_refused",
    ),
    "published before it is written": Mutant(
        "private/spending.py",
        "        write_directory(directory, files())\n    if ledger",
        "        if ledger is not None and receipt is not None and receipt.row is not None:\n            where = str(Path(directory).resolve())\n            ledgers.mark_published(ledger, receipt.row, fingerprint=fingerprint, directory=where)\n            ledger = None\n        write_directory(directory, files())\n    if ledger",
        "private/test_kills.py::test_a_kill_is_counted_and_leaves_nothing_that_passes_for_a_release[release-in a file]",
    ),
    "queries of parties dropped": Mutant(
        "private/parties.py",
        "dict(release_facts(source, None))\n        | together\n",
        "dict(release_facts(source, None))\n",
        PARTIES
        + "test_queries_of_parties_are_in_the_certificate_and_among_its_assumptions[queries1-1-SELECT * FROM data]",
    ),
    "other rows in a later round": Mutant(
        "private/parties.py",
        'if request.answered_by.get(header["party"], header["query"]) != header["query"]:',
        "if False:",
        PARTIES + "test_a_party_has_the_same_query_in_every_round",
    ),
    "query of an earlier part dropped": Mutant(
        "private/release.py",
        "facts_of_all([earlier_facts, own])",
        "facts_of_all([own | {'is_private': earlier_facts['is_private']}])",
        "private/test_append.py::test_queries_of_all_parts_stay_in_the_certificate",
    ),
    "any epsilon for whoever asks": Mutant(
        "private/parties.py",
        "    if not asked <= max_epsilon:",
        "    if False:",
        PARTIES + "test_a_party_says_how_much_its_own_noise_may_let_out",
    ),
    "own noise without a limit": Mutant(
        "private/parties.py",
        "    if max_epsilon is None:\n        if ledger is None:",
        "    if max_epsilon is None:\n        if False:",
        PARTIES + "test_a_party_says_how_much_its_own_noise_may_let_out",
    ),
    "a large delta hides epsilon": Mutant(
        "private/parties.py",
        "delta = min(plan.budget.delta, LARGEST_DELTA)",
        "delta = plan.budget.delta",
        PARTIES + "test_a_large_delta_does_not_hide_a_large_epsilon",
    ),
    "an exact sum for noise of one's own": Mutant(
        "private/parties.py",
        "        if max_epsilon is not None:\n            raise UsageError(",
        "        if False:\n            raise UsageError(",
        PARTIES + "test_a_request_for_an_exact_sum_is_refused_by_a_party_that_limits_its_own_noise",
    ),
    "merged without noise": Mutant(
        "private/parties.py",
        "return noisy(sums, plan, request.round, source, receipt)",
        "return sums",
        PARTIES + "test_two_merges_of_the_same_sums_differ_in_every_number",
    ),
    "a party's own noise forgotten": Mutant(
        "private/parties.py",
        "return noisy(total[:-1], plan, request.round, source, receipt)",
        "return total[:-1]",
        PARTIES + "test_parties_with_noise_of_their_own_publish_what_meets_the_plan_by_itself[1e-05]",
    ),
    "the noise of one party stated for all": Mutant(
        "plan/plan.py",
        "times = math.sqrt(self.parties)",
        "times = 1.0",
        PARTIES + "test_parties_with_noise_of_their_own_publish_what_meets_the_plan_by_itself[1e-05]",
    ),
    "sums in the open": Mutant(
        "private/secret_files.py",
        "cipher.encrypt(nonce, content, front)",
        "content",
        PARTIES + "test_a_file_tells_nothing_but_its_header",
    ),
    "a checkpoint of files that have changed": Mutant(
        "private/secret_files.py",
        " and set(files) <= set(self._names.values())",
        "",
        "private/test_checkpoints.py::test_what_was_summed_of_something_else_is_not_used[a file]",
    ),
    "a task counted for each try": Mutant(
        "private/engines/remote.py",
        "if part in seen:",
        "if False:",
        "private/engines/test_remote.py::test_an_answer_that_comes_twice_or_not_at_all_is_refused",
    ),
    "workers whose machines differ": Mutant(
        "private/engines/remote.py",
        "if not sums.endswith(digest):",
        "if False:",
        "private/engines/test_remote.py::test_a_worker_that_computes_features_in_its_own_way_is_refused",
    ),
    "a horizon that overspends": Mutant(
        "accounting/mechanisms.py",
        "part = mechanism.total(budget) / releases",
        "part = mechanism.total(budget) / (releases - 1)",
        "accounting/test_horizon.py::test_a_ledger_takes_just_so_many_releases[5-1.0-1e-05]",
    ),
    "division by the true count": Mutant(
        "private/sums.py",
        "                self.add(total, self.partial(batch))\n",
        "                self.add(total, self.partial(batch))\n        total[:-1] //= max(int(total[-1]), 1)\n",
        "private/test_sums.py::test_one_row_more_moves_the_sum_by_that_row_and_within_the_sensitivity",
    ),
    "the true count in the certificate": Mutant(
        "private/release.py",
        "release_facts(source, query, (*SOFTWARE",
        "release_facts(source, str(getattr(data, 'num_rows', None)), (*SOFTWARE",
        RELEASE + "test_no_file_holds_the_row_count_or_an_extreme_of_the_data",
    ),
    "float32 phases": Mutant(
        "features/fourier.py",
        "return xp.clip(picked, max=LAST_POSITION) @ constant_like(cells, self.frequencies, self.cache)",
        "return xp.astype(xp.astype(picked, xp.float32) @ xp.asarray(self.frequencies, dtype=xp.float32), cells.dtype)",
        "features/test_fourier.py::test_phases_are_the_exact_products_of_positions_and_frequencies",
    ),
    "weights of positions not exact": Mutant(
        "features/exact.py",
        "EXACT_BITS = 52",
        "EXACT_BITS = 60",
        "features/test_exact.py::test_weights_of_any_magnitude_are_exact[1000000000.0]",
    ),
    "turned coordinates not exact": Mutant(
        "features/hermite.py",
        "return exact_weights(math.sqrt(",
        "return (math.sqrt(",
        "features/test_hermite.py::test_turned_coordinates_are_exact_products_whatever_the_batch[1.0]",
    ),
    "Hermite features that fall too slowly": Mutant(
        "features/hermite.py",
        "xp.exp(-(inside**2) * (decay / (1 + decay)))",
        "xp.exp(-(inside**2) * (decay / 2))",
        HERMITE + "test_no_point_has_features_of_a_norm_above_one",
    ),
    "Hermite features too long from the first": Mutant(
        "features/hermite.py",
        "(1 - decay**2) ** 0.25",
        "(1 - decay**2) ** 0.2",
        HERMITE + "test_no_point_has_features_of_a_norm_above_one",
    ),
    "a Hermite recursion that grows": Mutant(
        "features/hermite.py",
        "found.append(slope * found[c] * rise - decay",
        "found.append(slope * found[c] * rise + decay",
        HERMITE + "test_no_point_has_features_of_a_norm_above_one",
    ),
    "Hermite points not moved in": Mutant(
        "features/hermite.py",
        "inside = xp.clip(points, -reach, reach)",
        "inside = points",
        HERMITE + "test_points_far_outside_are_finite_and_bounded[inf-0.01]",
    ),
    "numbers that do not share one norm": Mutant(
        "features/hermite.py",
        "mehler_features(points, self.rho, self.order) / math.sqrt(len(self.numbers))",
        "mehler_features(points, self.rho, self.order)",
        "contracts/test_feature_maps.py::test_no_row_of_any_codes_has_a_norm_above_one[hermite, several numbers]",
    ),
    "subsets that do not share one norm": Mutant(
        "features/combine.py",
        "xp.concat(found, axis=1) / math.sqrt(len(self.subsets))",
        "xp.concat(found, axis=1)",
        "contracts/test_feature_maps.py::test_no_row_of_any_codes_has_a_norm_above_one[tensors, choices]",
    ),
    "products of a sign that their factors have not": Mutant(
        "features/combine.py",
        "return max((self.factors[j].sign for j in part)",
        "return min((self.factors[j].sign for j in part)",
        "features/test_combine.py::test_a_product_promises_no_more_than_its_weaker_side",
    ),
    "the number of subsets forgotten in the radius": Mutant(
        "features/embedding.py",
        "math.isqrt(math.isqrt(radius**2 // len(map_.subsets)))",
        "math.isqrt(radius)",
        PRODUCTS + "test_the_worst_rows_of_products_reach_what_is_stated_and_no_more[3]",
    ),
    "the number of subsets forgotten in the scales": Mutant(
        "features/embedding.py",
        "np.repeat(products, map_.sizes) * math.sqrt(len(map_.subsets))",
        "np.repeat(products, map_.sizes)",
        PRODUCTS + "test_sums_over_the_scales_are_the_sums_of_the_features",
    ),
    "halves with the whole block's radius": Mutant(
        "private/sums.py",
        "for half, radius in block.half_radii(map_, lattice).items()",
        "for half in block.half_radii(map_, lattice) for radius in [min(block.radius(lattice), 2**24)]",
        PRODUCTS + "test_no_row_of_products_leaves_its_integer_ball",
    ),
    "halves of products not checked": Mutant(
        "private/sums.py",
        "half: to_lattice(",
        "half: (lambda f, r, **_: np.rint(np.nan_to_num(f) * (r - 5)))(",
        PRODUCTS + "test_a_lying_factor_stays_within_the_radius_and_spoils_no_other_row",
    ),
    "signs of halves not checked": Mutant(
        "private/sums.py",
        (
            "half: to_lattice(\n"
            "            tensor([single[j] for j in half]),\n"
            "            radius,\n"
            "            sign=map_.sign_of(half),\n"
            "            norm=block.norm,\n"
            "            nonzeros=map_.nonzeros_of(half),\n"
            "        )"
        ),
        "half: to_lattice(tensor([single[j] for j in half]), radius, norm=block.norm, nonzeros=map_.nonzeros_of(half))",
        PRODUCTS + "test_features_below_zero_where_none_are_promised_count_as_zero",
    ),
    "products added to every label": Mutant(
        "private/sums.py",
        "features[copy > 0]",
        "features[copy >= 0]",
        PRODUCTS + "test_a_row_with_an_unlisted_label_adds_nothing_to_blocks_with_labels",
    ),
    "the weight forgotten in the rounding": Mutant(
        "features/embedding.py",
        "return radius // unit, unit",
        "return lattice // unit, unit",
        "private/test_sums.py::test_one_row_more_moves_the_sum_by_that_row_and_within_the_sensitivity",
    ),
    "sums that overflow below the row cap": Mutant(
        "plan/plan.py",
        "ROW_CAP = 2 ** (62 - LATTICE_BITS)",
        "ROW_CAP = 2**38",
        "private/test_sums.py::test_the_row_cap_leaves_room_for_every_sum_in_64_bits",
    ),
    "two blocks of one name in two stages": Mutant(
        "plan/plan.py",
        "for names in ([stage.name for stage in self.stages], blocks):",
        "for names in ([stage.name for stage in self.stages],):",
        "plan/test_plan.py::test_blocks_of_two_stages_with_one_name_are_refused_since_one_would_hide_the_other",
    ),
    "categories learnt from the batch": Mutant(
        "schema/encode.py",
        "value_set=_spelt_alike(names)",
        "value_set=pc.unique(_spelt_alike(text))",
        "private/test_sums.py::test_categories_come_from_the_schema_and_never_from_the_batch",
    ),
    "a cell in an error": Mutant(
        "private/sealed.py",
        "({type(surprise).__name__})",
        "({surprise})",
        "private/test_sealed.py::test_an_exception_of_a_library_leaves_with_its_type_alone",
    ),
    "frames behind an error": Mutant(
        "private/sealed.py",
        "raise clean.with_traceback(None)",
        "raise clean",
        "private/test_sealed.py::test_a_refusal_leaves_with_its_words_and_without_its_frames",
    ),
    "a panic that passes the seal": Mutant(
        "private/sealed.py",
        "except BaseException as surprise",
        "except Exception as surprise",
        "private/test_sealed.py::test_a_panic_of_a_library_leaves_with_its_type_alone",
    ),
    "a warning of a library that quotes a cell": Mutant(
        "private/sealed.py",
        'warnings.simplefilter("ignore")',
        'warnings.simplefilter("always")',
        "private/test_sealed.py::test_a_warning_that_a_row_calls_forth_is_not_shown",
    ),
    "labels typed over all rows": Mutant(
        "estimator.py",
        "Examples(X, len(plan.schema.used) - 1, y, LABEL)",
        "Examples(X, len(plan.schema.used) - 1, np.asarray(y), LABEL)",
        CELLS + "test_one_label_changes_no_other_row_of_a_classifier",
    ),
    "features typed over all rows": Mutant(
        "readers/frames.py",
        "    rows = _as_array(rows)\n    if count_features(rows) not in (None, count):",
        "    rows = np.asarray(rows)\n    if count_features(rows) not in (None, count):",
        CELLS + "test_one_cell_changes_no_other_row_of_a_classifier",
    ),
    "features looked at outside the seal": Mutant(
        "estimator.py",
        "sealed(lambda: count_features(X))",
        "count_features(X)",
        CELLS + "test_an_array_that_fails_is_refused_without_its_words",
    ),
    "a refusal that counts rows": Mutant(
        "readers/frames.py",
        '"differ in their number of rows"',
        'f"differ in their number of rows ({len(labels)})"',
        CELLS + "test_what_is_no_table_is_refused_without_cells_and_counts",
    ),
    "a cell that refuses its table": Mutant(
        "readers/cells.py",
        "    except Exception:  # a time zone or a number of the caller's own making may do anything\n"
        "        return None",
        "    except Exception:\n        raise",
        CELLS + "test_a_cell_has_one_text_or_none",
    ),
    "a method of the caller's run on a cell": Mutant(
        "readers/cells.py",
        'return str.encode(cell, "utf-8", "surrogatepass")',
        'return cell.encode("utf-8", "surrogatepass")',
        CELLS + "test_a_cell_has_one_text_or_none",
    ),
    "categories of pandas typed together": Mutant(
        "readers/cells.py",
        "if categories is None or not (categories.dtype == object or _is_period(categories.dtype)):",
        "if True:",
        "readers/test_readers.py::test_categories_of_pandas_that_are_objects_become_text_one_by_one",
    ),
    "a word that refuses a column of numbers": Mutant(
        "schema/encode.py",
        "    return _to_numpy(pc.if_else(number, text, None).cast(pa.float64()))",
        '    return _to_numpy(pc.if_else(pc.equal(text, ""), None, text).cast(pa.float64()))',
        ENCODE + "test_text_that_is_no_number_is_null_and_changes_no_other_cell",
    ),
    "a 30th of February that refuses a column of dates": Mutant(
        "schema/encode.py",
        "|02-(0[1-9]|1\\d|2[0-8]))",
        "|02-(0[1-9]|[123]\\d))",
        ENCODE + "test_text_that_is_no_date_is_null_and_changes_no_other_cell",
    ),
    "decimals rounded by the scale of their column": Mutant(
        "schema/encode.py",
        "        cells = cells.cast(pa.string())\n    elif",
        "        pass\n    elif",
        ENCODE + "test_a_decimal_has_the_code_of_its_digits_whatever_the_scale_of_its_column",
    ),
    "moments spelt by the unit of their column": Mutant(
        "schema/encode.py",
        "_without_last_zeros(naive.cast(pa.string()))",
        "naive.cast(pa.string())",
        ENCODE + "test_moments_that_are_categories_have_one_spelling_for_all_units",
    ),
    "truths that an object column loses": Mutant(
        "schema/encode.py",
        'for word, digit in (("true", "1"), ("false", "0")):',
        "for word, digit in ():",
        ENCODE + "test_truth_in_text_counts_as_it_does_in_a_column_of_truths",
    ),
    "labels that are cast, and quoted": Mutant(
        "classifier/inputs.py",
        "(encode_column(yes_or_no, rows[label]) == 1)",
        "(np.asarray(rows[label].cast(pa.int64())) == 1)",
        "classifier/test_powersets.py::test_a_cell_that_is_no_truth_sets_nothing_and_is_not_quoted",
    ),
    "root two for two": Mutant(
        "features/base.py",
        '"signed": 4',
        '"signed": 2',
        "features/test_embedding.py::test_two_rows_half_a_turn_apart_reach_what_is_stated",
    ),
    "class counts forgotten": Mutant(
        "features/embedding.py",
        "return max(same_label, other_label) if self.label else same_label",
        "return same_label",
        "features/test_embedding.py::test_heavy_class_counts_do_not_ride_free",
    ),
    "the ledger charged after the noise": Mutant(
        "private/spending.py",
        "        receipt = charge(bill, ledger=ledger, key=key)\n        return draw(private, receipt), receipt\n",
        "        drawn = draw(private, charge(bill, ledger=None, key=key))\n        return drawn, charge(bill, ledger=ledger, key=key)\n",
        RELEASE + "test_the_ledger_is_charged_before_noise_is_drawn",
    ),
    "the ledger charged for other neighbours": Mutant(
        "private/spending.py",
        "costs = plan.cost(notion) if",
        "costs = plan.cost() if",
        RELEASE + "test_a_release_is_charged_in_the_ledger_s_notion_of_neighbours[add-remove-replace-one]",
    ),
    "noise rounded down": Mutant(
        "accounting/mechanisms.py",
        "math.isqrt(math.ceil(variance) - 1) + 1",
        "math.isqrt(math.floor(variance))",
        "accounting/test_gaussian.py::test_whole_noise_never_costs_more_than_was_granted",
    ),
    "discreteness not paid for": Mutant(
        "accounting/mechanisms.py",
        "DISCRETISATION = 4",
        "DISCRETISATION = 0",
        "accounting/test_gaussian.py::test_noise_pays_for_being_discrete_and_is_rounded_up",
    ),
    "epsilon ten percent too small": Mutant(
        "accounting/mechanisms.py",
        "get_sigma_gaussian(budget.epsilon, budget.delta)) * (1 + 1e-8)",
        "get_sigma_gaussian(1.1 * budget.epsilon, budget.delta))\n    return 1 / Fraction(sigma) ** 2",
        "golden/test_calibration.py::test_noise_at_delta_1e_5_is_as_published",
    ),
    "the whole budget for every stage": Mutant(
        "plan/plan.py",
        "sum(parts), total * share",
        "sum(parts), total",
        "golden/test_calibration.py::test_the_stages_of_a_plan_compose_to_its_epsilon",
    ),
    "every table with the whole block's radius": Mutant(
        "features/embedding.py",
        "return math.isqrt(radius**2 // tables), 1",
        "return radius, 1",
        BALL + "[tables, all pairs]",
    ),
    "the number of tables forgotten under the root": Mutant(
        "features/embedding.py",
        "return math.isqrt(radius**2 // tables), 1",
        "return math.isqrt(radius**2) // tables, 1",
        TABLES + "test_what_a_row_adds_is_the_largest_whole_number_that_stays_in_the_ball",
    ),
    "tables counted twice": Mutant(
        "features/tables.py",
        "found.append(inside.reshape(num_copies, table.size))",
        "found.append(2 * inside.reshape(num_copies, table.size))",
        BALL + "[tables, sizes mixed]",
    ),
    "one table counted in another's place": Mutant(
        "features/tables.py",
        "place, size = place * (width + 1) + places[j], size * (width + 1)",
        "place, size = place * (width + 1) + places[subset[0]] % width, size * (width + 1)",
        TABLES + "test_counts_are_those_made_by_hand",
    ),
    "nulls without a cell counted in the last one": Mutant(
        "features/tables.py",
        "found[codes == NULL] = self.num_known",
        "found[codes == NULL] = self.dim - 1",
        TABLES + "test_a_null_is_counted_in_its_own_cell_and_where_there_is_none_not_at_all",
    ),
    "cells that some code falls out of": Mutant(
        "features/tables.py",
        "        if self.num_codes < 1 or self.column < 0 or not runs:",
        "        if self.num_codes < 1:",
        TABLES + "test_cells_that_some_code_would_fall_out_of_are_refused",
    ),
    "periods of typed columns read as counts": Mutant(
        "readers/cells.py",
        "if has_objects(column) or _is_period(column.dtype):",
        "if has_objects(column):",
        CELLS + "test_periods_have_the_codes_that_they_have_among_objects",
    ),
    "extension types read as they are stored": Mutant(
        "schema/encode.py",
        "    if not isinstance(kind, pa.BaseExtensionType):\n        return cells",
        "    return cells",
        CELLS + "test_extension_types_are_read_by_what_they_stand_for_or_refused_by_type",
    ),
    "invisible ids are a person": Mutant(
        "schema/encode.py",
        "_NO_BYTES if is_fixed else _NOBODY",
        "_NO_BYTES",
        CELLS + "test_ids_that_show_nothing_name_nobody",
    ),
    "unlisted values in no cell": Mutant(
        "features/tables.py",
        "replace(cells, has_unlisted=self.with_unlisted)",
        "replace(cells, has_unlisted=False)",
        TABLES + "test_with_unlisted_values_all_tables_count_every_row",
    ),
    "unlisted values taken for nulls": Mutant(
        "private/sums.py",
        "encode_batch(self.layout.schema, batch, unlisted=UNLISTED)",
        "encode_batch(self.layout.schema, batch)",
        "released/test_diagnostics.py::test_unlisted_values_are_told_from_blanks_where_blanks_are_allowed",
    ),
    "rows of unlisted labels in no copy": Mutant(
        "features/embedding.py",
        "return self.num_labels + block.with_unlisted if block.per_label else 1",
        "return self.num_labels if block.per_label else 1",
        "released/test_diagnostics.py::test_all_tables_of_the_default_method_have_the_same_total",
    ),
    "what is unlisted depends on the rest of the column": Mutant(
        "schema/encode.py",
        "if unlisted != NULL and missing.any():",
        "if unlisted != NULL and missing.mean() > 0.5:",
        "readers/test_cells.py::test_what_is_unlisted_is_told_cell_by_cell",
    ),
    "intervals that tables contradict": Mutant(
        "queries/least_squares.py",
        "return max(1.0, apart - freedom) if self.disagrees else 1.0",
        "return 1.0",
        "queries/test_least_squares.py::test_tables_of_other_rows_are_noticed",
    ),
    "tables that ignore the label": Mutant(
        "private/sums.py",
        "block.map.counts(rows.codes, slots, copies + 1)",
        "block.map.counts(rows.codes, 0 * slots, copies + 1)",
        "private/test_sums.py::test_a_row_adds_to_the_copy_of_its_own_label_alone",
    ),
    "tables added to every label": Mutant(
        "private/sums.py",
        "block.map.counts(rows.codes, slots, copies + 1)[:copies]",
        "np.tile(block.map.counts(rows.codes, 0 * slots, 1), (copies, 1))",
        ATTACK + "test_neighbours_with_the_same_noisy_past_are_no_further_apart_than_stated[auto]",
    ),
    "unlisted labels counted as the last one": Mutant(
        "private/sums.py",
        "last = choice.width - 1 if null_is_last else choice.width",
        "last = choice.width - 1",
        "private/test_sums.py::test_which_label_a_row_has_is_read_the_same_from_its_codes_as_from_its_cells",
    ),
    "a stage settled by other vectors than the published ones": Mutant(
        "private/release.py",
        "plan.embeddings(vectors)[len(vectors)]",
        "plan.embeddings([v - v % 2**40 for v in vectors])[len(vectors)]",
        ATTACK + "test_a_table_reaches_later_stages_through_the_noisy_vectors_alone[auto]",
    ),
    "a stage settled by the exact sum of the one before": Mutant(
        "private/release.py",
        "    work = work_of(plan, vectors)\n",
        "    work = work_of(plan, vectors and (*vectors[:-1], sum_table(\n"
        "        data, work_of(plan, vectors[:-1]), query=query, run=run)[:-1]))\n",
        AUDIT + "[dp-merf, a scale that is paid for]",
    ),
    "half the noise in the last of three stages": Mutant(
        "private/release.py",
        "return add_noise(sums, plan.noise_scales[stage], receipt)",
        "return add_noise(sums, plan.noise_scales[stage] // (2 if stage == 2 else 1), receipt)",
        AUDIT + "[dp-anova]",
    ),
    "a block that nobody is charged for": Mutant(
        "features/embedding.py",
        "return sum(reach.values())",
        "return sum(reach.values()) - (min(reach.values()) if len(reach) > 1 else 0)",
        REACH + "[gaussian-dp-mepf-images, plain]",
    ),
    "a table that nobody is charged for": Mutant(
        "features/embedding.py",
        "return radius // tables, 1",
        "return radius // max(1, tables - 1), 1",
        REACH + "[laplace-dp-anova-imbalanced]",
    ),
    "a rule that changes a weight is believed": Mutant(
        "plan/plan.py", "self._check_settled(stage.embedding, embedding)", "pass", SETTLED + "[a larger weight]"
    ),
    "a rule is checked for one notion of neighbours": Mutant(
        "plan/plan.py",
        "for replaced in (False, True):",
        "for replaced in (False,):",
        SETTLED + "[a signed map for counts]",
    ),
    "a rule may change the label": Mutant(
        "plan/plan.py",
        "same = planned.label == settled.label and planned.norm is settled.norm",
        "same = planned.norm is settled.norm",
        SETTLED + "[another label]",
    ),
    "a rule sees a stage's own vector": Mutant(
        "plan/plan.py",
        "Measurement(embedding, nothing, *noise)",
        "Measurement(embedding, vector, *noise)",
        "plan/test_plan.py::test_a_rule_sees_the_noise_of_every_stage_and_no_vector_of_its_own",
    ),
    "half the sensitivity for Laplace noise": Mutant(
        "features/embedding.py",
        "return radius**2 if self.norm is Norm.L2 else radius",
        "return radius**2 if self.norm is Norm.L2 else radius // 2",
        LARGEST + "[40-l1-one signed block]",
    ),
    "a replaced row counted once for Laplace noise": Mutant(
        "features/embedding.py", "min(2, factor)", "min(1, factor)", LARGEST + "[40-l1-one nonnegative block]"
    ),
    "L1 norms not checked": Mutant(
        "private/lattice.py",
        "np.asarray(np.abs(whole).sum(axis=1) <= radius)",
        "np.isfinite(whole).all(axis=1)",
        "private/test_lattice.py::test_a_map_that_breaks_its_promise_is_cut_to_its_l1_radius",
    ),
    "L1 norms checked as Euclidean ones": Mutant(
        "private/sums.py", "norm=block.norm, nonzeros=count)", "nonzeros=count)", L1_BALL + "[hermite, several numbers]"
    ),
    "halves of products with Euclidean norms under Laplace noise": Mutant(
        "private/sums.py",
        (
            "half: to_lattice(\n"
            "            tensor([single[j] for j in half]),\n"
            "            radius,\n"
            "            sign=map_.sign_of(half),\n"
            "            norm=block.norm,\n"
            "            nonzeros=map_.nonzeros_of(half),\n"
            "        )"
        ),
        "half: to_lattice(tensor([single[j] for j in half]), radius, sign=map_.sign_of(half))",
        L1_BALL + "[tensors, all pairs]",
    ),
    "the root of the number of tables for Laplace noise": Mutant(
        "features/embedding.py",
        "return radius // tables, 1",
        "return math.isqrt(radius**2 // tables), 1",
        L1_BALL + "[tables, all pairs]",
    ),
    "Laplace noise times 0.9": Mutant(
        "private/noise.py",
        "scale=float(scale)",
        "scale=0.9 * scale",
        LAPLACE_NOISE + "test_noise_has_the_exact_discrete_laplace_mass_function[10-OpenDP]",
    ),
    "seeded Laplace noise": Mutant(
        "private/noise.py",
        'return _opendp_noise("laplace", sums, scale=float(scale))',
        "return sums + np.rint(np.random.default_rng(0).laplace(0.0, scale, len(sums))).astype(np.int64)",
        LAPLACE_NOISE + "test_two_calls_give_different_noise",
    ),
    "Gaussian noise where there may be no delta": Mutant(
        "private/release.py",
        "source.add_laplace_noise if plan.budget.is_pure else source.add_noise",
        "source.add_noise",
        RELEASE + "test_a_pure_plan_meets_laplace_noise_of_its_own_scale_in_every_stage",
    ),
    "a scale of Laplace noise rounded down": Mutant(
        "accounting/mechanisms.py",
        "math.ceil(sensitivity / epsilon)",
        "math.floor(sensitivity / epsilon)",
        LAPLACE + "test_a_whole_scale_never_costs_more_than_was_granted",
    ),
    "a scale of Laplace noise that no float holds": Mutant(
        "accounting/mechanisms.py",
        "return -(-scale // step) * step",
        "return scale",
        LAPLACE + "test_scales_are_sensitivity_over_epsilon_rounded_up",
    ),
    "a pure release for less than its Gaussian cost": Mutant(
        "accounting/mechanisms.py",
        "mu = -2 * float(ndtri_exp(corner))",
        "mu = -1.99 * float(ndtri_exp(corner))",
        LAPLACE + "test_every_attack_that_pure_privacy_allows_is_allowed_by_the_converted_mu",
    ),
    "epsilon charged where mu squared is counted": Mutant(
        "private/spending.py",
        "return plan.mechanism.mu_squared(costs)",
        "return costs",
        RELEASE + "test_a_gaussian_ledger_is_charged_once_for_all_stages_of_a_pure_release",
    ),
    "Gaussian noise in a pure ledger": Mutant(
        "private/spending.py",
        "if not plan.budget.is_pure:",
        "if False:",
        RELEASE + "test_a_pure_ledger_refuses_gaussian_noise_before_it_reads_rows",
    ),
    "shares of epsilon that add up to too much": Mutant(
        "plan/plan.py",
        "share / max(Fraction(1), sum(shares))",
        "share",
        "plan/test_plan.py::test_shares_that_add_up_to_a_hair_too_much_still_meet_a_pure_budget",
    ),
    "norms that do not fit the noise": Mutant(
        "plan/plan.py",
        "if any(stage.embedding.norm != self.mechanism.norm for stage in self.stages):",
        "if False:",
        "plan/test_plan.py::test_norms_that_do_not_fit_the_noise_are_refused",
    ),
    "a rule may change the norm": Mutant(
        "plan/plan.py",
        "planned.label == settled.label and planned.norm is settled.norm",
        "planned.label == settled.label",
        "plan/test_plan.py::test_a_rule_that_changes_the_norm_is_refused",
    ),
    "kernel values that are not whole numbers": Mutant(
        "features/landmarks.py",
        "whole = xp.round(self.kernel(cells, xp.asarray(self.spanning.cells)) * 2.0**KERNEL_BITS)",
        "whole = self.kernel(cells, xp.asarray(self.spanning.cells)) * 2.0**KERNEL_BITS",
        LANDMARKS + "test_products_are_those_of_whole_numbers_to_the_last_bit[gaussian]",
    ),
    "a triangle of more bits than a product holds": Mutant(
        "features/landmarks.py",
        "coarse_unit = 2.0 ** (KERNEL_BITS - 1 - ",
        "coarse_unit = 2.0 ** (KERNEL_BITS + 8 - ",
        LANDMARKS + "test_products_are_those_of_whole_numbers_to_the_last_bit[gaussian]",
    ),
    "nothing taken off for the rounding of kernel values": Mutant(
        "features/landmarks.py",
        "return 1 / (1 + 2 * rounding * float(np.linalg.norm(self._inverse, 2)))",
        "return 1.0",
        LANDMARKS + "test_no_row_is_longer_than_one_and_little_is_taken_off[wide]",
    ),
    "coordinates that are not orthonormal": Mutant(
        "features/landmarks.py",
        "np.tril(solve_triangular(lower, np.eye(len(gram)), lower=True))",
        "np.tril(solve_triangular(lower, np.eye(len(gram)), lower=True)).T",
        LANDMARKS + "test_coordinates_have_the_inner_products_of_projections[gaussian]",
    ),
    "a reach that is the mean of a row and not the largest": Mutant(
        "features/landmarks.py",
        "bound = float((image / vector).max())",
        "bound = float((image / vector).min())",
        LANDMARKS + "test_the_reach_of_kernel_sums_is_proved_and_not_much_too_long[laplace]",
    ),
    "distances in fractions": Mutant(
        "features/landmarks.py",
        "positions = xp.round(positions * term.grid)",
        "positions = positions * term.grid",
        "features/test_kernels.py::test_squared_distances_are_whole_numbers_that_float64_holds[1.0]",
    ),
    "a kernel larger than one with itself": Mutant(
        "features/landmarks.py",
        "return total / len(self.terms) if len(self.terms) > 1 else total",
        "return total",
        "contracts/test_feature_maps.py::test_no_row_of_any_codes_has_a_norm_above_one[kernel sums, sum of columns]",
    ),
    "verify believes what it reads": Mutant(
        "released/verify.py",
        "is_file_of(folder / name, expected[name])",
        "(folder / name).exists()",
        "released/test_verify.py::test_every_byte_counts[certificate.html]",
    ),
    "a release without noise is verified": Mutant(
        "released/verify.py",
        "if worst.chance * len(tests) < REFUSED_BELOW:",
        "if False:",
        UNNOISED + "[1.0-gaussian-dp-anova]",
    ),
    "residues of counts are taken modulo one": Mutant(
        "released/noise_tests.py",
        "round(scales[table.start] / unit / table.scale) * unit",
        "unit",
        "released/test_noise_tests.py::test_whatever_is_called_able_finds_that_there_is_no_noise[gaussian-dp-anova]",
    ),
    "tables that agree too well are not noticed": Mutant(
        "released/noise_tests.py",
        "return float(gammainc(freedom / 2, square / 2))",
        "return float(gammaincc(freedom / 2, square / 2))",
        "released/test_noise_tests.py::test_tables_that_agree_too_well_have_less_noise_than_stated[1e-05-0.1]",
    ),
    "vectors that settled maps are not tested for noise": Mutant(
        "released/noise_tests.py",
        "if release.settled is not None:",
        "if False:",
        "released/test_noise_tests.py::test_rows_added_without_noise_and_vectors_that_settled_maps_are_tested_too",
    ),
    "a pipe in a directory is waited for": Mutant(
        "files.py",
        "if not stat.S_ISREG(status.st_mode):",
        "if False:",
        INERT + "test_a_name_that_a_person_gave_may_be_a_link_but_no_pipe_or_device",
    ),
    "a link in a directory is followed": Mutant(
        "files.py", "link = 0 if follow else os.O_NOFOLLOW", "link = 0", INERT + "test_only_regular_files_are_read"
    ),
    "a file of any size is read": Mutant(
        "files.py", "if status.st_size <= most:", "if True:", INERT + "test_a_file_that_is_too_large_is_not_read"
    ),
    "names may speak to a terminal": Mutant(
        "errors.py", "if text.isprintable():", "if True:", INERT + "test_what_a_terminal_acts_on_is_escaped"
    ),
    "aliases in a schema are followed": Mutant(
        "schema/table.py",
        "if self.check_event(yaml.AliasEvent):",
        "if False:",
        "cli/test_hostile.py::test_a_schema_that_means_harm_is_refused_at_once[one alias]",
    ),
    "a plan of too many numbers is made": Mutant(
        "plan/plan.py",
        "MOST_NUMBERS = 2**26",
        "MOST_NUMBERS = 2**30",
        "cli/test_absurd_options.py::test_features_without_end_are_refused_with_the_limit",
    ),
    "images of any size": Mutant(
        "readers/pictures.py",
        "if (picture.height, picture.width) != (shape.height, shape.width):",
        "if (picture.height, picture.width) < (shape.height, shape.width):",
        PICTURES + "test_a_picture_that_cannot_be_taken_is_refused[turned]",
    ),
    "the first image decides what others become": Mutant(
        "readers/pictures.py",
        "return self.shape or picture_shape(",
        "return picture_shape(",
        PICTURES + "test_what_a_picture_becomes_does_not_depend_on_the_others[0]",
    ),
    "an archive read beyond its images": Mutant(
        "readers/pictures.py",
        "if self.stream.read(1):",
        "if self.stream.closed:",
        "readers/test_npz.py::test_a_damaged_archive_is_refused[long]",
    ),
    "the message of a library about an image": Mutant(
        "readers/pictures.py",
        'rule="an image is damaged or cut short"',
        "rule=str(error)",
        PICTURES + "test_a_picture_that_cannot_be_taken_is_refused[cut png]",
    ),
    "batches dealt out by the order of rows": Mutant(
        "features/grid.py",
        "batch = xp.floor((sums - xp.floor(sums)) * self.count)",
        "batch = xp.arange(len(sums), dtype=xp.float64)[:, None] % self.count",
        "features/test_buckets.py::test_a_rows_batch_does_not_hang_on_other_rows",
    ),
    "a descent that nobody is charged for": Mutant(
        "plan/plan.py",
        "return stages if self.descent is None else (*stages, self.charge.mu_squared)",
        "return stages",
        "methods/test_merf_ae.py::test_a_ledger_is_charged_for_both_and_for_the_slack",
    ),
    "an epsilon of the embedding alone": Mutant(
        "plan/plan.py",
        "return min(cost.epsilon(part, beside=beside), whole.epsilon(part))",
        "return self.mechanism.epsilon(beside, part)",
        "methods/test_merf_ae.py::test_the_epsilon_is_that_of_both_mechanisms_together",
    ),
    "stages and descent that each take the whole budget": Mutant(
        "plan/plan.py",
        "if spent > self._total:",
        "if spent > 2 * self._total:",
        "methods/test_merf_ae.py::test_a_plan_whose_parts_cost_more_than_the_budget_is_no_plan",
    ),
    "gradients of linear maps not clipped": Mutant(
        "private/dpsgd/steps.py",
        "gradients / np.maximum(row_norms(gradients), clip)[:, None]",
        "gradients / clip",
        DESCENT + "test_linear.py::test_a_long_gradient_is_shortened_and_keeps_its_direction[maps]",
    ),
    "norms of linear gradients not checked": Mutant(
        "private/dpsgd/classifier.py",
        "pulls = to_lattice(clipped(slopes.reshape(len(part), -1), clip), RADIUS)",
        "pulls = np.rint(slopes.reshape(len(part), -1) / clip * RADIUS)",
        DESCENT + "test_linear.py::test_no_row_moves_a_sum_further_than_the_radius[maps]",
    ),
    "gradients that are rounded past their radius": Mutant(
        "private/dpsgd/networks.py",
        "total += to_lattice(clipped(found, clip), RADIUS)",
        "total += np.rint(np.nan_to_num(clipped(found, clip)) * RADIUS)",
        DESCENT + "test_adversarial_gradients.py::test_no_gradient_is_longer_than_what_noise_is_paid_for",
    ),
    "half the noise in the last step of maps": Mutant(
        "private/dpsgd/steps.py",
        "noise_multiplier=cost.noise_multiplier,",
        "noise_multiplier=cost.noise_multiplier / (2 if step == cost.steps else 1),",
        AUDIT + "[classifier]",
    ),
    "half the noise in the last step of networks": Mutant(
        "private/dpsgd/steps.py",
        "noise_multiplier=cost.noise_multiplier,",
        "noise_multiplier=cost.noise_multiplier / (2 if step == cost.steps else 1),",
        AUDIT + "[private encoder]",
    ),
    "half the noise on second moments": Mutant(
        "private/dpsgd/classifier.py",
        "noise.add_noise(exact, noise_std, receipt) / RADIUS**2",
        "noise.add_noise(exact, noise_std // 2, receipt) / RADIUS**2",
        AUDIT + "[classifier]",
    ),
    "rows drawn more often than is paid for": Mutant(
        "private/dpsgd/steps.py",
        "places = drawn_rows(num_rows, cost.sampling_rate)",
        "places = drawn_rows(num_rows, min(1.0, 2 * cost.sampling_rate))",
        "private/test_audit_releases.py::test_likelihood_ratios_of_all_steps_lie_on_the_claimed_curve[few rows]",
    ),
    "answers that are not exact": Mutant(
        "private/dpsgd/classifier.py",
        "np.matmul(seen, np.swapaxes(whole, 1, 2)) / (RADIUS * WEIGHT_UNIT)",
        "np.matmul(seen.astype(np.float32), np.swapaxes(whole, 1, 2).astype(np.float32)).astype(np.float64)"
        " / (RADIUS * WEIGHT_UNIT)",
        DESCENT + "test_linear.py::test_answers_are_exact_however_many_inputs_there_are",
    ),
    "steps divided by the rows that were drawn": Mutant(
        "private/dpsgd/steps.py",
        "gradient = scale * noisy",
        "gradient = noisy * (plan.clip / max(1, len(places)))",
        DESCENT + "test_linear.py::test_steps_do_not_depend_on_how_many_rows_were_drawn_or_are_there",
    ),
    "noise for another norm": Mutant(
        "private/dpsgd/steps.py",
        "lattice_noise_std(radius**2, 1 / Fraction(noise_multiplier) ** 2)",
        "lattice_noise_std(radius**2, 2 / Fraction(noise_multiplier) ** 2)",
        DESCENT + "test_linear.py::test_noise_has_the_deviation_that_was_paid_for[1.0]",
    ),
    "batches of a fixed size": Mutant(
        "private/dpsgd/steps.py",
        "np.flatnonzero(words < round(rate * RATE_UNITS))",
        "np.sort(np.argsort(words)[: round(rate * num_rows)])",
        DESCENT + "test_drawing.py::test_every_row_is_drawn_with_the_same_chance_and_by_itself[0.25]",
    ),
    "sampling with a seed": Mutant(
        "private/dpsgd/steps.py",
        "np.frombuffer(os.urandom(4 * num_rows), dtype=np.uint32)",
        "np.random.default_rng(0).integers(0, 2**32, num_rows, dtype=np.uint32)",
        DESCENT + "test_drawing.py::test_two_draws_differ",
    ),
    "gradients of networks not clipped": Mutant(
        "private/dpsgd/steps.py",
        "gradients / np.maximum(row_norms(gradients), clip)[:, None]",
        "gradients / clip",
        DESCENT + "test_networks.py::test_a_step_adds_up_gradients_that_were_clipped_one_by_one",
    ),
    "a Gaussian that is too narrow for a descent": Mutant(
        "accounting/dpsgd.py",
        "return bool(np.all(found[:-1] <= allowed))",
        "return bool(np.mean(found[:-1] <= allowed) > 0.5)",
        "accounting/test_dpsgd.py::test_up_to_its_slack_a_descent_is_dominated_by_its_gaussian_everywhere",
    ),
    "slack that is not charged": Mutant(
        "private/ledger.py",
        "slack_units = math.ceil(Fraction(slack) * UNITS_PER_SLACK)",
        "slack_units = math.floor(Fraction(slack) * UNITS_PER_SLACK / 2)",
        "private/test_ledger.py::test_slack_is_granted_exactly_while_the_reserve_holds_it",
    ),
    "a reserve that is spent twice": Mutant(
        "private/ledger.py",
        "spendable = Budget(budget.epsilon, _without_reserve(budget.delta, slack_units))",
        "spendable = budget",
        "private/test_ledger.py::test_a_reserve_is_taken_from_delta_for_good",
    ),
    "a classifier trained before it is paid for": Mutant(
        "private/spending.py",
        "        private = read()\n",
        "        private = read()\n        draw(private, charge(bill, ledger=None, key=key))\n",
        "private/dpsgd/test_classifier.py::test_a_ledger_is_charged_before_noise_is_drawn",
    ),
    "later rounds of merged sums unpaid": Mutant(
        "private/parties.py",
        "paid(bill, ledger=ledger, key=key, read=exact",
        "paid(bill, ledger=ledger if request.round == 0 else None, key=key, read=exact",
        PARTIES + "test_every_merge_of_every_round_is_paid_for",
    ),
    "a later round without the ledger": Mutant(
        "private/parties.py",
        "(ledger is None) != (request.ledger is None)",
        "False",
        PARTIES + "test_a_ledger_is_given_in_every_round_or_in_none",
    ),
    "norms that hang on the block": Mutant(
        "private/dpsgd/steps.py",
        "np.maximum(row_norms(gradients), clip)",
        "np.maximum(np.sqrt(np.einsum('ij,ij->i', gradients, gradients)), clip)",
        "private/dpsgd/test_networks.py::test_a_long_gradient_is_clipped_alike_alone_and_beside_others",
    ),
    "rounding of steps forgotten": Mutant(
        "accounting/dpsgd.py",
        "return ROUNDING + ROUNDING_OF_A_STEP * cost.steps",
        "return ROUNDING",
        "accounting/test_dpsgd.py::test_what_transforms_lose_over_many_steps_is_allowed_for",
    ),
    "a Gaussian curve left of where it counts": Mutant(
        "accounting/dpsgd.py",
        "gaussian_delta(mu, grid[1:])",
        "gaussian_delta(mu, grid[:-1] * 0.98)",
        "accounting/test_dpsgd.py::test_up_to_its_slack_a_descent_is_dominated_by_its_gaussian_everywhere",
    ),
    "rows drawn less often than by chance": Mutant(
        "private/dpsgd/steps.py",
        "words < round(rate * RATE_UNITS)",
        "words < round(rate * rate * RATE_UNITS)",
        "private/dpsgd/test_drawing.py::test_every_row_is_drawn_with_the_same_chance_and_by_itself",
    ),
    "noise for one factor of an outer product": Mutant(
        "private/dpsgd/classifier.py",
        "radius=RADIUS**2)",
        "radius=RADIUS)",
        TRAINING + "test_noise_is_what_the_plan_says_whatever_the_rows_are",
    ),
    "gradients in blocks of their own number": Mutant(
        "private/dpsgd/networks.py",
        "padded = tuple(_padded(array[part], block) for array in rows)",
        "padded = tuple(array[part] for array in rows)",
        "private/dpsgd/test_networks.py::test_gradients_are_computed_in_blocks_of_one_shape",
    ),
    "replaced rows charged once": Mutant(
        "private/spending.py",
        "tuple(4 * cost for cost",
        "tuple(1 * cost for cost",
        TRAINING + "test_replaced_rows_are_charged_as_removed_and_added",
    ),
    "a stored release of another query": Mutant(
        "private/spending.py",
        'if dict(found.facts).get("query") != account.query:',
        "if False:",
        SPENDING + "test_a_key_is_not_resumed_with_another_query[release]",
    ),
    "a key of another plan found after reading": Mutant(
        "private/ledger.py",
        "    _granted(read_ledger(path), path, key=key, plan_id=plan_id, unit=unit",
        "    _granted(read_ledger(path), path, key=' ', plan_id=plan_id, unit=unit",
        SPENDING + "test_a_key_of_another_plan_is_refused_before_rows_are_read[append]",
    ),
    "rows without a label add": Mutant(
        "private/dpsgd/classifier.py",
        "whole[label == NULL] = 0",
        "whole[label == NULL] *= 1",
        TRAINING + "test_rows_without_a_label_add_nothing",
    ),
    "people and rows in one ledger": Mutant(
        "private/ledger.py",
        "others = set(state.units) - {unit}",
        "others: set[str] = set()",
        UNITS + "test_a_spend_for_others_is_refused_in_the_moment_of_spending",
    ),
    "a unit read from words": Mutant(
        "private/ledger.py",
        'if "unit" not in names:  # of an older version',
        "if True:",
        UNITS + "test_no_name_of_a_table_or_unit_passes_for_another_unit",
    ),
    "a second unit past the library": Mutant(
        "private/ledger.py",
        "WHERE unit <> NEW.unit)",
        "WHERE unit <> unit)",
        UNITS + "test_the_file_itself_keeps_units_and_refuses_a_second_one",
    ),
    "units of older rows lost": Mutant(
        "private/ledger.py",
        '            connection.executemany("UPDATE releases SET unit = ? WHERE number = ?", named)\n',
        "",
        UNITS
        + "test_older_ledgers_are_read_as_they_are_and_get_the_column_at_the_next_spend"
        + "[dp-merf on visits; per patient of at most 3 rows-patient-1]",
    ),
    "a classifier's machine checked after the charge": Mutant(
        "private/dpsgd/classifier.py",
        "    check_row_independence(plan.shape, plan.shape.first_weights(), plan.training.clip)\n",
        "",
        TRAINING + UNPAID,
    ),
    "an encoder's machine checked after the charge": Mutant(
        "private/dpsgd/encoder.py",
        "        check_row_gradients(start, row_loss, _no_rows(plan))\n",
        "",
        EXTRACTOR + UNPAID,
    ),
    "a decoder's machine checked after the charge": Mutant(
        "private/release.py",
        "            check_decoder(plan, plan.descent)\n",
        "            pass\n",
        "private/dpsgd/test_decoder.py::" + UNPAID,
    ),
    "bounds from data left out of certificates": Mutant(
        "released/certificate.py",
        '[*shared_assumptions(schema, facts), *own["assumptions"]]',
        'own["assumptions"]',
        "released/test_assumptions.py::test_a_certificate_states_what_every_product_rests_on"
        "[classifier-rounded-bounds from data]",
    ),
    "long ids as floats": Mutant(
        "schema/encode.py",
        "if pa.types.is_decimal(cells.type):  # as floats",
        "if pa.types.is_null(cells.type):  # as floats",
        PERSONS + "test_long_decimal_ids_stay_apart_and_short_ones_are_whole_numbers",
    ),
    "slack past the reserve": Mutant(
        "private/ledger.py",
        "if slack_units > state.remaining_slack_units:",
        "if slack_units > 2 * state.slack_cap_units:",
        "private/test_ledger.py::test_slack_is_granted_exactly_while_the_reserve_holds_it",
    ),
    "a descent beside stages past the budget": Mutant(
        "plan/plan.py",
        "if spent > self._total:",
        "if spent > 9 * self._total:",
        "methods/test_merf_ae.py::test_a_plan_whose_parts_cost_more_than_the_budget_is_no_plan",
    ),
    "a party's sum twice": Mutant(
        "private/parties.py",
        "for name in (f\"party {header['party']}\", f\"id {header['id']}\"):",
        "for name in ():",
        PARTIES + "test_the_same_file_or_party_twice_is_refused",
    ),
    "files summed again after a resume": Mutant(
        "private/secret_files.py",
        "if name not in done]",
        "]",
        "private/test_checkpoints.py::test_a_pass_that_was_cut_short_reads_each_file_once_in_all",
    ),
    "files counted as often as they are found": Mutant(
        "readers/sources.py",
        "    paths = _each_once(paths)\n",
        "    paths = sorted(paths)\n",
        "readers/test_readers.py::test_a_file_that_is_found_several_times_is_read_once",
    ),
    "a sum in a checkpoint before its file": Mutant(
        "private/secret_files.py",
        "total = self.summed.total.copy()",
        "total = self.summed.total",
        "private/test_checkpoints.py::test_an_interrupt_between_a_sum_and_its_name_leaves_neither[4]",
    ),
    "a progress bar that tells the number of rows": Mutant(
        "private/passes.py",
        "percent = min(100, 100 * self._done // self._expected) if self._expected else None",
        "percent = 100 * self._done / self._expected if self._expected else None",
        LOCAL + "test_progress_tells_a_share_in_whole_percent_and_nothing_else",
    ),
    "a pass that an interrupt does not end": Mutant(
        "private/passes.py",
        "as pool, queue.stopped_by_errors():",
        "as pool:",
        LOCAL + "test_an_interrupt_ends_the_pass_after_the_batches_at_hand",
    ),
    "a file named after it was read": Mutant(
        "private/secret_files.py",
        "(*self.summed.files, self._names[part])",
        "(*self.summed.files, name_of_part(part))",
        "private/test_checkpoints.py::test_a_file_that_changes_while_it_is_read_is_read_again",
    ),
    "mu squared passed off as epsilon": Mutant(
        "private/spending.py",
        "if state.is_pure:\n            raise",
        "if state.is_pure and plan.descent.cost.is_sampled:\n            raise",
        EXTRACTOR + "test_a_pure_ledger_is_refused_though_nothing_is_sampled",
    ),
    "an encoder trained before it is paid for": Mutant(
        "private/spending.py",
        "    if ledger is not None:\n        row = ledgers.spend(",
        "    if False:\n        row = ledgers.spend(",
        EXTRACTOR + "test_a_ledger_is_charged_before_and_caps_both_releases",
    ),
    "test noise of an encoder unmarked": Mutant(
        "plan/encoder.py",
        '"is_private": bool(facts["is_private"])',
        '"is_private": True',
        EXTRACTOR + "test_a_network_learnt_with_noise_for_tests_is_not_private_nor_is_what_is_made_with_it",
    ),
    "test noise of an encoder forgotten in releases": Mutant(
        "released/release.py",
        " and not self.plan.network_has_test_noise",
        "",
        EXTRACTOR + "test_a_network_learnt_with_noise_for_tests_is_not_private_nor_is_what_is_made_with_it",
    ),
    "test noise of an encoder forgotten in certificates": Mutant(
        "released/certificate.py",
        "if plan is not None and plan.network_has_test_noise:",
        "if plan is None and facts:",
        EXTRACTOR + "test_a_network_learnt_with_noise_for_tests_is_not_private_nor_is_what_is_made_with_it",
    ),
    "what is not private given back by its key": Mutant(
        "private/spending.py",
        " or not found.is_private:",
        ":",
        EXTRACTOR + "test_an_encoder_with_noise_for_tests_is_not_given_back_by_its_key",
    ),
    "a changed product given back by its key": Mutant(
        "private/spending.py",
        "if found.fingerprint != row.fingerprint or",
        "if",
        EXTRACTOR + "test_the_same_key_gives_the_stored_encoder_back_while_it_is_there_and_whole",
    ),
    "a network's cost left out of the guarantee": Mutant(
        "plan/plan.py",
        "return (*own, *([] if self.network_cost is None else [self.network_charge]))",
        "return tuple(own)",
        EXTRACTOR + "test_the_guarantee_of_a_release_is_that_of_its_moments_and_of_the_network_together",
    ),
    "a cost below nothing": Mutant(
        "accounting/mechanisms.py",
        "if self.mu_squared < 0 or self.slack < 0:",
        "if False:",
        EXTRACTOR + "test_a_plan_with_a_cost_that_is_none_is_damaged[-1]",
    ),
    "an encoder's cost not computed anew": Mutant(
        "released/encoder.py",
        "    if not follows:",
        "    if False:",
        EXTRACTOR + "test_a_cost_that_does_not_follow_from_the_plan_is_found",
    ),
    "a certified encoder taken for public": Mutant(
        "networks/public.py",
        "and (cost or not is_product)",
        "",
        EXTRACTOR + "test_an_encoder_with_a_certificate_but_without_its_cost_is_refused",
    ),
    "noise that asks for no receipt": Mutant(
        "private/noise.py",
        "        redeem(receipt)\n        return sums + _rejection_sample(lambda count: _gaussian(",
        "        return sums + _rejection_sample(lambda count: _gaussian(",
        SPENDING + "test_noise_without_a_receipt_is_refused[LongNoise-add_noise]",
    ),
    "a receipt that pays for ever": Mutant(
        "private/spending.py",
        "_UNDRAWN[receipt] = plan_id, left - 1",
        "_UNDRAWN[receipt] = plan_id, left",
        SPENDING + "test_a_receipt_pays_for_as_many_noisy_vectors_as_were_charged",
    ),
    "a receipt of another plan accepted": Mutant(
        "private/spending.py",
        "if _left(self)[0] != plan_id:",
        "if False:",
        SPENDING + "test_a_receipt_of_another_plan_is_refused",
    ),
    "receipts that anybody makes": Mutant(
        "private/spending.py",
        "if made_by is not _CHARGE:",
        "if False:",
        SPENDING + "test_nobody_but_the_charge_makes_a_receipt",
    ),
    "one receipt for two processes": Mutant(
        "private/spending.py",
        "after_in_child=lambda: _UNDRAWN.clear()",
        "after_in_child=lambda: None",
        SPENDING + "test_the_child_of_a_fork_has_no_receipts",
    ),
    "a product that the ledger is not told of": Mutant(
        "private/spending.py",
        "if ledger is not None and receipt is not None and receipt.row is not None:",
        "if False:",
        SPENDING + "test_every_verb_goes_through_the_steps_in_order[release]",
    ),
    "a charge before rows were read": Mutant(
        "private/spending.py",
        "        private = read()\n        receipt = charge(bill, ledger=ledger, key=key)\n",
        "        receipt = charge(bill, ledger=ledger, key=key)\n        private = read()\n",
        SPENDING + "test_every_verb_goes_through_the_steps_in_order[append]",
    ),
}
