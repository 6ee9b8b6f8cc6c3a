"""One Spark for all tests: starting it takes longer than most of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from msmqwire.spark.session import local_session
from tests.system_programs import require_program

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    require_program("java")
    settings = {
        "spark.driver.memory": "1g",
        # A JVM that lives for a minute: compile quickly, not well
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
        "spark.ui.showConsoleProgress": "false",
    }
    session = local_session("msmqwire tests", cores=2, settings=settings)
    yield session
    session.stop()
