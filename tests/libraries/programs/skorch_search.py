"""skorch: a classifier with callbacks, a regressor in a pipeline, a grid search of scikit-learn"""

import numpy as np
import torch
from report import report
from sklearn.datasets import make_classification
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from skorch import NeuralNetClassifier, NeuralNetRegressor
from skorch.callbacks import EarlyStopping, EpochScoring, GradientNormClipping, LRScheduler

X, y = make_classification(200, 10, random_state=0)
X, y = X.astype(np.float32), y.astype(np.int64)
torch.manual_seed(0)


class Net(torch.nn.Module):
    def __init__(self, width=8, outputs=2):
        super().__init__()
        self.hidden = torch.nn.Linear(10, width)
        self.dropout = torch.nn.Dropout(0.2)
        self.output = torch.nn.Linear(width, outputs)
        self.outputs = outputs

    def forward(self, x):
        x = self.output(self.dropout(self.hidden(x).relu()))
        return x.softmax(-1) if self.outputs > 1 else x


callbacks = [
    ("auc", EpochScoring("roc_auc", name="auc", lower_is_better=False)),
    ("rate", LRScheduler("StepLR", step_size=2)),
    ("clip", GradientNormClipping(1.0)),
    EarlyStopping(patience=5),
]
net = NeuralNetClassifier(Net, max_epochs=4, lr=0.1, optimizer=torch.optim.Adam, verbose=0, callbacks=callbacks)
net.fit(X, y)
for row in net.history:
    report("epoch", {key: float(row[key]) for key in ("train_loss", "valid_loss", "valid_acc", "auc")})
report("probabilities", torch.tensor(net.predict_proba(X[:5])))
report("score", net.score(X, y))

search = GridSearchCV(
    NeuralNetClassifier(Net, max_epochs=2, verbose=0, train_split=None),
    {"lr": [0.01, 0.1], "module__width": [4, 8]},
    cv=2,
    scoring="accuracy",
)
search.fit(X, y)
report("best", search.best_params_ | {"score": float(search.best_score_)})

regressor = NeuralNetRegressor(Net, module__outputs=1, max_epochs=3, lr=0.01, verbose=0, train_split=None)
pipeline = make_pipeline(StandardScaler(), regressor)
target = X[:, :3].sum(1, keepdims=True)
pipeline.fit(X, target)
report("regression", torch.tensor(pipeline.predict(X[:5])))
report("validation", cross_val_score(pipeline, X, target, cv=2).tolist())
