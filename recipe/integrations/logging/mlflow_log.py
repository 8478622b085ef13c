"""MLflow, through its client: no global state of the trainer's own MLflow run is touched."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from threading import RLock
from types import TracebackType

from recipe.errors import RecipeError
from recipe.integrations.logging.progress import missing

_BOUNDS = {"TIMEOUT": "10", "MAX_RETRIES": "2", "BACKOFF_FACTOR": "1"}
"""Of MLflow's requests, in seconds and tries, where its own variables are not set: it would wait minutes."""
_LOCK = RLock()


class MLflowLog:
    """Metrics of one run; opened again it goes on in the same MLflow run, found by the run's folder.

    MLflow keeps every value: what a process that was killed logged beyond the checkpoint stands beside what
    is logged there again, and the later one is the one it shows last.

    A server that does not answer is an error within a minute, when it is opened and at every ``log``:
    ``MLFLOW_HTTP_REQUEST_TIMEOUT`` and ``MLFLOW_HTTP_REQUEST_MAX_RETRIES`` allow it more or less.
    """

    def __init__(self, where: str, identity: Mapping[str, str], *, experiment: str = "recipe") -> None:
        """Open or go on with an MLflow run.

        Args:
            where: a tracking server or store: ``http://host:5000``, or ``sqlite:///mlflow.db`` with all of
                ``mlflow``: ``mlflow-skinny`` alone has no SQL.
            identity: what :func:`identity` gives. What does not change is a parameter, the manifest and step
                that it was opened at are tags.
            experiment: made if it is not there.

        Raises:
            RecipeError: MLflow is not installed, refuses the store, or does not answer.
        """
        try:
            from mlflow.entities import Metric
            from mlflow.tracking import MlflowClient
        except ImportError:
            raise missing("mlflow-skinny") from None
        self._metric, self._where = Metric, where
        with _answered(where):
            self._client = MlflowClient(tracking_uri=where)
            self._open(identity, experiment)

    def _open(self, identity: Mapping[str, str], experiment: str) -> None:
        known = self._client.get_experiment_by_name(experiment)
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
        """Numbers at a step, in one call.

        Raises:
            RecipeError: MLflow refuses them, or does not answer.
        """
        now = int(time.time() * 1000)
        metrics = [self._metric(name, float(value), now, step) for name, value in numbers.items()]
        with _answered(self._where):
            self._client.log_batch(self.run_id, metrics=metrics)

    def close(self) -> None:
        """The MLflow run is finished, until it is opened again."""
        self._end("FINISHED")

    def _end(self, status: str) -> None:
        with _answered(self._where):
            self._client.set_terminated(self.run_id, status=status)

    def __enter__(self) -> MLflowLog:
        """Itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        """Finished, or failed where an error passes."""
        if error is None:
            self._end("FINISHED")
        else:
            with suppress(RecipeError):  # the error that passes says more
                self._end("FAILED")


@contextmanager
def _answered(where: str) -> Iterator[None]:
    """Calls of MLflow's that end in bounded time, and fail as a RecipeError.

    It reads its bounds from the environment at every request; the trainer's own calls keep theirs.
    """
    from mlflow.exceptions import MlflowException

    with _LOCK:
        names = {f"MLFLOW_HTTP_REQUEST_{name}": value for name, value in _BOUNDS.items()}
        unset = {name: value for name, value in names.items() if name not in os.environ}
        os.environ.update(unset)
        try:
            yield
        except MlflowException as error:
            raise _refused(where, error) from None
        finally:
            for name in unset:
                os.environ.pop(name, None)


def _refused(where: str, error: Exception) -> RecipeError:
    said = " ".join(str(error).split())
    expected = f"a store that the installed MLflow takes: {said[:300]}"
    fix = "give a server's address, or install the whole package for SQL: pip install mlflow"
    if where.startswith(("http://", "https://")):
        expected = f"a server that answers and takes what is logged: {said[:300]}"
        fix = (
            "start the server (mlflow server), correct its address, or leave this log out; "
            "MLFLOW_HTTP_REQUEST_TIMEOUT allows a slow one more"
        )
    return RecipeError.single(
        "a log that cannot be written", "mlflow", given=where, expected=expected, fix=fix
    )
