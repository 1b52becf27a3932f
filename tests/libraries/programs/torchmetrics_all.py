"""torchmetrics: metrics of classification, regression, images, texts, retrieval and sound"""

import torch
import torchmetrics
from report import report
from torchmetrics import audio, classification, image, regression, retrieval, text

torch.manual_seed(0)
names = "Accuracy F1Score AUROC ConfusionMatrix AveragePrecision CalibrationError CohenKappa MatthewsCorrCoef Recall Specificity"
collection = torchmetrics.MetricCollection([getattr(classification, f"Multiclass{name}")(4) for name in names.split()])
for _ in range(3):
    collection.update(torch.randn(20, 4).softmax(-1), torch.randint(0, 4, (20,)))
report("classes", collection.compute())
report("curve", classification.BinaryROC()(torch.rand(10), torch.randint(0, 2, (10,))))
report("labels", classification.MultilabelF1Score(3)(torch.rand(8, 3), torch.randint(0, 2, (8, 3))))

names = "MeanSquaredError R2Score PearsonCorrCoef SpearmanCorrCoef KendallRankCorrCoef ExplainedVariance ConcordanceCorrCoef"
for name in names.split():
    report(name, getattr(regression, name)()(torch.randn(16).cumsum(0), torch.randn(16).cumsum(0)))

first, second = torch.rand(2, 3, 32, 32), torch.rand(2, 3, 32, 32)
report("structural similarity", image.StructuralSimilarityIndexMeasure(data_range=1.0)(first, second))
report("noise ratio", image.PeakSignalNoiseRatio(data_range=1.0)(first, second))
report("total variation", image.TotalVariation()(first))

report("perplexity", text.Perplexity()(torch.rand(2, 8, 5).log_softmax(-1), torch.randint(5, (2, 8))))
references = [["there is a cat on the mat", "a cat is on the mat"]]
report("BLEU", text.BLEUScore()(["the cat is on the mat"], references))
report("words", text.WordErrorRate()(["this is the prediction"], ["this is the reference"]))

groups = torch.arange(12) // 4
for metric in (retrieval.RetrievalMAP(), retrieval.RetrievalNormalizedDCG(), retrieval.RetrievalMRR()):
    report(type(metric).__name__, metric(torch.rand(12), torch.randint(2, (12,)), indexes=groups))
report("signal", audio.SignalNoiseRatio()(torch.randn(100), torch.randn(100)))
report("distortion", audio.ScaleInvariantSignalDistortionRatio()(torch.randn(100), torch.randn(100)))
report("mean", torchmetrics.MeanMetric()(torch.rand(9)))
report("running mean", torchmetrics.aggregation.RunningMean(3)(torch.rand(9)))
