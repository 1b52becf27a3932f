"""torch_geometric: eleven convolutions trained, batches of graphs, pooling, heterogeneous graphs, utilities"""

import torch
import torch.nn.functional as F
from report import report
from torch_geometric.data import Data, HeteroData
from torch_geometric.loader import DataLoader
from torch_geometric.nn import (
    ChebConv,
    EdgeConv,
    GATConv,
    GATv2Conv,
    GCNConv,
    GINConv,
    HeteroConv,
    MessagePassing,
    RGCNConv,
    SAGEConv,
    SAGPooling,
    TransformerConv,
    global_add_pool,
    global_max_pool,
    global_mean_pool,
    to_hetero,
)
from torch_geometric.utils import degree, dropout_edge, scatter, softmax, to_dense_adj, to_undirected

torch.manual_seed(0)
x, y = torch.randn(10, 6), torch.randint(0, 3, (10,))
graph = Data(x=x, edge_index=to_undirected(torch.randint(0, 10, (2, 24))), y=y)
report("graph", str(graph))


class Mean(MessagePassing):
    """A convolution of one's own."""

    def __init__(self):
        super().__init__(aggr="mean")
        self.linear = torch.nn.Linear(6, 3)

    def forward(self, x, edge_index):
        return self.propagate(edge_index, x=self.linear(x))

    def message(self, x_i, x_j):
        return x_j - 0.5 * x_i


convolutions = {
    "GCN": GCNConv(6, 3),
    "Chebyshev": ChebConv(6, 3, K=2),
    "GAT": GATConv(6, 3, heads=2, concat=False),
    "GATv2": GATv2Conv(6, 3),
    "SAGE": SAGEConv(6, 3),
    "SAGE, max": SAGEConv(6, 3, aggr="max"),
    "GIN": GINConv(torch.nn.Linear(6, 3)),
    "transformer": TransformerConv(6, 3),
    "edges": EdgeConv(torch.nn.Linear(12, 3)),
    "own": Mean(),
}
for name, convolution in convolutions.items():
    optimizer = torch.optim.Adam(convolution.parameters(), 0.05)
    for _ in range(3):
        loss = F.cross_entropy(convolution(graph.x, graph.edge_index), graph.y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        report(name, loss)
report("relations", RGCNConv(6, 3, 2)(x, graph.edge_index, torch.arange(graph.num_edges) % 2))

graphs = [
    Data(x=torch.randn(n, 6), edge_index=torch.randint(0, n, (2, 8)), y=torch.tensor([n % 2])) for n in (4, 5, 6, 7)
]
convolution, pooling = GCNConv(6, 3), SAGPooling(6, 0.5)
for batch in DataLoader(graphs, 2):
    report("batch", str(batch))
    h = convolution(batch.x, batch.edge_index)
    for pool in (global_mean_pool, global_add_pool, global_max_pool):
        report(pool.__name__, pool(h, batch.batch))
    report("kept nodes", pooling(batch.x, batch.edge_index, batch=batch.batch)[0])
report("adjacency", to_dense_adj(graph.edge_index))
report("degree", degree(graph.edge_index[0]))
report("softmax", softmax(torch.randn(graph.num_edges), graph.edge_index[0]))
report("scatter", scatter(x, y, reduce="max"))
report("dropped edges", dropout_edge(graph.edge_index)[0])

hetero = HeteroData()
hetero["author"].x, hetero["paper"].x = torch.randn(4, 6), torch.randn(3, 6)
hetero["author", "writes", "paper"].edge_index = torch.tensor([[0, 1, 2], [0, 1, 2]])
hetero["paper", "cites", "author"].edge_index = torch.tensor([[0, 1], [1, 2]])
both = HeteroConv({kind: SAGEConv(6, 3) for kind in hetero.edge_types})
report("two relations", both(hetero.x_dict, hetero.edge_index_dict))


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = SAGEConv((-1, -1), 8), SAGEConv((-1, -1), 3)

    def forward(self, x, edge_index):
        return self.second(self.first(x, edge_index).relu(), edge_index)


net = to_hetero(Net(), hetero.metadata())
report("heterogeneous", net(hetero.x_dict, hetero.edge_index_dict))
