import pytest
from oracle import Oracle


@pytest.fixture(scope="session")
def oracle() -> type[Oracle]:
    return Oracle
