"""Will it fit? Traces training steps on fake tensors, on a machine without a GPU, and tells the memory that they will
take.

    from lowtide.torch import estimate
    print(estimate(model, batch, torch.optim.AdamW, memory="24GiB"))
"""

from lowtide.torch.estimation.answer.estimate import estimate
from lowtide.torch.estimation.answer.outcome import Estimate, Group

__all__ = ["Estimate", "Group", "estimate"]
