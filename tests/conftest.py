"""What every test runs under."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from msmqwire.columns import allocated_bytes
from tests.system_programs import require_program

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# A shared or loaded machine must not fail a test for being slow; the number of examples is what we vouch for.
settings.register_profile("msmqwire", deadline=None, max_examples=300, print_blob=True)
settings.load_profile("msmqwire")

# JVMs that live for a minute, ours and those of commands and examples: compile quickly, not well
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")


@pytest.fixture
def everything_is_released() -> Iterator[None]:
    """No Buffer outlives the test."""
    gc.collect()
    before = allocated_bytes()
    yield
    gc.collect()
    assert allocated_bytes() == before


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One Spark for all tests of a process: starting it takes longer than most of them."""
    require_program("java")
    from msmqwire.spark.session import local_session

    settings = {
        "spark.driver.memory": "1g",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
        "spark.ui.showConsoleProgress": "false",
    }
    session = local_session("msmqwire tests", cores=2, settings=settings)
    yield session
    session.stop()
