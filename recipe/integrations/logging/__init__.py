"""A run's account in the trainer's logs: MLflow, Weights & Biases, TensorBoard, where they are installed."""

from recipe.integrations.logging.mlflow_log import MLflowLog
from recipe.integrations.logging.progress import identity, progress
from recipe.integrations.logging.tensorboard_log import TensorBoardLog
from recipe.integrations.logging.wandb_log import WandbLog

__all__ = ["MLflowLog", "TensorBoardLog", "WandbLog", "identity", "progress"]
