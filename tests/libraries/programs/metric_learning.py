"""pytorch_metric_learning: losses with miners, distances and reducers, cross-batch memory, an accuracy calculator; gradients"""

import torch
from pytorch_metric_learning import distances, losses, miners, reducers, regularizers
from report import report

torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4)).double()
x, labels = torch.randn(24, 8).double(), torch.arange(24) % 6
tried = {
    "triplet": losses.TripletMarginLoss(
        margin=0.2, distance=distances.CosineSimilarity(), reducer=reducers.AvgNonZeroReducer()
    ),
    "contrastive": losses.ContrastiveLoss(embedding_regularizer=regularizers.LpRegularizer()),
    "NT-Xent": losses.NTXentLoss(temperature=0.2),
    "multi-similarity": losses.MultiSimilarityLoss(),
    "ArcFace": losses.ArcFaceLoss(6, 4).double(),
    "proxy NCA": losses.ProxyNCALoss(6, 4).double(),
    "circle": losses.CircleLoss(),
    "supervised contrastive": losses.SupConLoss(),
    "lifted structure": losses.LiftedStructureLoss(),
}
for name, loss in tried.items():
    net.zero_grad()
    value = loss(net(x), labels)
    value.backward()
    report(f"{name}, loss", value)
    report(f"{name}, gradients", [p.grad for p in net.parameters()])
for miner in (
    miners.MultiSimilarityMiner(),
    miners.TripletMarginMiner(type_of_triplets="semihard"),
    miners.BatchHardMiner(),
):
    found = miner(net(x), labels)
    report(f"{type(miner).__name__}, pairs", [part.tolist() for part in found])
memory = losses.CrossBatchMemory(losses.TripletMarginLoss(), embedding_size=4, memory_size=48)
memory.embedding_memory = memory.embedding_memory.double()
for batch in range(3):
    report(f"memory, batch {batch}", memory(net(x + 0.1 * batch), labels))
