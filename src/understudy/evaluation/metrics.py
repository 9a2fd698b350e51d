"""Every metric that an evaluation may report: name, direction, range and what it means."""

from __future__ import annotations

from understudy.evaluation.results import Metric

NOT_THE_GUARANTEE = (
    "This is not the privacy guarantee: that is the epsilon and delta of the certificate, and a "
    "large distance here proves nothing."
)

_ALL = (
    Metric(
        "marginal_1",
        "Single columns",
        "lower",
        0.0,
        1.0,
        "Total variation distance of one column's shares, mean over the columns; numbers in 20 bins.",
    ),
    Metric(
        "marginal_2",
        "Pairs of columns",
        "lower",
        0.0,
        1.0,
        "Total variation distance of the joint shares of two columns, mean over the pairs.",
    ),
    Metric(
        "marginal_3",
        "Triples of columns",
        "lower",
        0.0,
        1.0,
        "Total variation distance of the joint shares of three columns, mean over the triples.",
    ),
    Metric(
        "marginal_4",
        "Quadruples of columns",
        "lower",
        0.0,
        1.0,
        "Total variation distance of the joint shares of four columns, mean over the quadruples.",
    ),
    Metric(
        "kolmogorov_smirnov",
        "Numbers, largest gap",
        "lower",
        0.0,
        1.0,
        "Largest gap between the cumulative shares of a number, mean over the numbers.",
    ),
    Metric(
        "wasserstein",
        "Numbers, mean shift",
        "lower",
        0.0,
        1.0,
        "How far a number's values have to be moved, as a share of its public range, mean over the numbers.",
    ),
    Metric(
        "null_share",
        "Missing cells",
        "lower",
        0.0,
        1.0,
        "Difference between the shares of missing cells, mean over the columns that may have them.",
    ),
    Metric(
        "invalid_cells", "Cells outside the schema", "lower", 0.0, 1.0, "Share of cells that the schema does not allow."
    ),
    Metric(
        "association_mean",
        "Associations, mean difference",
        "lower",
        0.0,
        1.0,
        "Difference between the strengths (0 to 1) with which two columns depend on each other, mean over the pairs.",
    ),
    Metric(
        "association_max",
        "Associations, largest difference",
        "lower",
        0.0,
        1.0,
        "The largest difference between the strengths with which two columns depend on each other.",
    ),
    Metric(
        "two_sample_auc_binned",
        "Told from real rows, in bins",
        "lower",
        0.5,
        1.0,
        "ROC-AUC of boosted trees that tell synthetic rows from real ones, numbers in 20 bins; 0.5 is a guess.",
    ),
    Metric(
        "two_sample_auc_raw",
        "Told from real rows",
        "lower",
        0.5,
        1.0,
        "ROC-AUC of boosted trees that tell synthetic rows from real ones by their exact values; 0.5 is a guess.",
    ),
    Metric(
        "kernel_distance",
        "Kernel distance",
        "lower",
        0.0,
        2.0,
        "Maximum mean discrepancy under a Gaussian kernel, of equally many rows on both sides.",
    ),
    Metric(
        "kernel_p_value",
        "Kernel test, p-value",
        "higher",
        0.0,
        1.0,
        "How often shuffled rows lie as far apart as synthetic and real ones; real halves draw it evenly "
        "from 0 to 1, and below 0.05 the test tells the two apart.",
    ),
    Metric(
        "roc_auc",
        "ROC-AUC on real test rows",
        "higher",
        0.0,
        1.0,
        "How well models trained on synthetic rows rank real ones; 0.5 is a guess. Mean over the models.",
    ),
    Metric(
        "prc_auc",
        "PRC-AUC on real test rows",
        "higher",
        0.0,
        1.0,
        "Area under precision and recall (average precision) of models trained on synthetic rows; a "
        "guess reaches the share of the positive class. Mean over the models.",
    ),
    Metric(
        "f1_weighted",
        "Weighted F1 on real test rows",
        "higher",
        0.0,
        1.0,
        "F1 of models trained on synthetic rows, classes weighted by their rows. Mean over the models.",
    ),
    Metric(
        "f1_macro",
        "Macro F1 on real test rows",
        "higher",
        0.0,
        1.0,
        "F1 of models trained on synthetic rows, every class alike. Mean over the models.",
    ),
    Metric(
        "accuracy",
        "Accuracy on real test rows",
        "higher",
        0.0,
        1.0,
        "Share of real rows that models trained on synthetic ones get right. Mean over the models.",
    ),
    Metric(
        "r2",
        "R2 on real test rows",
        "higher",
        -1.0,
        1.0,
        "Share of the label's variance that models trained on synthetic rows explain; below -1 counts "
        "as -1. Mean over the models.",
    ),
    Metric(
        "rmse",
        "RMSE on real test rows",
        "lower",
        0.0,
        None,
        "Root mean squared error of models trained on synthetic rows, in the label's own unit. Mean over the models.",
    ),
    Metric(
        "frechet_distance",
        "Frechet distance of images",
        "lower",
        0.0,
        None,
        "Squared distance between Gaussians of what a network makes of images. With Inception's weights it "
        "is called FID; with another network it compares only with itself.",
    ),
    Metric(
        "coverage",
        "Real images with a synthetic neighbour",
        "higher",
        0.0,
        1.0,
        "Share of real images to which a synthetic one comes nearer than their fifth real neighbour does, as "
        "a network sees them; where kinds of images are missing it is low.",
    ),
    Metric(
        "bins_apart",
        "Kinds of images too frequent or too rare",
        "lower",
        0.0,
        1.0,
        "Share of clusters of real images, as a network sees them, that hold another share of synthetic ones "
        "than chance allows (NDB over K).",
    ),
    Metric(
        "negative_log_likelihood",
        "Negative log-likelihood",
        "lower",
        0.0,
        None,
        "Mean of -log p(row) under the mixture that real rows were drawn from, in nats.",
    ),
    Metric(
        "neighbour_distance",
        "Distance to the nearest real row",
        "higher",
        0.0,
        None,
        "Median distance of a synthetic row to the nearest real one; far below the real halves it "
        f"suggests copies. {NOT_THE_GUARANTEE}",
    ),
    Metric(
        "copied_rows",
        "Rows equal to a real row",
        "lower",
        0.0,
        1.0,
        "Share of synthetic rows that equal a real one in every cell; real halves show how many do so by "
        f"chance. {NOT_THE_GUARANTEE}",
    ),
)

METRICS = {metric.key: metric for metric in _ALL}
