"""MLflow, through its client: no global state of the trainer's own MLflow run is touched."""

from __future__ import annotations

import time
from collections.abc import Mapping
from types import TracebackType

from recipe.errors import RecipeError
from recipe.integrations.logging.progress import missing


class MLflowLog:
    """Metrics of one run; opened again it goes on in the same MLflow run, found by the run's folder.

    MLflow keeps every value: what a process that was killed logged beyond the checkpoint stands beside what
    is logged there again, and the later one is the one it shows last.
    """

    def __init__(self, uri: str, identity: Mapping[str, str], *, experiment: str = "recipe") -> None:
        """Open or go on with an MLflow run.

        Args:
            uri: of the tracking server or store, ``http://host:5000``, or ``sqlite:///mlflow.db`` with all of
                ``mlflow``: ``mlflow-skinny`` alone has no SQL.
            identity: what :func:`identity` gives. What does not change is a parameter, the manifest and step
                that it was opened at are tags.
            experiment: made if it is not there.

        Raises:
            RecipeError: MLflow is not installed, or refuses the store.
        """
        try:
            from mlflow.entities import Metric
            from mlflow.exceptions import MlflowException
            from mlflow.tracking import MlflowClient
        except ImportError:
            raise missing("mlflow-skinny") from None
        self._metric = Metric
        try:
            self._client = MlflowClient(tracking_uri=uri)
            known = self._client.get_experiment_by_name(experiment)
        except MlflowException as error:
            raise _refused(uri, error) from None
        place = known.experiment_id if known else self._client.create_experiment(experiment)
        path = identity["recipe.path"].replace("'", "")
        found = self._client.search_runs([place], f"tags.`recipe.path` = '{path}'", max_results=1)
        run = found[0] if found else self._client.create_run(place, run_name=identity["recipe.run"])
        self.run_id: str = run.info.run_id
        if found:
            self._client.update_run(self.run_id, status="RUNNING")
        for name, value in identity.items():
            self._client.set_tag(self.run_id, name, path if name == "recipe.path" else value)
        first = {"recipe.fingerprint": "recipe.fingerprint", "recipe.run": "recipe.run"}
        first |= {"recipe.manifest": "recipe.first_manifest"}
        for name, param in first.items():
            if param not in run.data.params:
                self._client.log_param(self.run_id, param, identity[name])

    def log(self, numbers: Mapping[str, float | int], step: int) -> None:
        """Numbers at a step, in one call."""
        now = int(time.time() * 1000)
        metrics = [self._metric(name, float(value), now, step) for name, value in numbers.items()]
        self._client.log_batch(self.run_id, metrics=metrics)

    def close(self) -> None:
        """The MLflow run is finished, until it is opened again."""
        self._client.set_terminated(self.run_id)

    def __enter__(self) -> MLflowLog:
        """Itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        """Finished, or failed where an error passes."""
        self._client.set_terminated(self.run_id, status="FINISHED" if error is None else "FAILED")


def _refused(uri: str, error: Exception) -> RecipeError:
    said = " ".join(str(error).split())
    return RecipeError.single(
        "a log that cannot be written",
        "mlflow",
        given=uri,
        expected=f"a store that the installed MLflow takes: {said[:300]}",
        fix="give a server's address, or install the whole package for SQL: pip install mlflow",
    )
