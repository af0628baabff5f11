import pytest
from oracle import Oracle
from seeded import seed

__all__ = ["seed"]


@pytest.fixture(scope="session")
def oracle() -> type[Oracle]:
    return Oracle
